//! The metadata of a GGUF file: keys and typed values, borrowed from the file's bytes.
//!
//! Layout (versions 2 and 3, little-endian): "GGUF", u32 version, u64 tensors, u64 pairs, then per pair a string
//! key (u64 length, bytes), a u32 type and a value; an array is a u32 element type, a u64 count and its elements.

use super::reader::Cursor;
use crate::{Error, Result};
use std::fmt::Display;

/// Maximum nesting of arrays.
const MAX_NESTING: usize = 8;

const TYPE_BOOL: u32 = 7;
pub(crate) const TYPE_STRING: u32 = 8;
const TYPE_ARRAY: u32 = 9;

/// Size in bytes of a value of a fixed-size type.
fn fixed_size(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | TYPE_BOOL => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// One value. Numbers other than integers are read past and forgotten.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Integer(i128),
    Bool(bool),
    String(&'a [u8]),
    Array { kind: u32, count: u64, at: usize },
    Other,
}

/// The pairs of a file, in its order, those whose key `keep` wants.
#[derive(Debug)]
pub(crate) struct Metadata<'a> {
    bytes: &'a [u8],
    pairs: Vec<(&'a [u8], usize, Value<'a>)>,
}

impl<'a> Metadata<'a> {
    /// Reads the metadata of a file that starts at `bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary) if the bytes are no GGUF file, of a version that is
    /// not read, malformed or truncated.
    pub fn read(bytes: &'a [u8], keep: impl Fn(&[u8]) -> bool) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, 0);
        if cursor.take(4, "magic")? != b"GGUF" {
            return Err(
                Cursor::new(bytes, 0).fail("not a GGUF file: it does not start with \"GGUF\"", "magic")
            );
        }
        let version = cursor.u32("version")?;
        if !matches!(version, 2 | 3) {
            return Err(Cursor::new(bytes, 4)
                .fail(format!("GGUF version {version} is not read"), "version")
                .help("versions 2 and 3, little-endian, are: convert the file again"));
        }
        cursor.u64("tensor_count")?;
        let count = cursor.u64("metadata_kv_count")?;
        let mut pairs = Vec::new();
        for index in 0..count {
            let length = cursor.u64(format_args!("metadata[{index}].key"))?;
            let key = cursor.take(length, format_args!("metadata[{index}].key"))?;
            let at = cursor.offset();
            let value = read_value(&mut cursor, &Key(key))?;
            if keep(key) {
                pairs.push((key, at, value));
            }
        }
        Ok(Metadata { bytes, pairs })
    }

    fn get(&self, key: &str) -> Result<Option<(usize, Value<'a>)>> {
        let mut found = self.pairs.iter().filter(|(k, _, _)| *k == key.as_bytes());
        let first = found.next().map(|(_, at, value)| (*at, *value));
        match found.next() {
            Some((_, at, _)) => Err(Cursor::new(self.bytes, *at).fail("the key occurs twice", key)),
            None => Ok(first),
        }
    }

    /// Offset and bytes of the string at `key`.
    pub fn string(&self, key: &str) -> Result<Option<(usize, &'a [u8])>> {
        match self.get(key)? {
            None => Ok(None),
            Some((at, Value::String(text))) => Ok(Some((at, text))),
            Some((at, other)) => Err(self.unexpected("a string", other, at, key)),
        }
    }

    /// Offset and value of the integer at `key`, of any width and sign.
    pub fn integer(&self, key: &str) -> Result<Option<(usize, i128)>> {
        match self.get(key)? {
            None => Ok(None),
            Some((at, Value::Integer(number))) => Ok(Some((at, number))),
            Some((at, other)) => Err(self.unexpected("an integer", other, at, key)),
        }
    }

    /// The truth value at `key`.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        match self.get(key)? {
            None => Ok(None),
            Some((_, Value::Bool(truth))) => Ok(Some(truth)),
            Some((at, other)) => Err(self.unexpected("a bool", other, at, key)),
        }
    }

    /// Element count of the array of `kind` at `key`, and a cursor at its first element. All elements are known
    /// to be there.
    pub fn array(&self, key: &str, kinds: &[u32]) -> Result<Option<(usize, Cursor<'a>)>> {
        match self.get(key)? {
            None => Ok(None),
            Some((_, Value::Array { kind, count, at })) if kinds.contains(&kind) => {
                Ok(Some((count as usize, Cursor::new(self.bytes, at))))
            }
            Some((at, other)) => {
                let wanted = format!("an array of type {kinds:?}");
                Err(self.unexpected(&wanted, other, at, key))
            }
        }
    }

    fn unexpected(&self, wanted: &str, found: Value<'_>, at: usize, key: &str) -> Error {
        let found = match found {
            Value::Integer(_) => "an integer".to_string(),
            Value::Bool(_) => "a bool".to_string(),
            Value::String(_) => "a string".to_string(),
            Value::Array { kind, .. } => format!("an array of type {kind}"),
            Value::Other => "a floating-point number".to_string(),
        };
        Cursor::new(self.bytes, at).fail(format!("{wanted} expected, found {found}"), key)
    }
}

/// A key as text, cut to a readable length.
struct Key<'a>(&'a [u8]);

impl Display for Key<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.0[..self.0.len().min(100)];
        f.write_str(&String::from_utf8_lossy(shown))
    }
}

fn read_value<'a>(cursor: &mut Cursor<'a>, key: &Key<'_>) -> Result<Value<'a>> {
    let kind = cursor.u32(key)?;
    Ok(match kind {
        0 => Value::Integer(cursor.u8(key)?.into()),
        1 => Value::Integer((cursor.u8(key)? as i8).into()),
        2 => Value::Integer(cursor.u16(key)?.into()),
        3 => Value::Integer((cursor.u16(key)? as i16).into()),
        4 => Value::Integer(cursor.u32(key)?.into()),
        5 => Value::Integer((cursor.u32(key)? as i32).into()),
        10 => Value::Integer(cursor.u64(key)?.into()),
        11 => Value::Integer((cursor.u64(key)? as i64).into()),
        TYPE_BOOL => Value::Bool(cursor.u8(key)? != 0),
        TYPE_STRING => {
            let length = cursor.u64(key)?;
            Value::String(cursor.take(length, key)?)
        }
        TYPE_ARRAY => {
            let (kind, count) = read_array_head(cursor, key)?;
            let at = cursor.offset();
            skip_elements(cursor, kind, count, key)?;
            Value::Array { kind, count, at }
        }
        6 | 12 => {
            cursor.take(if kind == 6 { 4 } else { 8 }, key)?;
            Value::Other
        }
        _ => return Err(cursor.fail(format!("type {kind} is no GGUF type"), key)),
    })
}

/// Element type and count of an array, checked against what is left: a count that passes is bounded by the file.
fn read_array_head(cursor: &mut Cursor<'_>, key: &Key<'_>) -> Result<(u32, u64)> {
    let kind = cursor.u32(key)?;
    let smallest = match kind {
        TYPE_STRING => 8,
        TYPE_ARRAY => 12,
        _ => fixed_size(kind).ok_or_else(|| cursor.fail(format!("type {kind} is no GGUF type"), key))?,
    };
    let count = cursor.u64(key)?;
    if count > cursor.remaining() as u64 / smallest {
        let left = cursor.remaining();
        return Err(cursor.fail(format!("an array of {count} elements does not fit in {left} bytes"), key));
    }
    Ok((kind, count))
}

/// Skips the elements of an array; open arrays are kept on a bounded stack.
fn skip_elements(cursor: &mut Cursor<'_>, kind: u32, count: u64, key: &Key<'_>) -> Result<()> {
    let mut open = vec![(kind, count)];
    while let Some((kind, left)) = open.last_mut() {
        if let Some(size) = fixed_size(*kind) {
            cursor.take(*left * size, key)?;
            open.pop();
        } else if *left == 0 {
            open.pop();
        } else if *kind == TYPE_STRING {
            while *left > 0 {
                let index = count.saturating_sub(*left);
                *left -= 1;
                let length = cursor.u64(format_args!("{key}[{index}]"))?;
                cursor.take(length, format_args!("{key}[{index}]"))?;
            }
        } else {
            *left -= 1;
            if open.len() == MAX_NESTING {
                return Err(cursor.fail(format!("arrays nested more than {MAX_NESTING} deep"), key));
            }
            open.push(read_array_head(cursor, key)?);
        }
    }
    Ok(())
}
