//! Plain Python values as JSON text, as `json.dumps` writes them but for characters past ASCII, which are not
//! escaped.

use std::fmt::Write;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// What nests deeper is not written here.
const DEPTH: u32 = 100;

/// What a text has room for at first.
const FIRST_BYTES: usize = 2_048;

/// The text of `object`; `None` if some value in it is not plain: a type derived from a plain one, a key that is no
/// `str`, a float that is no number, half of a surrogate pair, or one nested too deep.
pub fn write(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let mut text = String::with_capacity(FIRST_BYTES);
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
    let mut from = 0;
    // Most texts have nothing to escape, which is found out faster than where it is.
    let last = if has_escapes(of.as_bytes()) { of.len() } else { 0 };
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

fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Whether some byte is escaped: eight of them at a time, the last eight of a longer text perhaps twice.
fn has_escapes(bytes: &[u8]) -> bool {
    const ONES: u64 = u64::MAX / 255;
    // The top bit of each byte that is less than `limit`, which is at most 128; past the first one others may be set too.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & (ONES << 7);
    let in_word = |word: &[u8; 8]| {
        let word = u64::from_le_bytes(*word);
        let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        is(b'"') | is(b'\\') | below(word, 0x20) != 0
    };
    match bytes.last_chunk() {
        Some(last) => bytes.as_chunks().0.iter().any(in_word) || in_word(last),
        None => bytes.iter().copied().any(is_escaped),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_found_as_one_by_one() {
        for length in 0..28 {
            for before in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff] {
                let mut bytes = vec![before; length];
                assert!(!has_escapes(&bytes));
                for place in 0..length {
                    for byte in 0..=255 {
                        bytes[place] = byte;
                        assert_eq!(has_escapes(&bytes), is_escaped(byte), "{byte} at {place} of {length}");
                    }
                    bytes[place] = before;
                }
            }
        }
    }
}
