//! Loads JSON Schema documents: resolves references, types keywords, and reports every problem with its JSON pointer.
//!
//! ```text
//! text -> Document (an arena) -> SchemaRegistry (identifiers, anchors, dialects) -> SchemaLoader (reached subschemas)
//! ```

mod cycles;
mod dialect;
mod document;
mod fields;
mod keywords;
mod languages;
mod lenient;
mod loader;
mod meta_schemas;
mod parse;
mod print;
mod problems;
mod registry;
mod scope;
mod uri;

use super::{Schema, SchemaOptions};
use crate::Result;

pub(crate) use document::SchemaPlaces;

/// The schema in `text`, and what it refers to in `documents`: pairs of a URI and the JSON found there. Nothing is
/// fetched; the meta-schemas of the drafts are at hand.
///
/// # Errors
/// [`Constraint`](crate::ErrorKind::Constraint): the text is not JSON, or a reached keyword is malformed, cannot be
/// honoured, or refers to nothing: all of them in one message, each with its JSON pointer. With `options.lenient` the
/// latter are dropped and named in [`Schema::warnings`]. [`Limit`](crate::ErrorKind::Limit): a document is too large
/// or too deeply nested, or too many subschemas are reached. With a form of pairs also a key that it cannot write.
pub fn load(text: &str, options: &SchemaOptions, documents: &[(String, String)]) -> Result<Schema> {
    let read = || {
        let schema = loader::SchemaLoader::new(text, options, documents)?.load()?;
        options.pairs.as_ref().map_or(Ok(()), |form| form.check(&schema))?;
        Ok(schema)
    };
    read().map_err(|error| options.labelled(error))
}
