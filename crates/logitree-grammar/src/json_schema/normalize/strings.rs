//! Interned strings and numbers, their spelling in JSON, and the list of strings of a small regular language.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::Number;

use super::super::decimal::Decimal;
use crate::{id, Regex};

id!(
    /// A string or number in a [`ScalarTable`]; numbers of equal value have one id.
    pub(crate) struct ScalarId
);

/// Strings and numbers by number.
#[derive(Default)]
pub(crate) struct ScalarTable {
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

impl ScalarTable {
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
        let id = ScalarId::new(self.all.len());
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
        let id = ScalarId::new(self.all.len());
        self.all.push(Scalar::Number(decimal));
        self.numbers.insert(canonical, id);
        id
    }

    /// The value itself.
    pub(crate) fn get(&self, id: ScalarId) -> &Scalar {
        &self.all[id.index()]
    }

    /// The string of this number.
    ///
    /// # Panics
    /// If it is a number's.
    pub(crate) fn text(&self, id: ScalarId) -> &Arc<str> {
        match self.get(id) {
            Scalar::Text(text) => text,
            Scalar::Number(_) => panic!("{id:?} is a number"),
        }
    }
}

/// The one spelling of a string in JSON, quotes included, that Python's `json.dumps` writes.
pub(crate) fn spell(text: &str, ascii: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    bytes.push(b'"');
    let differs = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\' || ascii && byte > 0x7f;
    if !text.bytes().fold(false, |any, byte| any | differs(byte)) {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(b'"');
        return bytes;
    }
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

/// Maximum number of strings.
const MAX_TEXTS: usize = 64;

/// The strings of `regex`, sorted, if their number is evidently small.
pub(super) fn texts_of(regex: &Regex) -> Option<Vec<String>> {
    let mut texts = listed(regex, 16)?;
    texts.sort_unstable();
    texts.dedup();
    Some(texts)
}

fn listed(regex: &Regex, depth: u32) -> Option<Vec<String>> {
    let depth = depth.checked_sub(1)?;
    match regex {
        Regex::Nothing => Some(Vec::new()),
        Regex::Empty => Some(vec![String::new()]),
        Regex::Text(text) => Some(vec![text.clone()]),
        Regex::Set(set) if set.len() <= MAX_TEXTS => {
            let codes = set.ranges().iter().flat_map(|&(from, to)| from..=to);
            Some(codes.filter_map(char::from_u32).map(String::from).collect())
        }
        Regex::Concat(parts) => {
            let mut texts = vec![String::new()];
            for part in parts {
                texts = joined(&texts, &listed(part, depth)?)?;
            }
            Some(texts)
        }
        Regex::Or(parts) => {
            let mut texts = Vec::new();
            for part in parts {
                texts.extend(listed(part, depth)?);
                if texts.len() > MAX_TEXTS {
                    return None;
                }
            }
            Some(texts)
        }
        Regex::Repeat { of, min, max: Some(max) } if *max <= 8 => {
            let of = listed(of, depth)?;
            let (mut texts, mut power) = (Vec::new(), vec![String::new()]);
            for times in 0..=*max {
                if times >= *min {
                    texts.extend(power.iter().cloned());
                }
                if times < *max {
                    power = joined(&power, &of)?;
                }
            }
            (texts.len() <= MAX_TEXTS).then_some(texts)
        }
        _ => None,
    }
}

fn joined(left: &[String], right: &[String]) -> Option<Vec<String>> {
    if left.len() * right.len() > MAX_TEXTS {
        return None;
    }
    Some(left.iter().flat_map(|a| right.iter().map(move |b| format!("{a}{b}"))).collect())
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
        let mut texts = ScalarTable::default();
        let one = texts.number(&serde_json::from_str("1").unwrap());
        assert_eq!(one, texts.number(&serde_json::from_str("1.0").unwrap()));
        assert_ne!(one, texts.string("1"));
        assert_eq!(&**texts.text(texts.strings["1"]), "1");
    }

    #[test]
    fn small_languages_are_listed() {
        let regex = Regex::concat([Regex::text("x"), Regex::range('a', 'c').optional()]);
        assert_eq!(texts_of(&regex).unwrap(), ["x", "xa", "xb", "xc"]);
        assert_eq!(texts_of(&Regex::anything()), None);
        assert_eq!(texts_of(&Regex::range('a', 'z').repeat(0, Some(3))), None);
        assert_eq!(texts_of(&Regex::Nothing), Some(Vec::new()));
    }
}
