//! `uniqueItems`. Where items have few known values, the used ones are part of the state; where two positions cannot hold
//! equal values, nothing is tracked. Everything else is not regular and is refused by name.

use std::sync::Arc;

use super::super::normalize::{ArrayFacts, Facts, ScalarId, SchemaId};
use super::super::schema::TypeSet;
use super::array::{ArrayState, NextItem};
use super::rule_table::RuleTable;
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
    /// The values that are tracked.
    pub values: Vec<SingleValue>,
}

impl UniqueItems {
    /// Whether the item at `index` is tracked.
    pub(super) fn concerns(&self, index: u32) -> bool {
        self.places.get(index as usize).or(self.places.last()).copied().unwrap_or(false)
    }

    /// How many items may follow at `index` after `used` values; `u64::MAX` if that is not known.
    pub(super) fn left(&self, index: u32, used: usize) -> u64 {
        let later = self.places.iter().skip((index as usize).min(self.places.len() - 1));
        if later.into_iter().all(|&concerned| concerned) {
            (self.values.len() - used.min(self.values.len())) as u64
        } else {
            u64::MAX
        }
    }
}

impl RuleTable {
    /// How repeated items are tracked; `None` if items differ anyway, or if lenient loading dropped the keyword.
    pub(super) fn unique(&mut self, facts: &ArrayFacts, exprs: &mut Exprs) -> Result<Option<UniqueItems>> {
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
                if self.alive(both, exprs)? {
                    (places[i], places[j]) = (true, true);
                }
            }
        }
        if !places.contains(&true) {
            return Ok(None);
        }
        let mut values = Vec::new();
        for (&schema, _) in schemas.iter().zip(&places).filter(|(_, &concerned)| concerned) {
            match self.singles(schema, exprs)? {
                Some(singles) => values.extend(singles),
                None => {
                    let message =
                        "uniqueItems over items that are not of a few listed values: that a text does not \
                                   repeat what came before is not regular";
                    let help =
                        "list the items' values by enum, or set maxItems to 1, or leave uniqueItems out";
                    let node = self.forms.unique_items_of(schema)?;
                    self.forms.refuse(node, message.into(), help)?;
                    return Ok(None);
                }
            }
        }
        values.sort_unstable();
        values.dedup();
        Ok(Some(UniqueItems { places, values }))
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
        let values = unique.map_or(&[][..], |unique| &unique.values);
        let places =
            singles.into_iter().filter_map(|one| Some((one, values.binary_search(&one).ok()? as u32)));
        let mut left: Vec<_> = places.filter(|(_, place)| used.binary_search(place).is_err()).collect();
        left.sort_unstable();
        left.dedup();
        Ok(left)
    }

    /// Whether `item` has an unused value after which the array can be completed.
    pub(super) fn differing_alive(&mut self, item: &NextItem, exprs: &mut Exprs) -> Result<bool> {
        for (_, place) in self.differing(item, exprs)? {
            let next = self.with_used(item.next, place);
            if self.array_can_complete(next, exprs)? {
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
            let next = self.with_used(item.next, place);
            if !self.array_can_complete(next, exprs)? {
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
