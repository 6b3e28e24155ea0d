//! Tests whether a language is empty. Without intersection and complement the answer is immediate; otherwise a
//! cached search explores the automaton, states closest to acceptance first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use super::node::ExprNode;
use super::{ExprId, Exprs, NOTHING};
use crate::Result;

/// After so many states a search looks at what they need, too.
const EASY: usize = 48;

impl Exprs {
    /// Whether the language is not empty. Exact.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if finding out takes more than the fuel allows.
    pub fn is_alive(&mut self, e: ExprId) -> Result<bool> {
        if self.facts(e).alive {
            return Ok(true);
        }
        if self.dead.contains(&e) {
            return Ok(false);
        }
        self.charge(4)?;
        let alive = match self.node(e).clone() {
            ExprNode::Nothing => false,
            ExprNode::Concat(..) => return self.all_alive(e),
            ExprNode::Or(parts) => {
                let mut any = false;
                for &part in parts.iter() {
                    any = any || self.is_alive(part)?;
                }
                any
            }
            ExprNode::Repeat { of, min, .. } => min == 0 || self.is_alive(of)?,
            ExprNode::And(parts) if self.surely_intersect(&parts) => true,
            ExprNode::And(_) | ExprNode::Not(_) => return self.search(e),
            ExprNode::Tag(_)
            | ExprNode::Class(_)
            | ExprNode::Bytes(..)
            | ExprNode::Literals { .. }
            | ExprNode::Dfa(..)
            | ExprNode::Computed(..) => true,
        };
        if alive {
            self.facts[e.0 as usize].alive = true;
        } else {
            self.dead.insert(e);
        }
        Ok(alive)
    }

    /// Whether all parts of a concatenation are alive. Iterative, because a concatenation may have thousands of
    /// parts.
    fn all_alive(&mut self, e: ExprId) -> Result<bool> {
        let (mut chain, mut at, mut alive) = (Vec::new(), e, true);
        while let ExprNode::Concat(a, b) = *self.node(at) {
            if self.facts(at).alive || !alive {
                break;
            }
            chain.push(at);
            alive = self.is_alive(a)?;
            at = b;
        }
        alive = alive && self.is_alive(at)?;
        if !alive {
            self.dead.insert(e);
        }
        chain.iter().filter(|_| alive).for_each(|part| self.facts[part.0 as usize].alive = true);
        Ok(alive)
    }

    /// `e`, or [`NOTHING`] if its language is empty.
    #[inline]
    pub(super) fn live(&mut self, e: ExprId) -> Result<ExprId> {
        if self.facts(e).alive {
            return Ok(e);
        }
        Ok(if self.is_alive(e)? { e } else { NOTHING })
    }

    /// Searches from `start` for a state that accepts or is known to be alive: the state that needs the fewest
    /// bytes first, among those the one found last. Intersections are usually alive, and a witness is usually
    /// found without backtracking.
    fn search(&mut self, start: ExprId) -> Result<bool> {
        if self.is_seen_alive(start) {
            return Ok(true);
        }
        // (expression, index of the expression it was reached from)
        let mut seen: Vec<(ExprId, usize)> = vec![(start, 0)];
        let mut known: FxHashSet<ExprId> = FxHashSet::from_iter([start]);
        let mut waiting = BinaryHeap::from([(Reverse(0), 0)]);
        let mut looked = 0;
        while let Some((_, at)) = waiting.pop() {
            let e = seen[at].0;
            looked += 1;
            if looked > EASY {
                if looked == EASY + 1 && self.lacks_bytes(start)? {
                    break;
                }
                if self.lacks_bytes(e)? {
                    continue;
                }
            }
            // The byte that ended the last search often ends this one.
            let next = self.step(e, self.last_byte)?;
            if self.is_seen_alive(next) {
                self.mark_path(&seen, at);
                return Ok(true);
            }
            for class in self.byte_classes(e)? {
                self.spend(5)?;
                let Some(byte) = class.iter().next() else { continue };
                let next = self.step(e, byte)?;
                if self.is_seen_alive(next) {
                    self.last_byte = byte;
                    self.mark_path(&seen, at);
                    return Ok(true);
                }
                if next != NOTHING && !self.dead.contains(&next) && known.insert(next) {
                    waiting.push((Reverse(self.facts(next).shortest), seen.len()));
                    seen.push((next, at));
                }
            }
        }
        self.dead.extend(seen.into_iter().map(|(e, _)| e));
        Ok(false)
    }

    /// Whether the answer is known without a search.
    fn is_seen_alive(&mut self, e: ExprId) -> bool {
        self.facts[e.0 as usize].alive |= self.is_complete(e);
        self.facts(e).alive
    }

    fn mark_path(&mut self, seen: &[(ExprId, usize)], mut at: usize) {
        loop {
            self.facts[seen[at].0 .0 as usize].alive = true;
            if at == 0 {
                return;
            }
            at = seen[at].1;
        }
    }
}
