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
    let mut flexible = None;
    let mut separators = [None, None];
    for (key, value) in &given {
        match (key.as_str(), value) {
            (_, Value::Null) | ("coerce_one_of", Value::Bool(false)) => {}
            ("whitespace_flexible", Value::Bool(is)) => flexible = Some(*is),
            ("lenient", Value::Bool(is)) => options.lenient = *is,
            ("item_separator", Value::String(text)) if is_separator(text, ',') => separators[0] = Some(text),
            ("key_separator", Value::String(text)) if is_separator(text, ':') => separators[1] = Some(text),
            ("item_separator" | "key_separator", _) => {
                let sign = if key == "item_separator" { ',' } else { ':' };
                let message = format!("it is not \"{sign}\" with white space about it");
                return Err(error(key, &message).help("patterns are not read"));
            }
            ("coerce_one_of", Value::Bool(true)) => {
                return Err(
                    error(key, "`oneOf` is exact here").help("leave the option out, or write \"anyOf\"")
                );
            }
            ("whitespace_pattern", _) => {
                let help = "use whitespace_flexible, item_separator and key_separator";
                return Err(error(key, "patterns of white space are not read").help(help));
            }
            ("json_allowed_escapes", _) => {
                let help = "leave it out: strings may have every escape, and what is named is written as json.dumps does";
                return Err(error(key, "escapes cannot be chosen").help(help));
            }
            ("whitespace_flexible" | "lenient" | "coerce_one_of", _) => {
                return Err(error(key, "it is neither true nor false"));
            }
            _ => {
                let known = "known are whitespace_flexible, item_separator, key_separator, lenient";
                return Err(error(key, "the option is not known").help(known));
            }
        }
    }
    let is_separated = separators.iter().any(Option::is_some);
    if flexible == Some(true) && is_separated {
        let help = "set whitespace_flexible to false: the separators are then all white space";
        return Err(error("whitespace_flexible", "separators leave no choice of white space").help(help));
    }
    options.whitespace = match flexible {
        None => options.whitespace,
        Some(true) => Whitespace::Free,
        Some(false) => Whitespace::Compact,
    };
    if is_separated {
        let [item, key] = separators;
        options.separators =
            Some((item.map_or(",", |text| text).into(), key.map_or(":", |text| text).into()));
    }
    Ok(options)
}

fn error(key: &str, message: &str) -> Error {
    let place = if key.is_empty() { "/x-guidance".into() } else { format!("/x-guidance/{key}") };
    Error::new(ErrorKind::Constraint, message).at(place)
}
