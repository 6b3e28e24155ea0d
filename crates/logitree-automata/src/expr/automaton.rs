//! Automata as leaves of expressions. They read raw bytes, whatever the encoding of the surrounding expression.

use std::sync::Arc;

use super::node::ExprNode;
use super::{ByteSet, ExprId, Exprs, EMPTY, NOTHING};
use crate::Dfa;
use crate::Result;

impl Exprs {
    /// The language of an automaton.
    ///
    /// # Errors
    /// As [`Exprs::bytes`].
    pub fn automaton(&mut self, dfa: &Arc<Dfa>) -> Result<ExprId> {
        let number = match self.dfa_ids.get(dfa) {
            Some(&known) => known,
            None => {
                let number = self.dfas.len() as u32;
                self.dfas.push((Arc::clone(dfa), dfa.digest()));
                self.dfa_ids.insert(Arc::clone(dfa), number);
                number
            }
        };
        self.dfa_state(number, Dfa::START)
    }

    fn dfa_state(&mut self, dfa: u32, state: u32) -> Result<ExprId> {
        if self.dfas[dfa as usize].0.is_end(state) {
            return Ok(EMPTY);
        }
        self.intern(ExprNode::Dfa(dfa, state))
    }

    pub(super) fn derive_dfa(&mut self, dfa: u32, state: u32, byte: u8) -> Result<ExprId> {
        match self.dfas[dfa as usize].0.next(state, byte) {
            Some(next) => self.dfa_state(dfa, next),
            None => Ok(NOTHING),
        }
    }

    /// The bytes with a transition.
    pub(super) fn dfa_starts(&self, dfa: u32, state: u32) -> ByteSet {
        self.dfa_classes(dfa, state).iter().fold(ByteSet::NONE, |all, class| all.or(class))
    }

    /// The bytes with the same target as `byte`.
    pub(super) fn dfa_class(&self, dfa: u32, state: u32, byte: u8) -> ByteSet {
        let dfa = &self.dfas[dfa as usize].0;
        let to = dfa.next(state, byte);
        let mut class = ByteSet::NONE;
        (0..=255).filter(|&other| dfa.next(state, other) == to).for_each(|other| class.insert(other));
        class
    }

    /// The bytes with a transition, grouped by target.
    pub(super) fn dfa_classes(&self, dfa: u32, state: u32) -> Vec<ByteSet> {
        let dfa = &self.dfas[dfa as usize].0;
        let mut classes: Vec<(u32, ByteSet)> = Vec::new();
        for byte in 0..128 {
            let Some(next) = dfa.next(state, byte) else { continue };
            match classes.iter_mut().find(|(to, _)| *to == next) {
                Some((_, class)) => class.insert(byte),
                None => classes.push((next, ByteSet::one(byte))),
            }
        }
        classes.into_iter().map(|(_, class)| class).collect()
    }
}
