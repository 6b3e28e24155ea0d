//! Encodes characters as bytes: UTF-8, or the content of a JSON string.

use regex_syntax::utf8::Utf8Sequences;

use super::{ByteSet, Encoding, ExprId, Exprs, NOTHING};
use crate::CharSet;
use crate::Result;

/// The short escapes that Python's `json.dumps` writes: the character and the letter after the backslash. JSON has one more.
const SHORT: [(u32, u8); 7] =
    [(0x22, b'"'), (0x5c, b'\\'), (8, b'b'), (12, b'f'), (10, b'n'), (13, b'r'), (9, b't')];

impl Encoding {
    /// The bytes of `text`; of several spellings the one of [`Encoding::Json`].
    pub fn text(self, text: &str) -> Vec<u8> {
        let ascii = match self {
            Encoding::Utf8 => return text.as_bytes().to_vec(),
            Encoding::Json { ascii } | Encoding::AnyJson { ascii } => ascii,
        };
        let mut bytes = Vec::with_capacity(text.len());
        for c in text.chars() {
            let code = u32::from(c);
            if let Some((_, short)) = SHORT.iter().find(|(of, _)| *of == code) {
                bytes.extend([b'\\', *short]);
            } else if code < 0x20 || ascii && code > 0x7f {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    bytes.extend(format!("\\u{unit:04x}").into_bytes());
                }
            } else {
                bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        bytes
    }
}

impl Exprs {
    /// One character of the set.
    ///
    /// # Errors
    /// As [`Exprs::bytes`].
    pub fn chars(&mut self, set: &CharSet, encoding: Encoding) -> Result<ExprId> {
        if let Some(&known) = self.classes.get(&(set.clone(), encoding)) {
            return Ok(known);
        }
        let made = match encoding {
            Encoding::Utf8 => self.utf8(set)?,
            Encoding::Json { ascii } => self.json_chars(set, ascii, false)?,
            Encoding::AnyJson { ascii } => self.json_chars(set, ascii, true)?,
        };
        self.classes.insert((set.clone(), encoding), made);
        self.class_sets.insert(made, (set.clone(), encoding));
        Ok(made)
    }

    fn utf8(&mut self, set: &CharSet) -> Result<ExprId> {
        let mut ways = Vec::new();
        for &(from, to) in set.ranges() {
            let (Some(from), Some(to)) = (char::from_u32(from), char::from_u32(to)) else { continue };
            for sequence in Utf8Sequences::new(from, to) {
                let classes = sequence.as_slice().iter().map(|range| ByteSet::range(range.start, range.end));
                ways.push(self.classes_in_a_row(classes)?);
            }
        }
        self.or(&ways)
    }

    fn classes_in_a_row(&mut self, classes: impl Iterator<Item = ByteSet>) -> Result<ExprId> {
        let mut parts = Vec::new();
        for class in classes {
            parts.push(self.class(class)?);
        }
        self.concat(&parts)
    }

    /// With `any` in every spelling.
    fn json_chars(&mut self, set: &CharSet, ascii: bool, any: bool) -> Result<ExprId> {
        let mut ways = Vec::new();
        let backslash = self.bytes(b"\\")?;
        let escape = self.bytes(b"\\u")?;
        let mut short = ByteSet::NONE;
        let is_in = |code: u32| char::from_u32(code).is_some_and(|c| set.contains(c));
        SHORT.iter().filter(|(code, _)| is_in(*code)).for_each(|&(_, byte)| short.insert(byte));
        if any && is_in(u32::from('/')) {
            short.insert(b'/');
        }
        let short = self.class(short)?;
        ways.push(self.pair(backslash, short)?);
        let control = CharSet::from_ranges([(0, 7), (11, 11), (14, 0x1f)]);
        let plain = CharSet::from_ranges([(0x20, 0x21), (0x23, 0x5b), (0x5d, 0x7f)]);
        let far = CharSet::from_ranges([(0x80, super::super::charset::LAST)]);
        let mut escaped = if any { set.clone() } else { set.and(&control) };
        let mut raw = set.and(&plain);
        if ascii {
            escaped = escaped.or(&set.and(&far));
        } else {
            raw = raw.or(&set.and(&far));
        }
        ways.push(self.utf8(&raw)?);
        for &(from, to) in escaped.ranges() {
            let near = if from <= 0xffff { self.hex_units(from, to.min(0xffff), any)? } else { NOTHING };
            ways.push(self.pair(escape, near)?);
            if to > 0xffff {
                ways.push(self.surrogate_pairs(from.max(0x10000) - 0x10000, to - 0x10000, any)?);
            }
        }
        self.or(&ways)
    }

    /// `\ud8xx\udcxx` for the code points `from..=to`, less 0x10000.
    fn surrogate_pairs(&mut self, from: u32, to: u32, any: bool) -> Result<ExprId> {
        let escape = self.bytes(b"\\u")?;
        let mut ways = Vec::new();
        let mut at = from;
        while at <= to {
            let high = at >> 10;
            // As many whole blocks of 1,024 as possible, or a part of one block.
            let whole = at & 0x3ff == 0 && at + 0x3ff <= to;
            let last = if whole { ((to + 1) >> 10) - 1 } else { high };
            let end = if whole { (last << 10) + 0x3ff } else { to.min((high << 10) + 0x3ff) };
            let first = self.hex_units(0xd800 + high, 0xd800 + last, any)?;
            let second = self.hex_units(0xdc00 + (at & 0x3ff), 0xdc00 + (end & 0x3ff), any)?;
            ways.push(self.concat(&[escape, first, escape, second])?);
            at = end + 1;
        }
        self.or(&ways)
    }

    /// Four hexadecimal digits from `from` to `to`, in lower case or, with `any`, in any.
    fn hex_units(&mut self, from: u32, to: u32, any: bool) -> Result<ExprId> {
        self.hex(from, to, 4, any)
    }

    fn hex(&mut self, from: u32, to: u32, digits: u32, any: bool) -> Result<ExprId> {
        if digits == 0 {
            return Ok(super::EMPTY);
        }
        let unit = 1u32 << (4 * (digits - 1));
        let mut ways = Vec::new();
        let mut at = from;
        while at <= to {
            let digit = at / unit;
            let whole = at.is_multiple_of(unit) && at + (unit - 1) <= to;
            let last = if whole { (to + 1) / unit - 1 } else { digit };
            let end = if whole { last * unit + (unit - 1) } else { to.min(digit * unit + (unit - 1)) };
            let class = self.class(hex_digits(digit, last, any))?;
            let rest = self.hex(at % unit, end % unit, digits - 1, any)?;
            ways.push(self.pair(class, rest)?);
            at = end + 1;
        }
        self.or(&ways)
    }
}

fn hex_digits(from: u32, to: u32, any: bool) -> ByteSet {
    let mut set = ByteSet::NONE;
    for digit in from..=to {
        set.insert(b"0123456789abcdef"[digit as usize]);
        if any {
            set.insert(b"0123456789ABCDEF"[digit as usize]);
        }
    }
    set
}
