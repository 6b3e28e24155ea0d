//! What grammars are made from, as Python has it: texts, JSON, tokens, options. Conversions only.

use std::ffi::CString;
use std::sync::Arc;

use logitree::grammar::json_schema::{Draft, KeyOrder, NumberSpelling, PairForm, SchemaOptions, Whitespace};
use logitree::grammar::lazy::{TokenTrigger, Triggers};
use logitree::grammar::rules::TokenName;
use logitree::{Error, ErrorKind};
use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping, PyString};

use super::json_text;
use crate::constraint::text_bytes;
use crate::errors::to_py;
use crate::vocabulary::token_id;

/// A `str`; `None` for anything else.
///
/// # Errors
/// `ConstraintError` if it holds half a surrogate pair.
pub fn text(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<String>> {
    if !object.is_instance_of::<PyString>() {
        return Ok(None);
    }
    let bytes = text_bytes(object, what)?;
    Ok(String::from_utf8(bytes).ok())
}

/// A `str`, else `TypeError`.
pub fn required(object: &Bound<'_, PyAny>, what: &str) -> PyResult<String> {
    match text(object, what)? {
        Some(text) => Ok(text),
        None => Err(PyTypeError::new_err(format!("{what} must be str, not {}", object.get_type().name()?))),
    }
}

/// A list of `str`, not one of them.
pub fn texts(object: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("texts must be a list of texts, not one text"));
    }
    object.try_iter()?.map(|text| required(&text?, "a choice")).collect()
}

/// JSON as text: a `str` or `bytes` is that, anything else is written as Python's `json.dumps`
/// does.
pub fn json(object: &Bound<'_, PyAny>, what: &str) -> PyResult<String> {
    if object.is_instance_of::<PyString>() {
        return required(object, what);
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return std::str::from_utf8(bytes.as_bytes()).map(str::to_string).map_err(|error| {
            let place = format!("byte {}", error.valid_up_to());
            to_py(Error::new(ErrorKind::Constraint, format!("{what} is not UTF-8")).at(place))
        });
    }
    match json_text::write(object)? {
        Some(text) => Ok(text),
        None => {
            let text = object.py().import("json")?.call_method1("dumps", (object,));
            text.map_err(|error| no_json(object.py(), error, what))?.extract()
        }
    }
}

/// What `json.dumps` cannot write is an error of ours, but for a wrong type.
fn no_json(py: Python<'_>, error: PyErr, what: &str) -> PyErr {
    if !error.is_instance_of::<PyValueError>(py) && !error.is_instance_of::<PyRecursionError>(py) {
        return error;
    }
    let said = error.value(py).to_string();
    to_py(Error::new(ErrorKind::Constraint, format!("{what} cannot be written as JSON: {said}")))
}

/// Documents that a schema may refer to: a mapping of URIs to JSON.
pub fn documents(object: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let items = object.cast::<PyMapping>()?.items()?;
    items
        .iter()
        .map(|item| {
            let (uri, document): (String, Bound<'_, PyAny>) = item.extract()?;
            let text = json(&document, "a document")?;
            Ok((uri, text))
        })
        .collect()
}

/// The options of a schema.
pub fn options(
    order: &str,
    whitespace: &str,
    separators: Option<(String, String)>,
    numbers: &str,
    ascii: bool,
    lenient: bool,
    draft: Option<&str>,
) -> PyResult<SchemaOptions> {
    let read = || {
        let draft = draft.map_or(Ok(Draft::Draft2020), Draft::from_name)?;
        let (order, whitespace) = (KeyOrder::from_name(order)?, Whitespace::from_name(whitespace)?);
        let numbers = NumberSpelling::from_name(numbers)?;
        let unset = SchemaOptions::default();
        Ok(SchemaOptions { order, whitespace, separators, numbers, ascii, lenient, draft, ..unset })
    };
    read().map_err(to_py)
}

/// A form of arguments.
pub fn pair_form(text: &str) -> PyResult<Arc<PairForm>> {
    let read = serde_json::from_str(text);
    read.map(Arc::new).map_err(|error| PyValueError::new_err(format!("no form of pairs: {error}")))
}

/// A token by its text or its id.
pub fn token(object: &Bound<'_, PyAny>) -> PyResult<TokenName> {
    match text(object, "token")? {
        Some(text) => Ok(TokenName::Text(text)),
        None => Ok(TokenName::Id(token_id(object.extract()?)?)),
    }
}

/// What triggers a lazy grammar. A token of a text triggers what the grammar writes as that text, too.
pub fn triggers(
    words: Option<&Bound<'_, PyAny>>,
    tokens: Option<&Bound<'_, PyAny>>,
    patterns: Option<&Bound<'_, PyAny>>,
) -> PyResult<Triggers> {
    let texts = |given: Option<&Bound<'_, PyAny>>| given.map_or(Ok(Vec::new()), texts);
    let mut named = Vec::new();
    if let Some(tokens) = tokens {
        for one in tokens.try_iter()? {
            let name = token(&one?)?;
            let text = match &name {
                TokenName::Text(text) => Some(text.clone()),
                TokenName::Id(_) => None,
            };
            named.push(TokenTrigger { name, text });
        }
    }
    Ok(Triggers { words: texts(words)?, tokens: named, patterns: texts(patterns)? })
}

/// Warns of what a schema says and is dropped.
pub fn warn(py: Python<'_>, dropped: &[&str]) -> PyResult<()> {
    if dropped.is_empty() {
        return Ok(());
    }
    let category = py.import("logitree._errors")?.getattr("SchemaWarning")?;
    for warning in dropped {
        PyErr::warn(py, &category, &CString::new(warning.replace('\0', "\\0"))?, 1)?;
    }
    Ok(())
}
