//! Arrays as states: what the next item may be, and whether what is asked for can still be met. Places that can no longer
//! be told apart are one, so a list loops over one state. It refuses to know how values are written.

use std::sync::Arc;

use super::super::normal::{ArrayFacts, GoalId, FALSE};
use super::alive::Query;
use super::board::Board;
use super::unique::Unique;
use crate::expr::Exprs;
use crate::{Error, ErrorKind, Result};

/// `contains` demands at once at most.
const MOST_CONTAINS: usize = 8;

/// A place in an array: at its opening bracket or behind an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ArrayState {
    /// Which array.
    pub array: u32,
    /// Items written, as far as they count.
    pub index: u32,
    /// For each demand how many items met it, as far as they count: a list of [`super::board::Lists`].
    pub met: u32,
    /// Items that must not come again: a list of places in [`Unique::values`].
    pub used: u32,
}

/// Arrays that fulfil certain facts.
pub(super) struct Array {
    pub facts: Arc<ArrayFacts>,
    /// What an item fulfils that does not count for a demand; where there is no most, anything.
    misses: Vec<GoalId>,
    /// Places are told apart up to here.
    counted: u32,
    /// How items are kept apart, if they are.
    pub unique: Option<Unique>,
}

/// A way to read the next item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    /// What it fulfils.
    pub goal: GoalId,
    /// What follows it.
    pub next: ArrayState,
}

impl Array {
    /// Whether places and lengths are all there is to completing it.
    fn is_plain(&self) -> bool {
        self.facts.contains.is_empty() && self.unique.is_none()
    }

    /// Whether one more item would be too many.
    fn is_full(&self, s: &ArrayState) -> bool {
        self.facts.max.is_some_and(|max| u64::from(s.index) >= max)
    }
}

impl Board {
    pub(super) fn new_array(&mut self, facts: &Arc<ArrayFacts>, exprs: &mut Exprs) -> Result<Array> {
        if facts.contains.len() > MOST_CONTAINS {
            let message = format!("an array has more than {MOST_CONTAINS} demands of what it contains");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let mut misses = Vec::with_capacity(facts.contains.len());
        let mut counted = (facts.prefix.len() as u64).max(facts.min).max(facts.max.unwrap_or(0)).max(1);
        for contains in &facts.contains {
            counted = counted.max(contains.from);
            misses.push(match contains.max {
                Some(_) => self.forms.opposite(contains.goal)?,
                None => super::super::normal::TRUE,
            });
        }
        let unique = if facts.unique { self.unique(facts, exprs)? } else { None };
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        Ok(Array { facts: Arc::clone(facts), misses, counted, unique })
    }

    pub(super) fn array_start(&mut self, array: u32) -> ArrayState {
        let met = vec![0; self.arrays[array as usize].facts.contains.len()];
        ArrayState { array, index: 0, met: self.sets.id(&met), used: 0 }
    }

    /// Whether the array may end here.
    pub(super) fn array_may_end(&self, s: &ArrayState) -> bool {
        let facts = &self.arrays[s.array as usize].facts;
        let met = self.sets.get(s.met);
        u64::from(s.index) >= facts.min
            && facts.contains.iter().zip(met).all(|(contains, &met)| u64::from(met) >= contains.min)
    }

    /// The ways to read the next item after which the array can be completed.
    pub(super) fn items(&mut self, s: &ArrayState, exprs: &mut Exprs) -> Result<Vec<Item>> {
        let mut found = Vec::new();
        for item in self.possible_items(s)? {
            let apart = self.arrays[s.array as usize].unique.as_ref().is_some_and(|u| u.concerns(s.index));
            if apart {
                if self.differing_alive(&item, exprs)? {
                    found.push(item);
                }
            } else if self.alive(item.goal, exprs)? && self.array_can_complete(item.next, exprs)? {
                found.push(item);
            }
        }
        Ok(found)
    }

    /// The ways to read the next item, as far as what it contains goes.
    fn possible_items(&mut self, s: &ArrayState) -> Result<Vec<Item>> {
        let array = &self.arrays[s.array as usize];
        let goal = array.facts.item(u64::from(s.index));
        if array.is_full(s) || goal == FALSE {
            return Ok(Vec::new());
        }
        let facts = Arc::clone(&array.facts);
        let misses = array.misses.clone();
        let index = s.index.saturating_add(1).min(array.counted);
        let met = self.sets.get(s.met).to_vec();
        let mut ways: Vec<(GoalId, Vec<u32>)> = vec![(goal, met.clone())];
        for (at, contains) in facts.contains.iter().enumerate() {
            if u64::from(s.index) < contains.from {
                continue;
            }
            let counts_to = contains.max.unwrap_or(contains.min);
            let mut more = Vec::with_capacity(2 * ways.len());
            for (goal, met) in ways {
                if u64::from(met[at]) < counts_to {
                    let mut met = met.clone();
                    met[at] += 1;
                    more.push((self.forms.all(&[goal, contains.goal])?, met));
                }
                more.push((self.forms.all(&[goal, misses[at]])?, met));
            }
            ways = more;
            ways.retain(|&(goal, _)| goal != FALSE);
        }
        let state = |board: &mut Board, met: &[u32]| ArrayState { index, met: board.sets.id(met), ..*s };
        Ok(ways.into_iter().map(|(goal, met)| Item { goal, next: state(self, &met) }).collect())
    }

    /// Whether the array can be completed from here.
    pub(super) fn array_can_complete(&mut self, s: ArrayState, exprs: &mut Exprs) -> Result<bool> {
        // What a plain array must hold was found alive when it was entered.
        if self.array_may_end(&s) || (self.arrays[s.array as usize].is_plain() && s.index > 0) {
            return Ok(true);
        }
        self.ask(Query::Array(s), exprs)
    }

    /// The long way to [`Board::array_can_complete`].
    pub(super) fn array_completes(&mut self, s: ArrayState, exprs: &mut Exprs) -> Result<bool> {
        if self.arrays[s.array as usize].is_plain() {
            let facts = Arc::clone(&self.arrays[s.array as usize].facts);
            let mut needed = facts.prefix.iter().take(usize::try_from(facts.min).unwrap_or(usize::MAX));
            let rest = (facts.min > facts.prefix.len() as u64).then_some(&facts.rest);
            let too_many = facts.max.is_some_and(|max| max < facts.min);
            let mut all_alive = !too_many;
            while let (true, Some(&goal)) = (all_alive, needed.next()) {
                all_alive = self.alive(goal, exprs)?;
            }
            return Ok(all_alive && rest.map_or(Ok(true), |&rest| self.alive(rest, exprs))?);
        }
        if self.array_may_end(&s) {
            return Ok(true);
        }
        if self.too_few_left(&s) {
            return Ok(false);
        }
        Ok(!self.items(&s, exprs)?.is_empty())
    }

    /// Whether there is plainly no room for what must come: too few places, or too few values that differ.
    fn too_few_left(&self, s: &ArrayState) -> bool {
        let array = &self.arrays[s.array as usize];
        let met = self.sets.get(s.met);
        let contains = array.facts.contains.iter().zip(met);
        let wanted = contains.map(|(c, &met)| c.min.saturating_sub(u64::from(met))).max().unwrap_or(0);
        let wanted = wanted.max(array.facts.min.saturating_sub(u64::from(s.index)));
        let places = array.facts.max.map_or(u64::MAX, |max| max.saturating_sub(u64::from(s.index)));
        let used = self.sets.get(s.used).len();
        let values = array.unique.as_ref().map_or(u64::MAX, |unique| unique.left(s.index, used));
        wanted > places.min(values)
    }
}
