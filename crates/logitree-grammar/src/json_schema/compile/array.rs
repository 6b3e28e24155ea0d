//! Arrays as states: which item may come next, and whether the array can still be completed. Positions with the same
//! future share a state, so a list loops over one state.

use std::sync::Arc;

use super::super::normalize::{ArrayFacts, Contains, SchemaId, FALSE, TRUE};
use super::liveness::LivenessQuery;
use super::rule_table::RuleTable;
use super::unique::UniqueItems;
use crate::expr::Exprs;
use crate::{Error, ErrorKind, Result};

/// So many `contains` may each be met by an item together with any of the others.
pub(super) const FEW_CONTAINS: usize = 8;
/// Maximum number of `contains` of one array.
const MAX_CONTAINS: usize = 64;
/// Maximum number of sets of `contains` that items meet together.
const MAX_KINDS: usize = 1 << FEW_CONTAINS;

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
    /// The schema of an item that does not count for a `contains`; any value if that has no maximum. Of many, an item counts
    /// for all that it meets: it would have too many ways otherwise.
    misses: Vec<SchemaId>,
    /// The kinds of items by place where there are many `contains`; empty otherwise.
    kinds: Vec<Arc<[ItemKind]>>,
    /// How many `contains` an item may meet at once.
    together: u64,
    /// Positions from here on share one state.
    counted: u32,
    /// How items are kept apart, if they are.
    pub unique: Option<UniqueItems>,
}

/// Items that meet some of the `contains` of an array.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemKind {
    /// What they fulfil.
    pub schema: SchemaId,
    /// Those that they meet, one bit each.
    meets: u64,
    /// Those, and others that some of them may meet.
    beside: u64,
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
        self.facts.contains.is_empty() && self.unique.as_ref().is_none_or(UniqueItems::never_runs_out)
    }

    /// Whether one more item would be too many.
    pub(super) fn is_full(&self, s: &ArrayState) -> bool {
        self.facts.max.is_some_and(|max| u64::from(s.index) >= max)
    }
}

impl RuleTable {
    pub(super) fn new_array(&mut self, facts: &Arc<ArrayFacts>, exprs: &mut Exprs) -> Result<ArrayRule> {
        let (kinds, together) = self.kinds_of_many(facts, exprs)?;
        let mut misses = Vec::with_capacity(facts.contains.len());
        let mut counted = (facts.prefix.len() as u64).max(facts.min).max(facts.max.unwrap_or(0)).max(1);
        for contains in &facts.contains {
            counted = counted.max(contains.from);
            misses.push(match contains.max {
                None if facts.contains.len() <= FEW_CONTAINS => TRUE,
                _ => self.forms.opposite(contains.schema)?,
            });
        }
        let unique = if facts.unique { self.unique(facts, exprs)? } else { None };
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        Ok(ArrayRule { facts: Arc::clone(facts), misses, kinds, together, counted, unique })
    }

    /// The kinds of items by place where there are many `contains`, and how many of these an item may meet at once.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if items may meet them in too many ways.
    fn kinds_of_many(
        &mut self,
        facts: &ArrayFacts,
        exprs: &mut Exprs,
    ) -> Result<(Vec<Arc<[ItemKind]>>, u64)> {
        let count = facts.contains.len();
        if count <= FEW_CONTAINS {
            return Ok((Vec::new(), count as u64));
        }
        if count > MAX_CONTAINS {
            let message = format!("an array has {count} different contains, {MAX_CONTAINS} is the most");
            return Err(self.too_many_contains(facts.contains[MAX_CONTAINS].schema, message)?);
        }
        let mut kinds = Vec::with_capacity(facts.prefix.len() + 1);
        for &place in facts.prefix.iter().chain([&facts.rest]) {
            kinds.push(Arc::from(self.kinds(place, &facts.contains, exprs)?));
        }
        let all = kinds.iter().flat_map(|kinds: &Arc<[ItemKind]>| kinds.iter());
        let together = u64::from(all.map(|kind| kind.meets.count_ones()).max().unwrap_or(0));
        let bounded = facts.max.is_some() || facts.contains.iter().any(|contains| contains.max.is_some());
        if bounded && together > 1 {
            let message = format!(
                "items may meet several of {count} contains, with maxItems or maxContains: {FEW_CONTAINS} is the most then"
            );
            return Err(self.too_many_contains(facts.contains[FEW_CONTAINS].schema, message)?);
        }
        Ok((kinds, together))
    }

    /// `place` together with each set of the `contains`, at most 64, that an item may meet. Sets that evidently no item
    /// meets are left out.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if there are more than [`MAX_KINDS`].
    pub(super) fn kinds(
        &mut self,
        place: SchemaId,
        demands: &[Contains],
        exprs: &mut Exprs,
    ) -> Result<Vec<ItemKind>> {
        let mut kinds = vec![ItemKind { schema: place, meets: 0, beside: 0 }];
        for (bit, demand) in demands.iter().enumerate() {
            for at in 0..kinds.len() {
                let ItemKind { schema, meets, .. } = kinds[at];
                let both = self.forms.all(&[schema, demand.schema])?;
                if !self.forms.plainly_dead(both, exprs) {
                    kinds.push(ItemKind { schema: both, meets: meets | 1 << bit, beside: 0 });
                }
            }
            if kinds.len() > MAX_KINDS {
                let message =
                    format!("items may meet the contains of an array in more than {MAX_KINDS} combinations");
                return Err(self.too_many_contains(demand.schema, message)?);
            }
        }
        exprs.charge((kinds.len() * kinds.len() / 4) as u64)?;
        for at in 0..kinds.len() {
            let meets = kinds[at].meets;
            let having = kinds.iter().filter(|kind| kind.meets & meets == meets);
            kinds[at].beside = having.fold(0, |all, kind| all | kind.meets);
        }
        Ok(kinds)
    }

    fn too_many_contains(&mut self, schema: SchemaId, message: String) -> Result<Error> {
        let place = self.forms.place_of_contains(schema)?;
        let help = "ask for fewer, or give each a const of its own, so that no item meets two of them";
        Ok(Error::new(ErrorKind::Limit, message).at(place).help(help))
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
        for item in self.possible_items(s, exprs)? {
            if self.item_alive(s, &item, exprs)? {
                found.push(item);
            }
        }
        Ok(found)
    }

    /// Whether the item has a value after which the array can be completed.
    fn item_alive(&mut self, s: &ArrayState, item: &NextItem, exprs: &mut Exprs) -> Result<bool> {
        let unique = self.arrays[s.array as usize].unique.as_ref();
        match unique.filter(|unique| unique.concerns(s.index)).map(UniqueItems::remembers) {
            Some(true) => self.remembered_alive(item, exprs),
            Some(false) => self.differing_alive(item, exprs),
            None => Ok(self.alive(item.schema, exprs)? && self.array_can_complete(item.next, exprs)?),
        }
    }

    /// The choices for the next item that `contains` allows.
    fn possible_items(&mut self, s: &ArrayState, exprs: &mut Exprs) -> Result<Vec<NextItem>> {
        let array = &self.arrays[s.array as usize];
        let schema = array.facts.item(u64::from(s.index));
        if array.is_full(s) || schema == FALSE {
            return Ok(Vec::new());
        }
        let facts = Arc::clone(&array.facts);
        if facts.contains.len() > FEW_CONTAINS {
            return self.items_of_kinds(s, exprs);
        }
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
                    let both = self.forms.all(&[schema, contains.schema])?;
                    let mut met = met.clone();
                    met[at] += 1;
                    more.push((both, met));
                }
                more.push((self.forms.all(&[schema, misses[at]])?, met));
            }
            ways = more;
            ways.retain(|&(schema, _)| schema != FALSE);
        }
        let state = |table: &mut RuleTable, met: &[u32]| ArrayState { index, met: table.sets.id(met), ..*s };
        Ok(ways.into_iter().map(|(schema, met)| NextItem { schema, next: state(self, &met) }).collect())
    }

    /// The same where there are many: an item counts for all `contains` that it meets.
    fn items_of_kinds(&mut self, s: &ArrayState, exprs: &mut Exprs) -> Result<Vec<NextItem>> {
        let array = &self.arrays[s.array as usize];
        let (facts, misses) = (Arc::clone(&array.facts), array.misses.clone());
        let kinds = Arc::clone(&array.kinds[(s.index as usize).min(facts.prefix.len())]);
        let index = s.index.saturating_add(1).min(array.counted);
        let met = self.sets.get(s.met).to_vec();
        // Those whose number matters, and those that one more item may meet.
        let (mut counted, mut open) = (0u64, 0u64);
        for (at, (contains, &met)) in facts.contains.iter().zip(&met).enumerate() {
            let more = u64::from(met) < contains.max.unwrap_or(contains.min);
            if u64::from(s.index) >= contains.from && (more || contains.max.is_some()) {
                counted |= 1 << at;
                open |= u64::from(more) << at;
            }
        }
        let ones = |set: u64| (0..64).filter(move |at| set >> at & 1 == 1);
        let mut found = Vec::new();
        for kind in kinds.iter().filter(|kind| kind.meets & !open == 0) {
            let others = counted & kind.beside & !kind.meets;
            exprs.charge(8 + u64::from(others.count_ones()))?;
            let mut schemas = vec![kind.schema];
            schemas.extend(ones(others).map(|at: usize| misses[at]));
            let schema = self.forms.all(&schemas)?;
            if schema != FALSE {
                let mut met = met.clone();
                ones(kind.meets).for_each(|at| met[at] += 1);
                found.push(NextItem { schema, next: ArrayState { index, met: self.sets.id(&met), ..*s } });
            }
        }
        Ok(found)
    }

    /// Whether the array can be completed from here.
    pub(super) fn array_can_complete(&mut self, s: ArrayState, exprs: &mut Exprs) -> Result<bool> {
        // The required items of a plain array were proven live when it was entered.
        if self.array_may_end(&s) || (self.arrays[s.array as usize].is_plain() && s.index > 0) {
            return Ok(true);
        }
        if let Some(known) = self.enough_left(&s, 0) {
            return Ok(known);
        }
        if let Some(known) = self.contains_complete(&s, exprs)? {
            return Ok(known);
        }
        let s = self.with_exhaustible_only(s);
        self.ask(LivenessQuery::Array(s), exprs)
    }

    /// Whether the array can be completed, where there is room for an item of each `contains`: its items are all of one
    /// schema and there is no maximum.
    fn contains_complete(&mut self, s: &ArrayState, exprs: &mut Exprs) -> Result<Option<bool>> {
        let array = &self.arrays[s.array as usize];
        let facts = Arc::clone(&array.facts);
        let from = facts.contains.iter().map(|contains| contains.from).max();
        let first = from.unwrap_or(0).max(facts.prefix.len() as u64);
        let bounded = facts.max.is_some() || facts.contains.iter().any(|contains| contains.max.is_some());
        if facts.contains.is_empty() || array.unique.is_some() || bounded || u64::from(s.index) < first {
            return Ok(None);
        }
        let met = self.sets.get(s.met).to_vec();
        for (contains, met) in facts.contains.iter().zip(met) {
            if u64::from(met) < contains.min {
                let item = self.forms.all(&[facts.rest, contains.schema])?;
                if !self.alive(item, exprs)? {
                    return Ok(Some(false));
                }
            }
        }
        Ok(Some(u64::from(s.index) >= facts.min || self.alive(facts.rest, exprs)?))
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
        for item in self.possible_items(&s, exprs)? {
            if self.item_alive(&s, &item, exprs)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether too few positions, or too few distinct values, are left for the required items.
    fn too_few_left(&self, s: &ArrayState) -> bool {
        let array = &self.arrays[s.array as usize];
        let met = self.sets.get(s.met);
        let contains = array.facts.contains.iter().zip(met);
        let (mut wanted, mut all) = (0, 0u64);
        for left in contains.map(|(c, &met)| c.min.saturating_sub(u64::from(met))) {
            (wanted, all) = (left.max(wanted), all.saturating_add(left));
        }
        let wanted = wanted.max(all.div_ceil(array.together.max(1)));
        let wanted = wanted.max(array.facts.min.saturating_sub(u64::from(s.index)));
        let places = array.facts.max.map_or(u64::MAX, |max| max.saturating_sub(u64::from(s.index)));
        let left = |unique: &UniqueItems| unique.left(s.index, self.sets.get(s.used).len());
        let values = array.unique.as_ref().filter(|unique| !unique.remembers()).map_or(u64::MAX, left);
        wanted > places.min(values)
    }
}
