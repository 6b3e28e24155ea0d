//! Automata over bytes whose states are computed when they are reached, for languages with too many states for a table,
//! such as the multiples of a number of many digits, or the parts of a long text.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A state, in words that only its automaton understands.
pub type ComputedState = [u64; 3];

/// The steps of a deterministic automaton. No state is dead: some string leads from each to one that accepts.
pub trait Steps: Send + Sync {
    /// The state after `byte`, one of the alphabet; `None` exactly if no string continues so.
    fn next(&self, state: ComputedState, byte: u8) -> Option<ComputedState>;
    /// The bytes that have a next state, where that is quicker to say than by trying the alphabet.
    fn starts(&self, _state: ComputedState) -> Option<Vec<u8>> {
        None
    }
    /// Whether `state` accepts.
    fn is_accepting(&self, state: ComputedState) -> bool;
}

/// An automaton given by its steps.
#[derive(Clone)]
pub struct ComputedDfa {
    steps: Arc<dyn Steps>,
    /// Describes the language of all states: equal descriptions are equal steps.
    description: Arc<str>,
    alphabet: Arc<[u8]>,
    start: ComputedState,
}

impl ComputedDfa {
    /// An automaton over the bytes of `alphabet`. Automata with equal descriptions are taken for equal.
    pub fn new(
        steps: Arc<dyn Steps>,
        description: String,
        alphabet: &[u8],
        start: ComputedState,
    ) -> ComputedDfa {
        ComputedDfa { steps, description: description.into(), alphabet: alphabet.into(), start }
    }

    /// Whether both step alike, from whatever state they start.
    pub fn has_steps_of(&self, other: &ComputedDfa) -> bool {
        self.description == other.description
    }

    /// The bytes that may have a transition.
    pub fn alphabet(&self) -> &Arc<[u8]> {
        &self.alphabet
    }

    /// The bytes that have a next state.
    pub fn starts(&self, state: ComputedState) -> Vec<u8> {
        let try_all = || self.alphabet.iter().copied().filter(|&byte| self.steps.next(state, byte).is_some());
        self.steps.starts(state).unwrap_or_else(|| try_all().collect())
    }

    /// The start state.
    pub fn start(&self) -> ComputedState {
        self.start
    }

    /// The state after `byte`; `None` exactly if no string continues so.
    pub fn next(&self, state: ComputedState, byte: u8) -> Option<ComputedState> {
        if self.alphabet.contains(&byte) {
            self.steps.next(state, byte)
        } else {
            None
        }
    }

    /// Whether `state` accepts.
    pub fn is_accepting(&self, state: ComputedState) -> bool {
        self.steps.is_accepting(state)
    }

    /// The language from `state` on as an automaton of its own.
    #[must_use]
    pub fn residual(&self, state: ComputedState) -> ComputedDfa {
        ComputedDfa { start: state, ..self.clone() }
    }

    /// A 128-bit hash of the steps, with a random key per process.
    pub fn digest(&self) -> u128 {
        crate::expr::digest(self.description.as_bytes())
    }
}

impl fmt::Debug for ComputedDfa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ComputedDfa").field(&self.description).field(&self.start).finish()
    }
}

impl PartialEq for ComputedDfa {
    fn eq(&self, other: &Self) -> bool {
        (&self.description, self.start) == (&other.description, other.start)
    }
}

impl Eq for ComputedDfa {}

impl Hash for ComputedDfa {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.description, self.start).hash(state);
    }
}
