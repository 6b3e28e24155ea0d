//! Saturates counters that are far from their bounds. A string of at most n bytes cannot distinguish "1,000
//! more" from "2,000 more", so one table serves both. Counters inside an intersection are left exact: two
//! distant bounds may still contradict each other.

use super::node::{ExprNode, ENDLESS};
use super::{ExprId, Exprs};
use crate::Result;

impl Exprs {
    /// An expression that agrees with `e` on every string of at most `bytes` bytes: whether it can continue,
    /// whether it is complete, and with which tags. Often the same for many `e`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the arena is full or out of fuel.
    pub fn saturated(&mut self, e: ExprId, bytes: u32) -> Result<ExprId> {
        self.charge(8)?;
        match self.node(e).clone() {
            ExprNode::Repeat { of, min, max } if !self.is_complete(of) => {
                // No string of so many bytes has more rounds.
                let enough = bytes / self.facts(of).shortest.max(1) + 1;
                if min <= enough && max <= enough {
                    return Ok(e);
                }
                let max = if max == ENDLESS { ENDLESS } else { max.min(enough) };
                let max = if max >= enough { ENDLESS } else { max };
                self.repeat_counted(of, min.min(enough), max)
            }
            ExprNode::Concat(a, b) => {
                let (c, d) = (self.saturated(a, bytes)?, self.saturated_tail(b, bytes)?);
                if (a, b) == (c, d) {
                    return Ok(e);
                }
                self.pair(c, d)
            }
            ExprNode::Or(parts) => {
                let made = self.saturated_all(&parts, bytes)?;
                self.or(&made)
            }
            _ => Ok(e),
        }
    }

    /// Saturates the first counters after a head.
    fn saturated_tail(&mut self, e: ExprId, bytes: u32) -> Result<ExprId> {
        match *self.node(e) {
            ExprNode::Repeat { .. } => self.saturated(e, bytes),
            ExprNode::Concat(a, b) if matches!(self.node(a), ExprNode::Repeat { .. }) => {
                let a = self.saturated(a, bytes)?;
                self.pair(a, b)
            }
            _ => Ok(e),
        }
    }

    fn saturated_all(&mut self, parts: &[ExprId], bytes: u32) -> Result<Vec<ExprId>> {
        parts.iter().map(|&part| self.saturated(part, bytes)).collect()
    }
}
