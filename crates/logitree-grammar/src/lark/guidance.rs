//! Reads `"x-guidance"`, by which llguidance's `%json` says how values are written.

use serde_json::Value;

use super::super::json_schema::{is_separator, SchemaOptions, Whitespace};
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
    let is_separated = said.item.is_some() || said.key.is_some();
    if said.flexible == Some(true) && is_separated {
        let help = "set whitespace_flexible to false: the separators are then all white space";
        return Err(error("whitespace_flexible", "separators leave no choice of white space").help(help));
    }
    options.lenient = said.lenient;
    options.whitespace = match said.flexible {
        None => options.whitespace,
        Some(true) => Whitespace::Free,
        Some(false) => Whitespace::Compact,
    };
    if is_separated {
        let or = |said: Option<&str>, usual: &str| said.unwrap_or(usual).to_string();
        options.separators = Some((or(said.item, ","), or(said.key, ":")));
    }
    Ok(options)
}

/// What the options say.
#[derive(Default)]
struct Said<'s> {
    flexible: Option<bool>,
    lenient: bool,
    item: Option<&'s str>,
    key: Option<&'s str>,
}

impl<'s> Said<'s> {
    fn take(&mut self, key: &str, value: &'s Value) -> Result<()> {
        match (key, value) {
            (_, Value::Null) | ("coerce_one_of", Value::Bool(false)) => {}
            ("whitespace_flexible", Value::Bool(is)) => self.flexible = Some(*is),
            ("lenient", Value::Bool(is)) => self.lenient = *is,
            ("item_separator", Value::String(text)) if is_separator(text, ',') => self.item = Some(text),
            ("key_separator", Value::String(text)) if is_separator(text, ':') => self.key = Some(text),
            _ => return Err(refused(key)),
        }
        Ok(())
    }
}

/// The error for an option that cannot be honoured, or not with its value.
fn refused(key: &str) -> Error {
    let patterns = "patterns are not read";
    match key {
        "item_separator" => error(key, "it is not \",\" with white space about it").help(patterns),
        "key_separator" => error(key, "it is not \":\" with white space about it").help(patterns),
        "coerce_one_of" => {
            error(key, "`oneOf` is exact here").help("leave the option out, or write \"anyOf\"")
        }
        "whitespace_pattern" => error(key, "patterns of white space are not read")
            .help("use whitespace_flexible, item_separator and key_separator"),
        "json_allowed_escapes" => error(key, "escapes cannot be chosen").help(
            "leave it out: strings may have every escape, and what is named is written as json.dumps does",
        ),
        "whitespace_flexible" | "lenient" => error(key, "it is neither true nor false"),
        _ => error(key, "the option is not known")
            .help("known are whitespace_flexible, item_separator, key_separator, lenient"),
    }
}

fn error(key: &str, message: &str) -> Error {
    let place = if key.is_empty() { "/x-guidance".into() } else { format!("/x-guidance/{key}") };
    Error::new(ErrorKind::Constraint, message).at(place)
}
