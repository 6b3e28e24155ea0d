//! Automata given as tables, the form that the trie walks fastest.

use logitree_automata::expr::ByteSet;

use super::below::Below;
use super::Recognizer;
use crate::{Error, ErrorKind, Result};

mod sealed {
    pub trait Sealed {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}

/// The number types a [`Table`] can have: `u16` and `u32`.
pub trait StateNumber: sealed::Sealed + Copy + Default + PartialEq + PartialOrd + Into<u32> {
    /// The number that no state has: what is usual for the dead state.
    const DEAD: Self;

    /// The number as an index.
    fn index(self) -> usize;

    /// `count` as a number of this type, if there are more numbers than that.
    fn from_count(count: usize) -> Option<Self>;
}

impl StateNumber for u16 {
    const DEAD: u16 = u16::MAX;

    #[inline(always)]
    fn index(self) -> usize {
        usize::from(self)
    }

    fn from_count(count: usize) -> Option<u16> {
        u16::try_from(count).ok()
    }
}

impl StateNumber for u32 {
    const DEAD: u32 = u32::MAX;

    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }

    fn from_count(count: usize) -> Option<u32> {
        u32::try_from(count).ok()
    }
}

/// A deterministic automaton over bytes: `next[state * 256 + byte]` is the next state, or `dead` where the byte
/// is refused.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a, S> {
    next: &'a [S],
    start: S,
    dead: S,
}

impl<'a, S: StateNumber> Table<'a, S> {
    /// The automaton of `next.len() / 256` states. `dead` may be a state's number (that state is never entered)
    /// or lie outside.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if `next` is empty or not whole rows of 256, if `start` is dead or no state, or if
    /// an entry is neither dead nor a state (all are checked).
    pub fn new(next: &'a [S], start: S, dead: S) -> Result<Self> {
        let bad = |message: String| Error::new(ErrorKind::Constraint, message);
        if next.is_empty() || !next.len().is_multiple_of(256) {
            return Err(bad(format!("an automaton table of {} entries is not rows of 256", next.len())));
        }
        let states = next.len() / 256;
        if start == dead || start.index() >= states {
            return Err(bad(format!("start state {} is dead or not below {states}", start.into())));
        }
        // more states than numbers: no number is strange
        let Some(limit) = S::from_count(states) else { return Ok(Table { next, start, dead }) };
        let strange = |entry: &S| *entry != dead && *entry >= limit;
        let any = |row: &[S]| row.iter().fold(false, |any, entry| any | strange(entry));
        if let Some(row) = next.chunks_exact(256).position(any) {
            let at = row * 256 + next[row * 256..].iter().position(strange).unwrap_or(0);
            return Err(bad(format!("next state {} is not below {states}", next[at].into()))
                .at(format!("state {}, byte {}", at / 256, at % 256))
                .help(format!("the dead state is {}", dead.into())));
        }
        Ok(Table { next, start, dead })
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.next.len() / 256
    }

    /// The same automaton as a recogniser with a stack: slower, one byte at a time.
    pub fn recognizer(&self) -> TableStack<'a, S> {
        TableStack { table: *self, states: vec![self.start] }
    }

    pub(super) fn start(&self) -> S {
        self.start
    }

    pub(super) fn dead(&self) -> S {
        self.dead
    }

    #[inline(always)]
    pub(super) fn step(&self, state: S, byte: u8) -> S {
        self.next[state.index() << 8 | usize::from(byte)]
    }
}

/// A [`Table`] with its stack of states.
#[derive(Debug, Clone)]
pub struct TableStack<'a, S> {
    table: Table<'a, S>,
    states: Vec<S>,
}

impl<S: StateNumber> Recognizer for TableStack<'_, S> {
    fn push(&mut self, byte: u8) -> bool {
        let state = self.states.last().copied().unwrap_or(self.table.start);
        let next = self.table.step(state, byte);
        if next == self.table.dead {
            return false;
        }
        self.states.push(next);
        true
    }

    fn pop(&mut self, n: usize) {
        self.states.truncate(self.states.len().saturating_sub(n).max(1));
    }
}

/// What loops on a state: the bytes, and if so all characters, that lead back to it.
#[derive(Debug, Clone, Copy)]
pub struct Loops {
    bytes: ByteSet,
    /// Every UTF-8 character of two bytes or more leads from the state back to it, alive all the way.
    characters: bool,
}

impl Loops {
    pub(super) fn of<S: StateNumber>(table: &Table<'_, S>, state: S) -> Loops {
        Loops::found(state, |state, byte| Some(table.step(state, byte)).filter(|next| *next != table.dead))
    }

    /// What loops on a state of an automaton whose transitions `step` gives.
    pub fn found<S: Copy + PartialEq>(state: S, mut step: impl FnMut(S, u8) -> Option<S>) -> Loops {
        let mut bytes = [0u64; 4];
        for byte in 0..=u8::MAX {
            bytes[usize::from(byte / 64)] |= u64::from(step(state, byte) == Some(state)) << (byte % 64);
        }
        Loops { bytes: ByteSet(bytes), characters: loops_over_characters(state, &mut step) }
    }

    /// Whether every path below is taken from the state. `false` says nothing.
    #[inline]
    pub fn take(&self, below: &Below) -> bool {
        // The first two words are the ASCII bytes.
        let ByteSet([a, b, c, d]) = below.bytes.without(&self.bytes);
        a | b == 0 && (c | d == 0 || self.characters && below.text)
    }
}

/// (lead bytes, what may follow the lead byte, continuation bytes), for all characters past ASCII.
const CHARACTERS: [(std::ops::RangeInclusive<u8>, std::ops::RangeInclusive<u8>, usize); 8] = [
    (0xc2..=0xdf, 0x80..=0xbf, 1),
    (0xe0..=0xe0, 0xa0..=0xbf, 2),
    (0xe1..=0xec, 0x80..=0xbf, 2),
    (0xed..=0xed, 0x80..=0x9f, 2),
    (0xee..=0xef, 0x80..=0xbf, 2),
    (0xf0..=0xf0, 0x90..=0xbf, 3),
    (0xf1..=0xf3, 0x80..=0xbf, 3),
    (0xf4..=0xf4, 0x80..=0x8f, 3),
];

/// Holds only where the continuation bytes of one lead byte share their states, as in minimal automata; others
/// lose speed, not correctness.
fn loops_over_characters<S: Copy + PartialEq>(state: S, step: &mut impl FnMut(S, u8) -> Option<S>) -> bool {
    CHARACTERS.iter().all(|(leads, second, count)| {
        let mut same_as_before = None;
        leads.clone().all(|lead| {
            let first = step(state, lead);
            let Some(mut at) = first else { return false };
            if first == same_as_before {
                return true;
            }
            same_as_before = first;
            let mut range = second.clone();
            for _ in 0..*count {
                let next = step(at, *range.start());
                if next.is_none() || range.clone().any(|byte| step(at, byte) != next) {
                    return false;
                }
                at = next.unwrap_or(at);
                range = 0x80..=0xbf;
            }
            at == state
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_checked() {
        let mut next = vec![9u16; 512];
        next[300] = 1;
        assert_eq!(Table::new(&next, 0, 9).unwrap().states(), 2);
        next[301] = 2;
        let error = Table::new(&next, 0, 9).unwrap_err();
        assert_eq!(
            error.to_string(),
            "next state 2 is not below 2 (at state 1, byte 45); the dead state is 9"
        );
        for (len, start) in [(0, 0), (255, 0), (257, 0), (256, 1), (256, 9)] {
            assert!(Table::new(&vec![9u16; len], start, 9).is_err(), "{len} entries, start {start}");
        }
        assert!(Table::new(&[0u32; 256], 0, 0).is_err(), "the start state is dead");
    }
}
