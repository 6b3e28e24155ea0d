//! Texts in every spelling that a JSON string has. The literals are held as they are meant: a byte that may stand for itself
//! narrows them as in [`super::literals`], and only a backslash asks for the escapes of the characters that may come next. So
//! the keys that an object must not have cost no more than their texts, however they are written.
//!
//! The naive version reads the text as JSON and compares it.

use std::sync::Arc;

use super::{ByteSet, Encoding, ExprId, Exprs, NOTHING};
use crate::dfa::{ComputedDfa, ComputedState, Steps};
use crate::{CharSet, Dfa, Result};

/// How the texts of a set are written.
#[derive(Clone, Copy)]
pub(super) struct Spelled {
    /// Whether characters past U+007F are escaped.
    pub ascii: bool,
}

impl Spelled {
    /// Whether the byte may stand for itself.
    pub fn is_raw(self, byte: u8) -> bool {
        byte >= 0x20 && byte != b'"' && byte != b'\\' && (byte < 0x80 || !self.ascii)
    }

    /// The bytes that may come next, where the texts have `next`.
    pub fn first_bytes(self, next: ByteSet) -> ByteSet {
        let mut first = ByteSet::NONE;
        next.iter().filter(|&byte| self.is_raw(byte)).for_each(|byte| first.insert(byte));
        if next.iter().any(begins_char) {
            first.insert(b'\\');
        }
        first
    }
}

/// Whether a character begins with `byte`.
fn begins_char(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

impl Exprs {
    /// Any of these texts in any spelling of a JSON string, without quotes, each followed by its expression.
    ///
    /// # Errors
    /// As [`Exprs::literals`].
    pub fn spelled(&mut self, texts: &[(&str, ExprId)], ascii: bool) -> Result<ExprId> {
        let texts: Vec<_> = texts.iter().map(|&(text, then)| (text.as_bytes(), then)).collect();
        self.literals_as(&texts, Some(Spelled { ascii }))
    }

    /// What may follow a backslash: the rest of an escape of a character that comes next, then what follows that.
    pub(super) fn escapes(
        &mut self,
        spelled: Spelled,
        (set, from, to, depth): (u32, u32, u32, u32),
    ) -> Result<ExprId> {
        let mut ways = Vec::new();
        let mut at = from;
        while at < to {
            let text = self.literal_sets[set as usize].text(at);
            let rest = &text[depth as usize..];
            let next = std::str::from_utf8(rest).ok().map(|rest| rest.chars().next());
            let Some(next) = next else { return Ok(NOTHING) };
            let Some(next) = next else {
                at += 1;
                continue;
            };
            self.charge(16)?;
            let (mut first, mut end, mut read) = (at, to, depth);
            for &byte in next.encode_utf8(&mut [0; 4]).as_bytes() {
                (first, end) = self.literal_sets[set as usize].narrowed(first, end, read, byte);
                read += 1;
            }
            let then = self.run(set, first, end, read)?;
            let char = self.chars(&CharSet::one(next), Encoding::AnyJson { ascii: spelled.ascii })?;
            let escape = self.derive(char, b'\\')?;
            ways.push(self.pair(escape, then)?);
            at = end;
        }
        self.or(&ways)
    }

    /// The language of an automaton over ASCII, in any spelling.
    ///
    /// # Errors
    /// As [`Exprs::bytes`].
    pub(super) fn spelled_automaton(&mut self, dfa: &Arc<Dfa>) -> Result<ExprId> {
        let description = format!("escaped {:032x}", dfa.digest());
        let start = packed(Dfa::START, Escape::None);
        let steps = Arc::new(Escaped(Arc::clone(dfa)));
        self.computed(&Arc::new(ComputedDfa::new(steps, description, &PRINTABLE, start)))
    }
}

/// The ASCII characters that a JSON string may have.
static PRINTABLE: [u8; 94] = printable();

const fn printable() -> [u8; 94] {
    let mut all = [b' '; 94];
    let (mut byte, mut at) = (b'!', 1);
    while at < all.len() {
        if byte != b'"' {
            all[at] = byte;
            at += 1;
        }
        byte += 1;
    }
    all
}

/// An automaton over ASCII where an escape may write each character. It may have thousands of states, and a text reaches
/// few.
struct Escaped(Arc<Dfa>);

/// Where in an escape a text is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Backslash,
    /// So many hexadecimal digits, and the value of the last one.
    Digits(u8, u8),
}

fn packed(state: u32, escape: Escape) -> ComputedState {
    match escape {
        Escape::None => [state.into(), 0, 0],
        Escape::Backslash => [state.into(), 1, 0],
        Escape::Digits(count, value) => [state.into(), 2 + u64::from(count), value.into()],
    }
}

fn unpacked([state, kind, value]: ComputedState) -> (u32, Escape) {
    let escape = match kind {
        0 => Escape::None,
        1 => Escape::Backslash,
        count => Escape::Digits(count as u8 - 2, value as u8),
    };
    (state as u32, escape)
}

impl Steps for Escaped {
    fn next(&self, state: ComputedState, byte: u8) -> Option<ComputedState> {
        let (state, escape) = unpacked(state);
        let goes_on =
            |mut chars: std::ops::RangeInclusive<u8>| chars.any(|c| self.0.next(state, c).is_some());
        let read = |char: u8| Some(packed(self.0.next(state, char)?, Escape::None));
        let to = |escape: Escape| Some(packed(state, escape));
        match (escape, byte) {
            (Escape::None, b'\\') => to(Escape::Backslash).filter(|_| goes_on(0..=0x7f)),
            (Escape::None, _) => read(byte),
            (Escape::Backslash, b'u') => to(Escape::Digits(0, 0)),
            (Escape::Backslash, b'"' | b'\\' | b'/') => read(byte),
            (Escape::Backslash, b'b') => read(8),
            (Escape::Backslash, b'f') => read(12),
            (Escape::Backslash, b'n') => read(b'\n'),
            (Escape::Backslash, b'r') => read(b'\r'),
            (Escape::Backslash, b't') => read(b'\t'),
            (Escape::Backslash, _) => None,
            (Escape::Digits(count, value), _) => {
                let digit = char::from(byte).to_digit(16)? as u8;
                match count {
                    // No character past U+007F is in the automaton.
                    0 | 1 => to(Escape::Digits(count + 1, 0)).filter(|_| digit == 0),
                    2 => to(Escape::Digits(3, digit))
                        .filter(|_| digit < 8 && goes_on(16 * digit..=16 * digit + 15)),
                    _ => read(16 * value + digit),
                }
            }
        }
    }

    fn is_accepting(&self, state: ComputedState) -> bool {
        let (state, escape) = unpacked(state);
        escape == Escape::None && self.0.is_accepting(state)
    }
}
