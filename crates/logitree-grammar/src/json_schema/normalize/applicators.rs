//! Normalises the keywords that apply other schemas to the same value: `allOf` and `$ref`, `anyOf`, `oneOf`, `not`, `if`,
//! `dependentSchemas`, and `unevaluated*`, which depends on what these evaluated.
//!
//! The set of evaluated parts only grows with every branch that holds, and a larger set never rejects a value. So for each
//! set of branches it is exact to take the values for which all of the set hold, with no condition on the others. Where
//! `unevaluated*` is negated, a larger set rejects more: there the others are required to fail ([`Track::Exactly`]).

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::schema::{keywords, Keywords, SchemaNode, SubschemaId, TypeSet};
use super::{
    ArrayFacts, Evaluated, Facts, LiteralId, NormalForms, ObjectFacts, PropertyRules, PropertyRulesId,
    ScalarId, SchemaId, Track, FALSE, MAX_ALTERNATIVES, TRUE,
};
use crate::expr::Exprs;
use crate::{Error, ErrorKind, Result};

impl NormalForms {
    /// The alternatives `found` of the own keywords of `node`, met with what it applies in place.
    pub(super) fn apply(
        &mut self,
        node: SubschemaId,
        k: &Keywords,
        mut found: Vec<Facts>,
        track: Track,
        exprs: &mut Exprs,
    ) -> Result<Vec<Facts>> {
        keywords! { k;
            read all_of, any_of, one_of, not, conditional, dependent_schemas, reading;
            leave types, digits_only, values, minimum, maximum, multiple_of, min_length, max_length,
                  pattern, format, items, min_items, max_items, unique_items, contains, contains_evaluates,
                  unevaluated_items, properties, pattern_properties, additional_properties,
                  unevaluated_properties, property_names, required, min_properties, max_properties,
                  dependent_required
        }
        let lit = LiteralId::new(node, false);
        for &other in all_of {
            let more = self.expand(self.lit(other, false), track, exprs)?;
            found = self.product(&found, &more, lit, exprs)?;
        }
        if !any_of.is_empty() {
            let more = self.any_of(node, any_of, track, exprs)?;
            found = self.product(&found, &more, lit, exprs)?;
        }
        if !one_of.is_empty() {
            found = self.one_of(node, one_of, &found, track, exprs)?;
        }
        if let Some(other) = *not {
            let more = self.expand(self.lit(other, true), Track::Nothing, exprs)?;
            found = self.product(&found, &more, lit, exprs)?;
        }
        if let Some(parts) = *conditional {
            let more = self.conditional(node, parts, track, exprs)?;
            found = self.product(&found, &more, lit, exprs)?;
        }
        for (key, other) in dependent_schemas {
            let key = self.texts.shared(key);
            let mut more = vec![without(key)];
            let with = self.expand(self.lit(*other, false), track, exprs)?;
            let with = self.product(&[having(key)], &with, lit, exprs)?;
            self.union(&mut more, &with, lit)?;
            found = self.product(&found, &more, lit, exprs)?;
        }
        if !reading.is_empty() && found.iter().any(has_several_parts) {
            let order = self.parts_in_reading_order(node, exprs)?;
            for facts in found.iter_mut().filter(|facts| has_several_parts(facts)) {
                if let Some(object) = &mut facts.object {
                    let place = |part: &PropertyRulesId| order.get(part).copied().unwrap_or(usize::MAX);
                    Arc::make_mut(object).parts.sort_by_key(place);
                }
            }
        }
        Ok(found)
    }

    /// The rules of keys of `node` and of what it applies in place, in the order in which a reader meets them.
    fn parts_in_reading_order(
        &mut self,
        node: SubschemaId,
        exprs: &mut Exprs,
    ) -> Result<FxHashMap<PropertyRulesId, usize>> {
        let schema = Arc::clone(&self.schema);
        let mut order = FxHashMap::default();
        let mut seen = FxHashSet::default();
        // A node, and whether its own keywords are meant or everything that it applies.
        let mut todo = vec![(node, false)];
        while let Some((node, own)) = todo.pop() {
            let node = self.follow(node);
            let SchemaNode::Keywords(keywords) = &schema.nodes[node.index()] else { continue };
            if own {
                if let Some(part) = self.node_part(node, keywords)? {
                    let next = order.len();
                    order.entry(part).or_insert(next);
                }
            } else if seen.insert(node) {
                let met = keywords.in_reading_order();
                exprs.spend(met.len() as u64)?;
                todo.extend(met.into_iter().rev().map(|other| (other.unwrap_or(node), other.is_none())));
            }
        }
        Ok(order)
    }

    fn any_of(
        &mut self,
        node: SubschemaId,
        branches: &[SubschemaId],
        track: Track,
        exprs: &mut Exprs,
    ) -> Result<Vec<Facts>> {
        let mut found = Vec::new();
        let mut speaking = Vec::new();
        for &branch in branches {
            let more = self.expand(self.lit(branch, false), track, exprs)?;
            let speaks = |facts: &Facts| facts.evaluated.as_ref().is_some_and(|spoken| !spoken.is_empty());
            if track != Track::Nothing && more.iter().any(speaks) {
                speaking.push((branch, more));
            } else {
                self.union(&mut found, &more, LiteralId::new(node, false))?;
            }
        }
        let mut sets: Vec<Facts> = Vec::new();
        // The values for which none of the evaluating branches holds, as far as that matters.
        let mut none = vec![Facts::of(TypeSet::ALL)];
        for (branch, holds) in speaking {
            let with = self.product(&sets, &holds, LiteralId::new(node, false), exprs)?;
            let alone = self.product(&none, &holds, LiteralId::new(node, false), exprs)?;
            if track == Track::Exactly {
                let fails = self.expand(self.lit(branch, true), Track::Nothing, exprs)?;
                sets = self.product(&sets, &fails, LiteralId::new(node, false), exprs)?;
                none = self.product(&none, &fails, LiteralId::new(node, false), exprs)?;
            }
            self.union(&mut sets, &with, LiteralId::new(node, false))?;
            self.union(&mut sets, &alone, LiteralId::new(node, false))?;
        }
        if track == Track::Exactly {
            found = self.product(&found, &none, LiteralId::new(node, false), exprs)?;
        }
        self.union(&mut found, &sets, LiteralId::new(node, false))?;
        Ok(found)
    }

    /// The alternatives `found` with each branch and none of the others. A branch that cannot hold together with them
    /// need not be excluded; what is known of the value besides often decides that.
    fn one_of(
        &mut self,
        node: SubschemaId,
        branches: &[SubschemaId],
        found: &[Facts],
        track: Track,
        exprs: &mut Exprs,
    ) -> Result<Vec<Facts>> {
        let lit = LiteralId::new(node, false);
        let are_disjoint = self.are_disjoint(branches, found, exprs)?;
        let mut all = Vec::new();
        for (i, &branch) in branches.iter().enumerate() {
            let one = self.expand(self.lit(branch, false), track, exprs)?;
            let mut one = self.product(found, &one, lit, exprs)?;
            let mut overlapping = Vec::new();
            for (j, &other) in branches.iter().enumerate() {
                if i != j && !are_disjoint && self.hold_together(&one, other, lit, exprs)? {
                    overlapping.push(other);
                }
            }
            // What a branch that can fail in few ways leaves is little, and often none of the others holds with it.
            overlapping.sort_by_cached_key(|&other| self.ways_to_fail(other));
            for (n, other) in overlapping.into_iter().enumerate() {
                if n == 0 || self.hold_together(&one, other, lit, exprs)? {
                    let fails = self.expand(self.lit(other, true), Track::Nothing, exprs)?;
                    one = self.product(&one, &fails, lit, exprs)?;
                }
            }
            self.union(&mut all, &one, lit)?;
        }
        Ok(all)
    }

    /// Whether a value of the alternatives may fulfil `other`.
    fn hold_together(
        &mut self,
        one: &[Facts],
        other: SubschemaId,
        lit: LiteralId,
        exprs: &mut Exprs,
    ) -> Result<bool> {
        if one.is_empty() {
            return Ok(false);
        }
        let holds = self.expand(self.lit(other, false), Track::Nothing, exprs)?;
        self.probing += 1;
        let both = self.product(one, &holds, lit, exprs);
        self.probing -= 1;
        Ok(!both?.is_empty())
    }

    /// About how many alternatives the negation of `node` has.
    fn ways_to_fail(&mut self, node: SubschemaId) -> usize {
        let node = self.follow(node);
        if let Some(&known) = self.ways_to_fail.get(&node) {
            return known;
        }
        self.ways_to_fail.insert(node, 0);
        let schema = Arc::clone(&self.schema);
        let SchemaNode::Keywords(k) = &schema.nodes[node.index()] else { return 0 };
        let all = k.all_of.iter().fold(0usize, |all, &other| all.saturating_add(self.ways_to_fail(other)));
        let own = k.required.len() + k.properties.len() + k.pattern_properties.len();
        let found = all.saturating_add(1 + own + usize::from(k.additional_properties.is_some()));
        self.ways_to_fail.insert(node, found);
        found
    }

    /// Whether some key that all branches require, or what applies beside them, has no value that two of them share:
    /// then at most one branch holds. Tools and messages usually have such a key, which is found without looking
    /// at pairs.
    fn are_disjoint(&mut self, branches: &[SubschemaId], found: &[Facts], exprs: &mut Exprs) -> Result<bool> {
        let context = found.iter().fold(0, |types, facts| types | facts.types.0);
        let mut objects = Vec::with_capacity(branches.len());
        let mut seen = 0;
        for &branch in branches {
            let alternatives = self.expand(self.lit(branch, false), Track::Nothing, exprs)?;
            let types = context & alternatives.iter().fold(0, |types, facts| types | facts.types.0);
            if seen & types & !TypeSet::OBJECT.0 != 0 {
                return Ok(false);
            }
            seen |= types;
            if types & TypeSet::OBJECT.0 != 0 {
                let mut having = alternatives.iter().filter(|facts| facts.any_of(TypeSet::OBJECT));
                match (having.next().and_then(|facts| facts.object.as_ref()), having.next()) {
                    (Some(object), None) => objects.push(Arc::clone(object)),
                    _ => return Ok(false),
                }
            }
        }
        if objects.len() < 2 {
            return Ok(true);
        }
        let mut keys = objects.first().map_or_else(Vec::new, |first| first.required.clone());
        keys.retain(|key| objects.iter().all(|object| object.required.binary_search(key).is_ok()));
        if let [Facts { object: Some(object), .. }] = found {
            keys.extend(&object.required);
        }
        for key in keys {
            if self.values_differ(&objects, key, exprs)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn values_differ(
        &mut self,
        objects: &[Arc<ObjectFacts>],
        key: ScalarId,
        exprs: &mut Exprs,
    ) -> Result<bool> {
        let mut seen: FxHashSet<ScalarId> = FxHashSet::default();
        for object in objects {
            let schema = self.key_schema(object, key, exprs)?;
            if schema == TRUE || !self.may_list(schema) {
                return Ok(false);
            }
            for facts in &*self.normal(schema, exprs)? {
                let strings = facts.types == TypeSet::STRING;
                let Some(only) = facts.string.as_ref().and_then(|string| string.only.as_ref()) else {
                    return Ok(false);
                };
                if !strings || !only.iter().all(|&id| seen.insert(id)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn conditional(
        &mut self,
        node: SubschemaId,
        (test, then, otherwise): (SubschemaId, Option<SubschemaId>, Option<SubschemaId>),
        track: Track,
        exprs: &mut Exprs,
    ) -> Result<Vec<Facts>> {
        let lit = LiteralId::new(node, false);
        let holds = self.expand(self.lit(test, false), track, exprs)?;
        if then.is_none() && otherwise.is_none() {
            let mut found = match track {
                Track::Exactly => self.expand(self.lit(test, true), Track::Nothing, exprs)?.to_vec(),
                Track::Enough | Track::Nothing => vec![Facts::of(TypeSet::ALL)],
            };
            if track != Track::Nothing {
                self.union(&mut found, &holds, lit)?;
            }
            return Ok(found);
        }
        let mut found = match then {
            Some(then) => {
                let then = self.expand(self.lit(then, false), track, exprs)?;
                self.product(&holds, &then, lit, exprs)?
            }
            None => holds.to_vec(),
        };
        let fails = self.expand(self.lit(test, true), Track::Nothing, exprs)?;
        let fails = match otherwise {
            Some(otherwise) => {
                let otherwise = self.expand(self.lit(otherwise, false), track, exprs)?;
                self.product(&fails, &otherwise, lit, exprs)?
            }
            None => fails.to_vec(),
        };
        self.union(&mut found, &fails, lit)?;
        Ok(found)
    }

    /// The alternatives `found`, with `unevaluated*` applied to the parts that they do not evaluate.
    pub(super) fn unevaluated(
        &mut self,
        node: SubschemaId,
        k: &Keywords,
        found: Vec<Facts>,
        exprs: &mut Exprs,
    ) -> Result<Vec<Facts>> {
        let mut all = Vec::with_capacity(found.len());
        for facts in found {
            let mut spoken = facts.evaluated.as_deref().cloned().unwrap_or_default();
            let mut met = facts;
            if let Some(schema) = k.unevaluated_properties.map(|node| self.schema_of(node)).transpose()? {
                let part = self.unspoken_keys(&spoken, schema);
                let part = self.part_id(part);
                let object = ObjectFacts { parts: vec![part], ..ObjectFacts::any() };
                met = self.intersect_type(&met, Facts::object(object), exprs)?;
                spoken.parts.push(part);
            }
            if let Some(schema) = k.unevaluated_items.map(|node| self.schema_of(node)).transpose()? {
                let array = self.unspoken_items(node, &spoken, schema)?;
                met = self.intersect_type(&met, Facts::array(array), exprs)?;
                spoken.all_items = true;
            }
            met.evaluated = Some(Arc::new(spoken));
            self.union(&mut all, &[met], LiteralId::new(node, false))?;
        }
        Ok(all)
    }

    /// `facts`, where values of the one type of `other` fulfil that too.
    fn intersect_type(&mut self, facts: &Facts, other: Facts, exprs: &mut Exprs) -> Result<Facts> {
        self.intersect(facts, &or_of_other_type(other), exprs)
    }

    /// The rules of keys that `spoken` does not cover.
    pub(super) fn unspoken_keys(&self, spoken: &Evaluated, schema: SchemaId) -> PropertyRules {
        PropertyRules { covers: spoken.parts.clone(), additional: Some(schema), ..PropertyRules::default() }
    }

    /// The constraints on items that `spoken` does not cover.
    pub(super) fn unspoken_items(
        &mut self,
        node: SubschemaId,
        spoken: &Evaluated,
        schema: SchemaId,
    ) -> Result<ArrayFacts> {
        if spoken.all_items {
            return Ok(ArrayFacts::any());
        }
        if spoken.prefix > MAX_ALTERNATIVES as u64 {
            let message = format!("more than {MAX_ALTERNATIVES} items are described one by one");
            return Err(Error::new(ErrorKind::Limit, message).at(self.place(LiteralId::new(node, false))));
        }
        let mut schemas = spoken.items.clone();
        schemas.push(schema);
        let rest = self.either(schemas)?;
        Ok(ArrayFacts { prefix: vec![TRUE; spoken.prefix as usize], rest, ..ArrayFacts::any() })
    }
}

/// Whether the order of the rules of keys matters.
fn has_several_parts(facts: &Facts) -> bool {
    facts.object.as_ref().is_some_and(|object| object.parts.len() > 1)
}

/// Every value but objects that have `key`.
pub(super) fn without(key: ScalarId) -> Facts {
    let object = ObjectFacts { keys: vec![(key, FALSE)], ..ObjectFacts::any() };
    or_of_other_type(Facts::object(object))
}

/// The values of `facts`, and all of other types.
fn or_of_other_type(facts: Facts) -> Facts {
    let others = TypeSet(TypeSet::ALL.0 & !facts.types.0);
    Facts { types: TypeSet::ALL, bools: facts.bools | Facts::of(others).bools, ..facts }
}

/// Objects that have `key`.
pub(super) fn having(key: ScalarId) -> Facts {
    Facts::object(ObjectFacts { required: vec![key], ..ObjectFacts::any() })
}
