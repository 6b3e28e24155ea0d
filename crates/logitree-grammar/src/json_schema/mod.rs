//! JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12, compiled to states of the Earley recogniser.
//!
//! ```text
//! text -> load (documents, references, keywords) -> Schema -> normalize (alternatives by type) -> compile (states)
//!                    format ---^                                              number ---^
//! ```

/// Declares the number of something in a table as a type of its own.
macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $name(u32);

        impl $name {
            fn new(index: usize) -> $name {
                $name(index as u32)
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

mod compile;
mod decimal;
mod format;
mod load;
mod normalize;
mod number;
mod options;
mod schema;
#[cfg(test)]
mod tests;

pub use compile::JsonRules;
pub use load::load;
pub use options::{Draft, KeyOrder, SchemaOptions, Whitespace};
pub use schema::Schema;

pub(crate) use load::SchemaPlaces;
pub(crate) use schema::{ItemsKeyword, Keywords, NumberBound, SchemaNode, SubschemaId, TypeSet};
