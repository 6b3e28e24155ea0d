//! A token-tree payload that is a Python dict already: read without going through JSON text. The same rules and
//! the same errors, by JSON pointer.

use logitree::constraint::{Descriptor, Leaf, Payload, MAX_TOKEN_ID};
use logitree::{Error, ErrorKind, TokenId};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};

use crate::errors::to_py;

fn wrong(expected: &str, value: &Bound<'_, PyAny>, place: String) -> PyErr {
    let name = value.get_type().name().map_or_else(|_| "something else".into(), |n| n.to_string());
    to_py(
        Error::new(ErrorKind::Payload, format!("the payload cannot be read: {name}, expected {expected}"))
            .at(place),
    )
}

fn missing(field: &str, place: String) -> PyErr {
    to_py(
        Error::new(ErrorKind::Payload, format!("the payload cannot be read: missing field `{field}`"))
            .at(place),
    )
}

/// The items of a list or tuple.
fn items<'py>(
    value: &Bound<'py, PyAny>,
    what: &str,
    place: impl Fn() -> String,
    mut each: impl FnMut(usize, Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    if let Ok(list) = value.cast::<PyList>() {
        return list.iter().enumerate().try_for_each(|(i, item)| each(i, item));
    }
    match value.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().enumerate().try_for_each(|(i, item)| each(i, item)),
        Err(_) => Err(wrong(what, value, place())),
    }
}

fn text(value: &Bound<'_, PyAny>, place: impl Fn() -> String) -> PyResult<String> {
    let text = value.cast::<PyString>().map_err(|_| wrong("a string", value, place()))?;
    text.to_str().map(str::to_string).map_err(|_| wrong("text without half surrogate pairs", value, place()))
}

/// Reads the dict.
pub fn payload_from_python(from: &Bound<'_, PyDict>) -> PyResult<Payload> {
    let py = from.py();
    let model_id = match from.get_item(intern!(py, "modelId"))? {
        Some(id) if !id.is_none() => Some(text(&id, || "/modelId".into())?),
        _ => None,
    };
    let list =
        from.get_item(intern!(py, "descriptors"))?.ok_or_else(|| missing("descriptors", String::new()))?;
    let mut descriptors = Vec::new();
    items(
        &list,
        "an array of descriptors",
        || "/descriptors".into(),
        |d, item| {
            descriptors.push(descriptor(&item, d)?);
            Ok(())
        },
    )?;
    Ok(Payload { model_id, descriptors })
}

fn descriptor(item: &Bound<'_, PyAny>, d: usize) -> PyResult<Descriptor> {
    let py = item.py();
    let place = || format!("/descriptors/{d}");
    let dict = item.cast::<PyDict>().map_err(|_| wrong("a descriptor (an object)", item, place()))?;
    let path = dict.get_item(intern!(py, "path"))?.ok_or_else(|| missing("path", place()))?;
    let path = text(&path, || place() + "/path")?;
    let list = dict.get_item(intern!(py, "leaves"))?.ok_or_else(|| missing("leaves", place()))?;
    let mut leaves = Vec::new();
    items(
        &list,
        "an array of leaves",
        || place() + "/leaves",
        |l, item| {
            let place = || format!("/descriptors/{d}/leaves/{l}");
            let dict = item.cast::<PyDict>().map_err(|_| wrong("a leaf (an object)", &item, place()))?;
            let name = dict.get_item(intern!(py, "name"))?.ok_or_else(|| missing("name", place()))?;
            let name = text(&name, || place() + "/name")?;
            let list = dict.get_item(intern!(py, "tokens"))?.ok_or_else(|| missing("tokens", place()))?;
            let mut tokens = Vec::new();
            items(
                &list,
                "an array of token ids",
                || place() + "/tokens",
                |t, id| {
                    tokens.push(token(&id).ok_or_else(|| {
                        let what = format!("a token id (an integer from 0 to {MAX_TOKEN_ID})");
                        wrong(&what, &id, format!("{}/tokens/{t}", place()))
                    })?);
                    Ok(())
                },
            )?;
            leaves.push(Leaf { name, tokens });
            Ok(())
        },
    )?;
    Ok(Descriptor { path, leaves })
}

fn token(id: &Bound<'_, PyAny>) -> Option<TokenId> {
    if !id.is_exact_instance_of::<PyInt>() && id.is_instance_of::<PyBool>() {
        return None;
    }
    id.extract::<TokenId>().ok().filter(|&id| id <= MAX_TOKEN_ID)
}
