//! Splits an expression at its alternatives, so that tables of unchanged alternatives stay valid when another
//! one changes. Example: of the keys an object allows next, those without a name are the same after every key.

use std::sync::Arc;

use super::node::ExprNode;
use super::{ByteSet, ExprId, Exprs, Tag, EMPTY, NOTHING};
use crate::Result;

/// Expressions with more alternatives are not split.
const MAX: usize = 8;

impl Exprs {
    /// Calls `found` with expressions whose union is `e`: several if some alternatives of its first part
    /// contain an intersection or complement, or if all begin with different bytes; otherwise `e` alone.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the arena is full or out of fuel.
    pub fn split_alternatives(&mut self, e: ExprId, found: &mut dyn FnMut(ExprId)) -> Result<()> {
        self.spend(1)?;
        let mut before = Vec::new();
        let mut at = e;
        loop {
            if !self.facts(at).boolean {
                if let Some(parts) = self.parts_apart(e)? {
                    parts.iter().for_each(|&part| found(part));
                    return Ok(());
                }
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

    /// `e` without the tag that it ends in, and that tag, if it has no other. 0 is no tag.
    ///
    /// # Errors
    /// As [`Exprs::split_alternatives`].
    pub fn split_tag(&mut self, e: ExprId) -> Result<Option<(ExprId, Tag)>> {
        let (mut heads, mut at) = (Vec::new(), e);
        while let ExprNode::Concat(a, b) = *self.node(at) {
            heads.push(a);
            at = b;
        }
        self.charge(4 + heads.len() as u64)?;
        match *self.node(at) {
            ExprNode::Tag(tag) if tag != 0 && !heads.is_empty() => {
                let plain = heads.into_iter().rev().try_fold(EMPTY, |rest, head| self.pair(head, rest))?;
                Ok(Some((plain, tag)))
            }
            _ => Ok(None),
        }
    }

    /// The alternatives of `e`, if there are some and no two of them begin with the same byte: what closes an object, and
    /// the next key.
    fn parts_apart(&mut self, e: ExprId) -> Result<Option<Arc<[ExprId]>>> {
        let ExprNode::Or(parts) = self.node(e) else { return Ok(None) };
        if parts.len() > MAX {
            return Ok(None);
        }
        let parts = Arc::clone(parts);
        let mut all = ByteSet::NONE;
        for &part in parts.iter() {
            let first = self.first_bytes(part)?;
            if first.is_empty() || !first.and(&all).is_empty() {
                return Ok(None);
            }
            all = all.or(&first);
        }
        Ok(Some(parts))
    }
}
