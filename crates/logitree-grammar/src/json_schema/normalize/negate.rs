//! Negates a subschema: one or more alternatives for each keyword that may fail. What cannot be negated exactly is refused
//! by name.

use std::sync::Arc;

use super::super::schema::{keywords, Keywords, NumberBound, SchemaNode, SubschemaId, TypeSet};
use super::applicators::having;
use super::local::local_number;
use super::{
    ArrayFacts, Contains, Exists, Facts, KeyClass, LiteralId, NormalForms, NumberFacts, ObjectFacts,
    StringFacts, Track, TRUE,
};
use crate::expr::Exprs;
use crate::Result;

impl NormalForms {
    /// The alternatives of everything that `node` does not allow.
    pub(super) fn negative(&mut self, node: SubschemaId, exprs: &mut Exprs) -> Result<Vec<Facts>> {
        let schema = Arc::clone(&self.schema);
        let k = match &schema.nodes[node.index()] {
            SchemaNode::True => return Ok(Vec::new()),
            SchemaNode::False => return Ok(vec![Facts::of(TypeSet::ALL)]),
            SchemaNode::Keywords(keywords) => keywords,
        };
        keywords! { &**k;
            read types, values;
            leave digits_only, minimum, maximum, multiple_of, min_length, max_length, pattern, format,
                  items, min_items, max_items, unique_items, contains, contains_evaluates,
                  unevaluated_items, properties, pattern_properties, additional_properties,
                  unevaluated_properties, property_names, required, min_properties, max_properties,
                  dependent_required, dependent_schemas, all_of, any_of, one_of, not, conditional, reading
        }
        let types = types.unwrap_or(TypeSet::ALL);
        let mut fails = vec![Facts::of(TypeSet(TypeSet::ALL.0 & !types.0))];
        if let Some(values) = values {
            fails.extend(self.not_constants(values, LiteralId::new(node, false), exprs)?);
        }
        self.number_fails(k, types, &mut fails);
        self.string_fails(k, &mut fails);
        self.array_fails(node, k, &mut fails)?;
        self.object_fails(node, k, &mut fails)?;
        let mut found = Vec::new();
        for (place, mut facts) in fails.into_iter().enumerate() {
            // Values of other types are already covered by the first alternative.
            if place > 0 {
                facts.drop_types(TypeSet(TypeSet::ALL.0 & !types.0));
            }
            if facts.types.0 != 0 {
                self.union(&mut found, &[facts], LiteralId::new(node, false))?;
            }
        }
        self.in_place_fails(node, k, &mut found, exprs)?;
        self.unevaluated_fails(node, k, &mut found, exprs)?;
        Ok(found)
    }

    fn number_fails(&mut self, k: &Keywords, types: TypeSet, fails: &mut Vec<Facts>) {
        let Some(number) = local_number(k) else { return };
        let types = TypeSet(types.0 & TypeSet::NUMBER.0);
        // Spellings other than digits only are left out: such a number may be refused, never wrongly accepted.
        let beyond = |bound: NumberBound| Some(NumberBound { exclusive: !bound.exclusive, ..bound });
        let mut add = |number| fails.push(Facts::number(types, number));
        if let Some(min) = number.min {
            add(NumberFacts { max: beyond(min), ..NumberFacts::default() });
        }
        if let Some(max) = number.max {
            add(NumberFacts { min: beyond(max), ..NumberFacts::default() });
        }
        if !number.multiples.is_empty() {
            add(NumberFacts { not_multiples: number.multiples, ..NumberFacts::default() });
        }
    }

    fn string_fails(&mut self, k: &Keywords, fails: &mut Vec<Facts>) {
        let Some(string) = self.local_string(k) else { return };
        let any = StringFacts::default;
        for (regex, _) in string.languages {
            fails.push(Facts::string(StringFacts { languages: vec![(regex, false)], ..any() }));
        }
        if string.min > 0 {
            fails.push(Facts::string(StringFacts { max: Some(string.min - 1), ..any() }));
        }
        if let Some(max) = string.max {
            fails.push(Facts::string(StringFacts { min: max.saturating_add(1), ..any() }));
        }
    }

    fn array_fails(&mut self, node: SubschemaId, k: &Keywords, fails: &mut Vec<Facts>) -> Result<()> {
        keywords! { k;
            read items, min_items, max_items, unique_items, contains;
            leave types, digits_only, values, minimum, maximum, multiple_of, min_length, max_length,
                  pattern, format, contains_evaluates, unevaluated_items, properties, pattern_properties,
                  additional_properties, unevaluated_properties, property_names, required, min_properties,
                  max_properties, dependent_required, dependent_schemas, all_of, any_of, one_of, not,
                  conditional, reading
        }
        let any = ArrayFacts::any;
        let items = items.clone().unwrap_or_default();
        for (place, &item) in items.prefix.iter().enumerate() {
            let mut prefix = vec![TRUE; place];
            prefix.push(self.negation_of(item)?);
            fails.push(Facts::array(ArrayFacts { prefix, min: place as u64 + 1, ..any() }));
        }
        let mut count = |contains| fails.push(Facts::array(ArrayFacts { contains: vec![contains], ..any() }));
        if let Some(rest) = items.rest {
            let schema = self.negation_of(rest)?;
            count(Contains { from: items.prefix.len() as u64, schema, min: 1, max: None });
        }
        if let Some((item, min, max)) = *contains {
            let schema = self.schema_of(item)?;
            if min > 0 {
                count(Contains { from: 0, schema, min: 0, max: Some(min - 1) });
            }
            if let Some(max) = max {
                count(Contains { from: 0, schema, min: max.saturating_add(1), max: None });
            }
        }
        if *min_items > 0 {
            fails.push(Facts::array(ArrayFacts { max: Some(min_items - 1), ..any() }));
        }
        if let Some(max) = *max_items {
            fails.push(Facts::array(ArrayFacts { min: max.saturating_add(1), ..any() }));
        }
        if *unique_items {
            let message = "uniqueItems cannot be negated: that two items are equal is not tracked";
            self.refuse(node, message.into(), "leave uniqueItems out under not, oneOf and if")?;
        }
        Ok(())
    }

    fn object_fails(&mut self, node: SubschemaId, k: &Keywords, fails: &mut Vec<Facts>) -> Result<()> {
        keywords! { k;
            read properties, pattern_properties, additional_properties, property_names, required,
                 min_properties, max_properties, dependent_required;
            leave types, digits_only, values, minimum, maximum, multiple_of, min_length, max_length,
                  pattern, format, items, min_items, max_items, unique_items, contains, contains_evaluates,
                  unevaluated_items, unevaluated_properties, dependent_schemas, all_of, any_of, one_of, not,
                  conditional, reading
        }
        let any = ObjectFacts::any;
        let mut add = |object| fails.push(Facts::object(object));
        for key in required.iter().filter(|key| !properties.iter().any(|(name, _)| name == *key)) {
            let key = self.texts.shared(key);
            add(ObjectFacts { keys: vec![(key, super::FALSE)], ..any() });
        }
        for (name, value) in properties {
            let key = self.texts.shared(name);
            let keys = vec![(key, self.negation_of(*value)?)];
            // That a required key is missing or has a wrong value is one alternative: without a value that is right.
            let present = if required.contains(name) { Vec::new() } else { vec![key] };
            add(ObjectFacts { keys, required: present, ..any() });
        }
        for (regex, value) in pattern_properties {
            let keys = KeyClass::Matching(self.regex_id(regex));
            let schema = self.negation_of(*value)?;
            add(ObjectFacts { exists: vec![Exists { keys, schema }], ..any() });
        }
        if let (Some(value), Some(part)) = (*additional_properties, self.node_part(node, k)?) {
            let schema = self.negation_of(value)?;
            add(ObjectFacts { exists: vec![Exists { keys: KeyClass::Uncovered(part), schema }], ..any() });
        }
        if let Some(names) = *property_names {
            let keys = KeyClass::Unlike(self.schema_of(names)?);
            add(ObjectFacts { exists: vec![Exists { keys, schema: TRUE }], ..any() });
        }
        if *min_properties > 0 {
            add(ObjectFacts { max: Some(min_properties - 1), ..any() });
        }
        if let Some(max) = *max_properties {
            add(ObjectFacts { min: max.saturating_add(1), ..any() });
        }
        for (key, needed) in dependent_required {
            let key = self.texts.shared(key);
            for needed in needed {
                let needed = self.texts.shared(needed);
                add(ObjectFacts { required: vec![key], keys: vec![(needed, super::FALSE)], ..any() });
            }
        }
        Ok(())
    }

    /// All else holds, and something that is not spoken of fails.
    fn unevaluated_fails(
        &mut self,
        node: SubschemaId,
        k: &Keywords,
        found: &mut Vec<Facts>,
        exprs: &mut Exprs,
    ) -> Result<()> {
        if k.unevaluated_properties.is_none() && k.unevaluated_items.is_none() {
            return Ok(());
        }
        let holds = self.local(node, k, Track::Exactly, exprs)?;
        let holds = self.apply(node, k, holds, Track::Exactly, exprs)?;
        for facts in holds {
            let spoken = facts.evaluated.as_deref().cloned().unwrap_or_default();
            let mut fails = Vec::new();
            if let Some(value) = k.unevaluated_properties {
                let schema = self.negation_of(value)?;
                let part = self.unspoken_keys(&spoken, schema);
                let exists = vec![Exists { keys: KeyClass::Uncovered(self.part_id(part)), schema }];
                fails.push(Facts::object(ObjectFacts { exists, ..ObjectFacts::any() }));
            }
            if let (Some(value), false) = (k.unevaluated_items, spoken.all_items) {
                let mut schemas = vec![self.negation_of(value)?];
                for &item in &spoken.items {
                    schemas.push(self.opposite(item)?);
                }
                let contains =
                    vec![Contains { from: spoken.prefix, schema: self.all(&schemas)?, min: 1, max: None }];
                fails.push(Facts::array(ArrayFacts { contains, ..ArrayFacts::any() }));
            }
            let mut fails = self.product(&[facts], &fails, LiteralId::new(node, false), exprs)?;
            fails.iter_mut().for_each(|facts| facts.evaluated = None);
            self.union(found, &fails, LiteralId::new(node, false))?;
        }
        Ok(())
    }

    fn in_place_fails(
        &mut self,
        node: SubschemaId,
        k: &Keywords,
        found: &mut Vec<Facts>,
        exprs: &mut Exprs,
    ) -> Result<()> {
        keywords! { k;
            read dependent_schemas, all_of, any_of, one_of, not, conditional;
            leave types, digits_only, values, minimum, maximum, multiple_of, min_length, max_length,
                  pattern, format, items, min_items, max_items, unique_items, contains, contains_evaluates,
                  unevaluated_items, properties, pattern_properties, additional_properties,
                  unevaluated_properties, property_names, required, min_properties, max_properties,
                  dependent_required, reading
        }
        let lit = LiteralId::new(node, false);
        for &other in all_of {
            let fails = self.expand(self.lit(other, true), Track::Nothing, exprs)?;
            self.union(found, &fails, lit)?;
        }
        if !any_of.is_empty() {
            let fails = self.none_of(node, any_of, exprs)?;
            self.union(found, &fails, lit)?;
        }
        if !one_of.is_empty() {
            let fails = self.none_of(node, one_of, exprs)?;
            self.union(found, &fails, lit)?;
            self.two_of(node, one_of, found, exprs)?;
        }
        if let Some(other) = *not {
            let holds = self.expand(self.lit(other, false), Track::Nothing, exprs)?;
            self.union(found, &holds, lit)?;
        }
        if let Some((test, then, otherwise)) = *conditional {
            for (negated, branch) in [(false, then), (true, otherwise)] {
                let Some(branch) = branch else { continue };
                let test = self.expand(self.lit(test, negated), Track::Nothing, exprs)?;
                let fails = self.expand(self.lit(branch, true), Track::Nothing, exprs)?;
                let fails = self.product(&test, &fails, lit, exprs)?;
                self.union(found, &fails, lit)?;
            }
        }
        for (key, other) in dependent_schemas {
            let key = self.texts.shared(key);
            let fails = self.expand(self.lit(*other, true), Track::Nothing, exprs)?;
            let fails = self.product(&[having(key)], &fails, lit, exprs)?;
            self.union(found, &fails, lit)?;
        }
        Ok(())
    }

    fn none_of(
        &mut self,
        node: SubschemaId,
        branches: &[SubschemaId],
        exprs: &mut Exprs,
    ) -> Result<Vec<Facts>> {
        let mut found = vec![Facts::of(TypeSet::ALL)];
        for &branch in branches {
            let fails = self.expand(self.lit(branch, true), Track::Nothing, exprs)?;
            found = self.product(&found, &fails, LiteralId::new(node, false), exprs)?;
        }
        Ok(found)
    }

    fn two_of(
        &mut self,
        node: SubschemaId,
        branches: &[SubschemaId],
        found: &mut Vec<Facts>,
        exprs: &mut Exprs,
    ) -> Result<()> {
        for (i, &first) in branches.iter().enumerate() {
            for &second in &branches[i + 1..] {
                let first = self.expand(self.lit(first, false), Track::Nothing, exprs)?;
                let second = self.expand(self.lit(second, false), Track::Nothing, exprs)?;
                let both = self.product(&first, &second, LiteralId::new(node, false), exprs)?;
                self.union(found, &both, LiteralId::new(node, false))?;
            }
        }
        Ok(())
    }
}
