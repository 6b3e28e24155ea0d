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
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// To fewer texts.
    Less,
    /// To more texts.
    More,
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
        let less = self.rounded(e, Way::Less)?;
        let more = self.rounded(e, Way::More)?;
        if less == more || self.live(less)? == NOTHING || self.live(more)? == NOTHING {
            return Ok(None);
        }
        Ok(Some((less, more)))
    }

    /// Down to the first and.
    fn rounded(&mut self, e: ExprId, way: Way) -> Result<ExprId> {
        if !self.known(e).boolean {
            return Ok(e);
        }
        match self.node(e).clone() {
            Node::Concat(a, b) => {
                let a = self.rounded(a, way)?;
                self.pair(a, b)
            }
            Node::Or(parts) => {
                let parts = parts.iter().map(|&part| self.rounded(part, way)).collect::<Result<Vec<_>>>()?;
                self.or(&parts)
            }
            Node::And(_) => self.rounded_whole(e, way),
            _ => Ok(e),
        }
    }

    /// All counters below an and, but for those below a not.
    fn rounded_whole(&mut self, e: ExprId, way: Way) -> Result<ExprId> {
        self.spend(1)?;
        match self.node(e).clone() {
            Node::Concat(a, b) => {
                let (a, b) = (self.rounded_whole(a, way)?, self.rounded_whole(b, way)?);
                self.pair(a, b)
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
                let (min, max) = round(min, max, way);
                self.repeat_counted(of, min, max)
            }
            _ => Ok(e),
        }
    }

    fn rounded_all(&mut self, parts: &[ExprId], way: Way) -> Result<Vec<ExprId>> {
        parts.iter().map(|&part| self.rounded_whole(part, way)).collect()
    }
}

/// Bounds with fewer or more numbers between them; as they are where fewer would be none.
fn round(min: u32, max: u32, way: Way) -> (u32, u32) {
    let down = |n: u32| if n <= EXACT { n } else { 1 << n.min(FAR).ilog2() };
    let up = |n: u32| if n <= EXACT { n } else { n.checked_next_power_of_two().unwrap_or(ENDLESS) };
    let less = (up(min), if max == ENDLESS { ENDLESS } else { down(max) });
    if less.0 > less.1 {
        return (min, max);
    }
    match way {
        Way::Less => less,
        Way::More => (down(min), if max > FAR { ENDLESS } else { up(max) }),
    }
}
