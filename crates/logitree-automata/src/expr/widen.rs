//! Approximates counters inside an intersection from below and above. What both approximations agree on holds
//! for all counters in between, so one pair of tables serves many states. [`saturate`](super::saturate) handles
//! counters outside intersections.

use super::node::{ExprNode, ENDLESS};
use super::{ExprId, Exprs, NOTHING};
use crate::Result;

/// Smaller counters stay exact.
const EXACT: u32 = 4;
/// Larger upper bounds become unbounded, and larger lower bounds become this.
const FAR: u32 = 128;

/// Outside of intersections, repetitions of fewer bytes keep their bounds.
const LONG: u32 = 16;
/// Parts before a repetition, and alternatives, that are looked through for it.
const MAX_HEADS: u32 = 6;
const MAX_WAYS: usize = 8;

/// The direction of the approximation.
enum Rounding<'a> {
    /// A subset.
    Less,
    /// A superset.
    More,
    /// A superset without upper bounds; records the smallest of them, in bytes.
    Endless(&'a mut u32),
}

impl Exprs {
    /// `(subset, superset)` of `e`, with all tags. `None` if no counter would change or an approximation is
    /// empty.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the arena is full or out of fuel.
    pub fn approximations(&mut self, e: ExprId) -> Result<Option<(ExprId, ExprId)>> {
        if !self.facts(e).boolean {
            return Ok(None);
        }
        let less = self.rounded(e, &mut Rounding::Less)?;
        let more = self.rounded(e, &mut Rounding::More)?;
        if less == more || self.live(less)? == NOTHING || self.live(more)? == NOTHING {
            return Ok(None);
        }
        Ok(Some((less, more)))
    }

    /// A superset of `e` without upper bounds, and a length in bytes up to which both match the same strings.
    /// `None` if there are no upper bounds.
    ///
    /// # Errors
    /// As [`Exprs::approximations`].
    pub fn without_upper_bounds(&mut self, e: ExprId) -> Result<Option<(ExprId, u32)>> {
        let mut bytes = u32::MAX;
        let more = if self.facts(e).boolean {
            self.rounded(e, &mut Rounding::Endless(&mut bytes))?
        } else {
            self.without_first_bound(e, &mut bytes, MAX_HEADS)?
        };
        if bytes == u32::MAX || self.live(more)? == NOTHING {
            return Ok(None);
        }
        Ok(Some((more, bytes)))
    }

    /// `e` without the upper bound of a long repetition that its texts begin with, or come to after a few parts. Records how
    /// many bytes it has at most.
    fn without_first_bound(&mut self, e: ExprId, least: &mut u32, left: u32) -> Result<ExprId> {
        self.charge(4)?;
        match self.node(e).clone() {
            ExprNode::Repeat { of, min, max } if max != ENDLESS => {
                let bytes = max.saturating_mul(self.facts(of).shortest);
                if bytes < LONG || self.is_complete(of) {
                    return Ok(e);
                }
                *least = bytes.min(*least);
                self.repeat_counted(of, min, ENDLESS)
            }
            ExprNode::Concat(a, b) => {
                let Some(left) = left.checked_sub(1) else { return Ok(e) };
                match *self.node(a) {
                    ExprNode::Repeat { max, .. } if max != ENDLESS => {
                        let a = self.without_first_bound(a, least, left)?;
                        self.pair(a, b)
                    }
                    _ => {
                        let b = self.without_first_bound(b, least, left)?;
                        self.pair(a, b)
                    }
                }
            }
            ExprNode::Or(parts) if parts.len() <= MAX_WAYS => {
                let Some(left) = left.checked_sub(1) else { return Ok(e) };
                let mut ways = Vec::with_capacity(parts.len());
                for &part in parts.iter() {
                    ways.push(self.without_first_bound(part, least, left)?);
                }
                self.or(&ways)
            }
            _ => Ok(e),
        }
    }

    /// Descends to the first intersection.
    fn rounded(&mut self, e: ExprId, rounding: &mut Rounding<'_>) -> Result<ExprId> {
        if !self.facts(e).boolean {
            return Ok(e);
        }
        match self.node(e).clone() {
            ExprNode::Concat(a, b) => {
                let a = self.rounded(a, rounding)?;
                self.pair(a, b)
            }
            ExprNode::Or(parts) => {
                let mut rounded = Vec::with_capacity(parts.len());
                for &part in parts.iter() {
                    rounded.push(self.rounded(part, rounding)?);
                }
                self.or(&rounded)
            }
            ExprNode::And(_) => self.rounded_whole(e, rounding),
            _ => Ok(e),
        }
    }

    /// All counters inside an intersection, except those inside a complement.
    fn rounded_whole(&mut self, e: ExprId, rounding: &mut Rounding<'_>) -> Result<ExprId> {
        self.spend(1)?;
        match self.node(e).clone() {
            ExprNode::Concat(..) => {
                // Iterative, because a concatenation may have thousands of parts.
                let (mut heads, mut at) = (Vec::new(), e);
                while let ExprNode::Concat(a, b) = *self.node(at) {
                    heads.push(self.rounded_whole(a, rounding)?);
                    at = b;
                }
                let last = self.rounded_whole(at, rounding)?;
                heads.into_iter().rev().try_fold(last, |rest, head| self.pair(head, rest))
            }
            ExprNode::Or(parts) => {
                let parts = self.rounded_all(&parts, rounding)?;
                self.or(&parts)
            }
            ExprNode::And(parts) => {
                let parts = self.rounded_all(&parts, rounding)?;
                self.and(&parts)
            }
            ExprNode::Repeat { of, min, max } => {
                let bytes = self.facts(of).shortest;
                let (min, max) = round(min, max, bytes, rounding);
                self.repeat_counted(of, min, max)
            }
            _ => Ok(e),
        }
    }

    fn rounded_all(&mut self, parts: &[ExprId], rounding: &mut Rounding<'_>) -> Result<Vec<ExprId>> {
        parts.iter().map(|&part| self.rounded_whole(part, rounding)).collect()
    }
}

/// Widens or narrows the bounds; unchanged if narrowing would leave none. An iteration has at least `bytes`
/// bytes.
fn round(min: u32, max: u32, bytes: u32, rounding: &mut Rounding<'_>) -> (u32, u32) {
    let down = |n: u32| if n <= EXACT { n } else { 1 << n.min(FAR).ilog2() };
    let up = |n: u32| if n <= EXACT { n } else { n.checked_next_power_of_two().unwrap_or(ENDLESS) };
    let less = (up(min), if max == ENDLESS { ENDLESS } else { down(max) });
    match rounding {
        Rounding::Less | Rounding::More if less.0 > less.1 => (min, max),
        Rounding::Less => less,
        Rounding::More => (down(min), if max > FAR { ENDLESS } else { up(max) }),
        Rounding::Endless(least) => {
            if max == ENDLESS || max <= EXACT {
                return (min, max);
            }
            **least = max.saturating_mul(bytes.max(1)).min(**least);
            (min, ENDLESS)
        }
    }
}
