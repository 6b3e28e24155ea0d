//! Tests of the JSON Schema compiler against a plain validator, the JSON-Schema-Test-Suite, MaskBench and random schemas.

mod data;
mod format;
mod load;
mod order;
mod random;
mod rules;
mod validate;

use serde_json::Value;

use super::{Schema, SchemaOptions};
use crate::Result;

/// The schema in `value`: [`super::load`] for a parsed document.
fn from_value(value: &Value, options: &SchemaOptions, documents: &[(String, String)]) -> Result<Schema> {
    super::load(&value.to_string(), options, documents)
}
