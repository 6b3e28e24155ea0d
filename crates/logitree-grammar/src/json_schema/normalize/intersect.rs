//! Intersects two alternatives, type by type.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::decimal::Decimal;
use super::super::schema::{NumberBound, TypeSet};
use super::{
    ArrayFacts, Facts, LanguageId, NormalForms, NumberFacts, ObjectFacts, PropertyRules, PropertyRulesId,
    ScalarId, SchemaId, StringFacts, FALSE, TRUE,
};
use crate::expr::{Encoding, Exprs};
use crate::Result;

impl NormalForms {
    /// What fulfils both; without types if nothing does.
    pub(super) fn intersect(&mut self, a: &Facts, b: &Facts, exprs: &mut Exprs) -> Result<Facts> {
        let mut both = Facts::of(TypeSet(a.types.0 & b.types.0));
        both.bools = a.bools & b.bools;
        let mut gone = if both.bools == 0 { TypeSet::BOOLEAN.0 } else { 0 };
        if both.any_of(TypeSet::NUMBER) {
            gone |= self.intersect_numbers(a, b, &mut both);
        }
        if both.any_of(TypeSet::STRING) {
            both.string = match (&a.string, &b.string) {
                (None, one) | (one, None) => one.clone(),
                (Some(a), Some(b)) if a == b => Some(Arc::clone(a)),
                (Some(a), Some(b)) => self.intersect_strings(a, b, exprs)?.map(Arc::new),
            };
            let dead = both.string.is_none() && (a.string.is_some() || b.string.is_some());
            gone |= if dead { TypeSet::STRING.0 } else { 0 };
        }
        if both.any_of(TypeSet::ARRAY) {
            both.array = match (&a.array, &b.array) {
                (None, one) | (one, None) => one.clone(),
                (Some(a), Some(b)) => Some(Arc::new(self.intersect_arrays(a, b)?)),
            };
            let dead = both.array.as_ref().is_some_and(|array| array.max.is_some_and(|max| max < array.min));
            gone |= if dead { TypeSet::ARRAY.0 } else { 0 };
        }
        if both.any_of(TypeSet::OBJECT) {
            both.object = match (&a.object, &b.object) {
                (None, one) | (one, None) => one.clone(),
                (Some(a), Some(b)) => Some(Arc::new(self.intersect_objects(a, b)?)),
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

    /// Sets the numbers of `both` and returns the types that no longer have values.
    fn intersect_numbers(&mut self, a: &Facts, b: &Facts, both: &mut Facts) -> u8 {
        let types = TypeSet(both.types.0 & TypeSet::NUMBER.0);
        let met = match (&a.number, &b.number) {
            (None, None) => None,
            (None, Some(one)) | (Some(one), None) if one.only.is_none() => Some(Arc::clone(one)),
            (Some(a), Some(b)) if a == b && a.only.is_none() => Some(Arc::clone(a)),
            (a, b) => {
                let (a, b) = (a.as_deref().cloned(), b.as_deref().cloned());
                let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
                Some(Arc::new(self.conjoin_numbers(&a, &b, types)))
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

    fn conjoin_numbers(&mut self, a: &NumberFacts, b: &NumberFacts, types: TypeSet) -> NumberFacts {
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

    /// Strings that fulfil both; `None` if there are evidently no such strings.
    fn intersect_strings(
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

impl NormalForms {
    /// What fulfils both.
    pub(super) fn intersect_arrays(&mut self, a: &ArrayFacts, b: &ArrayFacts) -> Result<ArrayFacts> {
        let places = a.prefix.len().max(b.prefix.len()) as u64;
        let prefix = (0..places).map(|at| self.all(&[a.item(at), b.item(at)])).collect::<Result<_>>()?;
        let max = match (a.max, b.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        Ok(ArrayFacts {
            prefix,
            rest: self.all(&[a.rest, b.rest])?,
            min: a.min.max(b.min),
            max,
            contains: merged(&a.contains, &b.contains),
            unique: a.unique || b.unique,
        })
    }
}

impl NormalForms {
    /// What fulfils both.
    pub(super) fn intersect_objects(&mut self, a: &ObjectFacts, b: &ObjectFacts) -> Result<ObjectFacts> {
        let mut parts = a.parts.clone();
        parts.extend(b.parts.iter().filter(|part| !a.parts.contains(part)));
        let mut keys = a.keys.clone();
        for &(key, schema) in &b.keys {
            match keys.binary_search_by_key(&key, |&(key, _)| key) {
                Ok(at) => keys[at].1 = self.all(&[keys[at].1, schema])?,
                Err(at) => keys.insert(at, (key, schema)),
            }
        }
        let max = match (a.max, b.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        Ok(ObjectFacts {
            parts,
            keys,
            names: self.all(&[a.names, b.names])?,
            required: merged(&a.required, &b.required),
            min: a.min.max(b.min),
            max,
            dependent: merged(&a.dependent, &b.dependent),
            exists: merged(&a.exists, &b.exists),
        })
    }

    /// Drops the type object from the facts that two alternatives made together, if a required key evidently has no valid
    /// value.
    pub(super) fn drop_hopeless(
        &mut self,
        facts: &mut Facts,
        (a, b): (&Facts, &Facts),
        exprs: &mut Exprs,
    ) -> Result<()> {
        let (Some(_), Some(_), Some(object)) = (&a.object, &b.object, facts.object.clone()) else {
            return Ok(());
        };
        for &key in &object.required {
            let schema = self.key_schema(&object, key, exprs)?;
            if schema == FALSE || self.plainly_dead(schema, exprs) {
                facts.drop_types(TypeSet::OBJECT);
                return Ok(());
            }
        }
        if !object.keys.is_empty() {
            let mut simpler = ObjectFacts::clone(&object);
            self.drop_implied_keys(&mut simpler, exprs)?;
            if simpler.keys.len() < object.keys.len() {
                facts.object = Some(Arc::new(simpler));
            }
        }
        Ok(())
    }

    /// What the value of `key` must fulfil.
    pub(crate) fn key_schema(
        &mut self,
        object: &ObjectFacts,
        key: ScalarId,
        exprs: &mut Exprs,
    ) -> Result<SchemaId> {
        let mut schemas = Vec::with_capacity(object.parts.len() + 1);
        for &part in &object.parts {
            self.part_schemas(part, key, &mut schemas, exprs)?;
        }
        if let Ok(at) = object.keys.binary_search_by_key(&key, |&(key, _)| key) {
            schemas.push(object.keys[at].1);
        }
        if object.names != TRUE && !self.string_fulfils(object.names, key, exprs)? {
            return Ok(FALSE);
        }
        self.all(&schemas)
    }

    fn part_schemas(
        &mut self,
        id: PropertyRulesId,
        key: ScalarId,
        schemas: &mut Vec<SchemaId>,
        exprs: &mut Exprs,
    ) -> Result<()> {
        let part = self.part(id);
        let mut covered = false;
        if let Some(schema) = self.named_schema(id, &part, key) {
            covered = true;
            schemas.push(schema);
        }
        for &(regex, schema) in &part.patterns {
            if self.key_matches(regex, key, exprs)? {
                covered = true;
                schemas.push(schema);
            }
        }
        if let (false, Some(additional)) = (covered, part.additional) {
            if !self.covered_by(&part.covers, key, exprs)? {
                schemas.push(additional);
            }
        }
        Ok(())
    }

    /// Whether `key` falls under the `additional` of a part.
    pub(crate) fn uncovered(
        &mut self,
        id: PropertyRulesId,
        key: ScalarId,
        exprs: &mut Exprs,
    ) -> Result<bool> {
        let part = self.part(id);
        if self.named_schema(id, &part, key).is_some() {
            return Ok(false);
        }
        for &(regex, _) in &part.patterns {
            if self.key_matches(regex, key, exprs)? {
                return Ok(false);
            }
        }
        Ok(!self.covered_by(&part.covers, key, exprs)?)
    }

    fn covered_by(&mut self, covers: &[PropertyRulesId], key: ScalarId, exprs: &mut Exprs) -> Result<bool> {
        for &cover in covers {
            if self.part(cover).additional.is_some() || !self.uncovered(cover, key, exprs)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn named_schema(&mut self, id: PropertyRulesId, part: &PropertyRules, key: ScalarId) -> Option<SchemaId> {
        /// Keys that are looked through one by one.
        const FEW: usize = 8;
        if part.named.len() <= FEW {
            return part.named.iter().find(|&&(named, _)| named == key).map(|&(_, schema)| schema);
        }
        let index = self.part_index.entry(id).or_insert_with(|| {
            let places = part.named.iter().enumerate();
            places.map(|(at, &(key, _))| (key, at as u32)).collect::<FxHashMap<_, _>>()
        });
        index.get(&key).map(|&at| part.named[at as usize].1)
    }

    /// A description of keys.
    pub(crate) fn part(&self, id: PropertyRulesId) -> Arc<PropertyRules> {
        Arc::clone(&self.parts[id.index()])
    }

    /// Whether a key is in a language.
    pub(crate) fn key_matches(
        &mut self,
        regex: LanguageId,
        key: ScalarId,
        exprs: &mut Exprs,
    ) -> Result<bool> {
        if let Some(&known) = self.key_matches.get(&(regex, key)) {
            return Ok(known);
        }
        let expr = exprs.compile(self.regex(regex), Encoding::Utf8)?;
        let matches = exprs.matches(expr, self.texts.text(key).as_bytes())?;
        self.key_matches.insert((regex, key), matches);
        Ok(matches)
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
pub(super) fn tighter(
    a: Option<&NumberBound>,
    b: Option<&NumberBound>,
    greatest: bool,
) -> Option<NumberBound> {
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
