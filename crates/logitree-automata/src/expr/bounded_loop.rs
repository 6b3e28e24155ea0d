//! Bounded loops with an unambiguous exit: `C{m,n}` followed by a byte that no iteration starts with. Such a
//! loop differs from the unbounded one only in its iteration count.

use std::sync::Arc;

use super::node::{ExprNode, ENDLESS};
use super::{ByteSet, ExprId, Exprs, EMPTY};
use crate::{Dfa, Result};

/// A loop with bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundedLoop {
    /// The same loop without bounds.
    pub endless: ExprId,
    /// Minimum iterations.
    pub min: u32,
    /// Maximum iterations.
    pub max: u32,
    /// The bytes that leave the loop.
    pub leaves: ByteSet,
}

impl BoundedLoop {
    /// Whether any round more leads to the endless loop.
    pub fn is_endless_after_a_round(&self) -> bool {
        self.min <= 1 && self.max == ENDLESS
    }
}

/// A text that an automaton reads and whose rounds of a loop are counted, and what follows it.
pub struct CountedText {
    /// The automaton.
    pub dfa: Arc<Dfa>,
    /// Its state.
    pub state: u32,
    /// The loop without bounds, from where the text is in a round on.
    pub inside: ExprId,
    /// The loop without bounds at the beginning of a round.
    pub endless: ExprId,
    /// Minimum rounds after the one that was begun.
    pub min: u32,
    /// Maximum rounds after the one that was begun.
    pub max: u32,
    /// What follows the text.
    pub rest: ExprId,
}

/// Deeper expressions are assumed to contain any byte.
const ALPHABET_DEPTH: u32 = 8;

impl Exprs {
    /// `e` as a bounded loop whose iterations are delimited: no iteration can continue where another could end,
    /// and none starts with a byte that leaves the loop.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the arena is full or out of fuel.
    pub fn bounded_loop(&mut self, e: ExprId) -> Result<Option<BoundedLoop>> {
        let Some((of, min, max, rest)) = self.parts_of_loop(e) else { return Ok(None) };
        if (min, max) == (0, ENDLESS) || rest == EMPTY || self.is_complete(rest) || self.facts(of).boolean {
            return Ok(None);
        }
        let leaves = self.first_bytes(rest)?;
        if !self.first_bytes(of)?.and(&leaves).is_empty() || !self.rounds_are_delimited(of)? {
            return Ok(None);
        }
        let around = self.repeat(of, 0, None)?;
        let endless = self.pair(around, rest)?;
        Ok(Some(BoundedLoop { endless, min, max, leaves }))
    }

    /// The bytes that leave an unbounded loop made by [`Exprs::bounded_loop`].
    pub fn loop_exits(&mut self, endless: ExprId) -> Result<ByteSet> {
        match self.parts_of_loop(endless) {
            Some((_, _, _, rest)) => self.first_bytes(rest),
            None => Ok(ByteSet::NONE),
        }
    }

    /// Splits `e` into an optional head and a rest, if they are delimited: no byte of the head starts the rest.
    ///
    /// # Errors
    /// As [`Exprs::bounded_loop`].
    pub fn split_head(&mut self, e: ExprId) -> Result<Option<(ExprId, ExprId)>> {
        let ExprNode::Concat(a, b) = *self.node(e) else { return Ok(None) };
        if !self.is_complete(a) || self.is_complete(b) || self.facts(a).boolean {
            return Ok(None);
        }
        let apart = self.first_bytes(b)?.and(&self.alphabet(a, ALPHABET_DEPTH)).is_empty();
        Ok(apart.then_some((a, b)))
    }

    /// The bytes that strings of `e` can contain, or a superset.
    fn alphabet(&self, e: ExprId, depth: u32) -> ByteSet {
        let Some(below) = depth.checked_sub(1) else { return ByteSet::ALL };
        let of_all =
            |parts: &[ExprId]| parts.iter().fold(ByteSet::NONE, |all, &e| all.or(&self.alphabet(e, below)));
        match self.node(e) {
            ExprNode::Nothing | ExprNode::Tag(_) => ByteSet::NONE,
            ExprNode::Class(set) => *set,
            ExprNode::Bytes(from, to) => {
                let mut set = ByteSet::NONE;
                self.bytes_of(*from, *to).iter().for_each(|&byte| set.insert(byte));
                set
            }
            ExprNode::Concat(a, b) => of_all(&[*a, *b]),
            ExprNode::Or(parts) if parts.len() <= 16 => of_all(parts),
            ExprNode::Repeat { of, .. } => self.alphabet(*of, below),
            ExprNode::Or(_)
            | ExprNode::And(_)
            | ExprNode::Not(_)
            | ExprNode::Literals { .. }
            | ExprNode::Dfa(..)
            | ExprNode::Computed(..) => ByteSet::ALL,
        }
    }

    /// `e` as a text that is counted, if it is one and its rounds are delimited.
    ///
    /// # Errors
    /// As [`Exprs::bounded_loop`].
    pub fn split_counted(&mut self, e: ExprId) -> Result<Option<CountedText>> {
        let (head, rest) = match *self.node(e) {
            ExprNode::Concat(a, b) => (a, b),
            _ => (e, EMPTY),
        };
        let ExprNode::And(parts) = self.node(head) else { return Ok(None) };
        let [a, b] = parts[..] else { return Ok(None) };
        for (automaton, counted) in [(a, b), (b, a)] {
            let ExprNode::Dfa(dfa, state) = *self.node(automaton) else { continue };
            let (begun, turns) = match *self.node(counted) {
                ExprNode::Concat(begun, turns) => (begun, turns),
                _ => (EMPTY, counted),
            };
            let ExprNode::Repeat { of, min, max } = *self.node(turns) else { continue };
            if self.is_complete(of) || self.facts(counted).boolean || !self.rounds_are_delimited(of)? {
                continue;
            }
            let endless = self.repeat(of, 0, None)?;
            let inside = self.pair(begun, endless)?;
            let (dfa, max) = (Arc::clone(&self.dfas[dfa as usize].0), max.min(ENDLESS - 1));
            return Ok(Some(CountedText { dfa, state, inside, endless, min, max, rest }));
        }
        Ok(None)
    }

    fn parts_of_loop(&self, e: ExprId) -> Option<(ExprId, u32, u32, ExprId)> {
        let (head, rest) = match *self.node(e) {
            ExprNode::Concat(a, b) => (a, b),
            _ => (e, EMPTY),
        };
        match *self.node(head) {
            ExprNode::Repeat { of, min, max } if !self.is_complete(of) => Some((of, min, max, rest)),
            _ => None,
        }
    }

    /// Whether no complete state can continue, over all states of a small automaton.
    fn rounds_are_delimited(&mut self, of: ExprId) -> Result<bool> {
        if let Some(&known) = self.delimited_bodies.get(&of) {
            return Ok(known);
        }
        let found = self.find_delimited(of)?;
        self.delimited_bodies.insert(of, found);
        Ok(found)
    }

    fn find_delimited(&mut self, of: ExprId) -> Result<bool> {
        const MAX: usize = 64;
        let mut states = vec![of];
        let mut at = 0;
        while at < states.len() {
            let state = states[at];
            if self.is_complete(state) && self.can_continue(state)? {
                return Ok(false);
            }
            for (_, next) in self.transitions(state)? {
                if !states.contains(&next) {
                    states.push(next);
                }
            }
            if states.len() > MAX {
                return Ok(false);
            }
            at += 1;
        }
        Ok(true)
    }
}
