//! Two expressions with rounded counters, one that says less and one that says more: what both agree on holds for all
//! counters in between, so that one pair of tables serves many states. Only below an and, where [`saturate`] must leave
//! counters as they are. It refuses to know what the two are compared for.
//!
//! [`saturate`]: super::saturate

use super::node::{Node, ENDLESS};
use super::{ExprId, Exprs, NOTHING};
use crate::Result;

/// Counters up to this stay as they are.
const EXACT: u32 = 4;
/// Counters beyond this are endless above, and this below.
const FAR: u32 = 128;

/// Which way counters are rounded.
enum Way<'a> {
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
    pub fn bracket(&mut self, e: ExprId) -> Result<Option<(ExprId, ExprId)>> {
        if !self.known(e).boolean {
            return Ok(None);
        }
        let less = self.rounded(e, &mut Way::Less)?;
        let more = self.rounded(e, &mut Way::More)?;
        if less == more || self.live(less)? == NOTHING || self.live(more)? == NOTHING {
            return Ok(None);
        }
        Ok(Some((less, more)))
    }

    /// An expression that says more, with no bounds above, and the bytes for which it makes no difference: a text of at
    /// most so many matches both or neither. `None` if there are none such bounds.
    ///
    /// # Errors
    /// As [`Exprs::bracket`].
    pub fn loosened(&mut self, e: ExprId) -> Result<Option<(ExprId, u32)>> {
        if !self.known(e).boolean {
            return Ok(None);
        }
        let mut bytes = u32::MAX;
        let more = self.rounded(e, &mut Way::Endless(&mut bytes))?;
        if bytes == u32::MAX || self.live(more)? == NOTHING {
            return Ok(None);
        }
        Ok(Some((more, bytes)))
    }

    /// Down to the first and.
    fn rounded(&mut self, e: ExprId, way: &mut Way<'_>) -> Result<ExprId> {
        if !self.known(e).boolean {
            return Ok(e);
        }
        match self.node(e).clone() {
            Node::Concat(a, b) => {
                let a = self.rounded(a, way)?;
                self.pair(a, b)
            }
            Node::Or(parts) => {
                let mut rounded = Vec::with_capacity(parts.len());
                for &part in parts.iter() {
                    rounded.push(self.rounded(part, way)?);
                }
                self.or(&rounded)
            }
            Node::And(_) => self.rounded_whole(e, way),
            _ => Ok(e),
        }
    }

    /// All counters below an and, but for those below a not.
    fn rounded_whole(&mut self, e: ExprId, way: &mut Way<'_>) -> Result<ExprId> {
        self.spend(1)?;
        match self.node(e).clone() {
            Node::Concat(..) => {
                // A loop, so that a chain of thousands is no recursion.
                let (mut heads, mut at) = (Vec::new(), e);
                while let Node::Concat(a, b) = *self.node(at) {
                    heads.push(self.rounded_whole(a, way)?);
                    at = b;
                }
                let last = self.rounded_whole(at, way)?;
                heads.into_iter().rev().try_fold(last, |rest, head| self.pair(head, rest))
            }
            Node::Or(parts) => {
                let parts = self.rounded_all(&parts, way)?;
                self.or(&parts)
            }
            Node::And(parts) => {
                let parts = self.rounded_all(&parts, way)?;
                self.and(&parts)
            }
            Node::Repeat { of, min, max } => {
                let bytes = self.known(of).shortest;
                let (min, max) = round(min, max, bytes, way);
                self.repeat_counted(of, min, max)
            }
            _ => Ok(e),
        }
    }

    fn rounded_all(&mut self, parts: &[ExprId], way: &mut Way<'_>) -> Result<Vec<ExprId>> {
        parts.iter().map(|&part| self.rounded_whole(part, way)).collect()
    }
}

/// Bounds with fewer or more numbers between them; as they are where fewer would be none. A round has at least `bytes`
/// bytes, and one, or else says nothing.
fn round(min: u32, max: u32, bytes: u32, way: &mut Way<'_>) -> (u32, u32) {
    let down = |n: u32| if n <= EXACT { n } else { 1 << n.min(FAR).ilog2() };
    let up = |n: u32| if n <= EXACT { n } else { n.checked_next_power_of_two().unwrap_or(ENDLESS) };
    let less = (up(min), if max == ENDLESS { ENDLESS } else { down(max) });
    match way {
        Way::Less | Way::More if less.0 > less.1 => (min, max),
        Way::Less => less,
        Way::More => (down(min), if max > FAR { ENDLESS } else { up(max) }),
        Way::Endless(least) => {
            if max == ENDLESS || max <= EXACT {
                return (min, max);
            }
            **least = max.saturating_mul(bytes.max(1)).min(**least);
            (min, ENDLESS)
        }
    }
}
