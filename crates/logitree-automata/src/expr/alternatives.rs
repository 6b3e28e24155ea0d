//! Expressions taken apart at their alternatives, so that one that changes does not spoil the tables of one that stays:
//! of the keys that an object may have next, those without a name are the same at every key. It refuses to know what the
//! pieces are for.

use super::node::ExprNode;
use super::{ExprId, Exprs, NOTHING};
use crate::Result;

/// Expressions of more alternatives than this stay whole.
const MAX: usize = 8;

impl Exprs {
    /// Gives `found` expressions that together are `e`: several where and, or not stands in some alternatives of its
    /// beginning, else `e` alone.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the arena is full or out of fuel.
    pub fn split_alternatives(&mut self, e: ExprId, found: &mut dyn FnMut(ExprId)) -> Result<()> {
        self.spend(1)?;
        let mut before = Vec::new();
        let mut at = e;
        loop {
            if !self.facts(at).boolean {
                break;
            }
            match self.node(at).clone() {
                ExprNode::Concat(a, b) if !self.facts(a).boolean => {
                    before.push(a);
                    at = b;
                }
                ExprNode::Or(parts) if parts.len() <= MAX => {
                    for &part in parts.iter() {
                        let whole =
                            before.iter().rev().try_fold(part, |rest, &head| self.pair(head, rest))?;
                        if self.live(whole)? != NOTHING {
                            self.split_alternatives(whole, found)?;
                        }
                    }
                    return Ok(());
                }
                _ => break,
            }
        }
        found(e);
        Ok(())
    }
}
