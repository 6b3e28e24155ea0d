//! Plain Python values as JSON text, as `json.dumps` writes them but for characters past ASCII, which are not
//! escaped.

use std::fmt::Write;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// What nests deeper is not written here.
const DEPTH: u32 = 100;

/// The text of `object`; `None` if some value in it is not plain: a type derived from a plain one, a key that is no
/// `str`, a float that is no number, half of a surrogate pair, or one nested too deep.
pub fn write(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let mut text = String::new();
    Ok(value(object, DEPTH, &mut text)?.then_some(text))
}

/// Whether it was plain; otherwise the text is spoiled.
fn value(object: &Bound<'_, PyAny>, depth: u32, text: &mut String) -> PyResult<bool> {
    let Some(below) = depth.checked_sub(1) else { return Ok(false) };
    if let Ok(of) = object.cast_exact::<PyString>() {
        return Ok(string(of, text));
    }
    if let Ok(of) = object.cast_exact::<PyDict>() {
        text.push('{');
        for (n, (key, item)) in of.iter().enumerate() {
            text.push_str(if n == 0 { "" } else { ", " });
            let Ok(key) = key.cast_exact::<PyString>() else { return Ok(false) };
            if !string(key, text) {
                return Ok(false);
            }
            text.push_str(": ");
            if !value(&item, below, text)? {
                return Ok(false);
            }
        }
        text.push('}');
    } else if let Ok(of) = object.cast_exact::<PyList>() {
        return items(of.iter(), below, text);
    } else if let Ok(of) = object.cast_exact::<PyTuple>() {
        return items(of.iter(), below, text);
    } else if let Ok(of) = object.cast_exact::<PyBool>() {
        text.push_str(if of.is_true() { "true" } else { "false" });
    } else if object.is_none() {
        text.push_str("null");
    } else if object.is_exact_instance_of::<PyInt>() {
        // Python refuses to write numbers of thousands of digits.
        let Ok(digits) = object.str() else { return Ok(false) };
        text.push_str(digits.to_str()?);
    } else if let Ok(of) = object.cast_exact::<PyFloat>() {
        if !of.value().is_finite() {
            return Ok(false);
        }
        text.push_str(object.repr()?.to_str()?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn items<'py>(of: impl Iterator<Item = Bound<'py, PyAny>>, depth: u32, text: &mut String) -> PyResult<bool> {
    text.push('[');
    for (n, item) in of.enumerate() {
        text.push_str(if n == 0 { "" } else { ", " });
        if !value(&item, depth, text)? {
            return Ok(false);
        }
    }
    text.push(']');
    Ok(true)
}

/// Writes the text in quotes; whether it is text, without half a surrogate pair.
pub fn string(of: &Bound<'_, PyString>, text: &mut String) -> bool {
    let Ok(of) = of.to_str() else { return false };
    text.push('"');
    let is_escaped = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    let mut from = 0;
    // Most texts have nothing to escape, which is found out faster than where it is, many bytes at a time.
    let escapes = of.bytes().fold(false, |any, byte| any | is_escaped(byte));
    let last = if escapes { of.len() } else { 0 };
    for (at, byte) in of.bytes().take(last).enumerate().filter(|&(_, byte)| is_escaped(byte)) {
        text.push_str(&of[from..at]);
        from = at + 1;
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            control => {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{control:04x}");
            }
        }
    }
    text.push_str(&of[from..]);
    text.push('"');
    true
}
