//! Whether single values fulfil facts. It refuses to know how they are written.

use super::super::decimal::Decimal;
use super::super::schema::{Bound, TypeSet};
use super::texts::Scalar;
use super::{Forms, GoalId, NumberFacts, ScalarId, StringFacts, TRUE};
use crate::grammar::expr::Exprs;
use crate::Result;

impl Forms {
    /// Whether the number `id` fulfils `facts`.
    pub(super) fn number_holds(&self, facts: &NumberFacts, id: ScalarId) -> bool {
        let Scalar::Number(number) = self.texts.get(id) else { return false };
        let multiple = |of: &String| Decimal::read(of).is_none_or(|of| number.is_multiple(&of));
        facts.only.as_ref().is_none_or(|only| only.contains(&id))
            && facts.min.as_ref().is_none_or(|min| above(number, min))
            && facts.max.as_ref().is_none_or(|max| below(number, max))
            && facts.multiples.iter().all(multiple)
            && !facts.not_multiples.iter().any(multiple)
            && !facts.not.contains(&id)
    }

    /// Whether the string `id` fulfils `facts`.
    pub(super) fn string_holds(
        &mut self,
        facts: &StringFacts,
        id: ScalarId,
        exprs: &mut Exprs,
    ) -> Result<bool> {
        if facts.only.as_ref().is_some_and(|only| only.binary_search(&id).is_err())
            || facts.not.binary_search(&id).is_ok()
        {
            return Ok(false);
        }
        if facts.min > 0 || facts.max.is_some() {
            let len = self.texts.text(id).chars().count() as u64;
            if len < facts.min || facts.max.is_some_and(|max| len > max) {
                return Ok(false);
            }
        }
        for &(regex, wanted) in &facts.languages {
            if self.key_matches(regex, id, exprs)? != wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the string `id` fulfils `goal`.
    pub(crate) fn string_fulfils(&mut self, goal: GoalId, id: ScalarId, exprs: &mut Exprs) -> Result<bool> {
        if goal == TRUE {
            return Ok(true);
        }
        for facts in &*self.normal(goal, exprs)? {
            if facts.types.has(TypeSet::STRING) {
                let fulfils = match &facts.string {
                    Some(string) => self.string_holds(string, id, exprs)?,
                    None => true,
                };
                if fulfils {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

fn above(number: &Decimal, min: &Bound) -> bool {
    Decimal::read(&min.value).is_none_or(|min_value| match number.cmp(&min_value) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => !min.exclusive,
        std::cmp::Ordering::Greater => true,
    })
}

fn below(number: &Decimal, max: &Bound) -> bool {
    Decimal::read(&max.value).is_none_or(|max_value| match number.cmp(&max_value) {
        std::cmp::Ordering::Greater => false,
        std::cmp::Ordering::Equal => !max.exclusive,
        std::cmp::Ordering::Less => true,
    })
}
