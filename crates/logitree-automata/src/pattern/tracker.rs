//! A small automaton over characters that follows several languages at once, to decide assertions about one
//! side of a position.

use rustc_hash::FxHashMap;

use super::terms::{Id, Terms, ANY, EMPTY, NOTHING};
use crate::CharSet;

/// Maximum number of states.
const MAX_STATES: usize = 256;
/// Maximum number of transitions.
const MAX_EDGES: usize = 1 << 14;
/// Maximum number of states for writing out the paths between them, which takes cubic time.
const MAX_ELIMINATED: usize = 24;

/// A deterministic automaton. State 0 is the start.
#[derive(Debug)]
pub(super) struct Tracker {
    /// Classes of characters that no state distinguishes.
    pub(super) classes: Vec<CharSet>,
    /// `next[state][class]`.
    pub(super) next: Vec<Vec<usize>>,
    /// `truths[state][predicate]`: whether the string read so far is in the language.
    pub(super) truths: Vec<Vec<bool>>,
    /// `residuals[state][predicate]`: what must follow for the whole to be in the language.
    residuals: Vec<Vec<Id>>,
}

impl Tracker {
    /// Follows `predicates`; `None` if that needs too many states.
    pub(super) fn new(terms: &mut Terms, predicates: &[Id]) -> Option<Tracker> {
        let mut sets = Vec::new();
        predicates.iter().for_each(|&p| terms.sets(p, &mut sets));
        let classes = partition(&sets)?;
        let mut tracker =
            Tracker { classes, next: Vec::new(), truths: Vec::new(), residuals: vec![predicates.to_vec()] };
        let mut numbers = FxHashMap::from_iter([(predicates.to_vec(), 0)]);
        while let Some(state) = tracker.residuals.get(tracker.next.len()).cloned() {
            tracker.truths.push(state.iter().map(|&p| terms.is_nullable(p)).collect());
            let mut row = Vec::with_capacity(tracker.classes.len());
            for class in &tracker.classes {
                let c = sample(class);
                let next: Vec<Id> = state.iter().map(|&p| terms.derive(p, c)).collect();
                let fresh = tracker.residuals.len();
                let number = *numbers.entry(next).or_insert_with_key(|next| {
                    tracker.residuals.push(next.clone());
                    fresh
                });
                row.push(number);
            }
            tracker.next.push(row);
            let edges = tracker.residuals.len() * tracker.classes.len();
            let deep = tracker.residuals.last().is_some_and(|s| s.iter().any(|&p| !terms.is_shallow(p)));
            if tracker.residuals.len() > MAX_STATES || edges > MAX_EDGES || deep || terms.is_full() {
                return None;
            }
        }
        Some(tracker)
    }

    /// Number of states.
    pub(super) fn len(&self) -> usize {
        self.next.len()
    }

    /// The states reachable by a string that ends with a character of `last`.
    pub(super) fn reached_by(&self, last: &CharSet) -> Vec<bool> {
        let mut reached = vec![false; self.len()];
        for (class, set) in self.classes.iter().enumerate() {
            if !set.and(last).is_empty() {
                self.next.iter().for_each(|row| reached[row[class]] = true);
            }
        }
        reached
    }

    /// The strings that lead from `from` to an accepted state; an entry `None` of `wanted` accepts either
    /// value. `None` if writing them out needs too much work.
    pub(super) fn paths(&self, terms: &mut Terms, from: usize, wanted: &[Option<bool>]) -> Option<Id> {
        if !wanted.contains(&Some(false)) {
            return Some(ANY);
        }
        if !wanted.contains(&Some(true)) {
            return Some(NOTHING);
        }
        let agrees = |predicate: usize, flip: bool| {
            let mut both = wanted.iter().zip(&self.truths);
            both.all(|(wanted, truths)| wanted.is_none_or(|wanted| wanted == (truths[predicate] != flip)))
        };
        let residuals = &self.residuals[from];
        if let Some(predicate) = (0..residuals.len()).find(|&p| agrees(p, false)) {
            return Some(residuals[predicate]);
        }
        if let Some(predicate) = (0..residuals.len()).find(|&p| agrees(p, true)) {
            return Some(terms.not(residuals[predicate]));
        }
        if self.len() > MAX_ELIMINATED {
            return None;
        }
        let matrix = self.next.iter().map(|row| self.row(terms, row)).collect();
        let ends = wanted.iter().map(|&wanted| [NOTHING, EMPTY][usize::from(wanted == Some(true))]);
        let ends = ends.collect();
        Some(solve(terms, matrix, ends)[from])
    }

    fn row(&self, terms: &mut Terms, next: &[usize]) -> Vec<Id> {
        let mut ranges = vec![Vec::new(); self.len()];
        for (class, &state) in next.iter().enumerate() {
            ranges[state].extend_from_slice(self.classes[class].ranges());
        }
        ranges.into_iter().map(|ranges| terms.set(CharSet::from_ranges(ranges))).collect()
    }
}

/// The least languages with `x[i] = ends[i]` or `matrix[i][j] x[j]` for some j: Gaussian elimination with
/// Arden's rule.
pub(super) fn solve(terms: &mut Terms, mut matrix: Vec<Vec<Id>>, mut ends: Vec<Id>) -> Vec<Id> {
    let n = ends.len();
    for k in 0..n {
        let around = terms.repeat(matrix[k][k], 0, None);
        matrix[k][k] = NOTHING;
        ends[k] = terms.concat(&[around, ends[k]]);
        for entry in &mut matrix[k] {
            *entry = terms.concat(&[around, *entry]);
        }
        let (row, end) = (matrix[k].clone(), ends[k]);
        for i in (0..n).filter(|&i| i != k) {
            let into = std::mem::replace(&mut matrix[i][k], NOTHING);
            if into == NOTHING {
                continue;
            }
            for (entry, &from) in matrix[i].iter_mut().zip(&row) {
                let way = terms.concat(&[into, from]);
                *entry = terms.or(&[*entry, way]);
            }
            let way = terms.concat(&[into, end]);
            ends[i] = terms.or(&[ends[i], way]);
        }
    }
    ends
}

/// Partitions characters by the sets that contain them; `None` if that needs too much work.
fn partition(sets: &[CharSet]) -> Option<Vec<CharSet>> {
    let mut cuts: Vec<u32> = vec![0, 0xd800, 0xe000];
    for (from, to) in sets.iter().flat_map(|set| set.ranges()) {
        cuts.extend([*from, *to + 1]);
    }
    cuts.sort_unstable();
    cuts.dedup();
    if cuts.len().saturating_mul(sets.len()) > 1 << 22 {
        return None;
    }
    let mut groups: FxHashMap<Vec<bool>, usize> = FxHashMap::default();
    let mut classes: Vec<Vec<(u32, u32)>> = Vec::new();
    for (at, &from) in cuts.iter().enumerate() {
        let Some(c) = char::from_u32(from) else { continue };
        let to = cuts.get(at + 1).map_or(crate::charset::LAST, |next| next - 1);
        let signature = sets.iter().map(|set| set.contains(c)).collect();
        let fresh = classes.len();
        let class = *groups.entry(signature).or_insert(fresh);
        if class == fresh {
            classes.push(Vec::new());
        }
        classes[class].push((from, to));
    }
    Some(classes.into_iter().map(CharSet::from_ranges).collect())
}

/// Some character of a non-empty set.
fn sample(set: &CharSet) -> char {
    set.ranges().first().and_then(|&(from, _)| char::from_u32(from)).unwrap_or_default()
}
