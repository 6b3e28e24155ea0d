//! Whether a state can be completed: the states that a search reached, and what searches found out of states.

use crate::interrupt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};

use logitree_tokens::memo::Memo;
use rustc_hash::FxHashSet;

/// Whether states can be completed, of at most `MOST` states.
#[derive(Debug)]
pub struct Completable<K, const MOST: usize>(Mutex<Memo<K, bool, MOST>>);

impl<K, const MOST: usize> Default for Completable<K, MOST> {
    fn default() -> Self {
        Completable(Mutex::default())
    }
}

impl<K: Eq + Hash, const MOST: usize> Completable<K, MOST> {
    fn lock(&self) -> MutexGuard<'_, Memo<K, bool, MOST>> {
        interrupt::lock(&self.0)
    }

    /// What is known of a state.
    pub fn get(&self, state: &K) -> Option<bool> {
        self.lock().get(state)
    }

    /// Notes that these states can be completed, or that they cannot.
    pub fn keep(&self, states: impl Iterator<Item = K>, can: bool) {
        let mut known = self.lock();
        states.for_each(|state| {
            known.keep(state, can);
        });
    }
}

/// The states that one search reached, each with the place of the one before it.
pub(crate) struct Reached<K> {
    all: Vec<(usize, Option<K>)>,
    seen: FxHashSet<K>,
}

impl<K: Eq + Hash + Clone> Reached<K> {
    /// The first state; `None` where states have no numbers, as in [`Reached::add`].
    pub fn new(start: Option<K>) -> Reached<K> {
        let seen = start.iter().cloned().collect();
        Reached { all: vec![(0, start)], seen }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The place of the state before the one at `at`.
    pub fn before(&self, at: usize) -> usize {
        self.all[at].0
    }

    /// The state at `at`; `None` past the last one.
    pub fn state(&self, at: usize) -> Option<&K> {
        self.all.get(at).and_then(|(_, state)| state.as_ref())
    }

    /// Adds a state after the one at `before`; its place, if it is new and not known to lead nowhere.
    pub fn add<const MOST: usize>(
        &mut self,
        before: usize,
        state: Option<K>,
        known: &Completable<K, MOST>,
    ) -> Option<usize> {
        let is_new = |state: &K| known.get(state) != Some(false) && self.seen.insert(state.clone());
        state.as_ref().is_none_or(is_new).then(|| {
            self.all.push((before, state));
            self.all.len() - 1
        })
    }

    /// Whether the state at `at` is known to lead to a complete one.
    pub fn is_known<const MOST: usize>(&self, at: usize, known: &Completable<K, MOST>) -> bool {
        self.state(at).and_then(|state| known.get(state)) == Some(true)
    }

    /// The states that a search decides: those on the way to the one that it found, which can be completed, or, where all
    /// that can be reached was looked at and nothing ends, all of them, which cannot.
    pub fn decided(self, found: Option<usize>) -> Vec<K> {
        let Some(end) = found else { return self.all.into_iter().filter_map(|(_, state)| state).collect() };
        let way = std::iter::successors(Some(end), |&at| (at > 0).then(|| self.before(at)));
        way.filter_map(|at| self.state(at).cloned()).collect()
    }
}
