//! A token-tree payload that is a Python dict already: written as JSON text, with the fields that a payload has, for the
//! core to look up and to read. Errors name the place by JSON pointer.

use std::fmt::Write;

use logitree::Error;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::grammar::json_text;

/// How deep a token is: three dicts, each with a list.
const DEPTH: usize = 6;

/// The JSON text of a payload.
pub struct JsonText {
    /// The text, up to the first value that JSON does not have.
    pub text: String,
    /// What that value is.
    foreign: Option<String>,
}

impl JsonText {
    /// Writes the dict.
    pub fn of(payload: &Bound<'_, PyDict>) -> PyResult<JsonText> {
        let mut made = JsonText { text: String::with_capacity(2048), foreign: None };
        made.value(payload, 0)?;
        Ok(made)
    }

    /// The reader's error as one of the dict, which has no lines.
    pub fn error(&self, mut error: Error) -> Error {
        if let Some((pointer, _)) = error.place.rsplit_once("line ") {
            error.place = pointer.trim_end_matches(", ").to_string();
        }
        match &self.foreign {
            Some(kind) if error.message.contains("EOF") => {
                error.message = format!("the payload cannot be read: {kind} is not a JSON value");
                error
            }
            _ => error,
        }
    }

    /// Writes a value inside `depth` dicts and lists; whether JSON has it.
    fn value(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<bool> {
        let py = value.py();
        if depth > DEPTH {
            return Ok(self.stop("a value nested too deep".into()));
        }
        if value.is_exact_instance_of::<PyInt>() {
            match value.extract() {
                Ok(id) => digits(id, &mut self.text),
                Err(_) => self.text.push_str(value.str()?.to_str()?),
            }
            return Ok(true);
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            let fields = match depth {
                0 => [
                    (intern!(py, "modelId"), "\"modelId\":"),
                    (intern!(py, "descriptors"), "\"descriptors\":"),
                ],
                2 => [(intern!(py, "path"), "\"path\":"), (intern!(py, "leaves"), "\"leaves\":")],
                _ => [(intern!(py, "name"), "\"name\":"), (intern!(py, "tokens"), "\"tokens\":")],
            };
            let mut between = "{";
            for (field, written) in fields {
                let Some(item) = dict.get_item(field)? else { continue };
                self.text.push_str(between);
                self.text.push_str(written);
                between = ",";
                if !self.value(&item, depth + 1)? {
                    return Ok(false);
                }
            }
            self.text.push_str(if between == "{" { "{}" } else { "}" });
            return Ok(true);
        }
        if let Ok(list) = value.cast::<PyList>() {
            return self.items(list.iter(), depth + 1);
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            return self.items(tuple.iter(), depth + 1);
        }
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(json_text::string(text, &mut self.text) || self.stop("half a surrogate pair".into()));
        }
        if let Ok(truth) = value.cast::<PyBool>() {
            self.text.push_str(if truth.is_true() { "true" } else { "false" });
        } else if value.is_none() {
            self.text.push_str("null");
        } else if let Ok(number) = value.extract::<i64>() {
            // Also what has `__index__`. Writing to a String cannot fail.
            let _ = write!(self.text, "{number}");
        } else if let Ok(number) = value.cast::<PyFloat>() {
            let _ = write!(self.text, "{:?}", number.value());
        } else {
            let name = value.get_type().name().map_or_else(|_| "something else".into(), |n| n.to_string());
            return Ok(self.stop(name));
        }
        Ok(true)
    }

    fn items<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>, depth: usize) -> PyResult<bool> {
        let mut between = '[';
        for item in items {
            self.text.push(between);
            between = ',';
            if !self.value(&item, depth)? {
                return Ok(false);
            }
        }
        self.text.push_str(if between == '[' { "[]" } else { "]" });
        Ok(true)
    }

    /// Ends the text within a value, so that the reader's error is at that value.
    fn stop(&mut self, kind: String) -> bool {
        self.text.push('"');
        self.foreign = Some(kind);
        false
    }
}

/// Writes the number, faster than by `fmt`: a payload is mostly ids.
fn digits(mut number: u32, text: &mut String) {
    let (mut written, mut at) = ([0; 10], 10);
    loop {
        at -= 1;
        written[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    // Digits are text.
    text.push_str(std::str::from_utf8(&written[at..]).unwrap_or_default());
}
