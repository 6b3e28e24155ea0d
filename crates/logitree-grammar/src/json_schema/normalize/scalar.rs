//! Decides whether a single number or string is valid under the facts of its type.

use super::super::decimal::Decimal;
use super::super::schema::{NumberBound, TypeSet};
use super::strings::Scalar;
use super::{NormalForms, NumberFacts, ScalarId, SchemaId, StringFacts, TRUE};
use crate::expr::{Encoding, Exprs};
use crate::Result;

impl NormalForms {
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
            && (facts.types == 0 || facts.types & self.number_type(id).0 != 0)
            && facts.choices.iter().all(|ways| ways.iter().any(|way| self.number_holds(way, id)))
    }

    /// Whether, while dead parts are looked for, several languages are found to share no string.
    pub(super) fn plainly_no_string(&mut self, facts: &StringFacts, exprs: &mut Exprs) -> Result<bool> {
        if self.probing == 0 || facts.languages.len() < 2 {
            return Ok(false);
        }
        let mut all = Vec::with_capacity(facts.languages.len());
        for &(regex, wanted) in &facts.languages {
            let expr = exprs.compile(self.regex(regex), Encoding::Utf8)?;
            all.push(if wanted { expr } else { exprs.not(expr)? });
        }
        let both = exprs.and(&all)?;
        Ok(!exprs.is_alive(both)?)
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
        for ways in &facts.choices {
            let mut any = false;
            for way in ways.iter() {
                any = any || self.string_holds(way, id, exprs)?;
            }
            if !any {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the string `id` fulfils `schema`.
    pub(crate) fn string_fulfils(
        &mut self,
        schema: SchemaId,
        id: ScalarId,
        exprs: &mut Exprs,
    ) -> Result<bool> {
        if schema == TRUE {
            return Ok(true);
        }
        for facts in &*self.normal(schema, exprs)? {
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

fn above(number: &Decimal, min: &NumberBound) -> bool {
    Decimal::read(&min.value).is_none_or(|min_value| match number.cmp(&min_value) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => !min.exclusive,
        std::cmp::Ordering::Greater => true,
    })
}

fn below(number: &Decimal, max: &NumberBound) -> bool {
    Decimal::read(&max.value).is_none_or(|max_value| match number.cmp(&max_value) {
        std::cmp::Ordering::Greater => false,
        std::cmp::Ordering::Equal => !max.exclusive,
        std::cmp::Ordering::Less => true,
    })
}
