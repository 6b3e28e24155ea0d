//! JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12, compiled to states of the Earley recogniser.
//!
//! ```text
//! text -> load (documents, references, keywords) -> Schema -> normalize (alternatives by type) -> compile (states)
//!                    format ---^                                              number ---^
//! ```

mod compile;
mod decimal;
mod excludes;
mod format;
mod load;
mod normalize;
mod number;
mod options;
mod pairs;
mod schema;
mod strict;
#[cfg(test)]
mod tests;

pub use compile::JsonRules;
pub use excludes::without_texts;
pub use load::load;
pub use options::{Draft, JsonLayout, KeyOrder, NumberSpelling, SchemaOptions, Whitespace};
pub use pairs::{MarkerPart, PairForm, PairMiddle, PythonValues, PAIR_FORMS};
pub use schema::Schema;
pub use strict::{changed, strict};

pub(crate) use load::SchemaPlaces;
pub(crate) use schema::{ItemsKeyword, Keywords, NumberBound, SchemaNode, SubschemaId, TypeSet};
