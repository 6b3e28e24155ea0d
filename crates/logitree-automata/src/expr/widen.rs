//! Two expressions with rounded counters, one that says less and one that says more: what both agree on holds for all
//! counters in between, so that one pair of tables serves many states. Only below an and, where [`saturate`] must leave
//! counters as they are. It refuses to know what the two are compared for.
//!
//! [`saturate`]: super::saturate

use super::node::{ExprNode, ENDLESS};
use super::{ExprId, Exprs, NOTHING};
use crate::Result;

/// Counters up to this stay as they are.
const EXACT: u32 = 4;
/// Counters beyond this are endless above, and this below.
const FAR: u32 = 128;

/// Which rounding counters are rounded.
enum Rounding<'a> {
    /// To fewer texts.
    Less,
    /// To more texts.
    More,
    /// Bounds above to none; the least of them is noted.
    Endless(&'a mut u32),
}

impl Exprs {
    /// `(less, more)`: every text of `less` is one of `e`, and every text of `e` is one of `more`, with all tags. `None`
    /// if nothing would be rounded, or nothing was left.
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

    /// An expression that says more, with no bounds above, and the bytes for which it makes no difference: a text of at
    /// most so many matches both or neither. `None` if there are none such bounds.
    ///
    /// # Errors
    /// As [`Exprs::approximations`].
    pub fn without_upper_bounds(&mut self, e: ExprId) -> Result<Option<(ExprId, u32)>> {
        if !self.facts(e).boolean {
            return Ok(None);
        }
        let mut bytes = u32::MAX;
        let more = self.rounded(e, &mut Rounding::Endless(&mut bytes))?;
        if bytes == u32::MAX || self.live(more)? == NOTHING {
            return Ok(None);
        }
        Ok(Some((more, bytes)))
    }

    /// Down to the first and.
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

    /// All counters below an and, but for those below a not.
    fn rounded_whole(&mut self, e: ExprId, rounding: &mut Rounding<'_>) -> Result<ExprId> {
        self.spend(1)?;
        match self.node(e).clone() {
            ExprNode::Concat(..) => {
                // A loop, so that a chain of thousands is no recursion.
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

/// Bounds with fewer or more numbers between them; as they are where fewer would be none. A round has at least `bytes`
/// bytes, and one, or else says nothing.
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
