//! States that nearly agree with another: tables as differences. A key that may be any but the named ones differs from
//! a key that may be any along the named ones only; a string of at most n characters differs from one without end in
//! long tokens only. What is the same is taken over, so that such a state costs what differs.
//!
//! The naive version is [`crate::grammar::walk::narrow`] without a most, to which `tests` below hold it
//! equal.

use std::sync::Arc;

use super::state::StartState;
use crate::grammar::join::Sorter;
use crate::grammar::lazy::{LazyTable, DEAD};
use crate::grammar::lexeme::{Base, Exit, Lexeme};
use crate::{Result, TokenId};
use logitree_grammar::expr::{BoundedLoop, ByteSet, ExprId, Exprs, NOTHING};
use logitree_tokens::mask::TokenSet;
use logitree_tokens::trie::TokenTrie;

/// More nodes than this are not few.
const MAX_VISITED: usize = 30_000;

/// Bytes that few names have and most texts may have.
const SAMPLES: [u8; 4] = [b'~', b'|', b'Q', b'%'];

/// The default state of `e`: the state after most bytes, if most bytes loop on it; taken after the first byte, if there
/// is only one.
///
/// # Errors
/// [`crate::ErrorKind::Limit`] if the automaton needs more than the limits of `exprs`.
pub(in crate::grammar) fn default_state(e: ExprId, exprs: &mut Exprs) -> Result<Option<ExprId>> {
    if let Some(state) = settled(e, exprs)? {
        return Ok(Some(state));
    }
    let first = exprs.first_bytes(e)?;
    let mut bytes = first.iter();
    let (Some(byte), None) = (bytes.next(), bytes.next()) else { return Ok(None) };
    let behind = exprs.derive(e, byte)?;
    let Some(state) = settled(behind, exprs)? else { return Ok(None) };
    let byte = exprs.class(first)?;
    Ok(Some(exprs.concat(&[byte, state])?).filter(|&other| other != e))
}

/// The state after one of a few samples, if it stays what it is by that sample.
fn settled(e: ExprId, exprs: &mut Exprs) -> Result<Option<ExprId>> {
    for byte in SAMPLES {
        let state = exprs.derive(e, byte)?;
        if state != NOTHING && state != e && exprs.derive(state, byte)? == state {
            return Ok(Some(state));
        }
    }
    Ok(None)
}

/// A state and the other, on a walk along both.
#[derive(Clone, Copy)]
struct Pair {
    mine: ExprId,
    theirs: ExprId,
    /// The bytes by which they may part.
    parting: ByteSet,
    /// Whether the other could be left on the way.
    passed: bool,
    /// Whether some exit on the way differed: then all further exits are this one's own.
    apart: bool,
}

impl Pair {
    fn derive(self, byte: u8, exprs: &mut Exprs) -> Result<Pair> {
        let (mine, theirs) = (exprs.visit(self.mine, byte)?, exprs.visit(self.theirs, byte)?);
        Ok(Pair { mine, theirs, parting: exprs.parting_bytes(mine, theirs)?, ..self })
    }
}

/// The tables of a place as differences from those of `other` at the same place, which has the first bytes of both;
/// `None` if they differ in much.
///
/// # Errors
/// As [`default_state`].
pub(in crate::grammar) fn as_difference(
    place: &StartState,
    other: ExprId,
    lexeme: &Arc<Lexeme>,
    exprs: &mut Exprs,
    trie: &TokenTrie,
) -> Result<Option<Lexeme>> {
    let mut more = Vec::new();
    let mut without = Vec::new();
    let mut elsewhere = Vec::new();
    let mut exits = Vec::new();
    let mut failed = None;
    let mut visited = 0usize;
    let mut lost = false;
    let parting = exprs.parting_bytes(place.state, other)?;
    let start = Pair { mine: place.state, theirs: other, parting, passed: false, apart: false };
    place.explore(trie, start, |Pair { mine, theirs, parting, passed, apart }, byte, node| {
        visited += 1;
        if visited > MAX_VISITED || lost || failed.is_some() {
            return None;
        }
        let deep = trie.depth(node) > 1;
        let (out, their_out) = (exprs.outcome_number(mine), exprs.outcome_number(theirs));
        let parts = !apart && deep && out != their_out;
        // The exits that both had on the way are the other's: what goes elsewhere would lose them.
        lost |= parts && passed;
        let apart = deep && (apart || parts);
        if !apart && !parting.contains(byte) {
            return None;
        }
        let passed = passed || deep && exprs.is_complete(theirs);
        if apart {
            elsewhere.extend_from_slice(trie.tokens(node));
            if exprs.is_complete(mine) {
                exits.push(Exit { outcome: out, byte, node });
            }
        }
        let both = Pair { mine, theirs, parting, passed, apart }.derive(byte, exprs);
        let next = both.map_err(|error| failed = Some(error)).ok()?;
        if next.mine == next.theirs && !apart {
            return None;
        }
        match (next.mine == NOTHING, next.theirs == NOTHING) {
            (true, false) => {
                // The other's exits leave out what it takes: they say nothing of these tokens.
                lost |= passed && !apart && !trie.tokens(node).is_empty();
                without.extend_from_slice(trie.tokens(node));
            }
            (false, true) => more.extend_from_slice(trie.tokens(node)),
            _ => {}
        }
        Some(next)
    });
    if let Some(error) = failed {
        return Err(error);
    }
    exprs.charge(visited as u64 / 4)?;
    if visited > MAX_VISITED || lost {
        return Ok(None);
    }
    without.sort_unstable();
    elsewhere.sort_unstable();
    let base = Base { lexeme: Arc::clone(lexeme), without: without.into(), elsewhere: elsewhere.into() };
    let inside = TokenSet::from_ids(more, trie.vocabulary_size());
    Ok(Some(Lexeme::near(base, inside, exits, exprs)))
}

/// How often each token goes round a loop without end: what a bounded one of the same body and rest is cut from.
#[derive(Debug)]
pub(in crate::grammar) struct LoopRounds {
    /// Tokens that the loop takes, by the rounds begun.
    taken: ByRounds,
    /// Tokens that leave the loop, by the rounds before they do.
    leaving: ByRounds,
}

/// Tokens by a number.
#[derive(Debug)]
struct ByRounds {
    ids: Box<[TokenId]>,
    /// `ids[from[n]..from[n + 1]]` have the number n.
    from: Box<[u32]>,
}

impl ByRounds {
    fn new(all: &[(u32, TokenId)]) -> ByRounds {
        let most = all.iter().map(|one| one.0 as usize).max().unwrap_or(0);
        let mut from = vec![0u32; most + 2];
        all.iter().for_each(|one| from[one.0 as usize + 1] += 1);
        (0..=most).for_each(|n| from[n + 1] += from[n]);
        let mut next = from.clone();
        let mut ids = vec![0; all.len()].into_boxed_slice();
        for &(n, id) in all {
            ids[next[n as usize] as usize] = id;
            next[n as usize] += 1;
        }
        ByRounds { ids, from: from.into() }
    }

    /// The tokens with a smaller number, and all others.
    fn split(&self, n: u32) -> (&[TokenId], &[TokenId]) {
        let at = self.from.get(n as usize).map_or(self.ids.len(), |&at| at as usize);
        self.ids.split_at(at)
    }

    fn memory(&self) -> usize {
        size_of_val(&*self.ids) + size_of_val(&*self.from)
    }
}

impl LoopRounds {
    /// Of the loop `endless`, whose rounds each return to it.
    ///
    /// # Errors
    /// As [`default_state`].
    pub fn new(endless: ExprId, exprs: &mut Exprs, trie: &TokenTrie) -> Result<LoopRounds> {
        let mut taken = Vec::new();
        let mut leaving = Vec::new();
        let leave = exprs.loop_exits(endless)?;
        let mut table = LazyTable::new(exprs);
        let start = table.number(endless);
        // The state, the rounds that are whole, and whether the loop was left.
        trie.explore(trie.root(), (start, 0u32, false), |(state, rounds, left), byte, node| {
            let left = left || state == start && leave.contains(byte);
            let next = table.step(state, byte);
            if next == DEAD {
                if left {
                    leaving.extend(trie.tokens_below(node).iter().map(|&id| (rounds, id)));
                }
                return None;
            }
            let whole = rounds + u32::from(!left && next == start);
            let begun = whole + u32::from(!left && next != start);
            for &id in trie.tokens(node) {
                taken.push((begun, id));
                if left {
                    leaving.push((rounds, id));
                }
            }
            Some((next, whole, left))
        });
        if let Some(error) = table.failed {
            return Err(error);
        }
        exprs.charge((taken.len() + leaving.len()) as u64)?;
        Ok(LoopRounds { taken: ByRounds::new(&taken), leaving: ByRounds::new(&leaving) })
    }

    /// The tables of the loop with bounds, from those of the endless one.
    pub fn bounded(&self, bounds: &BoundedLoop, lexeme: &Arc<Lexeme>, exprs: &Exprs) -> Lexeme {
        let mut without: Vec<TokenId> = self.taken.split(bounds.max.saturating_add(1)).1.to_vec();
        let (below, above) =
            (self.leaving.split(bounds.min).0, self.leaving.split(bounds.max.saturating_add(1)).1);
        let mut elsewhere: Vec<TokenId> = [below, above].concat();
        // What leaves too early or too late does not end inside either.
        without.extend(elsewhere.iter().copied().filter(|&id| lexeme.inside.contains(id)));
        let mut sorter = Sorter::default();
        sorter.sort(&mut without);
        sorter.sort(&mut elsewhere);
        let base = Base { lexeme: Arc::clone(lexeme), without: without.into(), elsewhere: elsewhere.into() };
        Lexeme::near(base, TokenSet::default(), Vec::new(), exprs)
    }

    pub fn memory(&self) -> usize {
        self.taken.memory() + self.leaving.memory()
    }
}
