//! Two alternatives at once: the conjunction of facts, type by type. It refuses to look into the parts of arrays and
//! objects further than a few levels.

use std::sync::Arc;

use super::super::decimal::Decimal;
use super::super::schema::{Bound, TypeSet};
use super::{Facts, Forms, NumberFacts, ScalarId, StringFacts};
use crate::expr::Exprs;
use crate::Result;

impl Forms {
    /// What fulfils both; without types if nothing does.
    pub(super) fn meet(&mut self, a: &Facts, b: &Facts, exprs: &mut Exprs) -> Result<Facts> {
        let mut both = Facts::of(TypeSet(a.types.0 & b.types.0));
        both.bools = a.bools & b.bools;
        let mut gone = if both.bools == 0 { TypeSet::BOOLEAN.0 } else { 0 };
        if both.any_of(TypeSet::NUMBER) {
            gone |= self.meet_numbers(a, b, &mut both);
        }
        if both.any_of(TypeSet::STRING) {
            both.string = match (&a.string, &b.string) {
                (None, one) | (one, None) => one.clone(),
                (Some(a), Some(b)) if a == b => Some(Arc::clone(a)),
                (Some(a), Some(b)) => self.meet_strings(a, b, exprs)?.map(Arc::new),
            };
            let dead = both.string.is_none() && (a.string.is_some() || b.string.is_some());
            gone |= if dead { TypeSet::STRING.0 } else { 0 };
        }
        if both.any_of(TypeSet::ARRAY) {
            both.array = match (&a.array, &b.array) {
                (None, one) | (one, None) => one.clone(),
                (Some(a), Some(b)) => Some(Arc::new(self.meet_arrays(a, b)?)),
            };
            let dead = both.array.as_ref().is_some_and(|array| array.max.is_some_and(|max| max < array.min));
            gone |= if dead { TypeSet::ARRAY.0 } else { 0 };
        }
        if both.any_of(TypeSet::OBJECT) {
            both.object = match (&a.object, &b.object) {
                (None, one) | (one, None) => one.clone(),
                (Some(a), Some(b)) => Some(Arc::new(self.meet_objects(a, b)?)),
            };
            let dead = both
                .object
                .as_ref()
                .is_some_and(|o| o.max.is_some_and(|max| max < o.min.max(o.required.len() as u64)));
            gone |= if dead { TypeSet::OBJECT.0 } else { 0 };
        }
        both.evaluated = match (&a.evaluated, &b.evaluated) {
            (None, one) | (one, None) => one.clone(),
            (Some(a), Some(b)) => Some(Arc::new(a.join(b))),
        };
        both.drop_types(TypeSet(gone));
        Ok(both)
    }

    /// Sets the numbers of `both`, and says which types are gone.
    fn meet_numbers(&mut self, a: &Facts, b: &Facts, both: &mut Facts) -> u8 {
        let types = TypeSet(both.types.0 & TypeSet::NUMBER.0);
        let met = match (&a.number, &b.number) {
            (None, None) => None,
            (None, Some(one)) | (Some(one), None) if one.only.is_none() => Some(Arc::clone(one)),
            (Some(a), Some(b)) if a == b && a.only.is_none() => Some(Arc::clone(a)),
            (a, b) => {
                let (a, b) = (a.as_deref().cloned(), b.as_deref().cloned());
                let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
                Some(Arc::new(self.joined_numbers(&a, &b, types)))
            }
        };
        both.number = met;
        let Some(number) = &both.number else { return 0 };
        let left = match &number.only {
            Some(only) => only.iter().fold(0, |left, &id| left | self.number_type(id).0),
            None if empty_range(number) => 0,
            None => types.0,
        };
        types.0 & !left
    }

    fn joined_numbers(&mut self, a: &NumberFacts, b: &NumberFacts, types: TypeSet) -> NumberFacts {
        let digits_only = a.digits_only || b.digits_only;
        let listed = match (&a.only, &b.only) {
            (Some(only), _) => Some((only, b)),
            (None, Some(only)) => Some((only, a)),
            (None, None) => None,
        };
        if let Some((only, other)) = listed {
            let kept: Vec<ScalarId> = only
                .iter()
                .copied()
                .filter(|&id| types.has(self.number_type(id)) && self.number_holds(other, id))
                .collect();
            return NumberFacts { only: Some(kept.into()), digits_only, ..NumberFacts::default() };
        }
        NumberFacts {
            only: None,
            digits_only,
            min: tighter(a.min.as_ref(), b.min.as_ref(), false),
            max: tighter(a.max.as_ref(), b.max.as_ref(), true),
            multiples: merged(&a.multiples, &b.multiples),
            not_multiples: merged(&a.not_multiples, &b.not_multiples),
            not: merged(&a.not, &b.not),
            choices: both_choices(&a.choices, &b.choices),
            types: 0,
        }
    }

    /// Strings that fulfil both; `None` if there are plainly none.
    fn meet_strings(
        &mut self,
        a: &StringFacts,
        b: &StringFacts,
        exprs: &mut Exprs,
    ) -> Result<Option<StringFacts>> {
        let (only, other) = match (&a.only, &b.only) {
            (Some(only), _) => (only, b),
            (None, Some(only)) => (only, a),
            (None, None) => {
                let max = match (a.max, b.max) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (one, other) => one.or(other),
                };
                let languages = merged(&a.languages, &b.languages);
                let (min, not) = (a.min.max(b.min), merged(&a.not, &b.not));
                let dead = max.is_some_and(|max| max < min);
                let choices = both_choices(&a.choices, &b.choices);
                let met = StringFacts { only: None, languages, min, max, not, choices };
                return Ok((!dead && !self.plainly_no_string(&met, exprs)?).then_some(met));
            }
        };
        let mut kept = Vec::with_capacity(only.len());
        for &id in only.iter() {
            if self.string_holds(other, id, exprs)? {
                kept.push(id);
            }
        }
        Ok((!kept.is_empty()).then(|| StringFacts { only: Some(kept.into()), ..StringFacts::default() }))
    }
}

/// The lists of choices of both.
fn both_choices<T: PartialEq + Clone>(a: &[T], b: &[T]) -> Vec<T> {
    let mut all = a.to_vec();
    all.extend(b.iter().filter(|choice| !a.contains(choice)).cloned());
    all
}

/// Both sorted lists as one.
pub(super) fn merged<T: Ord + Clone>(a: &[T], b: &[T]) -> Vec<T> {
    if a.is_empty() {
        return b.to_vec();
    }
    let mut all = a.to_vec();
    if !b.is_empty() {
        all.extend_from_slice(b);
        all.sort_unstable();
        all.dedup();
    }
    all
}

/// The bound that leaves less: the smaller of two greatest, the greater of two least ones.
pub(super) fn tighter(a: Option<&Bound>, b: Option<&Bound>, greatest: bool) -> Option<Bound> {
    let (Some(x), Some(y)) = (a, b) else { return a.or(b).cloned() };
    let (Some(p), Some(q)) = (Decimal::read(&x.value), Decimal::read(&y.value)) else {
        return Some(x.clone());
    };
    let order = if greatest { p.cmp(&q) } else { q.cmp(&p) };
    Some(match order {
        std::cmp::Ordering::Less => x.clone(),
        std::cmp::Ordering::Greater => y.clone(),
        std::cmp::Ordering::Equal if x.exclusive => x.clone(),
        std::cmp::Ordering::Equal => y.clone(),
    })
}

/// Whether the bounds leave nothing between them.
fn empty_range(number: &NumberFacts) -> bool {
    let (Some(min), Some(max)) = (&number.min, &number.max) else { return false };
    let (Some(low), Some(high)) = (Decimal::read(&min.value), Decimal::read(&max.value)) else {
        return false;
    };
    low > high || (low == high && (min.exclusive || max.exclusive))
}
