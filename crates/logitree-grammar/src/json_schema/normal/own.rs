//! What a subschema's own assertions say: the keywords that apply no other schema to the same value. It refuses to know
//! what they are combined with.

use std::sync::Arc;

use super::super::schema::{Keywords, NodeId, SchemaNode, TypeSet};
use super::finite::texts_of;
use super::{
    ArrayFacts, Contains, Evaluated, Facts, Forms, NumberFacts, ObjectFacts, Part, PartId, StringFacts,
    Track, TRUE,
};
use crate::expr::Exprs;
use crate::Result;

impl Forms {
    /// The alternatives of `node`.
    pub(super) fn positive(&mut self, node: NodeId, track: Track, exprs: &mut Exprs) -> Result<Vec<Facts>> {
        let schema = Arc::clone(&self.schema);
        let k = match &schema.nodes[node as usize] {
            SchemaNode::True => return Ok(vec![Facts::of(TypeSet::ALL)]),
            SchemaNode::False => return Ok(Vec::new()),
            SchemaNode::Keywords(keywords) => keywords,
        };
        let asks = k.unevaluated_items.is_some() || k.unevaluated_properties.is_some();
        let within = if asks { track.max(Track::Enough) } else { track };
        let found = self.own(node, k, within, exprs)?;
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

    pub(super) fn own(
        &mut self,
        node: NodeId,
        k: &Keywords,
        track: Track,
        exprs: &mut Exprs,
    ) -> Result<Vec<Facts>> {
        let mut facts = Facts::of(k.types.unwrap_or(TypeSet::ALL));
        facts.number = own_number(k).map(Arc::new);
        facts.string = self.listed_string(k).map(Arc::new);
        facts.array = self.own_array(k)?.map(Arc::new);
        facts.object = self.own_object(node, k)?.map(Arc::new);
        facts.drop_types(TypeSet(0));
        let mut found = vec![facts];
        if let Some(values) = &k.values {
            let constants = self.constants(values)?;
            found = self.product(&found, &constants, node * 2, exprs)?;
        }
        if track != Track::Nothing {
            let evaluated = self.own_evaluated(node, k)?;
            for facts in &mut found {
                facts.evaluated = Some(Arc::new(evaluated.clone()));
            }
        }
        Ok(found)
    }

    pub(super) fn own_string(&mut self, k: &Keywords) -> Option<StringFacts> {
        let languages: Vec<_> = [&k.pattern, &k.format].into_iter().flatten().collect();
        if languages.is_empty() && k.min_length == 0 && k.max_length.is_none() {
            return None;
        }
        let mut languages: Vec<_> = languages.into_iter().map(|regex| (self.regex_id(regex), true)).collect();
        languages.sort_unstable();
        languages.dedup();
        Some(StringFacts { languages, min: k.min_length, max: k.max_length, ..StringFacts::default() })
    }

    /// What the keywords say of strings, listed where a pattern alone leaves a few.
    fn listed_string(&mut self, k: &Keywords) -> Option<StringFacts> {
        let facts = self.own_string(k)?;
        if let ([(language, true)], 0, None) = (&*facts.languages, facts.min, facts.max) {
            if let Some(texts) = texts_of(self.regex(*language)) {
                let mut only: Vec<_> = texts.iter().map(|text| self.texts.string(text)).collect();
                only.sort_unstable();
                return Some(StringFacts { only: Some(only.into()), ..StringFacts::default() });
            }
        }
        Some(facts)
    }

    pub(super) fn own_array(&mut self, k: &Keywords) -> Result<Option<ArrayFacts>> {
        let mut array = ArrayFacts::any();
        if let Some(items) = &k.items {
            array.prefix = items.prefix.iter().map(|&item| self.goal(item)).collect::<Result<_>>()?;
            array.rest = items.rest.map_or(Ok(TRUE), |rest| self.goal(rest))?;
        }
        (array.min, array.max, array.unique) = (k.min_items, k.max_items, k.unique_items);
        if let Some((node, min, max)) = k.contains {
            if min > 0 || max.is_some() {
                let goal = self.goal(node)?;
                array.contains.push(Contains { from: 0, goal, min, max });
            }
        }
        Ok((array != ArrayFacts::any()).then_some(array))
    }

    pub(super) fn own_object(&mut self, node: NodeId, k: &Keywords) -> Result<Option<ObjectFacts>> {
        let mut object = ObjectFacts::any();
        object.parts.extend(self.node_part(node, k)?);
        if let Some(names) = k.property_names {
            object.names = self.goal(names)?;
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

    /// What `node` says of keys, if it says anything.
    pub(super) fn node_part(&mut self, node: NodeId, k: &Keywords) -> Result<Option<PartId>> {
        if let Some(&known) = self.node_parts.get(&node) {
            return Ok(known);
        }
        let mut part = Part::default();
        for (key, value) in &k.properties {
            let goal = self.goal(*value)?;
            part.named.push((self.texts.shared(key), goal));
        }
        for (regex, value) in &k.pattern_properties {
            let goal = self.goal(*value)?;
            match texts_of(regex) {
                Some(texts) => self.name_matching(&mut part, &texts, goal)?,
                None => part.patterns.push((self.regex_id(regex), goal)),
            }
        }
        part.additional = k.additional_properties.map(|node| self.goal(node)).transpose()?;
        let id = (part != Part::default()).then(|| self.part_id(part));
        self.node_parts.insert(node, id);
        Ok(id)
    }

    /// A pattern that matches a few keys only is as good as those keys named.
    fn name_matching(&mut self, part: &mut Part, texts: &[String], goal: u32) -> Result<()> {
        for text in texts {
            let key = self.texts.string(text);
            match part.named.iter().position(|&(named, _)| named == key) {
                Some(at) => part.named[at].1 = self.all(&[part.named[at].1, goal])?,
                None => part.named.push((key, goal)),
            }
        }
        Ok(())
    }

    pub(super) fn part_id(&mut self, part: Part) -> PartId {
        if let Some(&id) = self.part_ids.get(&part) {
            return id;
        }
        let id = self.parts.len() as PartId;
        self.parts.push(Arc::new(part.clone()));
        self.part_ids.insert(part, id);
        id
    }

    pub(super) fn own_evaluated(&mut self, node: NodeId, k: &Keywords) -> Result<Evaluated> {
        let mut evaluated = Evaluated::default();
        evaluated.parts.extend(self.node_part(node, k)?);
        if let Some(items) = &k.items {
            evaluated.prefix = items.prefix.len() as u64;
            evaluated.all_items = items.rest.is_some();
        }
        if let (Some((node, ..)), true) = (k.contains, k.contains_evaluates) {
            evaluated.items.push(self.goal(node)?);
        }
        Ok(evaluated)
    }
}

/// What the keywords say of numbers.
pub(super) fn own_number(k: &Keywords) -> Option<NumberFacts> {
    if k.minimum.is_none() && k.maximum.is_none() && k.multiple_of.is_none() && !k.digits_only {
        return None;
    }
    let multiples = k.multiple_of.iter().cloned().collect();
    let (min, max, digits_only) = (k.minimum.clone(), k.maximum.clone(), k.digits_only);
    Some(NumberFacts { min, max, multiples, digits_only, ..NumberFacts::default() })
}
