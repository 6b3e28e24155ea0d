//! Tells the states of an automaton apart in few passes: by how far they are from an accepting one, and then, from the
//! nearest to the furthest, by the classes of their targets. What one level shows, all further ones see in the same pass.
//!
//! Automata that count, as those of numbers do, need two or three passes. Others may need as many as they have states: past
//! a few, [`super::minimal`] refines partitions instead, which is also the version that this one must equal.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::{Dfa, NONE};
use crate::IdTable;

/// Most passes over all states.
const MAX_PASSES: usize = 8;

/// Classes of equivalent states, each named by the place of its first state among the leading ones.
pub(super) struct Levels {
    /// The states that lead to an accepting one, the nearest first.
    pub order: Vec<u32>,
    /// The class of each state; [`NONE`] for those that lead nowhere.
    pub class_of: Vec<u32>,
    /// How many classes there are.
    pub count: usize,
}

impl Levels {
    /// The classes of the states of `dfa` by their distance to an accepting one, or [`NONE`]. `labels` are
    /// columns of the table that tell as much as all of them. `None` if it takes too many passes.
    pub fn of(dfa: &Dfa, distances: &[u32], labels: &[usize]) -> Option<Levels> {
        let mut order: Vec<u32> =
            (0..dfa.len() as u32).filter(|&state| distances[state as usize] != NONE).collect();
        order.sort_by_key(|&state| distances[state as usize]);
        let mut class_of = vec![NONE; dfa.len()];
        let (mut ends, mut from) = (Vec::new(), 0);
        for level in order.chunk_by(|&a, &b| distances[a as usize] == distances[b as usize]) {
            level.iter().for_each(|&state| class_of[state as usize] = from as u32);
            from += level.len();
            ends.push(from);
        }
        let mut levels = Levels { order, class_of, count: ends.len() };
        for _ in 0..MAX_PASSES {
            let before = levels.count;
            levels.pass(dfa, labels, &ends);
            if levels.count == before || levels.count == levels.order.len() {
                return Some(levels);
            }
        }
        None
    }

    /// Splits the classes of each level by the classes of the targets. Those of a level are named by places of the level, so
    /// that a new name is never an old one of another level.
    fn pass(&mut self, dfa: &Dfa, labels: &[usize], ends: &[usize]) {
        self.count = 0;
        let (mut firsts, mut fresh) = (IdTable::default(), Vec::new());
        let mut from = 0;
        for &end in ends {
            fresh.clear();
            for at in from..end {
                let state = self.order[at];
                let class = |to: u32| if to == NONE { NONE } else { self.class_of[to as usize] };
                let classes = |state: u32| labels.iter().map(move |&label| class(dfa.row(state)[label]));
                let own = self.class_of[state as usize];
                let mut hasher = FxHasher::default();
                hasher.write_u32(own);
                classes(state).for_each(|class| hasher.write_u32(class));
                let is_same = |first: u32| {
                    let other = self.order[first as usize];
                    self.class_of[other as usize] == own && classes(other).eq(classes(state))
                };
                let hash = hasher.finish();
                let first = firsts.find(hash, is_same).unwrap_or_else(|| {
                    firsts.insert(hash, at as u32);
                    self.count += 1;
                    at as u32
                });
                fresh.push(first);
            }
            for (&state, &class) in self.order[from..end].iter().zip(&fresh) {
                self.class_of[state as usize] = class;
            }
            from = end;
        }
    }
}
