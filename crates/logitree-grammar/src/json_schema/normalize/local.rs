//! Normalises the keywords of one subschema that constrain the value itself, without applicators.

use std::sync::Arc;

use super::super::schema::{keywords, Keywords, SchemaNode, SubschemaId, TypeSet};
use super::strings::texts_of;
use super::{
    ArrayFacts, Contains, Evaluated, Facts, LiteralId, NormalForms, NumberFacts, ObjectFacts, PropertyRules,
    PropertyRulesId, SchemaId, StringFacts, Track, TRUE,
};
use crate::expr::Exprs;
use crate::Result;

impl NormalForms {
    /// The alternatives of `node`.
    pub(super) fn positive(
        &mut self,
        node: SubschemaId,
        track: Track,
        exprs: &mut Exprs,
    ) -> Result<Vec<Facts>> {
        let schema = Arc::clone(&self.schema);
        let k = match &schema.nodes[node.index()] {
            SchemaNode::True => return Ok(vec![Facts::of(TypeSet::ALL)]),
            SchemaNode::False => return Ok(Vec::new()),
            SchemaNode::Keywords(keywords) => keywords,
        };
        let asks = k.unevaluated_items.is_some() || k.unevaluated_properties.is_some();
        let within = if asks { track.max(Track::Enough) } else { track };
        let found = self.local(node, k, within, exprs)?;
        let mut found = self.apply(node, k, found, within, exprs)?;
        if asks {
            found = self.unevaluated(node, k, found, exprs)?;
        }
        if track == Track::Nothing {
            for facts in &mut found {
                facts.evaluated = None;
            }
        }
        Ok(found)
    }

    pub(super) fn local(
        &mut self,
        node: SubschemaId,
        k: &Keywords,
        track: Track,
        exprs: &mut Exprs,
    ) -> Result<Vec<Facts>> {
        keywords! { k;
            read types, values;
            leave digits_only, minimum, maximum, multiple_of, min_length, max_length, pattern, format,
                  items, min_items, max_items, unique_items, contains, contains_evaluates,
                  unevaluated_items, properties, pattern_properties, additional_properties,
                  unevaluated_properties, property_names, required, min_properties, max_properties,
                  dependent_required, dependent_schemas, all_of, any_of, one_of, not, conditional, reading
        }
        let mut facts = Facts::of(types.unwrap_or(TypeSet::ALL));
        facts.number = local_number(k).map(Arc::new);
        facts.string = self.listed_string(k).map(Arc::new);
        facts.array = self.local_array(k)?.map(Arc::new);
        facts.object = self.local_object(node, k)?.map(Arc::new);
        facts.drop_types(TypeSet(0));
        let mut found = vec![facts];
        if let Some(values) = values {
            let lit = LiteralId::new(node, false);
            let constants = self.constants(values, lit)?;
            found = self.product(&found, &constants, lit, exprs)?;
        }
        if track != Track::Nothing {
            let evaluated = self.local_evaluated(node, k)?;
            for facts in &mut found {
                facts.evaluated = Some(Arc::new(evaluated.clone()));
            }
        }
        Ok(found)
    }

    pub(super) fn local_string(&mut self, k: &Keywords) -> Option<StringFacts> {
        let languages: Vec<_> = [&k.pattern, &k.format].into_iter().flatten().collect();
        if languages.is_empty() && k.min_length == 0 && k.max_length.is_none() {
            return None;
        }
        let mut languages: Vec<_> = languages.into_iter().map(|regex| (self.regex_id(regex), true)).collect();
        languages.sort_unstable();
        languages.dedup();
        Some(StringFacts { languages, min: k.min_length, max: k.max_length, ..StringFacts::default() })
    }

    /// The constraints on strings, as a list of values if a pattern alone allows few.
    fn listed_string(&mut self, k: &Keywords) -> Option<StringFacts> {
        let facts = self.local_string(k)?;
        if let ([(language, true)], 0, None) = (&*facts.languages, facts.min, facts.max) {
            if let Some(texts) = texts_of(self.regex(*language)) {
                let mut only: Vec<_> = texts.iter().map(|text| self.texts.string(text)).collect();
                only.sort_unstable();
                return Some(StringFacts { only: Some(only.into()), ..StringFacts::default() });
            }
        }
        Some(facts)
    }

    pub(super) fn local_array(&mut self, k: &Keywords) -> Result<Option<ArrayFacts>> {
        let mut array = ArrayFacts::any();
        if let Some(items) = &k.items {
            array.prefix = items.prefix.iter().map(|&item| self.schema_of(item)).collect::<Result<_>>()?;
            array.rest = items.rest.map_or(Ok(TRUE), |rest| self.schema_of(rest))?;
        }
        (array.min, array.max, array.unique) = (k.min_items, k.max_items, k.unique_items);
        if let Some((node, min, max)) = k.contains {
            if min > 0 || max.is_some() {
                let schema = self.schema_of(node)?;
                array.contains.push(Contains { from: 0, schema, min, max });
            }
        }
        Ok((array != ArrayFacts::any()).then_some(array))
    }

    pub(super) fn local_object(&mut self, node: SubschemaId, k: &Keywords) -> Result<Option<ObjectFacts>> {
        let mut object = ObjectFacts::any();
        object.parts.extend(self.node_part(node, k)?);
        if let Some(names) = k.property_names {
            object.names = self.schema_of(names)?;
        }
        object.required = k.required.iter().map(|key| self.texts.shared(key)).collect();
        object.required.sort_unstable();
        object.required.dedup();
        (object.min, object.max) = (k.min_properties, k.max_properties);
        for (key, needed) in &k.dependent_required {
            let key = self.texts.shared(key);
            object.dependent.extend(needed.iter().map(|needed| (key, self.texts.shared(needed))));
        }
        object.dependent.sort_unstable();
        object.dependent.dedup();
        Ok((object != ObjectFacts::any()).then_some(object))
    }

    /// The rules of `node` for keys, if it has any.
    pub(super) fn node_part(&mut self, node: SubschemaId, k: &Keywords) -> Result<Option<PropertyRulesId>> {
        if let Some(&known) = self.node_parts.get(&node) {
            return Ok(known);
        }
        let mut part = PropertyRules::default();
        for (key, value) in &k.properties {
            let schema = self.schema_of(*value)?;
            part.named.push((self.texts.shared(key), schema));
        }
        for (regex, value) in &k.pattern_properties {
            let schema = self.schema_of(*value)?;
            match texts_of(regex) {
                Some(texts) => self.name_matching(&mut part, &texts, schema)?,
                None => part.patterns.push((self.regex_id(regex), schema)),
            }
        }
        part.additional = k.additional_properties.map(|node| self.schema_of(node)).transpose()?;
        let id = (part != PropertyRules::default()).then(|| self.part_id(part));
        self.node_parts.insert(node, id);
        Ok(id)
    }

    /// A pattern that matches a few keys only is as good as those keys named.
    fn name_matching(&mut self, part: &mut PropertyRules, texts: &[String], schema: SchemaId) -> Result<()> {
        for text in texts {
            let key = self.texts.string(text);
            match part.named.iter().position(|&(named, _)| named == key) {
                Some(at) => part.named[at].1 = self.all(&[part.named[at].1, schema])?,
                None => part.named.push((key, schema)),
            }
        }
        Ok(())
    }

    pub(super) fn part_id(&mut self, part: PropertyRules) -> PropertyRulesId {
        if let Some(&id) = self.part_ids.get(&part) {
            return id;
        }
        let id = PropertyRulesId::new(self.parts.len());
        self.parts.push(Arc::new(part.clone()));
        self.part_ids.insert(part, id);
        id
    }

    pub(super) fn local_evaluated(&mut self, node: SubschemaId, k: &Keywords) -> Result<Evaluated> {
        let mut evaluated = Evaluated::default();
        evaluated.parts.extend(self.node_part(node, k)?);
        if let Some(items) = &k.items {
            evaluated.prefix = items.prefix.len() as u64;
            evaluated.all_items = items.rest.is_some();
        }
        if let (Some((node, ..)), true) = (k.contains, k.contains_evaluates) {
            evaluated.items.push(self.schema_of(node)?);
        }
        Ok(evaluated)
    }
}

/// The constraints on numbers.
pub(super) fn local_number(k: &Keywords) -> Option<NumberFacts> {
    if k.minimum.is_none() && k.maximum.is_none() && k.multiple_of.is_none() && !k.digits_only {
        return None;
    }
    let multiples = k.multiple_of.iter().cloned().collect();
    let (min, max, digits_only) = (k.minimum.clone(), k.maximum.clone(), k.digits_only);
    Some(NumberFacts { min, max, multiples, digits_only, ..NumberFacts::default() })
}
