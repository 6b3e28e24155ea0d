//! Texts in every spelling that a JSON string has. The literals are held as they are meant: a byte that may stand for itself
//! narrows them as in [`super::literals`], and only a backslash asks for the escapes of the characters that may come next. So
//! the keys that an object must not have cost no more than their texts, however they are written.
//!
//! The naive version reads the text as JSON and compares it.

use std::sync::Arc;

use super::{ByteSet, Encoding, ExprId, Exprs, NOTHING};
use crate::dfa::{explore, Explored, Walk};
use crate::{CharSet, Dfa, Error, ErrorKind, Result};

/// Maximum number of states of an automaton whose characters are escaped.
const MAX_STATES: usize = 1 << 16;

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
    /// [`ErrorKind::Limit`] if it has too many states.
    pub(super) fn spelled_automaton(&mut self, dfa: &Arc<Dfa>) -> Result<ExprId> {
        let bytes: Vec<u8> = (0x20..0x80).collect();
        let alphabet: Vec<&[u8]> = bytes.chunks(1).collect();
        let (explored, states) = explore(&mut Escaped(dfa), &alphabet, MAX_STATES);
        self.spend(26 * states as u64)?;
        match explored {
            Explored::Dfa(dfa) => self.automaton(&Arc::new(dfa)),
            Explored::Nothing => Ok(NOTHING),
            Explored::TooMany => {
                let message = format!("an automaton with escapes has more than {MAX_STATES} states");
                Err(Error::new(ErrorKind::Limit, message))
            }
        }
    }
}

/// An automaton over ASCII of which each character may be written by an escape.
struct Escaped<'d>(&'d Dfa);

/// Where in an escape a text is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Escape {
    None,
    Backslash,
    /// So many hexadecimal digits of this value.
    Digits(u8, u8),
}

impl Walk for Escaped<'_> {
    type State = (u32, Escape);

    fn start(&self) -> Self::State {
        (Dfa::START, Escape::None)
    }

    fn step(&mut self, &(state, escape): &Self::State, byte: u8) -> Option<Self::State> {
        let read = |char: u8| Some((self.0.next(state, char)?, Escape::None));
        match (escape, byte) {
            (Escape::None, b'\\') => Some((state, Escape::Backslash)),
            (Escape::None, b'"') => None,
            (Escape::None, _) => read(byte),
            (Escape::Backslash, b'u') => Some((state, Escape::Digits(0, 0))),
            (Escape::Backslash, b'"' | b'\\' | b'/') => read(byte),
            (Escape::Backslash, b'b') => read(8),
            (Escape::Backslash, b'f') => read(12),
            (Escape::Backslash, b'n') => read(b'\n'),
            (Escape::Backslash, b'r') => read(b'\r'),
            (Escape::Backslash, b't') => read(b'\t'),
            (Escape::Backslash, _) => None,
            (Escape::Digits(count, value), _) => {
                let digit = char::from(byte).to_digit(16)? as u8;
                // No character past U+007F is in the automaton.
                if count < 2 && digit != 0 || count == 2 && digit > 7 {
                    return None;
                }
                match count {
                    3 => read(16 * value + digit),
                    _ => Some((state, Escape::Digits(count + 1, digit))),
                }
            }
        }
    }

    fn accepts(&self, &(state, escape): &Self::State) -> bool {
        escape == Escape::None && self.0.is_accepting(state)
    }
}
