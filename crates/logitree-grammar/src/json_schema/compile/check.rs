//! Finds what cannot be honoured before generation begins: normalises the subschemas that combine others, and everything
//! that reaches a keyword whose support depends on what it is combined with.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::super::normalize::{combines, composites, Contains, SchemaId, FALSE, MAX_ALTERNATIVES};
use super::super::schema::{self, keywords, Keywords, Schema, SchemaNode, SubschemaId, TypeSet};
use super::array::FEW_CONTAINS;
use super::rule_table::RuleTable;
use crate::expr::Exprs;
use crate::Result;

/// Maximum number of schemas that are checked ahead; problems beyond are found when a text reaches them.
const MAX_CHECKED: usize = 2_000;

impl RuleTable {
    /// Checks everything that `schema` reaches and that might not be supported.
    pub(super) fn check(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<()> {
        let source = Arc::clone(&self.forms.schema);
        let all = source.nodes.iter().enumerate().filter_map(|(node, what)| match what {
            SchemaNode::Keywords(keywords) => Some((SubschemaId::new(node), &**keywords)),
            SchemaNode::True | SchemaNode::False => None,
        });
        let dear: Vec<SubschemaId> =
            all.clone().filter(|(_, keywords)| is_dear(keywords)).map(|(node, _)| node).collect();
        if !dear.is_empty() {
            self.check_dear(&source, &dear, exprs)?;
        }
        let many_contains = all.clone().filter(|(_, k)| k.contains.is_some()).count() > FEW_CONTAINS;
        let may_be_refused = |k: &Keywords| may_be_refused(k) || many_contains && k.contains.is_some();
        let refusable: Vec<SubschemaId> =
            all.filter(|(_, keywords)| may_be_refused(keywords)).map(|(n, _)| n).collect();
        if refusable.is_empty() {
            return Ok(());
        }
        let reaching = schema::reaching(&source.nodes, &refusable);
        let mut seen = FxHashSet::from_iter([schema]);
        let mut waiting = vec![schema];
        while let Some(schema) = waiting.pop() {
            for next in self.parts_of(schema, exprs)? {
                let matters = self.forms.nodes_of(next).any(|node| node.is_none_or(|n| reaching[n.index()]));
                if matters && seen.len() < MAX_CHECKED && seen.insert(next) {
                    waiting.push(next);
                }
            }
        }
        Ok(())
    }

    /// Normalises `dear`, and compiles the scalars of whole values that they apply to: those of a subschema that is only
    /// applied together with others are never written.
    fn check_dear(&mut self, source: &Schema, dear: &[SubschemaId], exprs: &mut Exprs) -> Result<()> {
        for &node in dear {
            let schema = self.forms.schema_of(node)?;
            self.forms.normal(schema, exprs)?;
        }
        let whole = schema::of_values(source);
        let applying = schema::applying(&source.nodes, dear);
        for node in (0..source.nodes.len()).filter(|&node| whole[node] && applying[node]) {
            let schema = self.forms.schema_of(SubschemaId::new(node))?;
            self.scalars(schema, exprs)?;
        }
        Ok(())
    }

    /// The schemas of the items and members of `schema`.
    fn parts_of(&mut self, schema: SchemaId, exprs: &mut Exprs) -> Result<Vec<SchemaId>> {
        let mut found = Vec::new();
        if schema == FALSE || !self.alive(schema, exprs)? {
            return Ok(found);
        }
        self.scalars(schema, exprs)?;
        for facts in &*self.forms.normal(schema, exprs)? {
            if let (true, Some(array)) = (facts.any_of(TypeSet::ARRAY), &facts.array) {
                self.array_id(Some(array), exprs)?;
                let places: Vec<SchemaId> = array.prefix.iter().copied().chain([array.rest]).collect();
                for place in places {
                    self.demanded(place, &array.contains, &mut found, exprs)?;
                }
            }
            if facts.any_of(TypeSet::OBJECT) && facts.object.is_some() {
                let object = self.object_id(facts.object.as_ref(), exprs)?;
                let named = self.objects[object as usize].keys.len() as u32;
                let others = self.others(object, exprs)?.len() as u32;
                for key in 0..named + others {
                    let (schema, meets) = self.key_demands(object, key, exprs)?;
                    let exists = &self.objects[object as usize].facts.exists;
                    let may: Vec<SchemaId> = exists.iter().map(|exists| exists.schema).collect();
                    for met in (0..1u32 << may.len()).filter(|met| met & !meets == 0) {
                        let chosen = may.iter().enumerate().filter(|(bit, _)| met >> bit & 1 == 1);
                        let schemas: Vec<SchemaId> =
                            chosen.map(|(_, &schema)| schema).chain([schema]).collect();
                        found.push(self.forms.all(&schemas)?);
                    }
                }
            }
        }
        Ok(found)
    }

    /// The schemas an item may have beside `place`: some of the `contains`, or the negation of one that has a maximum or is one of many.
    fn demanded(
        &mut self,
        place: SchemaId,
        demands: &[Contains],
        found: &mut Vec<SchemaId>,
        exprs: &mut Exprs,
    ) -> Result<()> {
        found.extend(self.kinds(place, demands, exprs)?.into_iter().map(|kind| kind.schema));
        let many = demands.len() > FEW_CONTAINS;
        for demand in demands.iter().filter(|demand| many || demand.max.is_some()) {
            let opposite = self.forms.opposite(demand.schema)?;
            found.push(self.forms.all(&[place, opposite])?);
        }
        Ok(())
    }
}

/// Whether the keywords may need too many combinations, or too large an automaton of numbers.
fn is_dear(k: &Keywords) -> bool {
    let listed = k.values.as_ref().is_some_and(|values| composites(values) > MAX_ALTERNATIVES);
    combines(k) || k.multiple_of.is_some() || listed
}

/// Whether support for the keywords depends on what they are combined with.
fn may_be_refused(k: &Keywords) -> bool {
    keywords! { k;
        read unique_items, unevaluated_items, unevaluated_properties;
        leave types, digits_only, values, minimum, maximum, multiple_of, min_length, max_length, pattern,
              format, items, min_items, max_items, contains, contains_evaluates, properties,
              pattern_properties, additional_properties, property_names, required, min_properties,
              max_properties, dependent_required, dependent_schemas, all_of, any_of, one_of, not,
              conditional, reading
    }
    *unique_items || unevaluated_items.is_some() || unevaluated_properties.is_some()
}
