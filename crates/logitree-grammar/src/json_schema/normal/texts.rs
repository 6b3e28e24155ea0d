//! Keys and single values, interned: equal ones have one number. It refuses to know schemas.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::Number;

use super::super::decimal::Decimal;

/// A number of a string or of a JSON number in its [`Texts`]. Numbers count as equal if their values are.
pub(crate) type ScalarId = u32;

/// Strings and numbers by number.
#[derive(Default)]
pub(crate) struct Texts {
    all: Vec<Scalar>,
    strings: FxHashMap<Arc<str>, ScalarId>,
    numbers: FxHashMap<String, ScalarId>,
}

/// A single value.
#[derive(Debug, Clone)]
pub(crate) enum Scalar {
    /// A string.
    Text(Arc<str>),
    /// A number.
    Number(Decimal),
}

impl Texts {
    /// The number of a string.
    pub(crate) fn string(&mut self, text: &str) -> ScalarId {
        match self.strings.get(text) {
            Some(&id) => id,
            None => self.shared(&Arc::from(text)),
        }
    }

    /// The number of a string that is already shared.
    pub(crate) fn shared(&mut self, text: &Arc<str>) -> ScalarId {
        if let Some(&id) = self.strings.get(text) {
            return id;
        }
        let id = self.all.len() as ScalarId;
        self.all.push(Scalar::Text(Arc::clone(text)));
        self.strings.insert(Arc::clone(text), id);
        id
    }

    /// The number of a number.
    pub(crate) fn number(&mut self, number: &Number) -> ScalarId {
        let decimal = Decimal::read(&number.to_string())
            .unwrap_or_else(|| Decimal::read("0").expect("zero is a number"));
        let canonical = decimal.canonical();
        if let Some(&id) = self.numbers.get(&canonical) {
            return id;
        }
        let id = self.all.len() as ScalarId;
        self.all.push(Scalar::Number(decimal));
        self.numbers.insert(canonical, id);
        id
    }

    /// The value itself.
    pub(crate) fn get(&self, id: ScalarId) -> &Scalar {
        &self.all[id as usize]
    }

    /// The string of this number.
    ///
    /// # Panics
    /// If it is a number's.
    pub(crate) fn text(&self, id: ScalarId) -> &Arc<str> {
        match self.get(id) {
            Scalar::Text(text) => text,
            Scalar::Number(_) => panic!("scalar {id} is a number"),
        }
    }
}

/// The one spelling of a string in JSON, quotes included, that Python's `json.dumps` writes.
pub(crate) fn spell(text: &str, ascii: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    bytes.push(b'"');
    for c in text.chars() {
        match c {
            '"' => bytes.extend(b"\\\""),
            '\\' => bytes.extend(b"\\\\"),
            '\n' => bytes.extend(b"\\n"),
            '\r' => bytes.extend(b"\\r"),
            '\t' => bytes.extend(b"\\t"),
            '\u{8}' => bytes.extend(b"\\b"),
            '\u{c}' => bytes.extend(b"\\f"),
            '\0'..='\u{1f}' => bytes.extend(format!("\\u{:04x}", u32::from(c)).bytes()),
            _ if ascii && c > '\u{7f}' => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    bytes.extend(format!("\\u{unit:04x}").bytes());
                }
            }
            _ => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    bytes.push(b'"');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_spelled_as_json_dumps_does() {
        assert_eq!(spell("a\"\\\n\u{1}é😀", false), "\"a\\\"\\\\\\n\\u0001é😀\"".as_bytes());
        assert_eq!(spell("é😀", true), b"\"\\u00e9\\ud83d\\ude00\"");
    }

    #[test]
    fn equal_numbers_have_one_number() {
        let mut texts = Texts::default();
        let one = texts.number(&serde_json::from_str("1").unwrap());
        assert_eq!(one, texts.number(&serde_json::from_str("1.0").unwrap()));
        assert_ne!(one, texts.string("1"));
        assert_eq!(&**texts.text(texts.strings["1"]), "1");
    }
}
