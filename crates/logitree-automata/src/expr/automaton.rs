//! Automata as leaves of expressions. They read raw bytes, whatever the encoding of the surrounding expression.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::node::ExprNode;
use super::{ByteSet, ExprId, Exprs, EMPTY, NOTHING};
use crate::Dfa;
use crate::Result;

/// More pairs of states are not compared with a loop.
const MAX_PAIRS: usize = 4_096;

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

    /// The automaton that `e` begins with, its state, and what follows it.
    pub fn split_automaton(&self, e: ExprId) -> Option<(Arc<Dfa>, u32, ExprId)> {
        let (head, rest) = match *self.node(e) {
            ExprNode::Concat(head, rest) => (head, rest),
            _ => (e, EMPTY),
        };
        let ExprNode::Dfa(dfa, state) = *self.node(head) else { return None };
        Some((Arc::clone(&self.dfas[dfa as usize].0), state, rest))
    }

    /// Whether the loop `outer` provably contains the language of an automaton from `state` on: whether every path from
    /// its start is one of the loop, and some path leads to `state` where the loop begins another round.
    pub(super) fn dfa_within(&mut self, dfa: u32, state: u32, outer: ExprId) -> Result<bool> {
        if !self.dfas_within.contains_key(&(dfa, outer)) {
            // Finding it out may ask again.
            self.dfas_within.insert((dfa, outer), FxHashSet::default());
            let found = self.states_within(dfa, outer)?;
            self.dfas_within.insert((dfa, outer), found);
        }
        Ok(self.dfas_within[&(dfa, outer)].contains(&state))
    }

    fn states_within(&mut self, dfa: u32, outer: ExprId) -> Result<FxHashSet<u32>> {
        let automaton = Arc::clone(&self.dfas[dfa as usize].0);
        let mut pairs = vec![(Dfa::START, outer)];
        let mut seen: FxHashSet<(u32, ExprId)> = pairs.iter().copied().collect();
        let mut at = 0;
        while let Some(&(state, e)) = pairs.get(at) {
            if pairs.len() > MAX_PAIRS || automaton.is_accepting(state) && !self.is_complete(e) {
                return Ok(FxHashSet::default());
            }
            for (bytes, to) in automaton.targets(state) {
                self.charge(8 + bytes.len() as u64 / 2)?;
                let mut last = NOTHING;
                for byte in bytes.iter() {
                    let next = self.derive(e, byte)?;
                    if next == NOTHING {
                        return Ok(FxHashSet::default());
                    }
                    if next != last && seen.insert((to, next)) {
                        pairs.push((to, next));
                    }
                    last = next;
                }
            }
            at += 1;
        }
        Ok(pairs.into_iter().filter(|pair| pair.1 == outer).map(|pair| pair.0).collect())
    }

    pub(super) fn dfa_state(&mut self, dfa: u32, state: u32) -> Result<ExprId> {
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
        self.dfas[dfa as usize].0.first_bytes(state)
    }

    /// The bytes with the same target as `byte`.
    pub(super) fn dfa_class(&self, dfa: u32, state: u32, byte: u8) -> ByteSet {
        self.dfas[dfa as usize].0.alike(state, byte)
    }

    /// The bytes with a transition, grouped by target.
    pub(super) fn dfa_classes(&self, dfa: u32, state: u32) -> Vec<ByteSet> {
        self.dfas[dfa as usize].0.targets(state).into_iter().map(|(class, _)| class).collect()
    }
}
