//! Items that must differ. Where their values are few and known, those that came are remembered; where two places cannot
//! hold equal values, nothing need be. Anything else is not regular, and refused by name.

use std::sync::Arc;

use super::super::normal::{ArrayFacts, Facts, GoalId, ScalarId};
use super::super::schema::TypeSet;
use super::array::{ArrayState, Item};
use super::board::Board;
use crate::expr::{ExprId, Exprs};
use crate::{Error, ErrorKind, Result};

/// Places whose items are compared one by one at most.
const MOST_PLACES: usize = 256;

/// A single value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Single {
    Null,
    Bool(bool),
    /// A number or a string.
    Scalar(ScalarId),
}

/// How the items of an array are kept apart.
pub(super) struct Unique {
    /// For each of the first places whether its item is remembered; past them, the last entry.
    places: Vec<bool>,
    /// The values that are remembered.
    pub values: Vec<Single>,
}

impl Unique {
    /// Whether the item at `index` is remembered.
    pub(super) fn concerns(&self, index: u32) -> bool {
        self.places.get(index as usize).or(self.places.last()).copied().unwrap_or(false)
    }

    /// How many items may follow at `index` when `used` values came; `u64::MAX` if that is not plain to see.
    pub(super) fn left(&self, index: u32, used: usize) -> u64 {
        let later = self.places.iter().skip((index as usize).min(self.places.len() - 1));
        if later.into_iter().all(|&concerned| concerned) {
            (self.values.len() - used.min(self.values.len())) as u64
        } else {
            u64::MAX
        }
    }
}

impl Board {
    /// How the items of the array are kept apart; `None` if they differ anyway, or if that was dropped.
    pub(super) fn unique(&mut self, facts: &ArrayFacts, exprs: &mut Exprs) -> Result<Option<Unique>> {
        let most = usize::try_from(facts.max.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let prefix = facts.prefix.len().min(most);
        if prefix > MOST_PLACES {
            let message =
                format!("uniqueItems over more than {MOST_PLACES} items that are described one by one");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let mut goals = facts.prefix[..prefix].to_vec();
        goals.push(facts.rest);
        // How often each goal's place comes: the rest may come more than once.
        let rest_times = most - prefix;
        let mut places = vec![false; goals.len()];
        for i in 0..goals.len() {
            for j in i..goals.len() {
                let rest_alone = i == j && (i != prefix || rest_times < 2);
                if rest_alone || (j == prefix && rest_times == 0) {
                    continue;
                }
                let both = self.forms.all(&[goals[i], goals[j]])?;
                if self.alive(both, exprs)? {
                    (places[i], places[j]) = (true, true);
                }
            }
        }
        if !places.contains(&true) {
            return Ok(None);
        }
        let mut values = Vec::new();
        for (&goal, _) in goals.iter().zip(&places).filter(|(_, &concerned)| concerned) {
            match self.singles(goal, exprs)? {
                Some(singles) => values.extend(singles),
                None => {
                    let message =
                        "uniqueItems over items that are not of a few listed values: that a text does not \
                                   repeat what came before is not regular";
                    self.forms.refuse_somewhere(
                        |k| k.unique_items,
                        message,
                        "list the items' values by enum, or set maxItems to 1, or leave uniqueItems out",
                    )?;
                    return Ok(None);
                }
            }
        }
        values.sort_unstable();
        values.dedup();
        Ok(Some(Unique { places, values }))
    }

    /// The values that fulfil `goal`, if they are single and listed.
    fn singles(&mut self, goal: GoalId, exprs: &mut Exprs) -> Result<Option<Vec<Single>>> {
        let mut found = Vec::new();
        for facts in &*self.forms.normal(goal, exprs)? {
            if self.array_alive(facts, exprs)? || self.object_alive(facts, exprs)? {
                return Ok(None);
            }
            let Some(singles) = singles_of(facts) else { return Ok(None) };
            found.extend(singles);
        }
        Ok(Some(found))
    }

    /// The values with which `item` may come next, and their places in what is remembered.
    fn differing(&mut self, item: &Item, exprs: &mut Exprs) -> Result<Vec<(Single, u32)>> {
        let singles = self.singles(item.goal, exprs)?.unwrap_or_default();
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

    /// Whether some value is left for `item`, after which the array can be completed.
    pub(super) fn differing_alive(&mut self, item: &Item, exprs: &mut Exprs) -> Result<bool> {
        for (_, place) in self.differing(item, exprs)? {
            let next = self.with_used(item.next, place);
            if self.array_can_complete(next, exprs)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What follows an item of the value at `place`.
    pub(super) fn with_used(&mut self, next: ArrayState, place: u32) -> ArrayState {
        ArrayState { used: self.sets.with(next.used, place), ..next }
    }

    /// The values that are left for `item` as one lexeme, tagged with their places.
    pub(super) fn differing_lexeme(&mut self, item: &Item, exprs: &mut Exprs) -> Result<ExprId> {
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

fn singles_of(facts: &Facts) -> Option<Vec<Single>> {
    let mut found = Vec::new();
    if facts.types.has(TypeSet::NULL) {
        found.push(Single::Null);
    }
    for (bit, value) in [(1, false), (2, true)] {
        if facts.bools & bit != 0 {
            found.push(Single::Bool(value));
        }
    }
    if facts.any_of(TypeSet::NUMBER) {
        let only: &Arc<[ScalarId]> = facts.number.as_ref()?.only.as_ref()?;
        found.extend(only.iter().map(|&id| Single::Scalar(id)));
    }
    if facts.any_of(TypeSet::STRING) {
        let only: &Arc<[ScalarId]> = facts.string.as_ref()?.only.as_ref()?;
        found.extend(only.iter().map(|&id| Single::Scalar(id)));
    }
    Some(found)
}
