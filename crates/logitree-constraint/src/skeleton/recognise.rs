//! What the tracker reads values with: for each kind a small automaton over bytes that says where a value may end.
//!
//! The grammar decides what is allowed; these decide where spans end. Enums, numbers and strings are read exactly. JSON
//! under a schema is read as any JSON: a JSON value that is no number says itself where it ends, and a number that could
//! continue with the text after it is refused when the skeleton is built.

use crate::token_tree::{SequenceTrie, ROOT};

/// A value's automaton.
#[derive(Debug, Clone)]
pub(super) enum Recogniser {
    /// One of some texts: a trie, and the number of the value that each of its sequences is.
    Words {
        trie: SequenceTrie<u8>,
        values: Box<[u32]>,
    },
    Number,
    /// The characters of a JSON string, quotes included or not.
    Text {
        quoted: bool,
        min: u32,
        max: u32,
    },
    /// Any JSON value, structure only.
    Json,
}

/// Where a value's automaton is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum State {
    Node(u32),
    Number(u8),
    Text { at: u8, count: u32 },
    Json { at: u8, open: Nesting },
}

/// The brackets that are open: a stack of bits, one for an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Nesting {
    depth: u32,
    top: u64,
    below: Vec<u64>,
}

impl Nesting {
    fn push(&mut self, is_object: bool) {
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.below.push(self.top);
            self.top = 0;
        }
        self.top = self.top << 1 | u64::from(is_object);
        self.depth += 1;
    }

    /// Whether the innermost bracket was of this kind; it is closed then.
    fn pop(&mut self, is_object: bool) -> bool {
        if self.depth == 0 || (self.top & 1 == 1) != is_object {
            return false;
        }
        self.top >>= 1;
        self.depth -= 1;
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.top = self.below.pop().unwrap_or_default();
        }
        true
    }
}

// States of numbers.
const BEGIN: u8 = 0;
const MINUS: u8 = 1;
const ZERO: u8 = 2;
const INTEGER: u8 = 3;
const POINT: u8 = 4;
const FRACTION: u8 = 5;
const E: u8 = 6;
const SIGN: u8 = 7;
const EXPONENT: u8 = 8;

// States of strings.
const INSIDE: u8 = 0;
const ESCAPE: u8 = 1;
/// The four digits of an escape: the first; the second of one that began with d; two, one left; those of a high surrogate.
const HEX: u8 = 2;
const HEX_D: u8 = 3;
const HEX_3: u8 = 4;
const HEX_2: u8 = 5;
const HEX_1: u8 = 6;
const HIGH_2: u8 = 7;
const HIGH_1: u8 = 8;
const LOW_BACKSLASH: u8 = 9;
const LOW_U: u8 = 10;
const LOW_D: u8 = 11;
const LOW_C: u8 = 12;
/// One, two, three bytes of a character are missing.
const MORE_1: u8 = 13;
const MORE_2: u8 = 14;
const MORE_3: u8 = 15;
const OPEN: u8 = 16;
const CLOSED: u8 = 17;

// States of JSON; the numbers' follow at NUMBERS.
const VALUE: u8 = 0;
const BETWEEN: u8 = 1;
const STRING: u8 = 2;
const STRING_ESCAPE: u8 = 3;
const DONE: u8 = 4;
/// The letters of true, false and null that were read: WORDS + 5 * word + letters.
const WORDS: u8 = 10;
const NUMBERS: u8 = 40;

const JSON_WORDS: [&[u8]; 3] = [b"true", b"false", b"null"];

impl Recogniser {
    /// Words, numbered by their position; they are distinct.
    pub fn words<T: AsRef<[u8]>>(texts: &[T]) -> Recogniser {
        let mut order: Vec<u32> = (0..texts.len() as u32).collect();
        order.sort_unstable_by_key(|&at| texts[at as usize].as_ref());
        let sorted: Vec<&[u8]> = order.iter().map(|&at| texts[at as usize].as_ref()).collect();
        Recogniser::Words { trie: SequenceTrie::new(&sorted), values: order.into() }
    }

    pub fn start(&self) -> State {
        match self {
            Recogniser::Words { .. } => State::Node(ROOT),
            Recogniser::Number => State::Number(BEGIN),
            Recogniser::Text { quoted, .. } => {
                State::Text { at: if *quoted { OPEN } else { INSIDE }, count: 0 }
            }
            Recogniser::Json => State::Json { at: VALUE, open: Nesting::default() },
        }
    }

    /// The state after one more byte; `None`: no value has it here.
    pub fn step(&self, state: &State, byte: u8) -> Option<State> {
        match (self, state) {
            (Recogniser::Words { trie, .. }, State::Node(node)) => trie.step(*node, byte).map(State::Node),
            (Recogniser::Number, State::Number(at)) => number(*at, byte).map(State::Number),
            (Recogniser::Text { quoted, min, max }, State::Text { at, count }) => {
                text(*at, *count, byte, *quoted, *min, *max)
            }
            (Recogniser::Json, State::Json { at, open }) => json(*at, open, byte),
            _ => None,
        }
    }

    /// Whether the value may end here.
    pub fn is_complete(&self, state: &State) -> bool {
        match (self, state) {
            (Recogniser::Words { trie, .. }, State::Node(node)) => trie.end(*node).is_some(),
            (_, State::Number(at)) => is_number(*at),
            (Recogniser::Text { quoted: true, .. }, State::Text { at, .. }) => *at == CLOSED,
            (Recogniser::Text { min, .. }, State::Text { at, count }) => *at == INSIDE && count >= min,
            (_, State::Json { at, .. }) => *at == DONE || *at >= NUMBERS && is_number(*at - NUMBERS),
            _ => false,
        }
    }

    /// Whether the value may continue from here.
    pub fn may_continue(&self, state: &State) -> bool {
        match (self, state) {
            (Recogniser::Words { trie, .. }, State::Node(node)) => !trie.child_range(*node).is_empty(),
            (Recogniser::Text { max, .. }, State::Text { at, count }) => {
                *at != CLOSED
                    && !(*at == INSIDE
                        && count >= max
                        && matches!(self, Recogniser::Text { quoted: false, .. }))
            }
            (_, State::Json { at, .. }) => *at != DONE,
            _ => true,
        }
    }

    /// Which of the words it is.
    pub fn value(&self, state: &State) -> Option<u32> {
        match (self, state) {
            (Recogniser::Words { trie, values }, State::Node(node)) => {
                Some(values[trie.end(*node)? as usize])
            }
            _ => None,
        }
    }

    /// The bytes that may continue a value that may also end.
    pub fn continuing(&self) -> [bool; 256] {
        let mut bytes = [false; 256];
        let mut set =
            |all: &mut dyn Iterator<Item = u8>| all.for_each(|byte| bytes[usize::from(byte)] = true);
        match self {
            Recogniser::Words { trie, .. } => {
                set(&mut trie.inner_ends().flat_map(|node| trie.child_symbols(node).iter().copied()));
            }
            Recogniser::Number | Recogniser::Json => set(&mut b"0123456789.eE+-".iter().copied()),
            Recogniser::Text { quoted: true, .. } => {}
            Recogniser::Text { .. } => set(&mut (0x20..=0xff).filter(|&byte| byte != b'"')),
        }
        bytes
    }

    /// The bytes that a value may begin with, and whether it may be empty.
    pub fn first(&self) -> ([bool; 256], bool) {
        let mut bytes = [false; 256];
        let start = self.start();
        for byte in 0..=u8::MAX {
            bytes[usize::from(byte)] = self.step(&start, byte).is_some();
        }
        (bytes, self.is_complete(&start))
    }
}

/// Whether a number and the beginning of `text` after it may be a longer number, as far as the text says.
pub(super) fn may_extend_number(text: &[u8]) -> bool {
    [ZERO, INTEGER, FRACTION, EXPONENT].into_iter().any(|from| {
        let mut at = from;
        for &byte in text {
            match number(at, byte) {
                None => return false,
                Some(next) if is_number(next) => return true,
                Some(next) => at = next,
            }
        }
        true
    })
}

fn is_number(at: u8) -> bool {
    matches!(at, ZERO | INTEGER | FRACTION | EXPONENT)
}

fn number(at: u8, byte: u8) -> Option<u8> {
    Some(match (at, byte) {
        (BEGIN, b'-') => MINUS,
        (BEGIN | MINUS, b'0') => ZERO,
        (BEGIN | MINUS, b'1'..=b'9') | (INTEGER, b'0'..=b'9') => INTEGER,
        (ZERO | INTEGER, b'.') => POINT,
        (POINT | FRACTION, b'0'..=b'9') => FRACTION,
        (ZERO | INTEGER | FRACTION, b'e' | b'E') => E,
        (E, b'+' | b'-') => SIGN,
        (E | SIGN | EXPONENT, b'0'..=b'9') => EXPONENT,
        _ => return None,
    })
}

fn text(at: u8, count: u32, byte: u8, quoted: bool, min: u32, max: u32) -> Option<State> {
    let hex = byte.is_ascii_hexdigit();
    let mut count = count;
    let at = match (at, byte) {
        (OPEN, b'"') => INSIDE,
        (INSIDE, b'"') if quoted && count >= min => CLOSED,
        (INSIDE, 0x20..=0xff) if byte != b'"' => {
            if count >= max {
                return None;
            }
            count += 1;
            match byte {
                b'\\' => ESCAPE,
                0x20..=0x7f => INSIDE,
                0xc2..=0xdf => MORE_1,
                0xe0..=0xef => MORE_2,
                0xf0..=0xf4 => MORE_3,
                _ => return None,
            }
        }
        (MORE_1, 0x80..=0xbf) => INSIDE,
        (MORE_2 | MORE_3, 0x80..=0xbf) => at - 1,
        (ESCAPE, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => INSIDE,
        (ESCAPE, b'u') => HEX,
        (HEX, b'd' | b'D') => HEX_D,
        (HEX, _) if hex => HEX_3,
        (HEX_D, b'0'..=b'7') => HEX_2,
        (HEX_D, b'8' | b'9' | b'a' | b'b' | b'A' | b'B') => HIGH_2,
        (HEX_3, _) if hex => HEX_2,
        (HEX_2, _) if hex => HEX_1,
        (HEX_1, _) if hex => INSIDE,
        (HIGH_2, _) if hex => HIGH_1,
        (HIGH_1, _) if hex => LOW_BACKSLASH,
        (LOW_BACKSLASH, b'\\') => LOW_U,
        (LOW_U, b'u') => LOW_D,
        (LOW_D, b'd' | b'D') => LOW_C,
        (LOW_C, b'c'..=b'f' | b'C'..=b'F') => HEX_2,
        _ => return None,
    };
    Some(State::Text { at, count })
}

fn json(at: u8, open: &Nesting, byte: u8) -> Option<State> {
    let mut open = open.clone();
    // Where a scalar or a container leaves off.
    let after = |open: &Nesting| if open.depth == 0 { DONE } else { BETWEEN };
    let at = match (at, byte) {
        (VALUE | BETWEEN, b'"') => STRING,
        (VALUE | BETWEEN, b'{' | b'[') => {
            open.push(byte == b'{');
            BETWEEN
        }
        (BETWEEN, b'}' | b']') => {
            if !open.pop(byte == b'}') {
                return None;
            }
            after(&open)
        }
        (BETWEEN, _) => BETWEEN,
        (STRING, b'"') => after(&open),
        (STRING, b'\\') => STRING_ESCAPE,
        (STRING, 0x20..) | (STRING_ESCAPE, _) => STRING,
        (VALUE, b't') => WORDS + 1,
        (VALUE, b'f') => WORDS + 6,
        (VALUE, b'n') => WORDS + 11,
        (VALUE, _) => NUMBERS + number(BEGIN, byte)?,
        (NUMBERS.., _) => NUMBERS + number(at - NUMBERS, byte)?,
        (WORDS.., _) => {
            let (word, letters) = (JSON_WORDS[usize::from((at - WORDS) / 5)], usize::from((at - WORDS) % 5));
            match word.get(letters) {
                Some(&letter) if letter == byte && letters + 1 == word.len() => DONE,
                Some(&letter) if letter == byte => at + 1,
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(State::Json { at, open })
}
