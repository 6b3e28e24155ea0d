//! Partitions bytes into classes that an expression cannot distinguish, so that one derivative serves a whole
//! class. The naive version takes all 256 derivatives.

use super::node::ExprNode;
use super::{ByteSet, ExprId, Exprs};
use crate::stack::with_step_room;
use crate::Result;

/// The sets that decide the effect of the first byte.
#[derive(Default)]
struct Splits {
    /// Without duplicates.
    sets: Vec<ByteSet>,
    /// How many were compared.
    looked: u64,
}

impl Splits {
    fn add(&mut self, set: ByteSet) {
        self.looked += 1 + self.sets.len() as u64;
        if !self.sets.contains(&set) {
            self.sets.push(set);
        }
    }
}

impl Exprs {
    /// Bytes that `e` cannot distinguish from `byte`; not necessarily all of them.
    pub(super) fn byte_class(&mut self, e: ExprId, byte: u8) -> Result<ByteSet> {
        if self.is_leaf(e) {
            return self.find_byte_class(e, byte);
        }
        if let ExprNode::Concat(head, _) = *self.node(e) {
            if self.is_leaf(head) && !self.is_complete(head) {
                self.charge(4)?;
                return self.find_byte_class(head, byte);
            }
        }
        with_step_room(|| self.find_byte_class(e, byte))
    }

    /// Whether `e` has no parts: what is asked of it descends no further.
    #[inline]
    pub(super) fn is_leaf(&self, e: ExprId) -> bool {
        use ExprNode::{Bytes, Class, Computed, Dfa, Nothing, Tag};
        matches!(self.node(e), Nothing | Tag(_) | Class(_) | Bytes(..) | Dfa(..) | Computed(..))
    }

    fn find_byte_class(&mut self, e: ExprId, byte: u8) -> Result<ByteSet> {
        self.charge(4)?;
        let side = |set: &ByteSet| if set.contains(byte) { *set } else { ByteSet::ALL.without(set) };
        Ok(match *self.node(e) {
            ExprNode::Nothing | ExprNode::Tag(_) => ByteSet::ALL,
            ExprNode::Class(ref set) => side(set),
            ExprNode::Bytes(from, _) => side(&ByteSet::one(self.pool[from as usize])),
            ExprNode::Concat(..) => {
                let (mut class, mut at) = (ByteSet::ALL, e);
                while let ExprNode::Concat(a, b) = *self.node(at) {
                    class = class.and(&self.byte_class(a, byte)?);
                    if !self.is_complete(a) {
                        return Ok(class);
                    }
                    at = b;
                }
                class.and(&self.byte_class(at, byte)?)
            }
            ExprNode::Or(ref parts) | ExprNode::And(ref parts) => {
                let mut class = ByteSet::ALL;
                for n in 0..parts.len() {
                    class = class.and(&self.byte_class(self.part(e, n), byte)?);
                }
                class
            }
            ExprNode::Not(of) => self.byte_class(of, byte)?,
            ExprNode::Repeat { of, .. } => self.class_of_body(of, byte)?,
            ExprNode::Dfa(dfa, state) => {
                self.charge(64)?;
                self.dfa_class(dfa, state, byte)
            }
            ExprNode::Computed(dfa, _) => {
                let alphabet = self.computed_alphabet(dfa);
                if alphabet.contains(&byte) {
                    ByteSet::one(byte)
                } else {
                    alphabet.iter().fold(ByteSet::ALL, |rest, &byte| rest.without(&ByteSet::one(byte)))
                }
            }
            ExprNode::Literals { set, from, to, depth } => {
                let (next, ended) = self.literal_starts((set, from, to, depth));
                let own = if next.contains(byte) { ByteSet::one(byte) } else { ByteSet::ALL.without(&next) };
                self.class_in_all(own, &ended, byte)?
            }
        })
    }

    /// The part of a union or intersection at this place.
    fn part(&self, e: ExprId, place: usize) -> ExprId {
        match self.node(e) {
            ExprNode::Or(parts) | ExprNode::And(parts) => parts[place],
            _ => e,
        }
    }

    fn class_in_all(&mut self, mut class: ByteSet, parts: &[ExprId], byte: u8) -> Result<ByteSet> {
        for &part in parts {
            class = class.and(&self.byte_class(part, byte)?);
        }
        Ok(class)
    }

    /// As [`Exprs::byte_class`], cached, because loop bodies are queried often.
    fn class_of_body(&mut self, of: ExprId, byte: u8) -> Result<ByteSet> {
        self.charge(8)?;
        if !self.bodies.contains_key(&of) {
            let classes = self.byte_classes(of)?;
            self.body_bytes += size_of_val(&classes[..]) + 32;
            self.bodies.insert(of, classes.into());
        }
        let class = self.bodies[&of].iter().find(|class| class.contains(byte));
        Ok(class.copied().unwrap_or(ByteSet::one(byte)))
    }

    /// A partition of all bytes into classes that `e` cannot distinguish.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if it is out of fuel.
    pub(super) fn byte_classes(&mut self, e: ExprId) -> Result<Vec<ByteSet>> {
        let mut splits = Splits::default();
        self.splits(e, &mut splits);
        self.charge(splits.looked / 3)?;
        self.partition(splits.sets)
    }

    /// The coarsest partition of all bytes in which each of `sets` is a union of classes.
    ///
    /// # Errors
    /// As [`Exprs::byte_classes`].
    pub(super) fn partition(&mut self, sets: impl IntoIterator<Item = ByteSet>) -> Result<Vec<ByteSet>> {
        self.split_classes(vec![ByteSet::ALL], sets)
    }

    /// As these classes are, but each of `sets` is a union of classes.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if it takes more work than the fuel.
    pub fn split_classes(
        &mut self,
        mut classes: Vec<ByteSet>,
        sets: impl IntoIterator<Item = ByteSet>,
    ) -> Result<Vec<ByteSet>> {
        for set in sets {
            self.charge(classes.len() as u64)?;
            for n in 0..classes.len() {
                let (inside, outside) = (classes[n].and(&set), classes[n].without(&set));
                if !inside.is_empty() && !outside.is_empty() {
                    classes[n] = inside;
                    classes.push(outside);
                }
            }
        }
        Ok(classes)
    }

    /// Collects the sets that decide the effect of the first byte.
    fn splits(&self, e: ExprId, found: &mut Splits) {
        match self.node(e) {
            ExprNode::Nothing | ExprNode::Tag(_) => {}
            ExprNode::Class(set) => found.add(*set),
            ExprNode::Bytes(from, _) => found.add(ByteSet::one(self.pool[*from as usize])),
            ExprNode::Concat(..) => {
                let mut at = e;
                while let ExprNode::Concat(a, b) = *self.node(at) {
                    found.looked += 1;
                    self.splits(a, found);
                    if !self.is_complete(a) {
                        return;
                    }
                    at = b;
                }
                self.splits(at, found);
            }
            ExprNode::Or(parts) | ExprNode::And(parts) => {
                found.looked += parts.len() as u64;
                parts.iter().for_each(|&part| self.splits(part, found))
            }
            ExprNode::Not(of) | ExprNode::Repeat { of, .. } => self.splits(*of, found),
            &ExprNode::Dfa(dfa, state) => {
                found.looked += 64;
                self.dfa_classes(dfa, state).into_iter().for_each(|class| found.add(class));
            }
            &ExprNode::Computed(dfa, _) => {
                self.computed_alphabet(dfa).iter().for_each(|&byte| found.add(ByteSet::one(byte)));
            }
            &ExprNode::Literals { set, from, to, depth } => {
                let (next, ended) = self.literal_starts((set, from, to, depth));
                next.iter().for_each(|byte| found.add(ByteSet::one(byte)));
                ended.into_iter().for_each(|then| self.splits(then, found));
            }
        }
    }
}
