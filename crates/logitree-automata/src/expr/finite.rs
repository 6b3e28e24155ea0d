//! Quick tests for finite and infinite languages: an infinite language minus finite ones is not empty, so no
//! search is needed. Each test may answer "unknown".

use super::node::{ExprNode, ENDLESS};
use super::{ExprId, Exprs};

/// Limits of depth and parts past which the answer is "unknown".
const DEPTH: u32 = 12;
const PARTS: usize = 16;

impl Exprs {
    /// Whether these members of an intersection provably share a string: one is infinite, and each other one
    /// excludes finitely many strings.
    pub(super) fn surely_intersect(&self, parts: &[ExprId]) -> bool {
        let mut infinite = 0;
        parts.iter().all(|&part| match *self.node(part) {
            ExprNode::Not(of) => self.is_finite(of, DEPTH),
            _ => {
                infinite += 1;
                self.is_infinite(part, DEPTH)
            }
        }) && infinite <= 1
    }

    fn is_finite(&self, e: ExprId, depth: u32) -> bool {
        let Some(below) = depth.checked_sub(1) else { return false };
        match self.node(e) {
            ExprNode::Nothing | ExprNode::Tag(_) | ExprNode::Class(_) | ExprNode::Bytes(..) => true,
            &ExprNode::Literals { set, .. } => self.literal_sets[set as usize].finite,
            ExprNode::Concat(a, b) => self.is_finite(*a, below) && self.is_finite(*b, below),
            ExprNode::Or(parts) => {
                parts.len() <= PARTS && parts.iter().all(|&part| self.is_finite(part, below))
            }
            ExprNode::Repeat { of, max, .. } => *max != ENDLESS && self.is_finite(*of, below),
            ExprNode::And(_) | ExprNode::Not(_) | ExprNode::Dfa(..) | ExprNode::Computed(..) => false,
        }
    }

    fn is_infinite(&self, e: ExprId, depth: u32) -> bool {
        let Some(below) = depth.checked_sub(1) else { return false };
        if self.facts(e).boolean {
            return false;
        }
        match self.node(e) {
            ExprNode::Repeat { max: ENDLESS, .. } => true,
            ExprNode::Concat(a, b) => self.is_infinite(*a, below) || self.is_infinite(*b, below),
            ExprNode::Or(parts) => {
                parts.len() <= PARTS && parts.iter().any(|&part| self.is_infinite(part, below))
            }
            _ => false,
        }
    }
}
