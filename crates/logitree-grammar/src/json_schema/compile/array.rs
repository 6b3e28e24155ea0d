//! Arrays as states: which item may come next, and whether the array can still be completed. Positions with the same
//! future share a state, so a list loops over one state.

use std::sync::Arc;

use super::super::normalize::{ArrayFacts, SchemaId, FALSE};
use super::liveness::LivenessQuery;
use super::rule_table::RuleTable;
use super::unique::UniqueItems;
use crate::expr::Exprs;
use crate::{Error, ErrorKind, Result};

/// Maximum number of `contains` of one array.
const MAX_CONTAINS: usize = 8;

/// A position in an array: after its opening bracket or after an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ArrayState {
    /// Which array.
    pub array: u32,
    /// Items written, up to the largest count that matters.
    pub index: u32,
    /// For each `contains` how many items met it, up to the largest count that matters: an interned list.
    pub met: u32,
    /// Items that must not come again, see [`UniqueItems`].
    pub used: u32,
}

/// Arrays that fulfil certain facts.
pub(super) struct ArrayRule {
    pub facts: Arc<ArrayFacts>,
    /// The schema of an item that does not count for a `contains`; any value if that has no maximum.
    misses: Vec<SchemaId>,
    /// Positions from here on share one state.
    counted: u32,
    /// How items are kept apart, if they are.
    pub unique: Option<UniqueItems>,
}

/// A choice for the next item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NextItem {
    /// What it fulfils.
    pub schema: SchemaId,
    /// What follows it.
    pub next: ArrayState,
}

impl ArrayRule {
    /// Whether only positions and lengths decide whether it can be completed.
    fn is_plain(&self) -> bool {
        self.facts.contains.is_empty() && self.unique.as_ref().is_none_or(UniqueItems::is_plentiful)
    }

    /// Whether one more item would be too many.
    pub(super) fn is_full(&self, s: &ArrayState) -> bool {
        self.facts.max.is_some_and(|max| u64::from(s.index) >= max)
    }
}

impl RuleTable {
    pub(super) fn new_array(&mut self, facts: &Arc<ArrayFacts>, exprs: &mut Exprs) -> Result<ArrayRule> {
        if facts.contains.len() > MAX_CONTAINS {
            let message = format!("an array has more than {MAX_CONTAINS} demands of what it contains");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let mut misses = Vec::with_capacity(facts.contains.len());
        let mut counted = (facts.prefix.len() as u64).max(facts.min).max(facts.max.unwrap_or(0)).max(1);
        for contains in &facts.contains {
            counted = counted.max(contains.from);
            misses.push(match contains.max {
                Some(_) => self.forms.opposite(contains.schema)?,
                None => super::super::normalize::TRUE,
            });
        }
        let unique = if facts.unique { self.unique(facts, exprs)? } else { None };
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        Ok(ArrayRule { facts: Arc::clone(facts), misses, counted, unique })
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

    /// The choices for the next item after which the array can be completed.
    pub(super) fn items(&mut self, s: &ArrayState, exprs: &mut Exprs) -> Result<Vec<NextItem>> {
        let mut found = Vec::new();
        for item in self.possible_items(s)? {
            let unique = self.arrays[s.array as usize].unique.as_ref();
            let apart = unique.filter(|unique| unique.concerns(s.index)).map(UniqueItems::remembers);
            if let Some(remembers) = apart {
                let alive = if remembers {
                    self.remembered_alive(&item, exprs)?
                } else {
                    self.differing_alive(&item, exprs)?
                };
                if alive {
                    found.push(item);
                }
            } else if self.alive(item.schema, exprs)? && self.array_can_complete(item.next, exprs)? {
                found.push(item);
            }
        }
        Ok(found)
    }

    /// The choices for the next item that `contains` allows.
    fn possible_items(&mut self, s: &ArrayState) -> Result<Vec<NextItem>> {
        let array = &self.arrays[s.array as usize];
        let schema = array.facts.item(u64::from(s.index));
        if array.is_full(s) || schema == FALSE {
            return Ok(Vec::new());
        }
        let facts = Arc::clone(&array.facts);
        let misses = array.misses.clone();
        let index = s.index.saturating_add(1).min(array.counted);
        let met = self.sets.get(s.met).to_vec();
        let mut ways: Vec<(SchemaId, Vec<u32>)> = vec![(schema, met.clone())];
        for (at, contains) in facts.contains.iter().enumerate() {
            if u64::from(s.index) < contains.from {
                continue;
            }
            let counts_to = contains.max.unwrap_or(contains.min);
            let mut more = Vec::with_capacity(2 * ways.len());
            for (schema, met) in ways {
                if u64::from(met[at]) < counts_to {
                    let mut met = met.clone();
                    met[at] += 1;
                    more.push((self.forms.all(&[schema, contains.schema])?, met));
                }
                more.push((self.forms.all(&[schema, misses[at]])?, met));
            }
            ways = more;
            ways.retain(|&(schema, _)| schema != FALSE);
        }
        let state = |table: &mut RuleTable, met: &[u32]| ArrayState { index, met: table.sets.id(met), ..*s };
        Ok(ways.into_iter().map(|(schema, met)| NextItem { schema, next: state(self, &met) }).collect())
    }

    /// Whether the array can be completed from here.
    pub(super) fn array_can_complete(&mut self, s: ArrayState, exprs: &mut Exprs) -> Result<bool> {
        // The required items of a plain array were proven live when it was entered.
        if self.array_may_end(&s) || (self.arrays[s.array as usize].is_plain() && s.index > 0) {
            return Ok(true);
        }
        let s = self.without_plentiful(s);
        self.ask(LivenessQuery::Array(s), exprs)
    }

    /// The uncached form of [`RuleTable::array_can_complete`].
    pub(super) fn array_completes(&mut self, s: ArrayState, exprs: &mut Exprs) -> Result<bool> {
        if self.arrays[s.array as usize].is_plain() {
            let facts = Arc::clone(&self.arrays[s.array as usize].facts);
            let mut needed = facts.prefix.iter().take(usize::try_from(facts.min).unwrap_or(usize::MAX));
            let rest = (facts.min > facts.prefix.len() as u64).then_some(&facts.rest);
            let too_many = facts.max.is_some_and(|max| max < facts.min);
            let mut all_alive = !too_many;
            while let (true, Some(&schema)) = (all_alive, needed.next()) {
                all_alive = self.alive(schema, exprs)?;
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

    /// Whether too few positions, or too few distinct values, are left for the required items.
    fn too_few_left(&self, s: &ArrayState) -> bool {
        let array = &self.arrays[s.array as usize];
        let met = self.sets.get(s.met);
        let contains = array.facts.contains.iter().zip(met);
        let wanted = contains.map(|(c, &met)| c.min.saturating_sub(u64::from(met))).max().unwrap_or(0);
        let wanted = wanted.max(array.facts.min.saturating_sub(u64::from(s.index)));
        let places = array.facts.max.map_or(u64::MAX, |max| max.saturating_sub(u64::from(s.index)));
        let left = |unique: &UniqueItems| unique.left(s.index, self.sets.get(s.used).len());
        let values = array.unique.as_ref().filter(|unique| !unique.remembers()).map_or(u64::MAX, left);
        wanted > places.min(values)
    }
}
