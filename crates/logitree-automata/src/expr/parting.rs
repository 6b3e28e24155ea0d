//! Finds the bytes on which an expression and its variant without exclusions can differ: those that continue an excluded text.

use std::sync::Arc;

use super::node::ExprNode;
use super::{ByteSet, ExprId, Exprs};
use crate::Result;

impl Exprs {
    /// A superset of the bytes by which `a` and `b` have different derivatives: small where `a` is `b` without some
    /// texts, all bytes where the two have nothing to do with each other.
    ///
    /// # Errors
    /// As [`Exprs::derive`].
    pub fn parting_bytes(&mut self, a: ExprId, b: ExprId) -> Result<ByteSet> {
        if a == b {
            return Ok(ByteSet::NONE);
        }
        let (head, other) = self.without_common_rest(a, b)?;
        let ExprNode::And(parts) = self.node(head) else { return Ok(ByteSet::ALL) };
        let parts = Arc::clone(parts);
        let all = match self.node(other) {
            ExprNode::And(common) => Some(Arc::clone(common)),
            _ => None,
        };
        let common = all.as_deref().unwrap_or(std::slice::from_ref(&other));
        self.charge((4 + 2 * parts.len() * common.len()) as u64)?;
        let mut bytes = ByteSet::NONE;
        let mut shared = 0;
        for part in parts.iter() {
            if common.contains(part) {
                shared += 1;
                continue;
            }
            let ExprNode::Not(excluded) = *self.node(*part) else { return Ok(ByteSet::ALL) };
            bytes = bytes.or(&self.first_bytes(excluded)?);
        }
        if shared < common.len() {
            return Ok(ByteSet::ALL);
        }
        if self.is_complete(head) != self.is_complete(other) {
            // What follows begins at once after the head that is complete.
            let mut at = a;
            while let (true, &ExprNode::Concat(front, rest)) = (at != head, self.node(at)) {
                self.charge(1)?;
                bytes = bytes.or(&self.first_bytes(rest)?);
                at = front;
            }
        }
        Ok(bytes)
    }

    /// Both without what follows the one as well as the other.
    fn without_common_rest(&mut self, mut a: ExprId, mut b: ExprId) -> Result<(ExprId, ExprId)> {
        while let (&ExprNode::Concat(head, rest), &ExprNode::Concat(other, same)) =
            (self.node(a), self.node(b))
        {
            if rest != same {
                break;
            }
            self.charge(1)?;
            (a, b) = (head, other);
        }
        Ok((a, b))
    }
}
