//! A token-tree payload that is a Python dict already: read without going through JSON text. The same rules and
//! the same errors, by JSON pointer.
//!
//! It is walked once to know its content, which finds a tree in the cache, and a second time only to build one. What
//! the second walk finds may differ: reading an id can run the caller's `__index__`.

use logitree::constraint::{Descriptor, Leaf, Payload, MAX_TOKEN_ID};
use logitree::{Error, ErrorKind, TokenId};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};

use crate::errors::to_py;

/// What a walk over a payload reports, in the payload's order.
trait Sink {
    fn model_id(&mut self, id: &str);
    fn descriptor(&mut self, path: &str);
    fn leaf(&mut self, name: &str);
    fn token(&mut self, id: TokenId);
}

/// The payload as one run of bytes, equal exactly for equal payloads. JSON text never begins like it.
struct Content(Vec<u8>);

impl Content {
    fn new() -> Self {
        let mut content = Content(Vec::with_capacity(2048));
        content.0.push(0);
        content
    }

    fn text(&mut self, tag: u8, text: &str) {
        self.0.push(tag);
        self.0.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }
}

impl Sink for Content {
    fn model_id(&mut self, id: &str) {
        self.text(1, id);
    }
    fn descriptor(&mut self, path: &str) {
        self.text(2, path);
    }
    fn leaf(&mut self, name: &str) {
        self.text(3, name);
    }
    fn token(&mut self, id: TokenId) {
        self.0.push(4);
        self.0.extend_from_slice(&id.to_le_bytes());
    }
}

impl Sink for Payload {
    fn model_id(&mut self, id: &str) {
        self.model_id = Some(id.to_string());
    }
    fn descriptor(&mut self, path: &str) {
        self.descriptors.push(Descriptor { path: path.to_string(), leaves: Vec::new() });
    }
    fn leaf(&mut self, name: &str) {
        if let Some(last) = self.descriptors.last_mut() {
            last.leaves.push(Leaf { name: name.to_string(), tokens: Vec::new() });
        }
    }
    fn token(&mut self, id: TokenId) {
        if let Some(last) = self.descriptors.last_mut().and_then(|d| d.leaves.last_mut()) {
            last.tokens.push(id);
        }
    }
}

/// Both at once.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn model_id(&mut self, id: &str) {
        self.0.model_id(id);
        self.1.model_id(id);
    }
    fn descriptor(&mut self, path: &str) {
        self.0.descriptor(path);
        self.1.descriptor(path);
    }
    fn leaf(&mut self, name: &str) {
        self.0.leaf(name);
        self.1.leaf(name);
    }
    fn token(&mut self, id: TokenId) {
        self.0.token(id);
        self.1.token(id);
    }
}

/// What the dict holds, for the cache to compare.
pub fn content(from: &Bound<'_, PyDict>) -> PyResult<Vec<u8>> {
    let mut content = Content::new();
    walk(from, &mut content)?;
    Ok(content.0)
}

/// The payload that the dict is, if it still holds `expected`.
pub fn payload(from: &Bound<'_, PyDict>, expected: &[u8]) -> PyResult<Payload> {
    let mut both = (Content::new(), Payload::default());
    walk(from, &mut both)?;
    if both.0 .0 != expected {
        return Err(to_py(Error::new(ErrorKind::Payload, "the payload changed while it was read")));
    }
    Ok(both.1)
}

fn wrong(expected: &str, value: &Bound<'_, PyAny>, place: String) -> PyErr {
    let name = value.get_type().name().map_or_else(|_| "something else".into(), |n| n.to_string());
    let message = format!("the payload cannot be read: {name}, expected {expected}");
    to_py(Error::new(ErrorKind::Payload, message).at(place))
}

fn missing(field: &str, place: String) -> PyErr {
    let message = format!("the payload cannot be read: missing field `{field}`");
    to_py(Error::new(ErrorKind::Payload, message).at(place))
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

fn text<'a>(value: &'a Bound<'_, PyAny>, place: impl Fn() -> String) -> PyResult<&'a str> {
    let text = value.cast::<PyString>().map_err(|_| wrong("a string", value, place()))?;
    text.to_str().map_err(|_| wrong("text without half surrogate pairs", value, place()))
}

fn walk(from: &Bound<'_, PyDict>, sink: &mut impl Sink) -> PyResult<()> {
    let py = from.py();
    if let Some(id) = from.get_item(intern!(py, "modelId"))?.filter(|id| !id.is_none()) {
        sink.model_id(text(&id, || "/modelId".into())?);
    }
    let list = from.get_item(intern!(py, "descriptors"))?;
    let list = list.ok_or_else(|| missing("descriptors", String::new()))?;
    items(&list, "an array of descriptors", || "/descriptors".into(), |d, item| descriptor(&item, d, sink))
}

fn descriptor(item: &Bound<'_, PyAny>, d: usize, sink: &mut impl Sink) -> PyResult<()> {
    let py = item.py();
    let place = || format!("/descriptors/{d}");
    let dict = item.cast::<PyDict>().map_err(|_| wrong("a descriptor (an object)", item, place()))?;
    let path = dict.get_item(intern!(py, "path"))?.ok_or_else(|| missing("path", place()))?;
    sink.descriptor(text(&path, || place() + "/path")?);
    let list = dict.get_item(intern!(py, "leaves"))?.ok_or_else(|| missing("leaves", place()))?;
    items(&list, "an array of leaves", || place() + "/leaves", |l, item| leaf(&item, (d, l), sink))
}

fn leaf(item: &Bound<'_, PyAny>, (d, l): (usize, usize), sink: &mut impl Sink) -> PyResult<()> {
    let py = item.py();
    let place = || format!("/descriptors/{d}/leaves/{l}");
    let dict = item.cast::<PyDict>().map_err(|_| wrong("a leaf (an object)", item, place()))?;
    let name = dict.get_item(intern!(py, "name"))?.ok_or_else(|| missing("name", place()))?;
    sink.leaf(text(&name, || place() + "/name")?);
    let list = dict.get_item(intern!(py, "tokens"))?.ok_or_else(|| missing("tokens", place()))?;
    items(
        &list,
        "an array of token ids",
        || place() + "/tokens",
        |t, id| {
            sink.token(token(&id).ok_or_else(|| {
                let what = format!("a token id (an integer from 0 to {MAX_TOKEN_ID})");
                wrong(&what, &id, format!("{}/tokens/{t}", place()))
            })?);
            Ok(())
        },
    )
}

fn token(id: &Bound<'_, PyAny>) -> Option<TokenId> {
    if !id.is_exact_instance_of::<PyInt>() && id.is_instance_of::<PyBool>() {
        return None;
    }
    id.extract::<TokenId>().ok().filter(|&id| id <= MAX_TOKEN_ID)
}
