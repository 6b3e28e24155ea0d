//! Automata whose states are computed as leaves of expressions. The arena numbers the states that were reached.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::node::{ExprNode, StructureHash};
use super::{ByteSet, ExprId, Exprs, NOTHING};
use crate::dfa::{ComputedDfa, ComputedState};
use crate::Result;

/// Units of fuel for one computed step.
const STEP: u64 = 48;

/// The states of an automaton that were reached.
#[derive(Clone)]
pub(super) struct Reached {
    dfa: Arc<ComputedDfa>,
    states: Vec<ComputedState>,
    numbers: FxHashMap<ComputedState, u32>,
    digest: StructureHash,
}

impl Reached {
    /// Approximate size in bytes.
    pub fn memory(&self) -> usize {
        self.states.len() * (3 * size_of::<ComputedState>() + 8)
    }

    pub fn is_accepting(&self, state: u32) -> bool {
        self.dfa.is_accepting(self.states[state as usize])
    }

    /// A hash of the language from `state` on.
    pub fn hash(&self, state: u32) -> StructureHash {
        let words = self.states[state as usize].map(u64::to_le_bytes);
        self.digest.wrapping_add(super::digest(words.as_flattened()))
    }

    fn next(&self, state: u32, byte: u8) -> Option<ComputedState> {
        self.dfa.next(self.states[state as usize], byte)
    }

    fn number(&mut self, state: ComputedState) -> u32 {
        *self.numbers.entry(state).or_insert_with(|| {
            self.states.push(state);
            self.states.len() as u32 - 1
        })
    }
}

impl Exprs {
    /// The language of an automaton.
    ///
    /// # Errors
    /// As [`Exprs::bytes`].
    pub fn computed(&mut self, dfa: &Arc<ComputedDfa>) -> Result<ExprId> {
        let start = dfa.start();
        let known = self.computed.iter().position(|reached| reached.dfa.has_steps_of(dfa));
        let number = known.unwrap_or_else(|| {
            let (states, numbers, digest) = (Vec::new(), FxHashMap::default(), dfa.digest());
            self.computed.push(Reached { dfa: Arc::clone(dfa), states, numbers, digest });
            self.computed.len() - 1
        });
        self.computed_state(number as u32, start)
    }

    fn computed_state(&mut self, dfa: u32, state: ComputedState) -> Result<ExprId> {
        let number = self.computed[dfa as usize].number(state);
        self.intern(ExprNode::Computed(dfa, number))
    }

    pub(super) fn derive_computed(&mut self, dfa: u32, state: u32, byte: u8) -> Result<ExprId> {
        self.charge(STEP)?;
        match self.computed[dfa as usize].next(state, byte) {
            Some(next) => self.computed_state(dfa, next),
            None => Ok(NOTHING),
        }
    }

    /// The bytes with a transition.
    pub(super) fn computed_starts(&mut self, dfa: u32, state: u32) -> Result<ByteSet> {
        let reached = &self.computed[dfa as usize];
        let mut starts = ByteSet::NONE;
        let found = reached.dfa.starts(reached.states[state as usize]);
        found.iter().for_each(|&byte| starts.insert(byte));
        self.charge(STEP * found.len().max(1) as u64)?;
        Ok(starts)
    }

    /// The bytes that may each have a target of their own.
    pub(super) fn computed_alphabet(&self, dfa: u32) -> Arc<[u8]> {
        Arc::clone(self.computed[dfa as usize].dfa.alphabet())
    }
}
