//! Reads `"x-guidance"`, by which llguidance's `%json` says how values are written.

use std::sync::Arc;

use serde_json::Value;

use super::super::json_schema::{JsonLayout, SchemaOptions, Whitespace};
use super::super::pattern::{self, PatternOptions};
use super::super::Regex;
use crate::{Error, ErrorKind, Result};

/// The options of the schema in a `%json`; the defaults, if it has none of its own.
///
/// # Errors
/// [`ErrorKind::Constraint`] for an option that cannot be honoured, with its JSON pointer.
pub(crate) fn schema_options(schema: &str) -> Result<SchemaOptions> {
    let mut options = SchemaOptions::default();
    if !schema.contains("x-guidance") {
        return Ok(options);
    }
    let Ok(Value::Object(mut schema)) = serde_json::from_str(schema) else { return Ok(options) };
    let given = match schema.remove("x-guidance") {
        None => return Ok(options),
        Some(Value::Object(given)) => given,
        Some(_) => {
            return Err(error("", "it is no object").help("write {\"whitespace_flexible\": false}, say"))
        }
    };
    let mut said = Said::default();
    for (key, value) in &given {
        said.take(key, value)?;
    }
    options.lenient = said.lenient;
    options.whitespace = match said.flexible {
        None => options.whitespace,
        Some(true) => Whitespace::Free,
        Some(false) => Whitespace::Compact,
    };
    if said.blank.is_some() || said.item.is_some() || said.key.is_some() {
        let blank = match (said.blank, said.flexible) {
            (Some(blank), _) => language("whitespace_pattern", blank)?.optional(),
            (None, Some(false)) => Regex::Empty,
            // As in llguidance, where white space is flexible unless it is said not to be.
            (None, _) => JsonLayout::blank(None),
        };
        let separator = |key: &str, said: Option<&str>, usual: &str| match said {
            None => Ok(Regex::text(usual)),
            Some(pattern) => {
                let read = language(key, pattern)?;
                let is_empty = crate::lazy::is_nullable(&read);
                if is_empty {
                    Err(error(key, "it may be empty").help("write what separates"))
                } else {
                    Ok(read)
                }
            }
        };
        let comma = separator("item_separator", said.item, ",")?;
        let colon = separator("key_separator", said.key, ":")?;
        options.layout = Some(Arc::new(JsonLayout { blank, comma, colon }));
    }
    Ok(options)
}

/// The language of a pattern.
fn language(key: &str, text: &str) -> Result<Regex> {
    pattern::parse(text, &PatternOptions::WHOLE).map_err(|wrong| wrong.within(&format!("/x-guidance/{key}")))
}

/// What the options say.
#[derive(Default)]
struct Said<'s> {
    flexible: Option<bool>,
    lenient: bool,
    blank: Option<&'s str>,
    item: Option<&'s str>,
    key: Option<&'s str>,
}

impl<'s> Said<'s> {
    fn take(&mut self, key: &str, value: &'s Value) -> Result<()> {
        match (key, value) {
            (_, Value::Null) | ("coerce_one_of", Value::Bool(false)) => {}
            ("whitespace_flexible", Value::Bool(is)) => self.flexible = Some(*is),
            ("lenient", Value::Bool(is)) => self.lenient = *is,
            ("whitespace_pattern", Value::String(text)) => self.blank = Some(text),
            ("item_separator", Value::String(text)) => self.item = Some(text),
            ("key_separator", Value::String(text)) => self.key = Some(text),
            _ => return Err(refused(key)),
        }
        Ok(())
    }
}

/// The error for an option that cannot be honoured, or not with its value.
fn refused(key: &str) -> Error {
    match key {
        "item_separator" | "key_separator" | "whitespace_pattern" => error(key, "it is no pattern"),
        "coerce_one_of" => {
            error(key, "`oneOf` is exact here").help("leave the option out, or write \"anyOf\"")
        }
        "json_allowed_escapes" => error(key, "escapes cannot be chosen").help(
            "leave it out: strings may have every escape, and what is named is written as json.dumps does",
        ),
        "whitespace_flexible" | "lenient" => error(key, "it is neither true nor false"),
        _ => error(key, "the option is not known").help(
            "known are whitespace_flexible, whitespace_pattern, item_separator, key_separator, lenient",
        ),
    }
}

fn error(key: &str, message: &str) -> Error {
    let place = if key.is_empty() { "/x-guidance".into() } else { format!("/x-guidance/{key}") };
    Error::new(ErrorKind::Constraint, message).at(place)
}
