//! The walk for table automata. The naive version is [`TokenTrie::allowed`] over [`Table::recognizer`], to which
//! it is held equal. Two steps away from it:
//!
//! 1. Whole subtrees. The few nodes with 64 nodes or more below them are walked first. Where the automaton's state
//!    returns to itself on everything that occurs below such a node, all its tokens are allowed and none is walked.
//!    What is neither taken whole nor refused whole is left over as runs of small siblings.
//! 2. Four lanes. The runs are walked by four cursors in turn, each without a branch on "is this byte allowed":
//!    the next node is a select, and while one cursor waits for its loads the other three work. No mispredicted
//!    branch is left, whatever the automaton.

use super::below::Below;
use super::node::{Packed, MAX_DEPTH};
use super::table::{Loops, StateNumber, Table};
use super::TokenTrie;
use crate::mask::insert_bit_if;
use crate::Result;
use std::hint::select_unpredictable;
use std::ops::Range;

/// Subtrees of this many nodes are looked at as a whole; measured best of 16, 32, 64, 128 and 256.
const BIG: usize = 64;
/// Cursors walked in turn; measured best of 2, 4, 6 and 8.
const LANES: usize = 4;

/// One entry of the trie's coarse outline, depth-first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// The nodes `start..end`: one big subtree, or a run of small sibling subtrees.
    start: u32,
    end: u32,
    /// The entry after the subtree, for a big one; 0 for a run.
    skip: u32,
    /// Position in the outline's `below`; for big subtrees.
    below: u32,
}

/// The big subtrees and, between them, the runs of small ones.
#[derive(Debug, Default)]
pub(super) struct Outline {
    entries: Box<[Entry]>,
    below: Box<[Below]>,
}

/// A part of a trie: a big subtree, or small siblings.
pub(super) struct Part<'a> {
    pub nodes: Range<usize>,
    /// What is below the first node of a big subtree, whose own parts are the next ones.
    pub below: Option<&'a Below>,
    /// The number of the part after these nodes.
    pub after: usize,
}

impl Outline {
    /// Whether a subtree of `size` nodes is big.
    pub(super) const fn is_big(size: usize) -> bool {
        size >= BIG
    }

    /// `below` has one entry per big node but the root, ascending, with the node's position.
    pub(super) fn new(nodes: &[Packed], below: Vec<(u32, Below)>) -> Outline {
        let mut entries: Vec<Entry> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        let mut run = 1;
        let mut at = 1;
        let mut numbers = 0..below.len() as u32;
        let flush = |entries: &mut Vec<Entry>, run: usize, end: usize| {
            if run < end {
                entries.push(Entry { start: run as u32, end: end as u32, skip: 0, below: 0 });
            }
        };
        while at <= nodes.len() {
            while let Some(&top) = open.last().filter(|&&top| entries[top].end as usize <= at) {
                flush(&mut entries, run, at);
                run = at;
                entries[top].skip = entries.len() as u32;
                open.pop();
            }
            let Some(node) = nodes.get(at) else { break };
            if !Outline::is_big(node.size()) {
                at += node.size();
                continue;
            }
            flush(&mut entries, run, at);
            let number = numbers.next().unwrap_or(0);
            open.push(entries.len());
            let end = (at + node.size()) as u32;
            entries.push(Entry { start: at as u32, end, skip: 0, below: number });
            at += 1;
            run = at;
        }
        flush(&mut entries, run, nodes.len());
        Outline { entries: entries.into(), below: below.into_iter().map(|(_, b)| b).collect() }
    }

    /// The part with this number, if there are so many.
    #[inline]
    pub(super) fn part(&self, number: usize) -> Option<Part<'_>> {
        let entry = self.entries.get(number)?;
        let is_big = entry.skip != 0;
        Some(Part {
            nodes: entry.start as usize..entry.end as usize,
            below: is_big.then(|| &self.below[entry.below as usize]),
            after: if is_big { entry.skip as usize } else { number + 1 },
        })
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.entries) + size_of_val(&*self.below)
    }
}

/// Sibling subtrees to walk, and the state of their parent.
struct Run<S> {
    start: u32,
    end: u32,
    parent_depth: usize,
    state: S,
}

/// One cursor: its position, the end of its run, and the state after each node on its path.
struct Lane<S> {
    at: usize,
    end: usize,
    states: [S; MAX_DEPTH + 1],
}

impl<S: StateNumber> Lane<S> {
    fn new() -> Self {
        Lane { at: 0, end: 0, states: [S::default(); MAX_DEPTH + 1] }
    }

    /// Takes up the next run; `false` if there is none.
    fn load(&mut self, runs: &mut impl Iterator<Item = Run<S>>) -> bool {
        let Some(run) = runs.next() else { return false };
        self.at = run.start as usize;
        self.end = run.end as usize;
        self.states[run.parent_depth & MAX_DEPTH] = run.state;
        true
    }

    #[inline(always)]
    fn is_busy(&self) -> bool {
        self.at < self.end
    }

    #[inline(always)]
    fn step(&mut self, nodes: &[Packed], table: &Table<'_, S>, set: &mut [u32]) {
        let node = nodes[self.at];
        let depth = node.depth();
        let next = table.step(self.states[depth.wrapping_sub(1) & MAX_DEPTH], node.byte());
        self.states[depth] = next; // a dead state stays unread: its subtree is skipped
        let live = next != table.dead();
        insert_bit_if(set, node.slot(), live);
        self.at += select_unpredictable(live, 1, node.size());
    }
}

impl TokenTrie {
    /// Writes the set of tokens all of whose bytes `table` takes from its start state into `words`, like
    /// [`TokenTrie::allowed`] does over [`Table::recognizer`], some times faster.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Mask`] if `words` is too short for the vocabulary.
    pub fn allowed_by<S: StateNumber>(&self, table: &Table<'_, S>, words: &mut [u32]) -> Result<()> {
        self.check_words(words)?;
        let mut set = self.empty_set();
        let runs = self.sweep_outline(table, &mut set);
        sweep_runs(&self.nodes, table, runs, &mut set);
        self.deliver(&mut set, words);
        Ok(())
    }

    /// Walks the outline: takes or refuses subtrees whole where it can, and returns the runs left over.
    fn sweep_outline<S: StateNumber>(&self, table: &Table<'_, S>, set: &mut [u32]) -> Vec<Run<S>> {
        let Outline { entries, below } = &self.outline;
        let mut runs = Vec::new();
        let mut known = LoopsSeen { at: vec![0; table.states()], loops: Vec::new() };
        let mut states = [S::default(); MAX_DEPTH + 1];
        states[0] = table.start();
        let mut at = 0;
        while let Some(entry) = entries.get(at) {
            let node = self.nodes[entry.start as usize];
            let parent_depth = node.depth() - 1;
            let state = states[parent_depth];
            if entry.skip == 0 {
                runs.push(Run { start: entry.start, end: entry.end, parent_depth, state });
                at += 1;
                continue;
            }
            let next = table.step(state, node.byte());
            if next == table.dead() {
                at = entry.skip as usize;
                continue;
            }
            insert_bit_if(set, node.slot(), true);
            let first_below = self.nodes[entry.start as usize + 1].byte();
            let may_loop = !first_below.is_ascii() || table.step(next, first_below) == next;
            if may_loop && known.of(table, next).take(&below[entry.below as usize]) {
                for &id in self.run(entry.start as usize, entry.end as usize) {
                    insert_bit_if(set, id, true);
                }
                at = entry.skip as usize;
            } else {
                states[parent_depth + 1] = next;
                at += 1;
            }
        }
        runs
    }
}

/// The states' loops, each found when first asked for.
struct LoopsSeen {
    /// Per state, one more than its position in `loops`; 0 where not asked for yet.
    at: Vec<u32>,
    loops: Vec<Loops>,
}

impl LoopsSeen {
    fn of<S: StateNumber>(&mut self, table: &Table<'_, S>, state: S) -> &Loops {
        let at = &mut self.at[state.index()];
        if *at == 0 {
            self.loops.push(Loops::of(table, state));
            *at = self.loops.len() as u32;
        }
        &self.loops[*at as usize - 1]
    }
}

fn sweep_runs<S: StateNumber>(nodes: &[Packed], table: &Table<'_, S>, runs: Vec<Run<S>>, set: &mut [u32]) {
    let mut runs = runs.into_iter();
    let mut lanes: [Lane<S>; LANES] = std::array::from_fn(|_| Lane::new());
    let mut all_busy = lanes.iter_mut().all(|lane| lane.load(&mut runs));
    while all_busy {
        while lanes.iter().all(Lane::is_busy) {
            for lane in &mut lanes {
                lane.step(nodes, table, set);
            }
        }
        all_busy = lanes.iter_mut().all(|lane| lane.is_busy() || lane.load(&mut runs));
    }
    for lane in &mut lanes {
        while lane.is_busy() {
            lane.step(nodes, table, set);
        }
    }
}
