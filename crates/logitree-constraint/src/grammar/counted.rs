//! The tables of a text that an automaton reads and whose characters are counted, such as `pattern` with `maxLength`: the
//! automaton beside a number, instead of one state for each pair. Whether the text can still end in time is known of each
//! state ahead: which numbers of characters it may take to the end.
//!
//! The naive version is [`super::walk::narrow`], to which the tests of the room hold it equal.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::lexeme::{Exit, Lexeme};
use super::walk::{allowed_outside, Automaton};
use crate::Result;
use logitree_grammar::expr::{ByteSet, CountedText, ExprId, Exprs};
use logitree_tokens::trie::{Node, StateNumber, TokenTrie};

/// More pairs of states are not counted so.
const MAX_STATES: usize = 4_096;
/// Words of the numbers of characters that are noted one by one.
const WORDS: usize = 4;
const LISTED: u32 = 64 * WORDS as u32;
/// Set in the number of a state of what follows the text.
const AFTER: u32 = 1 << 31;
/// Bits of a state that count the characters of one token.
const COUNT_BITS: u32 = 11;
/// No text continues so.
const DEAD: u32 = u32::MAX;

/// How many characters may come from a state to the end.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Lengths {
    /// This many, and any greater number.
    from: u32,
    /// Smaller numbers, one bit each.
    listed: [u64; WORDS],
}

impl Lengths {
    const NONE: Lengths = Lengths { from: u32::MAX, listed: [0; WORDS] };

    /// The same with `more` characters before, 0 or 1.
    fn after(&self, more: u32) -> Lengths {
        if more == 0 {
            return *self;
        }
        let mut listed = [0; WORDS];
        let mut carried = 0;
        for (made, word) in listed.iter_mut().zip(self.listed) {
            *made = word << 1 | carried;
            carried = word >> 63;
        }
        Lengths { from: self.from.saturating_add(1), listed }
    }

    fn join(&mut self, other: &Lengths) {
        self.from = self.from.min(other.from);
        self.listed.iter_mut().zip(other.listed).for_each(|(mine, theirs)| *mine |= theirs);
    }

    #[inline]
    fn meet(&self, min: u32, max: u32) -> bool {
        self.from <= max
            || (min..=max.min(LISTED - 1)).any(|n| self.listed[n as usize / 64] >> (n % 64) & 1 == 1)
    }
}

/// The automaton and the loop side by side.
struct Pairs {
    /// `next[state * 256 + byte]`.
    next: Vec<u16>,
    /// Whether the next byte begins a character.
    begins: Vec<bool>,
    accepting: Vec<bool>,
    lengths: Vec<Lengths>,
}

/// The tables of `e`, if it is such a text.
///
/// # Errors
/// [`crate::ErrorKind::Limit`] if there is not enough fuel.
pub(super) fn counted(e: ExprId, exprs: &mut Exprs, trie: &TokenTrie) -> Result<Option<Lexeme>> {
    let Some(text) = exprs.split_counted(e)? else { return Ok(None) };
    if exprs.is_complete(text.rest) {
        return Ok(None);
    }
    let Some(after) = Automaton::explored(text.rest, exprs)? else { return Ok(None) };
    let Some(pairs) = Pairs::new(&text, exprs)? else { return Ok(None) };
    exprs.charge(trie.node_count() as u64)?;
    let mut exits: Vec<Exit> = Vec::new();
    let mut refused: Vec<Node> = Vec::new();
    let mut is_ambiguous = false;
    trie.explore(trie.root(), 0u32, |state, byte, node| {
        if state & AFTER != 0 {
            if let Some(outcome) = after.outcomes[(state & !AFTER) as usize] {
                exits.push(Exit { outcome, byte, node });
            }
        }
        let next = if state & AFTER != 0 {
            after.step((state & !AFTER) as u16, byte).map_or(DEAD, |next| AFTER | u32::from(next))
        } else {
            let on = pairs.step(state, byte, text.min, text.max);
            let out = if pairs.may_end(state, text.min, text.max) { after.step(0, byte) } else { None };
            is_ambiguous |= on != DEAD && out.is_some();
            out.map_or(on, |out| AFTER | u32::from(out))
        };
        if next == DEAD {
            refused.push(node);
            return None;
        }
        Some(next)
    });
    if is_ambiguous {
        return Ok(None);
    }
    allowed_outside(&refused, exits, exprs, trie).map(Some)
}

impl Pairs {
    /// `None` if there are too many, or if the numbers of characters are not of the kind that is noted.
    fn new(text: &CountedText, exprs: &mut Exprs) -> Result<Option<Pairs>> {
        let mut made =
            Pairs { next: Vec::new(), begins: Vec::new(), accepting: Vec::new(), lengths: Vec::new() };
        let mut rounds: FxHashMap<ExprId, Vec<(ByteSet, ExprId)>> = FxHashMap::default();
        let start = (text.state, text.inside);
        let mut numbers: FxHashMap<(u32, ExprId), u16> = FxHashMap::from_iter([(start, 0)]);
        let mut pairs = vec![start];
        let mut at = 0;
        while let Some(&(state, inside)) = pairs.get(at) {
            if pairs.len() > MAX_STATES {
                return Ok(None);
            }
            let ways = match rounds.entry(inside) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(slot) => slot.insert(exprs.transitions(inside)?),
            };
            let row = made.next.len();
            made.next.resize(row + 256, u16::DEAD);
            let targets = text.dfa.targets(state);
            exprs.charge(16 + (targets.len() * (2 + ways.len())) as u64)?;
            for (bytes, to) in &targets {
                for (class, after) in &*ways {
                    let both = bytes.and(class);
                    if both.is_empty() {
                        continue;
                    }
                    let next = *numbers.entry((*to, *after)).or_insert_with(|| {
                        pairs.push((*to, *after));
                        pairs.len() as u16 - 1
                    });
                    both.iter().for_each(|byte| made.next[row + usize::from(byte)] = next);
                }
            }
            made.begins.push(inside == text.endless);
            made.accepting.push(text.dfa.is_accepting(state) && exprs.is_complete(inside));
            at += 1;
        }
        Ok(made.find_lengths(exprs)?.then_some(made))
    }

    /// Finds the numbers of characters to the end. Returns whether all could be noted.
    fn find_lengths(&mut self, exprs: &mut Exprs) -> Result<bool> {
        let states = self.begins.len();
        let mut ways: Vec<Vec<u16>> = Vec::with_capacity(states);
        for row in self.next.chunks_exact(256) {
            let mut to: Vec<u16> = row.iter().copied().filter(|&to| to != u16::DEAD).collect();
            to.sort_unstable();
            to.dedup();
            ways.push(to);
        }
        exprs.charge(32 * states as u64)?;
        self.lengths = vec![Lengths::NONE; states];
        for state in (0..states).filter(|&state| self.accepting[state]) {
            self.lengths[state].listed[0] = 1;
        }
        // A character that leads back to a state may be repeated there.
        let repeats = |state: usize| self.begins[state] && ways[state].binary_search(&(state as u16)).is_ok();
        let repeats: Vec<bool> = (0..states).map(repeats).collect();
        let mut rounds = 0;
        loop {
            exprs.charge(8 * ways.iter().map(Vec::len).sum::<usize>() as u64)?;
            let mut changed = false;
            for state in (0..states).rev() {
                let mut found = self.lengths[state];
                for &to in &ways[state] {
                    found.join(&self.lengths[usize::from(to)].after(u32::from(self.begins[state])));
                }
                if repeats[state] {
                    let least = (0..LISTED).find(|&n| found.meet(n, n));
                    found.from = least.map_or(found.from, |least| least.min(found.from));
                }
                // What is listed too is not listed twice.
                for n in found.from..LISTED {
                    found.listed[n as usize / 64] &= !(1 << (n % 64));
                }
                changed |= found != self.lengths[state];
                self.lengths[state] = found;
            }
            if !changed {
                break;
            }
            rounds += 1;
            if rounds > 64 {
                return Ok(false);
            }
        }
        // A number past the list would have been lost.
        let fits = |lengths: &Lengths| {
            lengths.listed[WORDS - 1] >> 63 == 0 && (lengths.from == u32::MAX || lengths.from < LISTED)
        };
        Ok(self.lengths.iter().all(fits))
    }

    /// The state after `byte`.
    #[inline]
    fn step(&self, state: u32, byte: u8, min: u32, max: u32) -> u32 {
        let at = (state >> COUNT_BITS) as usize;
        let next = self.next[at << 8 | usize::from(byte)];
        if next == u16::DEAD {
            return DEAD;
        }
        let count = (state & ((1 << COUNT_BITS) - 1)) + u32::from(self.begins[at]);
        if count > max || !self.lengths[usize::from(next)].meet(min.saturating_sub(count), max - count) {
            return DEAD;
        }
        u32::from(next) << COUNT_BITS | count
    }

    fn may_end(&self, state: u32, min: u32, max: u32) -> bool {
        let count = state & ((1 << COUNT_BITS) - 1);
        self.accepting[(state >> COUNT_BITS) as usize] && (min..=max).contains(&count)
    }
}
