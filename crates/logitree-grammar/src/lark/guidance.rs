//! Reads `"x-guidance"`, by which llguidance's `%json` says how values are written.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{json, Map, Value};

use super::super::json_schema::{changed, JsonLayout, SchemaOptions, Whitespace};
use super::super::pattern::{self, PatternOptions};
use super::super::Regex;
use crate::{Error, ErrorKind, Result};

/// The schema of a `%json` and its options; the defaults, if it has none of its own.
///
/// # Errors
/// [`ErrorKind::Constraint`] for an option that cannot be honoured, with its JSON pointer.
pub(crate) fn guided(text: &str) -> Result<(Cow<'_, str>, SchemaOptions)> {
    let mut options = SchemaOptions::default();
    if !text.contains("x-guidance") {
        return Ok((text.into(), options));
    }
    let Ok(Value::Object(mut schema)) = serde_json::from_str(text) else { return Ok((text.into(), options)) };
    let given = match schema.remove("x-guidance") {
        None => return Ok((text.into(), options)),
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
    let text = match said.coerces {
        true => changed(&Value::Object(schema), &any_of).to_string().into(),
        false => text.into(),
    };
    Ok((text, options))
}

/// `oneOf` as `anyOf`, beside another one if there is one.
fn any_of(mut keywords: Map<String, Value>) -> Value {
    if !keywords.contains_key("anyOf") {
        let renamed = |(keyword, value)| (if keyword == "oneOf" { "anyOf".into() } else { keyword }, value);
        return Value::Object(keywords.into_iter().map(renamed).collect());
    }
    if let Some(ways) = keywords.shift_remove("oneOf") {
        let all = keywords.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(all) = all {
            all.push(json!({ "anyOf": ways }));
        }
    }
    Value::Object(keywords)
}

/// The language of a pattern.
fn language(key: &str, text: &str) -> Result<Regex> {
    pattern::parse(text, &PatternOptions::WHOLE).map_err(|wrong| wrong.within(&format!("/x-guidance/{key}")))
}

/// What may follow a backslash in a string, in llguidance's default.
const ESCAPES: &str = "nrbtf\\\"u";

/// What the options say.
#[derive(Default)]
struct Said<'s> {
    flexible: Option<bool>,
    lenient: bool,
    coerces: bool,
    blank: Option<&'s str>,
    item: Option<&'s str>,
    key: Option<&'s str>,
}

impl<'s> Said<'s> {
    fn take(&mut self, key: &str, value: &'s Value) -> Result<()> {
        match (key, value) {
            (_, Value::Null) => {}
            ("coerce_one_of", Value::Bool(is)) => self.coerces = *is,
            ("whitespace_flexible", Value::Bool(is)) => self.flexible = Some(*is),
            ("lenient", Value::Bool(is)) => self.lenient = *is,
            // Strings may have every escape.
            ("json_allow_general_unicode_escapes", Value::Bool(true)) => {}
            ("json_allowed_escapes", Value::String(text))
                if ESCAPES.chars().all(|one| text.contains(one)) => {}
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
        "json_allowed_escapes" | "json_allow_general_unicode_escapes" => error(key, "escapes cannot be forbidden").help(
            "leave it out: strings may have every escape, and what is named is written as json.dumps does",
        ),
        "whitespace_flexible" | "lenient" | "coerce_one_of" => error(key, "it is neither true nor false"),
        _ => error(key, "the option is not known").help(
            "known are whitespace_flexible, whitespace_pattern, item_separator, key_separator, lenient, coerce_one_of",
        ),
    }
}

fn error(key: &str, message: &str) -> Error {
    let place = if key.is_empty() { "/x-guidance".into() } else { format!("/x-guidance/{key}") };
    Error::new(ErrorKind::Constraint, message).at(place)
}
