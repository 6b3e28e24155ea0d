//! JSON Schema documents, read: references are resolved, keywords get their types, and what the root reaches becomes a
//! [`Schema`]. All that is wrong is said at once, with its place.
//!
//! ```text
//! text -> Document (an arena) -> Registry (identifiers, anchors, dialects) -> Loader (subschemas on first reach)
//! ```
//!
//! It refuses to know how values are written and what keywords mean together.

mod cycles;
mod dialect;
mod document;
mod fields;
mod keywords;
mod languages;
mod lenient;
mod loader;
mod meta;
mod parse;
mod print;
mod problems;
mod registry;
mod scope;
mod uri;
mod values;

use serde_json::Value;

use super::{Options, Schema};
use crate::Result;

pub use document::Places;

/// The schema in `text`, and what it refers to in `documents`: pairs of a URI and the JSON found there. Nothing is
/// fetched; the meta-schemas of the drafts are at hand.
///
/// # Errors
/// [`Constraint`](crate::ErrorKind::Constraint): the text is not JSON, or a reached keyword is malformed, cannot be
/// honoured, or refers to nothing: all of them in one message, each with its JSON pointer. With `options.lenient` the
/// latter are dropped and named in [`Schema::warnings`]. [`Limit`](crate::ErrorKind::Limit): a document is too large
/// or too deeply nested, or too many subschemas are reached.
pub fn load(text: &str, options: &Options, documents: &[(String, String)]) -> Result<Schema> {
    loader::Loader::new(text, options, documents)?.load()
}

/// The schema in `value`: [`load`] for what is parsed already.
///
/// # Errors
/// As [`load`].
pub fn from_value(value: &Value, options: &Options, documents: &[(String, String)]) -> Result<Schema> {
    load(&value.to_string(), options, documents)
}
