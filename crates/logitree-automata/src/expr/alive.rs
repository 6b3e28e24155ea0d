//! Whether any text matches. Plain to see but where and, or not stands; there the automaton is searched, what may be
//! nearest to its end first, and what was found is remembered. It refuses to know what the answer is for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use super::node::ExprNode;
use super::{ExprId, Exprs, NOTHING};
use crate::Result;

impl Exprs {
    /// Whether any text matches. Exact.
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
            | ExprNode::Dfa(..) => true,
        };
        if alive {
            self.facts[e.0 as usize].alive = true;
        } else {
            self.dead.insert(e);
        }
        Ok(alive)
    }

    /// Whether all parts of a chain are: a loop, so that a chain of thousands is no recursion.
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

    /// `e`, or [`NOTHING`] if no text matches it.
    #[inline]
    pub(super) fn live(&mut self, e: ExprId) -> Result<ExprId> {
        if self.facts(e).alive {
            return Ok(e);
        }
        Ok(if self.is_alive(e)? { e } else { NOTHING })
    }

    /// From `start` to anything that is complete or known to be alive: what needs the fewest bytes first, of those the
    /// last found. An intersection is usually alive, and a witness lies straight ahead.
    fn search(&mut self, start: ExprId) -> Result<bool> {
        if self.is_seen_alive(start) {
            return Ok(true);
        }
        // (expression, place of the one it was reached from)
        let mut seen: Vec<(ExprId, usize)> = vec![(start, 0)];
        let mut known: FxHashSet<ExprId> = FxHashSet::from_iter([start]);
        let mut waiting = BinaryHeap::from([(Reverse(0), 0)]);
        while let Some((_, at)) = waiting.pop() {
            let e = seen[at].0;
            // What ended the last search often ends this one.
            let next = self.step(e, self.last_byte)?;
            if self.is_seen_alive(next) {
                self.mark_path(&seen, at);
                return Ok(true);
            }
            for class in self.byte_classes(e)? {
                self.spend(2)?;
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

    /// Whether that is known, or plain because it is complete.
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
