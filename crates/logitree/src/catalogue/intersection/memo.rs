//! What was found out about places of a tree, for all forks of a matcher.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use crate::catalogue::{Continuations, WalkState};

/// Places that are remembered at most: what a table of 2^22 has room for. Then all are forgotten.
const MOST: usize = 7 << 19;

/// For places of one snapshot whether an item that all allow is there or below. A place says which tokens were read,
/// so it determines the peers' states.
#[derive(Default)]
pub(super) struct Memo {
    places: Mutex<FxHashMap<WalkState, bool>>,
    /// The allowed tokens of the initial state, once they were computed.
    pub first: OnceLock<Arc<Continuations>>,
}

impl Memo {
    fn lock(&self) -> MutexGuard<'_, FxHashMap<WalkState, bool>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the place.
    pub fn get(&self, state: WalkState) -> Option<bool> {
        self.lock().get(&state).copied()
    }

    /// Remembers it.
    pub fn set(&self, states: impl Iterator<Item = WalkState>, allowed: bool) {
        let mut memo = self.lock();
        for state in states {
            if memo.len() >= MOST {
                memo.clear();
            }
            memo.insert(state, allowed);
        }
    }
}
