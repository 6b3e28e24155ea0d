//! What was found out about places of a tree, for all forks of a matcher. It refuses to know how.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::prefix::State;

/// Places that are remembered at most: then all are forgotten.
const MOST: usize = 1 << 20;

/// For places of one snapshot whether an item that all allow lies there or behind. A place says which tokens were read,
/// so it says where the others stand.
#[derive(Default)]
pub(super) struct Known(Mutex<FxHashMap<State, bool>>);

impl Known {
    fn lock(&self) -> MutexGuard<'_, FxHashMap<State, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the place.
    pub fn get(&self, state: State) -> Option<bool> {
        self.lock().get(&state).copied()
    }

    /// Remembers it.
    pub fn set(&self, states: impl Iterator<Item = State>, allowed: bool) {
        let mut known = self.lock();
        for state in states {
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(state, allowed);
        }
    }
}
