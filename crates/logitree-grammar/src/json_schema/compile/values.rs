//! Values of JSON that are remembered while a text is written, and the texts that are read to find them. Both are interned:
//! equal values have one number, and texts with a common beginning share it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::decimal::Decimal;
use crate::{id, Error, ErrorKind, Result};

id!(
    /// A value in [`ValueTable`]; equal values have one number.
    pub(super) struct ValueId
);
id!(
    /// A text in [`TextTable`].
    pub(super) struct TextId
);

/// Maximum number of bytes of one remembered value.
const MAX_BYTES: u32 = 1 << 16;

/// A value by its parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum JsonValue {
    Null,
    Bool(bool),
    Number(Decimal),
    Text(Arc<str>),
    Array(Arc<[ValueId]>),
    /// Keys, which are texts, and values, sorted by key.
    Object(Arc<[(ValueId, ValueId)]>),
}

/// Values by number.
#[derive(Default)]
pub(super) struct ValueTable {
    /// Each with about how many bytes it is written in.
    all: Vec<(JsonValue, u32)>,
    ids: FxHashMap<JsonValue, ValueId>,
    bytes: usize,
}

impl ValueTable {
    pub(super) fn get(&self, id: ValueId) -> &JsonValue {
        &self.all[id.index()].0
    }

    /// The number of `value`.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if it is too long.
    pub(super) fn id(&mut self, value: JsonValue) -> Result<ValueId> {
        if let Some(&known) = self.ids.get(&value) {
            return Ok(known);
        }
        let sizes = |ids: &mut dyn Iterator<Item = ValueId>| -> u64 {
            ids.map(|id| u64::from(self.all[id.index()].1) + 1).sum()
        };
        let size = match &value {
            JsonValue::Null | JsonValue::Bool(_) => 4,
            JsonValue::Number(number) => number.digits.len() as u64 + 1,
            JsonValue::Text(text) => text.len() as u64 + 2,
            JsonValue::Array(items) => 2 + sizes(&mut items.iter().copied()),
            JsonValue::Object(members) => {
                2 + sizes(&mut members.iter().flat_map(|&(key, value)| [key, value]))
            }
        };
        let size = u32::try_from(size).ok().filter(|&size| size <= MAX_BYTES).ok_or_else(too_long)?;
        let id = ValueId::new(self.all.len());
        self.bytes += 3 * std::mem::size_of::<(JsonValue, u32)>() + size as usize;
        self.all.push((value.clone(), size));
        self.ids.insert(value, id);
        Ok(id)
    }

    /// The string `text`.
    ///
    /// # Errors
    /// As [`ValueTable::id`].
    pub(super) fn text(&mut self, text: &str) -> Result<ValueId> {
        self.id(JsonValue::Text(text.into()))
    }

    /// The value of a whole text of `null`, a boolean, a number or a string.
    ///
    /// # Errors
    /// As [`ValueTable::id`].
    pub(super) fn scalar(&mut self, text: &[u8]) -> Result<ValueId> {
        let value = match text.first() {
            Some(b'n') => JsonValue::Null,
            Some(b't') => JsonValue::Bool(true),
            Some(b'f') => JsonValue::Bool(false),
            Some(b'"') => JsonValue::Text(serde_json::from_slice::<String>(text).map_err(unreadable)?.into()),
            _ => {
                let number = std::str::from_utf8(text).ok().and_then(Decimal::read);
                JsonValue::Number(number.ok_or_else(|| unreadable(String::from_utf8_lossy(text)))?)
            }
        };
        self.id(value)
    }

    /// An array or object with one more item or member.
    ///
    /// # Errors
    /// As [`ValueTable::id`].
    pub(super) fn with_part(
        &mut self,
        parts: ValueId,
        key: Option<ValueId>,
        value: ValueId,
    ) -> Result<ValueId> {
        let made = match (self.get(parts), key) {
            (JsonValue::Array(items), None) => {
                JsonValue::Array(items.iter().copied().chain([value]).collect())
            }
            (JsonValue::Object(members), Some(key)) => {
                let at = members.partition_point(|member| member.0 < key);
                let (before, after) = members.split_at(at);
                JsonValue::Object([before, &[(key, value)], after].concat().into())
            }
            (other, _) => other.clone(),
        };
        self.id(made)
    }

    /// Those of `values` that begin as `parts` does: an array in its items, an object in its members.
    pub(super) fn beginning_as(&self, parts: ValueId, values: &[ValueId]) -> Vec<ValueId> {
        let begins = |&&value: &&ValueId| match (self.get(value), self.get(parts)) {
            (JsonValue::Array(items), JsonValue::Array(parts)) => items.starts_with(parts),
            (JsonValue::Object(members), JsonValue::Object(parts)) => {
                parts.iter().all(|&(key, part)| member(members, key) == Some(part))
            }
            _ => false,
        };
        values.iter().filter(begins).copied().collect()
    }

    pub(super) fn byte_size(&self) -> usize {
        self.bytes
    }
}

/// The value of a key among members, which are sorted.
pub(super) fn member(members: &[(ValueId, ValueId)], key: ValueId) -> Option<ValueId> {
    members.binary_search_by_key(&key, |member| member.0).ok().map(|at| members[at].1)
}

/// A lexeme only lets texts of values through.
fn unreadable(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Constraint, format!("the text of an item is no value of JSON: {what}"))
}

fn too_long() -> Error {
    let message = format!("a value that must not be repeated has more than {MAX_BYTES} bytes");
    Error::new(ErrorKind::Limit, message).help("bound the lengths of items, or leave uniqueItems out")
}

/// Texts as a tree: each is another one and a byte.
pub(super) struct TextTable {
    /// The text before the last byte, its length, and that byte.
    all: Vec<(TextId, u32, u8)>,
    ids: FxHashMap<(TextId, u8), TextId>,
}

impl Default for TextTable {
    fn default() -> Self {
        TextTable { all: vec![(TextTable::EMPTY, 0, 0)], ids: FxHashMap::default() }
    }
}

impl TextTable {
    pub(super) const EMPTY: TextId = TextId(0);

    /// `text` and then `byte`.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if it is too long.
    pub(super) fn with(&mut self, text: TextId, byte: u8) -> Result<TextId> {
        if let Some(&known) = self.ids.get(&(text, byte)) {
            return Ok(known);
        }
        let length = self.all[text.index()].1 + 1;
        if length > MAX_BYTES {
            return Err(too_long());
        }
        let id = TextId::new(self.all.len());
        self.all.push((text, length, byte));
        self.ids.insert((text, byte), id);
        Ok(id)
    }

    /// The bytes of a text.
    pub(super) fn bytes(&self, mut text: TextId) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.all[text.index()].1 as usize);
        while text != TextTable::EMPTY {
            let (before, _, byte) = self.all[text.index()];
            bytes.push(byte);
            text = before;
        }
        bytes.reverse();
        bytes
    }

    pub(super) fn byte_size(&self) -> usize {
        self.all.len() * 32
    }
}

/// Sets of values: each is another one and a value, so that one more costs the same however many there are.
pub(super) struct ValueSets {
    /// The set before the last value, that value, and how many there are.
    all: Vec<(u32, ValueId, u32)>,
    ids: FxHashMap<(u32, ValueId), u32>,
}

impl Default for ValueSets {
    fn default() -> Self {
        ValueSets { all: vec![(0, ValueId(0), 0)], ids: FxHashMap::default() }
    }
}

impl ValueSets {
    /// `set` and `value`, which is not in it.
    pub(super) fn with(&mut self, set: u32, value: ValueId) -> u32 {
        let next = self.all.len() as u32;
        let id = *self.ids.entry((set, value)).or_insert(next);
        if id == next {
            self.all.push((set, value, self.all[set as usize].2 + 1));
        }
        id
    }

    pub(super) fn len(&self, set: u32) -> usize {
        self.all[set as usize].2 as usize
    }

    /// The values, sorted.
    pub(super) fn values(&self, mut set: u32) -> Vec<ValueId> {
        let mut values = Vec::with_capacity(self.len(set));
        while set != 0 {
            let (before, value, _) = self.all[set as usize];
            values.push(value);
            set = before;
        }
        values.sort_unstable();
        values
    }

    pub(super) fn byte_size(&self) -> usize {
        self.all.len() * 40
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_what_was_added() {
        let mut sets = ValueSets::default();
        let [a, b, c] = [5, 1, 3].map(ValueId);
        let (ab, cb) = ([a, b].into_iter().fold(0, |s, v| sets.with(s, v)), sets.with(0, c));
        let cb = sets.with(cb, b);
        assert_eq!((sets.values(ab), sets.values(cb), sets.values(0)), (vec![b, a], vec![b, c], vec![]));
        assert_eq!((sets.len(ab), sets.with(cb, a) == sets.with(cb, a)), (2, true));
    }

    #[test]
    fn equal_values_are_one() {
        let mut values = ValueTable::default();
        let mut id = |text: &str| values.scalar(text.as_bytes()).unwrap();
        for same in [
            &["1", "1.0", "1e0", "10.0e-1"][..],
            &["0", "-0", "0.00", "-0.0"],
            &["-12.5", "-1.25e1", "-1.250E+001"],
            &[r#""é""#, r#""\u00e9""#],
            &[r#""/""#, r#""\/""#],
        ] {
            assert!(same.iter().all(|text| id(text) == id(same[0])), "{same:?}");
        }
        let apart = ["1", "true", "null", "false", r#""1""#, "-1", "0", "1.1", r#""""#];
        let ids: std::collections::BTreeSet<_> = apart.iter().map(|text| id(text)).collect();
        assert_eq!(ids.len(), apart.len());
    }

    #[test]
    fn texts_are_what_was_read() {
        let mut texts = TextTable::default();
        let mut read = |text: &str| text.bytes().try_fold(TextTable::EMPTY, |t, b| texts.with(t, b)).unwrap();
        let (a, b) = (read("abc"), read("abd"));
        assert_eq!((read("abc"), read("")), (a, TextTable::EMPTY));
        assert_eq!((texts.bytes(a), texts.bytes(b)), (b"abc".to_vec(), b"abd".to_vec()));
        let long = (0..MAX_BYTES).try_fold(TextTable::EMPTY, |text, _| texts.with(text, b'x')).unwrap();
        assert_eq!(texts.with(long, b'x').unwrap_err().kind, ErrorKind::Limit);
    }
}
