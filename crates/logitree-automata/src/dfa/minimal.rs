//! Minimises an automaton: level by level where that takes few passes ([`super::levels`]), otherwise by refining a partition of
//! its states and one of its transitions in turn: A. Valmari, Fast brief practical DFA minimization, Information Processing
//! Letters 112 (2012).

use super::levels::Levels;
use super::{Dfa, NONE};
use crate::expr::Contained;

/// A partition of the numbers below a limit. Each set is a range of one list, with its marked numbers first.
struct Partition {
    elements: Vec<u32>,
    place: Vec<u32>,
    set_of: Vec<u32>,
    first: Vec<u32>,
    past: Vec<u32>,
    marked: Vec<u32>,
    touched: Vec<u32>,
}

impl Partition {
    /// All numbers below `n` in one set; no set if `n` is 0.
    fn whole(n: usize) -> Partition {
        let all: Vec<u32> = (0..n as u32).collect();
        let one = |value| if n == 0 { Vec::new() } else { vec![value] };
        Partition {
            place: all.clone(),
            elements: all,
            set_of: vec![0; n],
            first: one(0),
            past: one(n as u32),
            marked: one(0),
            touched: Vec::new(),
        }
    }

    /// The numbers below the last of `ends` in as many sets, each from the end of the one before up to its own. No set is
    /// empty.
    fn runs(ends: &[u32]) -> Partition {
        let all: Vec<u32> = (0..ends.last().copied().unwrap_or(0)).collect();
        let mut set_of = vec![0; all.len()];
        let first: Vec<u32> = std::iter::once(0).chain(ends.iter().copied()).take(ends.len()).collect();
        for (set, (&from, &to)) in first.iter().zip(ends).enumerate() {
            set_of[from as usize..to as usize].fill(set as u32);
        }
        let (place, marked) = (all.clone(), vec![0; ends.len()]);
        Partition { elements: all, place, set_of, first, past: ends.to_vec(), marked, touched: Vec::new() }
    }

    fn sets(&self) -> usize {
        self.first.len()
    }

    fn mark(&mut self, element: u32) {
        let set = self.set_of[element as usize] as usize;
        let (from, to) = (self.place[element as usize], self.first[set] + self.marked[set]);
        if from < to {
            return; // marked already
        }
        let other = self.elements[to as usize];
        self.elements.swap(from as usize, to as usize);
        self.place[other as usize] = from;
        self.place[element as usize] = to;
        if self.marked[set] == 0 {
            self.touched.push(set as u32);
        }
        self.marked[set] += 1;
    }

    /// Splits marked from unmarked numbers; the smaller part becomes a new set.
    fn split(&mut self) {
        while let Some(set) = self.touched.pop() {
            let set = set as usize;
            let (first, past) = (self.first[set], self.past[set]);
            let middle = first + std::mem::take(&mut self.marked[set]);
            if middle == past {
                continue;
            }
            let new = self.sets() as u32;
            let (from, to) = if middle - first <= past - middle {
                self.first[set] = middle;
                (first, middle)
            } else {
                self.past[set] = middle;
                (middle, past)
            };
            self.first.push(from);
            self.past.push(to);
            self.marked.push(0);
            for &element in &self.elements[from as usize..to as usize] {
                self.set_of[element as usize] = new;
            }
        }
    }
}

/// For each state the numbers of its transitions in `ends`, and where each state's range begins.
fn adjacent(ends: &[u32], states: usize) -> (Vec<u32>, Vec<u32>) {
    let mut from = vec![0u32; states + 1];
    ends.iter().for_each(|&state| from[state as usize + 1] += 1);
    (1..=states).for_each(|at| from[at] += from[at - 1]);
    let mut free = from.clone();
    let mut list = vec![0; ends.len()];
    for (transition, &state) in ends.iter().enumerate() {
        list[free[state as usize] as usize] = transition as u32;
        free[state as usize] += 1;
    }
    (list, from)
}

/// For each state the least number of bytes to an accepting one; [`NONE`] where none is reachable.
pub(super) fn distances(dfa: &Dfa) -> Box<[u32]> {
    let most = dfa.next.len();
    let (mut tails, mut heads) = (Vec::with_capacity(most), Vec::with_capacity(most));
    for (at, &to) in dfa.next.iter().enumerate().filter(|&(_, &to)| to != NONE) {
        tails.push((at / dfa.width) as u32);
        heads.push(to);
    }
    let (into, from) = adjacent(&heads, dfa.len());
    let mut found: Vec<usize> = (0..dfa.len()).filter(|&state| dfa.accepting[state]).collect();
    let mut distances = vec![NONE; dfa.len()].into_boxed_slice();
    found.iter().for_each(|&state| distances[state] = 0);
    let mut at = 0;
    while let Some(&state) = found.get(at) {
        for &transition in &into[from[state] as usize..from[state + 1] as usize] {
            let tail = tails[transition as usize] as usize;
            if distances[tail] == NONE {
                distances[tail] = distances[state] + 1;
                found.push(tail);
            }
        }
        at += 1;
    }
    distances
}

/// The minimal automaton of the same language; `None` if it is empty. Every state of `dfa` must be reachable.
pub(super) fn minimal(dfa: &Dfa) -> Option<Dfa> {
    let distances = distances(dfa);
    if distances[0] == NONE {
        return None;
    }
    let labels = different_columns(dfa);
    let (firsts, class_of) = match Levels::of(dfa, &distances, &labels) {
        Some(levels) => numbered(&levels),
        None => by_partitions(dfa, &distances, &labels),
    };
    Some(quotient(dfa, &firsts, &class_of).residual(class_of[0]))
}

/// A state of each class, and the number of the class of each state, [`NONE`] for those that lead nowhere.
fn numbered(levels: &Levels) -> (Vec<u32>, Vec<u32>) {
    let mut firsts = Vec::with_capacity(levels.count);
    let mut class_of = vec![NONE; levels.class_of.len()];
    for (at, &state) in levels.order.iter().enumerate() {
        let first = levels.class_of[state as usize];
        class_of[state as usize] = match first as usize == at {
            true => {
                firsts.push(state);
                firsts.len() as u32 - 1
            }
            false => class_of[levels.order[first as usize] as usize],
        };
    }
    (firsts, class_of)
}

/// As [`numbered`], in time that grows little faster than the number of transitions.
fn by_partitions(dfa: &Dfa, distances: &[u32], labels: &[usize]) -> (Vec<u32>, Vec<u32>) {
    let leads = |state: usize| distances[state] != NONE;
    let most = labels.len() * dfa.len();
    let (mut tails, mut heads) = (Vec::with_capacity(most), Vec::with_capacity(most));
    let mut ends = Vec::with_capacity(labels.len());
    for label in labels {
        for state in 0..dfa.len() {
            let to = dfa.next[state * dfa.width + label];
            if to != NONE && leads(to as usize) && leads(state) {
                tails.push(state as u32);
                heads.push(to);
            }
        }
        if tails.len() as u32 > ends.last().copied().unwrap_or(0) {
            ends.push(tails.len() as u32);
        }
    }
    let mut blocks = Partition::whole(dfa.len());
    for keep in [&|state| leads(state), &|state| dfa.accepting[state]] as [&dyn Fn(usize) -> bool; 2] {
        (0..dfa.len()).filter(|&state| keep(state)).for_each(|state| blocks.mark(state as u32));
        blocks.split();
    }
    // The transitions of one label form one cord.
    let mut cords = Partition::runs(&ends);
    refine(&mut blocks, &mut cords, &tails, &heads);
    let firsts = blocks.first.iter().map(|&first| blocks.elements[first as usize]).collect();
    let class_of =
        (0..dfa.len()).map(|state| if leads(state) { blocks.set_of[state] } else { NONE }).collect();
    (firsts, class_of)
}

/// The labels, but for those that lead from each state to where another one does: they tell no states apart.
fn different_columns(dfa: &Dfa) -> Vec<usize> {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sums = vec![0u64; dfa.width];
    for row in dfa.next.chunks_exact(dfa.width) {
        for (sum, &to) in sums.iter_mut().zip(row) {
            *sum = (sum.rotate_left(5) ^ u64::from(to)).wrapping_mul(MIX);
        }
    }
    let same = |a: usize, b: usize| dfa.next.chunks_exact(dfa.width).all(|row| row[a] == row[b]);
    let known = |&label: &usize| (0..label).any(|other| sums[other] == sums[label] && same(other, label));
    (0..dfa.width).filter(|label| !known(label)).collect()
}

/// For each state the bytes of the strings from there on: the greatest fixpoint of the bytes that all strings have, and the
/// least of those that some have.
pub(super) fn contained(dfa: &Dfa) -> Box<[Contained]> {
    let mut found = vec![Contained::NOTHING; dfa.len()];
    let sets = dfa.sets();
    loop {
        let mut changed = false;
        // States are numbered from the start on: those near an end come first here.
        for state in (0..dfa.len() as u32).rev() {
            let mut all = if dfa.is_accepting(state) { Contained::EMPTY } else { Contained::NOTHING };
            for (set, &to) in sets.iter().zip(dfa.row(state)).filter(|(_, &to)| to != NONE) {
                all = all.or(&Contained::class(*set).then(&found[to as usize]));
            }
            changed |= all != found[state as usize];
            found[state as usize] = all;
        }
        if !changed {
            return found.into();
        }
    }
}

/// Splits blocks of states until all states of a block have the same target block for each label.
fn refine(blocks: &mut Partition, cords: &mut Partition, tails: &[u32], heads: &[u32]) {
    let (into, from) = adjacent(heads, blocks.elements.len());
    // The first block can be skipped: the rest of a cord splits as well as what was taken out of it.
    let (mut block, mut cord) = (1, 0);
    while cord < cords.sets() {
        for at in cords.first[cord]..cords.past[cord] {
            blocks.mark(tails[cords.elements[at as usize] as usize]);
        }
        blocks.split();
        cord += 1;
        while block < blocks.sets() {
            for at in blocks.first[block]..blocks.past[block] {
                let state = blocks.elements[at as usize] as usize;
                into[from[state] as usize..from[state + 1] as usize].iter().for_each(|&t| cords.mark(t));
            }
            cords.split();
            block += 1;
        }
    }
}

/// One state for each class; `firsts` has a state of each.
fn quotient(dfa: &Dfa, firsts: &[u32], class_of: &[u32]) -> Dfa {
    let mut next = Vec::with_capacity(firsts.len() * dfa.width);
    for &first in firsts {
        next.extend(dfa.row(first).iter().map(|&to| if to == NONE { NONE } else { class_of[to as usize] }));
    }
    let accepting = firsts.iter().map(|&first| dfa.is_accepting(first)).collect();
    Dfa::new(dfa.classes.clone(), dfa.width, next, accepting)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dfa(width: usize, next: Vec<u32>, accepting: Vec<bool>) -> Dfa {
        let class_of = |byte: usize| byte.min(width) as u8;
        Dfa::new((0..256).map(class_of).collect(), width, next, accepting)
    }

    /// Only what can be reached, as every automaton here.
    fn random(states: u32, width: usize, seed: u64) -> Dfa {
        let mut random = seed;
        let mut draw = |most: u32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as u32 % most
        };
        // Few targets each: many states are equivalent.
        let near = 1 + draw(states);
        let mut target = |at: u32| match draw(4) {
            0 => NONE,
            1 => (at + 1) % states,
            _ => draw(near),
        };
        let next = (0..states * width as u32).map(|place| target(place / width as u32)).collect();
        let rare = 1 + (seed % 5) as u32;
        let accepting = (0..states).map(|_| draw(rare) == 0).collect();
        dfa(width, next, accepting).residual(0)
    }

    #[test]
    fn levels_find_what_partitions_find() {
        let (mut by_levels, mut merged) = (0, 0);
        for seed in 0..4_000u64 {
            let all = random(1 + (seed % 37) as u32, 1 + (seed % 4) as usize, seed);
            let distances = distances(&all);
            if distances[0] == NONE {
                assert!(minimal(&all).is_none());
                continue;
            }
            let labels = different_columns(&all);
            let (firsts, class_of) = by_partitions(&all, &distances, &labels);
            let want = quotient(&all, &firsts, &class_of).residual(class_of[0]);
            if let Some(levels) = Levels::of(&all, &distances, &labels) {
                let (firsts, class_of) = numbered(&levels);
                assert_eq!(quotient(&all, &firsts, &class_of).residual(class_of[0]), want, "{seed}");
                by_levels += 1;
                merged += usize::from(want.len() < all.len());
            }
            assert_eq!(minimal(&all).as_ref(), Some(&want), "{seed}");
        }
        assert!(by_levels > 2_000 && merged > 500, "{by_levels} {merged}");
    }

    #[test]
    fn states_that_differ_far_from_the_end_are_told_apart() {
        // From each state "0" accepts, "1" leads to the next: they differ in how many may follow.
        let length = 20u32;
        let mut next: Vec<u32> = (0..length).flat_map(|at| [length, at + 1]).collect();
        next[2 * length as usize - 1] = NONE;
        next.extend([NONE, NONE]);
        let all = dfa(2, next, (0..=length).map(|at| at == length).collect());
        assert!(Levels::of(&all, &distances(&all), &[0, 1]).is_none());
        assert_eq!(minimal(&all).unwrap().len(), length as usize + 1);
    }
}
