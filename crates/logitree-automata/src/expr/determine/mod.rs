//! Combinations of regular languages as one minimal automaton. Their derivatives need a search for whether anything is
//! left of an intersection, at every state that is new; the automaton knows it of all its states.
//!
//! ```text
//! [\s\S]*a[\s\S]* & ~([\s\S]*b[\s\S]*)      2 states: before the first a, and after it
//! ```
//!
//! The parts without intersection and complement become sets of partial derivatives (Antimirov 1996), one per
//! alternative: there are no more of these than positions in the expression. A state is the combination of such sets that
//! is left, simplified.
//!
//! The naive version is the derivatives of the expression itself.

mod search;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::build::WITHIN_DEPTH;
use super::node::{ExprNode, ENDLESS};
use super::{ByteSet, ExprId, Exprs, EMPTY, NOTHING};
use crate::{Dfa, Result};
use search::Search;

/// Larger expressions are left as they are.
const MAX_POSITIONS: usize = 4_000;
/// Automata of more states before they are minimised are not made.
const MAX_STATES: usize = 4_096;
/// Automata that take more work, in steps, are not made.
const MAX_WORK: u64 = 30_000;
/// Automata of more states are not kept.
const MAX_KEPT: usize = 2_048;
/// Deeper expressions are left as they are.
const MAX_DEPTH: u32 = 40;

/// No byte leads out of this set.
const EMPTY_SET: u32 = 0;

/// A combination of languages: each a number, or its complement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Combined {
    Leaf {
        of: u32,
        negated: bool,
    },
    /// All of these; none of them is every string.
    All(Vec<Combined>),
    /// One of these; none of them is the empty language.
    Any(Vec<Combined>),
}

/// The empty language.
const NONE: Combined = Combined::Any(Vec::new());
/// Every string.
const EVERY: Combined = Combined::All(Vec::new());

/// The partial derivatives of some expressions.
#[derive(Default)]
struct Positions {
    ids: Vec<ExprId>,
    numbers: FxHashMap<ExprId, u32>,
    /// For each where it leads.
    ways: Vec<Ways>,
    /// Whether one contains another.
    contains: FxHashMap<(u32, u32), bool>,
}

/// Where a position leads, by class.
#[derive(Default)]
struct Ways {
    /// The targets of this class and those after it up to the next, the first for class 0.
    runs: Vec<(u8, Box<[u32]>)>,
    starts: Classes,
    /// How many pairs of a class and a target there are.
    count: usize,
}

/// A set of classes; there are at most 200.
type Classes = ByteSet;

/// Where a set leads.
#[derive(Default)]
struct Row {
    /// The sets after a byte of each class; empty before it is asked for.
    next: Box<[u32]>,
    /// The classes whose target is another than that of the class before.
    starts: Classes,
}

/// Sets of positions.
#[derive(Default)]
struct Sets {
    all: Vec<Arc<[u32]>>,
    /// Also by the sorted positions without those that others contain.
    numbers: FxHashMap<Arc<[u32]>, u32>,
    rows: Vec<Row>,
    accepting: Vec<bool>,
    /// Whether one contains another.
    contains: FxHashMap<(u32, u32), bool>,
}

impl Exprs {
    /// `e`, as one automaton if it combines languages by intersection or complement and the automaton is small.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the arena is full or out of fuel.
    pub fn determined(&mut self, e: ExprId) -> Result<ExprId> {
        if self.facts(e).boolean {
            self.as_automaton(e)
        } else {
            Ok(e)
        }
    }

    /// `e`, as one automaton if that is small.
    ///
    /// # Errors
    /// As [`Exprs::determined`].
    pub fn as_automaton(&mut self, e: ExprId) -> Result<ExprId> {
        let mut left = MAX_POSITIONS;
        let mut leaves = Vec::new();
        let Some(formula) = self.formula(e, false, &mut leaves, &mut left, MAX_DEPTH) else { return Ok(e) };
        self.charge(4 * (MAX_POSITIONS - left) as u64)?;
        let until = self.fuel().saturating_sub(MAX_WORK);
        let Some((positions, classes)) = self.positions(&leaves, until)? else { return Ok(e) };
        Ok(match Search::new(self, positions, classes.len()).run(formula, &leaves, until)? {
            None => e,
            Some((next, accepting)) => match Dfa::minimal(&classes, next, accepting) {
                None => NOTHING,
                Some(dfa) if dfa.len() > MAX_KEPT => e,
                Some(dfa) => self.automaton(&Arc::new(dfa))?,
            },
        })
    }

    /// Whether `e` has at most `most` positions, with repetitions written out.
    pub fn has_positions(&self, e: ExprId, most: usize) -> bool {
        self.count_positions(e, &mut { most }, MAX_DEPTH).is_some()
    }

    /// `e` as a combination of `leaves`, which have neither intersection nor complement; `None` if it is another kind of
    /// expression, or too large.
    fn formula(
        &self,
        e: ExprId,
        negated: bool,
        leaves: &mut Vec<ExprId>,
        left: &mut usize,
        depth: u32,
    ) -> Option<Combined> {
        let below = depth.checked_sub(1)?;
        if !self.facts(e).boolean {
            let known = leaves.iter().position(|&leaf| leaf == e);
            let of = known.unwrap_or_else(|| {
                leaves.push(e);
                leaves.len() - 1
            });
            if known.is_none() {
                self.count_positions(e, left, depth)?;
            }
            return Some(Combined::Leaf { of: of as u32, negated });
        }
        let (parts, is_and) = match self.node(e) {
            ExprNode::Not(of) => return self.formula(*of, !negated, leaves, left, below),
            ExprNode::And(parts) => (parts, true),
            ExprNode::Or(parts) => (parts, false),
            _ => return None,
        };
        let parts = parts.iter().map(|&part| self.formula(part, negated, leaves, left, below));
        let parts = parts.collect::<Option<Vec<_>>>()?;
        Some(if is_and != negated { Combined::All(parts) } else { Combined::Any(parts) })
    }

    /// Takes off `left` what `e` may have in positions, at least one for each node; `None` if that is too much.
    fn count_positions(&self, e: ExprId, left: &mut usize, depth: u32) -> Option<()> {
        let below = depth.checked_sub(1)?;
        let mut at = e;
        while let ExprNode::Concat(a, b) = *self.node(at) {
            self.count_positions(a, left, below)?;
            at = b;
        }
        let own = match self.node(at) {
            ExprNode::Bytes(from, to) => (to - from) as usize,
            ExprNode::Literals { from, to, .. } => 8 * (to - from) as usize,
            ExprNode::Dfa(dfa, _) => self.dfas[*dfa as usize].0.len(),
            ExprNode::Computed(..) => return None,
            _ => 1,
        };
        *left = left.checked_sub(own)?;
        match self.node(at) {
            ExprNode::Or(parts) | ExprNode::And(parts) => {
                parts.iter().try_for_each(|&part| self.count_positions(part, left, below))
            }
            ExprNode::Not(of) => self.count_positions(*of, left, below),
            ExprNode::Repeat { of, min, max } => {
                let before = *left;
                self.count_positions(*of, left, below)?;
                let times = if *max == ENDLESS { *min } else { *max };
                let more = (before - *left).checked_mul(times.saturating_sub(1) as usize)?;
                *left = left.checked_sub(more)?;
                Some(())
            }
            _ => Some(()),
        }
    }

    /// The partial derivatives of `leaves`, whose numbers are their places, and classes of bytes that none distinguishes;
    /// `None` if there are too many, or if less fuel than `until` is left.
    fn positions(&mut self, leaves: &[ExprId], until: u64) -> Result<Option<(Positions, Vec<ByteSet>)>> {
        let mut made = Positions::default();
        for &leaf in leaves {
            made.number(leaf);
        }
        let mut ways: Vec<Vec<(ByteSet, u32)>> = Vec::new();
        let mut sets: FxHashSet<ByteSet> = FxHashSet::default();
        while ways.len() < made.ids.len() {
            let mut found = Vec::new();
            self.partials(made.ids[ways.len()], &mut found)?;
            self.charge(8 + 4 * found.len() as u64)?;
            sets.extend(found.iter().map(|way| way.0));
            ways.push(found.into_iter().map(|(set, to)| (set, made.number(to))).collect());
            if made.ids.len() > 2 * MAX_POSITIONS || self.fuel() < until {
                return Ok(None);
            }
        }
        let mut sets: Vec<ByteSet> = sets.into_iter().collect();
        sets.sort_unstable();
        let classes = self.partition(sets)?;
        if classes.len() > 200 {
            return Ok(None);
        }
        let firsts: Vec<u8> = classes.iter().filter_map(|class| class.iter().next()).collect();
        for ways in ways {
            self.charge((ways.len() * classes.len()) as u64 / 2)?;
            made.ways.push(Ways::new(&ways, &firsts));
        }
        Ok(Some((made, classes)))
    }

    /// The partial derivatives of `e`, which has neither intersection nor complement: bytes, and what may follow them.
    fn partials(&mut self, e: ExprId, found: &mut Vec<(ByteSet, ExprId)>) -> Result<()> {
        let mut at = e;
        while let ExprNode::Concat(a, b) = *self.node(at) {
            let first = found.len();
            self.partials(a, found)?;
            for way in &mut found[first..] {
                way.1 = self.pair(way.1, b)?;
            }
            if !self.is_complete(a) {
                return Ok(());
            }
            at = b;
        }
        match self.node(at).clone() {
            ExprNode::Class(set) => found.push((set, EMPTY)),
            ExprNode::Bytes(from, to) => {
                let byte = ByteSet::one(self.pool[from as usize]);
                found.push((byte, self.pool_slice(from + 1, to)?));
            }
            ExprNode::Or(parts) => {
                for &part in parts.iter() {
                    self.partials(part, found)?;
                }
            }
            ExprNode::Repeat { of, min, max } => {
                let most = if max == ENDLESS { ENDLESS } else { max - 1 };
                let rest = self.repeat_counted(of, min.saturating_sub(1), most)?;
                let first = found.len();
                self.partials(of, found)?;
                for way in &mut found[first..] {
                    way.1 = self.pair(way.1, rest)?;
                }
            }
            ExprNode::Dfa(dfa, state) => {
                for (bytes, to) in Arc::clone(&self.dfas[dfa as usize].0).targets(state) {
                    found.push((bytes, self.dfa_state(dfa, to)?));
                }
            }
            ExprNode::Literals { .. } => found.extend(self.transitions(at)?),
            _ => {}
        }
        Ok(())
    }

    /// Whether `outer` provably contains `e`.
    fn covers(&mut self, outer: ExprId, e: ExprId, depth: u32) -> Result<bool> {
        if outer == e {
            return Ok(true);
        }
        match (self.node(outer), self.node(e)) {
            (ExprNode::Repeat { min: 0, max: ENDLESS, .. }, _) => self.within(e, outer, WITHIN_DEPTH),
            (&ExprNode::Concat(a, r), &ExprNode::Concat(b, s)) if depth > 0 => {
                let wider = match (self.node(a), self.node(b)) {
                    (ExprNode::Class(a), ExprNode::Class(b)) => b.without(a).is_empty(),
                    _ => a == b,
                };
                Ok(wider && self.covers(r, s, depth - 1)?)
            }
            _ => Ok(false),
        }
    }
}

impl Ways {
    /// `firsts` are bytes of each class; each of the sets is a union of classes.
    fn new(ways: &[(ByteSet, u32)], firsts: &[u8]) -> Ways {
        let mut made = Ways::default();
        // Which ways a class has, 64 at a time: neighbouring classes mostly have the same.
        let mut taken = vec![0u64; ways.len().div_ceil(64)];
        for (class, &byte) in firsts.iter().enumerate() {
            let mut starts = class == 0;
            for (part, ways) in taken.iter_mut().zip(ways.chunks(64)) {
                let bit = |(n, way): (usize, &(ByteSet, u32))| u64::from(way.0.contains(byte)) << n;
                let bits = ways.iter().enumerate().map(bit).sum();
                starts |= bits != *part;
                *part = bits;
                made.count += bits.count_ones() as usize;
            }
            if starts {
                let targets = ways.iter().filter(|way| way.0.contains(byte)).map(|way| way.1);
                made.runs.push((class as u8, targets.collect()));
                made.starts.insert(class as u8);
            }
        }
        made
    }
}

impl Positions {
    fn number(&mut self, e: ExprId) -> u32 {
        *self.numbers.entry(e).or_insert_with(|| {
            self.ids.push(e);
            self.ids.len() as u32 - 1
        })
    }

    fn contains(&mut self, outer: u32, inner: u32, exprs: &mut Exprs) -> Result<bool> {
        if let Some(&known) = self.contains.get(&(outer, inner)) {
            return Ok(known);
        }
        exprs.charge(8)?;
        let found = exprs.covers(self.ids[outer as usize], self.ids[inner as usize], 6)?;
        self.contains.insert((outer, inner), found);
        Ok(found)
    }
}
