//! The search for the states of a combination: each is the combination of sets of partial derivatives that is left.

use rustc_hash::FxHashMap;
use std::sync::Arc;

use super::{Classes, Combined, Positions, Row, Sets, EMPTY_SET, EVERY, MAX_STATES, NONE};
use crate::expr::{ExprId, Exprs};
use crate::Result;

/// The targets of all states, by class, and which of them accept.
pub(super) type Explored = (Vec<Option<u32>>, Vec<bool>);

/// The automaton while it is found.
pub(super) struct Search<'a> {
    exprs: &'a mut Exprs,
    positions: Positions,
    sets: Sets,
    classes: usize,
    shapes: Vec<Combined>,
    shape_numbers: FxHashMap<Combined, u32>,
    /// A state: the number of a shape, and the sets at its leaves.
    states: Vec<Box<[u32]>>,
    /// By what it was simplified from, too.
    state_numbers: FxHashMap<Box<[u32]>, u32>,
}

impl<'a> Search<'a> {
    pub(super) fn new(exprs: &'a mut Exprs, positions: Positions, classes: usize) -> Search<'a> {
        Search {
            exprs,
            positions,
            sets: Sets::default(),
            classes,
            shapes: Vec::new(),
            shape_numbers: FxHashMap::default(),
            states: Vec::new(),
            state_numbers: FxHashMap::default(),
        }
    }

    /// The targets of all states, by class, and which of them accept; `None` if there are too many, or if less fuel than
    /// `until` is left.
    pub(super) fn run(
        mut self,
        formula: Combined,
        leaves: &[ExprId],
        until: u64,
    ) -> Result<Option<Explored>> {
        self.set(Vec::new())?;
        let mut starts = Vec::with_capacity(leaves.len());
        for n in 0..leaves.len() as u32 {
            starts.push(self.set(vec![n])?);
        }
        let start = self.simplified(replaced(&formula, &mut |n| starts[n as usize]))?;
        let Some(start) = start else { return Ok(Some((vec![None; self.classes], vec![false]))) };
        self.state(start);
        let mut next = Vec::new();
        let mut at = 0;
        let mut key = Vec::new();
        while at < self.states.len() {
            for n in 1..self.states[at].len() {
                let set = self.states[at][n];
                self.fill_row(set)?;
            }
            self.exprs.charge((self.classes * (4 + self.states[at].len())) as u64 / 2)?;
            let mut starts = Classes::NONE;
            for &set in &self.states[at][1..] {
                starts = starts.or(&self.sets.rows[set as usize].starts);
            }
            key.clear();
            key.extend_from_slice(&self.states[at]);
            let mut to = None;
            for class in 0..self.classes {
                // Neighbouring classes often have the same target.
                let mut is_same = class > 0;
                if class == 0 || starts.contains(class as u8) {
                    for (set, known) in self.states[at][1..].iter().zip(&mut key[1..]) {
                        let after = self.sets.rows[*set as usize].next[class];
                        is_same &= after == *known;
                        *known = after;
                    }
                }
                if !is_same {
                    to = self.target(&key)?;
                }
                next.push(to);
            }
            if self.states.len() > MAX_STATES || self.exprs.fuel() < until {
                return Ok(None);
            }
            at += 1;
        }
        let accepting = self.states.iter().map(|state| self.accepts(&self.shapes[state[0] as usize], state));
        let accepting = accepting.collect();
        Ok(Some((next, accepting)))
    }

    /// The number of the state of this shape and these sets; `None` if its language is known to be empty.
    fn target(&mut self, key: &[u32]) -> Result<Option<u32>> {
        if let Some(&known) = self.state_numbers.get(key) {
            return Ok((known != u32::MAX).then_some(known));
        }
        let shape = self.shapes[key[0] as usize].clone();
        let simplified = self.simplified(replaced(&shape, &mut |n| key[n as usize + 1]))?;
        let number = simplified.map(|combined| self.state(combined));
        self.state_numbers.insert(key.into(), number.unwrap_or(u32::MAX));
        Ok(number)
    }

    /// The number of a simplified combination of sets.
    fn state(&mut self, combined: Combined) -> u32 {
        let mut key = vec![0];
        let shape = replaced(&combined, &mut |set| {
            let at = key[1..].iter().position(|&known| known == set).unwrap_or(key.len() - 1);
            if at + 1 == key.len() {
                key.push(set);
            }
            at as u32
        });
        let next = self.shapes.len() as u32;
        key[0] = *self.shape_numbers.entry(shape).or_insert_with_key(|shape| {
            self.shapes.push(shape.clone());
            next
        });
        let key: Box<[u32]> = key.into();
        if let Some(&known) = self.state_numbers.get(&key) {
            return known;
        }
        let number = self.states.len() as u32;
        self.states.push(key.clone());
        self.state_numbers.insert(key, number);
        number
    }

    fn accepts(&self, shape: &Combined, state: &[u32]) -> bool {
        match shape {
            Combined::Leaf { of, negated } => {
                self.sets.accepting[state[*of as usize + 1] as usize] != *negated
            }
            Combined::All(parts) => parts.iter().all(|part| self.accepts(part, state)),
            Combined::Any(parts) => parts.iter().any(|part| self.accepts(part, state)),
        }
    }

    /// Simplifies a combination of sets; `None` if it is the empty language.
    fn simplified(&mut self, combined: Combined) -> Result<Option<Combined>> {
        let made = self.simpler(combined)?;
        Ok((made != NONE).then_some(made))
    }

    fn simpler(&mut self, combined: Combined) -> Result<Combined> {
        self.exprs.charge(4)?;
        let (parts, is_and) = match combined {
            Combined::Leaf { of: EMPTY_SET, negated } => return Ok(if negated { EVERY } else { NONE }),
            Combined::Leaf { .. } => return Ok(combined),
            Combined::All(parts) => (parts, true),
            Combined::Any(parts) => (parts, false),
        };
        let (unit, zero) = if is_and { (EVERY, NONE) } else { (NONE, EVERY) };
        let mut made = Vec::with_capacity(parts.len());
        for part in parts {
            let part = self.simpler(part)?;
            if part == zero {
                return Ok(zero);
            }
            match part {
                Combined::All(inner) if is_and => made.extend(inner),
                Combined::Any(inner) if !is_and => made.extend(inner),
                part => made.push(part),
            }
        }
        made.retain(|part| *part != unit);
        made.sort_unstable();
        made.dedup();
        if is_and && self.contradict(&made)? {
            return Ok(zero);
        }
        Ok(match made.len() {
            1 => made.swap_remove(0),
            _ if is_and => Combined::All(made),
            _ => Combined::Any(made),
        })
    }

    /// Whether one of these languages lies within another whose complement is among them.
    fn contradict(&mut self, parts: &[Combined]) -> Result<bool> {
        for part in parts {
            let Combined::Leaf { of: outer, negated: true } = *part else { continue };
            for part in parts {
                let Combined::Leaf { of: inner, negated: false } = *part else { continue };
                if self.lies_within(inner, outer)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn lies_within(&mut self, inner: u32, outer: u32) -> Result<bool> {
        if inner == outer {
            return Ok(true);
        }
        if let Some(&known) = self.sets.contains.get(&(outer, inner)) {
            return Ok(known);
        }
        let (mine, theirs) =
            (Arc::clone(&self.sets.all[inner as usize]), Arc::clone(&self.sets.all[outer as usize]));
        let mut all = true;
        for &position in mine.iter() {
            let mut any = false;
            for &other in theirs.iter() {
                any = any || self.positions.contains(other, position, self.exprs)?;
            }
            all = all && any;
        }
        self.sets.contains.insert((outer, inner), all);
        Ok(all)
    }

    /// The number of a set of positions; those that others contain are left out.
    fn set(&mut self, mut positions: Vec<u32>) -> Result<u32> {
        positions.sort_unstable();
        positions.dedup();
        if let Some(&known) = self.sets.numbers.get(&positions[..]) {
            return Ok(known);
        }
        let all = positions.clone();
        let mut n = 0;
        while n < positions.len() && positions.len() > 1 {
            let mut contained = false;
            for &other in &positions {
                contained = contained
                    || other != positions[n] && self.positions.contains(other, positions[n], self.exprs)?;
            }
            if contained {
                positions.remove(n);
            } else {
                n += 1;
            }
        }
        if let Some(&known) = self.sets.numbers.get(&positions[..]) {
            self.sets.numbers.insert(all.into(), known);
            return Ok(known);
        }
        self.exprs.charge(16 + positions.len() as u64)?;
        let number = self.sets.all.len() as u32;
        let ends = |&position: &u32| self.exprs.is_complete(self.positions.ids[position as usize]);
        self.sets.accepting.push(positions.iter().any(ends));
        let positions: Arc<[u32]> = positions.into();
        self.sets.all.push(Arc::clone(&positions));
        self.sets.rows.push(Row::default());
        if all[..] != positions[..] {
            self.sets.numbers.insert(all.into(), number);
        }
        self.sets.numbers.insert(positions, number);
        Ok(number)
    }

    /// Finds the sets after `set`.
    fn fill_row(&mut self, set: u32) -> Result<()> {
        if !self.sets.rows[set as usize].next.is_empty() {
            return Ok(());
        }
        let positions = Arc::clone(&self.sets.all[set as usize]);
        let (mut starts, mut ways) = (Classes::one(0), 0);
        for &position in positions.iter() {
            let from = &self.positions.ways[position as usize];
            starts = starts.or(&from.starts);
            ways += from.count;
        }
        self.exprs.charge((2 * ways + 8 * self.classes) as u64)?;
        let mut row: Row = Row { next: vec![EMPTY_SET; self.classes].into(), starts: Classes::one(0) };
        let mut places = vec![0; positions.len()];
        let mut to = EMPTY_SET;
        for class in 0..self.classes {
            if starts.contains(class as u8) {
                let mut after = Vec::new();
                for (&position, place) in positions.iter().zip(&mut places) {
                    let runs = &self.positions.ways[position as usize].runs;
                    while runs.get(*place + 1).is_some_and(|run| usize::from(run.0) <= class) {
                        *place += 1;
                    }
                    after.extend_from_slice(&runs[*place].1);
                }
                let next = self.set(after)?;
                if next != to {
                    row.starts.insert(class as u8);
                }
                to = next;
            }
            row.next[class] = to;
        }
        self.sets.rows[set as usize] = row;
        Ok(())
    }
}

/// `combined` with other numbers at its leaves.
fn replaced(combined: &Combined, number: &mut impl FnMut(u32) -> u32) -> Combined {
    match combined {
        Combined::Leaf { of, negated } => Combined::Leaf { of: number(*of), negated: *negated },
        Combined::All(parts) => Combined::All(parts.iter().map(|part| replaced(part, number)).collect()),
        Combined::Any(parts) => Combined::Any(parts.iter().map(|part| replaced(part, number)).collect()),
    }
}
