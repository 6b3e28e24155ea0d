//! `uniqueItems`. Where two positions cannot hold equal values, nothing is tracked. Where items have few known values, the
//! used ones are part of the state; otherwise the items are read and remembered (`remembered.rs`).

use std::sync::Arc;

use super::super::normalize::{ArrayFacts, Facts, Scalar, ScalarId, SchemaId};
use super::super::schema::TypeSet;
use super::array::{ArrayState, NextItem};
use super::rule_table::RuleTable;
use super::value_count::Count;
use super::values::{JsonValue, ValueId};
use crate::expr::{ExprId, Exprs};
use crate::{Error, ErrorKind, Result};

/// Maximum number of positions that are compared pairwise.
const MAX_PLACES: usize = 256;

/// A single value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum SingleValue {
    Null,
    Bool(bool),
    /// A number or a string.
    Scalar(ScalarId),
}

/// Which items of an array are tracked so that none repeats.
pub(super) struct UniqueItems {
    /// For each of the first positions whether its item is tracked; the last entry is for all further ones.
    places: Vec<bool>,
    /// All values of tracked items, if they are single and listed. [`ArrayState::used`] is then an interned list of their
    /// indices, and otherwise a set of remembered values.
    listed: Option<Vec<SingleValue>>,
    /// The listed values; otherwise those that some items have few of, so that these may run out.
    exhaustible: Vec<ValueId>,
}

impl UniqueItems {
    /// Whether the item at `index` is tracked.
    pub(super) fn concerns(&self, index: u32) -> bool {
        self.places.get(index as usize).or(self.places.last()).copied().unwrap_or(false)
    }

    /// Whether items are read and remembered.
    pub(super) fn remembers(&self) -> bool {
        self.listed.is_none()
    }

    /// Whether there are always values left for the items that must still come.
    pub(super) fn never_runs_out(&self) -> bool {
        self.remembers() && self.exhaustible.is_empty()
    }

    /// How many items may follow at `index` after `used` values; `u64::MAX` if that is not known.
    pub(super) fn left(&self, index: u32, used: usize) -> u64 {
        let Some(values) = &self.listed else { return u64::MAX };
        let later = self.places.iter().skip((index as usize).min(self.places.len() - 1));
        if later.into_iter().all(|&concerned| concerned) {
            (values.len() - used.min(values.len())) as u64
        } else {
            u64::MAX
        }
    }
}

impl RuleTable {
    /// How repeated items are tracked; `None` if items differ anyway, or if lenient loading dropped the keyword.
    pub(super) fn unique(&mut self, facts: &ArrayFacts, exprs: &mut Exprs) -> Result<Option<UniqueItems>> {
        // Whether there is such an array counts as an open query meanwhile: an item may be one.
        let waiting = std::mem::replace(&mut self.oldest_dependency, u32::MAX);
        self.building.push((facts.clone(), self.depth));
        self.depth += 1;
        let found = self.find_unique(facts, exprs);
        self.depth -= 1;
        self.building.pop();
        let oldest_dependency =
            if self.oldest_dependency < self.depth { self.oldest_dependency } else { u32::MAX };
        self.oldest_dependency = waiting.min(oldest_dependency);
        found
    }

    fn find_unique(&mut self, facts: &ArrayFacts, exprs: &mut Exprs) -> Result<Option<UniqueItems>> {
        let most = usize::try_from(facts.max.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let prefix = facts.prefix.len().min(most);
        if prefix > MAX_PLACES {
            let message =
                format!("uniqueItems over more than {MAX_PLACES} items that are described one by one");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let mut schemas = facts.prefix[..prefix].to_vec();
        schemas.push(facts.rest);
        // How often the schema of further items applies.
        let rest_times = most - prefix;
        let mut places = vec![false; schemas.len()];
        for i in 0..schemas.len() {
            for j in i..schemas.len() {
                let rest_alone = i == j && (i != prefix || rest_times < 2);
                if rest_alone || (j == prefix && rest_times == 0) {
                    continue;
                }
                let both = self.forms.all(&[schemas[i], schemas[j]])?;
                // Where the answer depends on an open query, equal items are possible.
                if self.alive(both, exprs)? || self.oldest_dependency != u32::MAX {
                    (places[i], places[j]) = (true, true);
                }
            }
        }
        if !places.contains(&true) {
            return Ok(None);
        }
        let mut values = Some(Vec::new());
        for (&schema, _) in schemas.iter().zip(&places).filter(|(_, &concerned)| concerned) {
            let singles = self.singles(schema, exprs)?.filter(|_| self.oldest_dependency == u32::MAX);
            values = values.zip(singles).map(|(values, singles)| [values, singles].concat());
        }
        let Some(mut values) = values else {
            let Some(exhaustible) = self.find_exhaustible(facts, &schemas, &places, exprs)? else {
                return Ok(None);
            };
            return Ok(Some(UniqueItems { places, listed: None, exhaustible }));
        };
        values.sort_unstable();
        values.dedup();
        let exhaustible = values.iter().map(|&one| self.value_of_single(one)).collect::<Result<_>>()?;
        Ok(Some(UniqueItems { places, listed: Some(values), exhaustible }))
    }

    /// The values that some items have few of, where items that must come could run out of them; `None` if that cannot be
    /// decided and the keyword is dropped.
    fn find_exhaustible(
        &mut self,
        facts: &ArrayFacts,
        schemas: &[SchemaId],
        places: &[bool],
        exprs: &mut Exprs,
    ) -> Result<Option<Vec<ValueId>>> {
        let mut exhaustible = Vec::new();
        // With so many values for an item, one is left whatever the others are.
        let enough = if facts.contains.is_empty() { facts.min } else { u64::MAX };
        if enough < 2 {
            return Ok(Some(exhaustible));
        }
        for (place, &schema) in schemas.iter().enumerate().filter(|&(place, _)| places[place]) {
            if place as u64 >= enough {
                continue;
            }
            for kind in self.kinds(schema, &facts.contains, exprs)? {
                let kind = kind.schema;
                let waiting = std::mem::replace(&mut self.oldest_dependency, u32::MAX);
                let count =
                    self.count_values(kind, usize::try_from(enough).unwrap_or(usize::MAX), 0, exprs)?;
                let depends = self.oldest_dependency != u32::MAX;
                self.oldest_dependency = self.oldest_dependency.min(waiting);
                match count {
                    Count::Many => {}
                    Count::Few(values) if !depends => exhaustible.extend(values),
                    _ => {
                        let message =
                            "uniqueItems over arrays or objects that may be too few: whether enough \
                                       different items are left is not decided";
                        let help = "leave out minItems and contains, or uniqueItems";
                        let node = self.forms.unique_items_of(schema)?;
                        self.forms.refuse(node, message.into(), help)?;
                        return Ok(None);
                    }
                }
            }
        }
        exhaustible.sort_unstable();
        exhaustible.dedup();
        Ok(Some(exhaustible))
    }

    fn value_of_single(&mut self, single: SingleValue) -> Result<ValueId> {
        let value = match single {
            SingleValue::Null => JsonValue::Null,
            SingleValue::Bool(value) => JsonValue::Bool(value),
            SingleValue::Scalar(id) => match self.forms.texts.get(id) {
                Scalar::Text(text) => JsonValue::Text(Arc::clone(text)),
                Scalar::Number(number) => JsonValue::Number(number.clone()),
            },
        };
        self.memory.values.id(value)
    }

    /// The values of an array that must not come again, sorted if they are remembered.
    pub(super) fn used_values(&self, s: &ArrayState) -> Vec<ValueId> {
        match &self.arrays[s.array as usize].unique {
            None => Vec::new(),
            Some(unique) if unique.remembers() => self.memory.sets.values(s.used),
            Some(unique) => {
                self.sets.get(s.used).iter().map(|&place| unique.exhaustible[place as usize]).collect()
            }
        }
    }

    /// The place of `value` among the listed values.
    pub(super) fn index_of(&self, array: u32, value: ValueId) -> Option<u32> {
        let unique = self.arrays[array as usize].unique.as_ref()?;
        unique.exhaustible.iter().position(|&other| other == value).map(|place| place as u32)
    }

    /// The values that may run out.
    pub(super) fn exhaustible_values(&self, array: u32) -> Vec<ValueId> {
        self.arrays[array as usize].unique.as_ref().map_or(Vec::new(), |unique| unique.exhaustible.clone())
    }

    /// The state for questions of what can be completed: with the used values only that matter for them.
    pub(super) fn with_exhaustible_only(&mut self, s: ArrayState) -> ArrayState {
        let unique = self.arrays[s.array as usize].unique.as_ref().filter(|unique| unique.remembers());
        let Some(unique) = unique.filter(|_| s.used != 0) else { return s };
        let is_exhaustible = |value: &ValueId| unique.exhaustible.binary_search(value).is_ok();
        let used: Vec<ValueId> = self.memory.sets.values(s.used).into_iter().filter(is_exhaustible).collect();
        let used = used.into_iter().fold(0, |set, value| self.memory.sets.with(set, value));
        ArrayState { used, ..s }
    }

    /// The values that fulfil `schema`, if they are single and listed.
    fn singles(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<Option<Vec<SingleValue>>> {
        let mut found = Vec::new();
        for facts in &*self.forms.normal(schema, exprs)? {
            if self.array_alive(facts, exprs)? || self.object_alive(facts, exprs)? {
                return Ok(None);
            }
            let Some(singles) = singles_of(facts) else { return Ok(None) };
            found.extend(singles);
        }
        Ok(Some(found))
    }

    /// The values that `item` may still have, and their indices among the tracked values.
    fn differing(&mut self, item: &NextItem, exprs: &mut Exprs) -> Result<Vec<(SingleValue, u32)>> {
        let singles = self.singles(item.schema, exprs)?.unwrap_or_default();
        let used = self.sets.get(item.next.used).to_vec();
        let unique = self.arrays[item.next.array as usize].unique.as_ref();
        let values = unique.and_then(|unique| unique.listed.as_deref()).unwrap_or_default();
        let places =
            singles.into_iter().filter_map(|one| Some((one, values.binary_search(&one).ok()? as u32)));
        let mut left: Vec<_> = places.filter(|(_, place)| used.binary_search(place).is_err()).collect();
        left.sort_unstable();
        left.dedup();
        exprs.charge_list(left.len())?;
        Ok(left)
    }

    /// Whether an array of unique items can be completed after `more` items that are not used yet, where only their number
    /// matters: all items are of one schema, and all of its values are known.
    pub(super) fn enough_left(&self, s: &ArrayState, more: usize) -> Option<bool> {
        let array = &self.arrays[s.array as usize];
        let unique = array.unique.as_ref().filter(|unique| !unique.never_runs_out())?;
        let facts = &array.facts;
        if !facts.contains.is_empty() || !facts.prefix.is_empty() {
            return None;
        }
        let used =
            if unique.remembers() { self.memory.sets.len(s.used) } else { self.sets.get(s.used).len() };
        let places = facts.max.map_or(u64::MAX, |max| max.saturating_sub(u64::from(s.index)));
        let values = unique.exhaustible.len().saturating_sub(used + more) as u64;
        Some(facts.min.saturating_sub(u64::from(s.index)) <= places.min(values))
    }

    /// Whether the array can be completed after the tracked value at `place`.
    fn completes_after(&mut self, next: ArrayState, place: u32, exprs: &mut Exprs) -> Result<bool> {
        if let Some(known) = self.enough_left(&next, 1) {
            return Ok(known);
        }
        let next = self.with_used(next, place);
        self.array_can_complete(next, exprs)
    }

    /// Whether `item` has an unused value after which the array can be completed.
    pub(super) fn differing_alive(&mut self, item: &NextItem, exprs: &mut Exprs) -> Result<bool> {
        for (_, place) in self.differing(item, exprs)? {
            if self.completes_after(item.next, place, exprs)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The state after an item with the value at `place`.
    pub(super) fn with_used(&mut self, next: ArrayState, place: u32) -> ArrayState {
        ArrayState { used: self.sets.with(next.used, place), ..next }
    }

    /// The unused values of `item` as one lexeme, tagged with their indices.
    pub(super) fn differing_lexeme(&mut self, item: &NextItem, exprs: &mut Exprs) -> Result<ExprId> {
        let mut all = Vec::new();
        for (single, place) in self.differing(item, exprs)? {
            if !self.completes_after(item.next, place, exprs)? {
                continue;
            }
            let text = self.lexemes.single(&self.forms, single, exprs)?;
            let tag = exprs.tag(place)?;
            all.push(exprs.concat(&[text, tag])?);
        }
        exprs.or(&all)
    }
}

fn singles_of(facts: &Facts) -> Option<Vec<SingleValue>> {
    let mut found = Vec::new();
    if facts.types.has(TypeSet::NULL) {
        found.push(SingleValue::Null);
    }
    for (bit, value) in [(1, false), (2, true)] {
        if facts.bools & bit != 0 {
            found.push(SingleValue::Bool(value));
        }
    }
    if facts.any_of(TypeSet::NUMBER) {
        let only: &Arc<[ScalarId]> = facts.number.as_ref()?.only.as_ref()?;
        found.extend(only.iter().map(|&id| SingleValue::Scalar(id)));
    }
    if facts.any_of(TypeSet::STRING) {
        let only: &Arc<[ScalarId]> = facts.string.as_ref()?.only.as_ref()?;
        found.extend(only.iter().map(|&id| SingleValue::Scalar(id)));
    }
    Some(found)
}
