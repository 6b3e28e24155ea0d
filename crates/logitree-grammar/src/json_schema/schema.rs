//! A loaded schema: references resolved, keywords typed, nothing combined yet.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use serde_json::Value;

use super::super::rules::TokenNames;
use super::super::Regex;
use super::{SchemaOptions, SchemaPlaces};
use crate::id;

id!(
    /// The number of a subschema in its [`Schema`].
    pub(crate) struct SubschemaId
);

impl Display for SubschemaId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of JSON's types, one bit each. An integer is a number without a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TypeSet(pub u8);

impl TypeSet {
    /// null
    pub const NULL: TypeSet = TypeSet(1);
    /// true and false
    pub const BOOLEAN: TypeSet = TypeSet(2);
    /// numbers with a fraction
    pub const FRACTION: TypeSet = TypeSet(4);
    /// numbers without a fraction
    pub const INTEGER: TypeSet = TypeSet(8);
    /// strings
    pub const STRING: TypeSet = TypeSet(16);
    /// arrays
    pub const ARRAY: TypeSet = TypeSet(32);
    /// objects
    pub const OBJECT: TypeSet = TypeSet(64);
    /// all numbers
    pub const NUMBER: TypeSet = TypeSet(4 | 8);
    /// everything
    pub const ALL: TypeSet = TypeSet(127);

    /// Whether all of `other` is in it.
    pub fn has(self, other: TypeSet) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A bound of a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct NumberBound {
    /// The decimal as the document writes it: never rounded.
    pub value: String,
    /// Whether the bound itself is left out.
    pub exclusive: bool,
}

/// What an array's places hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ItemsKeyword {
    /// The first places, one schema each.
    pub prefix: Vec<SubschemaId>,
    /// Every place after them; `None` is anything.
    pub rest: Option<SubschemaId>,
}

/// The assertions of one subschema, in one form for all drafts. An assertion about a type does not constrain values of
/// other types. An absent keyword does not constrain anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Keywords {
    /// `type`.
    pub types: Option<TypeSet>,
    /// Whether numbers are written in digits only: what draft 4 means by an integer (1.0 is one since draft 6).
    pub digits_only: bool,
    /// `enum`, or `const` as the only value; the intersection if both are present.
    pub values: Option<Arc<[Value]>>,

    /// `minimum`, `exclusiveMinimum`: the greater one.
    pub minimum: Option<NumberBound>,
    /// `maximum`, `exclusiveMaximum`: the smaller one.
    pub maximum: Option<NumberBound>,
    /// `multipleOf`, the decimal as the document writes it.
    pub multiple_of: Option<String>,

    /// `minLength`, in code points.
    pub min_length: u64,
    /// `maxLength`, in code points.
    pub max_length: Option<u64>,
    /// `pattern` (unanchored semantics are already part of the language: the whole string matches this).
    pub pattern: Option<Arc<Regex>>,
    /// `format`, where it is one that asserts, and draft 7's `contentEncoding` and `contentMediaType`: the whole string
    /// matches this.
    pub format: Option<Arc<Regex>>,

    /// `items`, `prefixItems`, `additionalItems`.
    pub items: Option<ItemsKeyword>,
    /// `minItems`.
    pub min_items: u64,
    /// `maxItems`.
    pub max_items: Option<u64>,
    /// `uniqueItems`.
    pub unique_items: bool,
    /// `contains` with `minContains` (1 where absent) and `maxContains`.
    pub contains: Option<(SubschemaId, u64, Option<u64>)>,
    /// Whether the items that `contains` finds count as evaluated for `unevaluatedItems`: they do since 2020-12.
    pub contains_evaluates: bool,
    /// `unevaluatedItems`.
    pub unevaluated_items: Option<SubschemaId>,

    /// `properties`, in the document's order.
    pub properties: Vec<(Arc<str>, SubschemaId)>,
    /// `patternProperties`: the whole key matches the first part.
    pub pattern_properties: Vec<(Arc<Regex>, SubschemaId)>,
    /// `additionalProperties`.
    pub additional_properties: Option<SubschemaId>,
    /// `unevaluatedProperties`.
    pub unevaluated_properties: Option<SubschemaId>,
    /// `propertyNames`.
    pub property_names: Option<SubschemaId>,
    /// `required`.
    pub required: Vec<Arc<str>>,
    /// `minProperties`.
    pub min_properties: u64,
    /// `maxProperties`.
    pub max_properties: Option<u64>,
    /// `dependentRequired`, and the lists of `dependencies`.
    pub dependent_required: Vec<(Arc<str>, Vec<Arc<str>>)>,
    /// `dependentSchemas`, and the schemas of `dependencies`.
    pub dependent_schemas: Vec<(Arc<str>, SubschemaId)>,

    /// `allOf`, and the target of `$ref` (and of `$dynamicRef`, `$recursiveRef` where it is decidable).
    pub all_of: Vec<SubschemaId>,
    /// `anyOf`: each list is one such keyword.
    pub any_of: Vec<SubschemaId>,
    /// `oneOf`.
    pub one_of: Vec<SubschemaId>,
    /// `not`.
    pub not: Option<SubschemaId>,
    /// `if`, `then`, `else`. An `if` without the others only matters for `unevaluated*`, and is left out otherwise.
    pub conditional: Option<(SubschemaId, Option<SubschemaId>, Option<SubschemaId>)>,

    /// The subschemas that apply to the value itself and, as `None`, the keywords about its parts, in the order of the
    /// document. Empty if that is the keywords about parts, then the fields above in their order.
    pub reading: Vec<Option<SubschemaId>>,
}

/// Takes keywords apart, all of them: what is `read` becomes a variable, what is to be `leave`d is not looked at, there or by
/// this name. A new keyword does not compile before every place that depends on what the keywords say has it in one list.
macro_rules! keywords {
    ($of:expr; read $($read:ident),*; leave $($left:ident),*) => {
        let $crate::json_schema::Keywords { $($read,)* $($left: _,)* } = $of;
    };
}
pub(super) use keywords;

/// Calls `$visit` for every subschema that the keywords `$of` apply to parts of the value; `$iter` is `iter` or `iter_mut`.
macro_rules! visit_parts {
    ($of:expr, $visit:expr, $iter:ident) => {{
        let visit = $visit;
        keywords! { $of;
            read items, contains, unevaluated_items, properties, pattern_properties, additional_properties,
                 unevaluated_properties, property_names;
            leave types, digits_only, values, minimum, maximum, multiple_of, min_length, max_length,
                  pattern, format, min_items, max_items, unique_items, contains_evaluates, required,
                  min_properties, max_properties, dependent_required, dependent_schemas, all_of, any_of,
                  one_of, not, conditional, reading
        }
        for items in items.$iter() {
            items.prefix.$iter().chain(items.rest.$iter()).for_each(&mut *visit);
        }
        contains.$iter().for_each(|(id, ..)| visit(id));
        properties.$iter().for_each(|(_, id)| visit(id));
        pattern_properties.$iter().for_each(|(_, id)| visit(id));
        additional_properties.$iter().chain(unevaluated_properties.$iter()).for_each(&mut *visit);
        unevaluated_items.$iter().chain(property_names.$iter()).for_each(visit);
    }};
}

/// The same for those that they apply to the value itself.
macro_rules! visit_in_place {
    ($of:expr, $visit:expr, $iter:ident) => {{
        let visit = $visit;
        keywords! { $of;
            read all_of, any_of, one_of, not, conditional, dependent_schemas;
            leave types, digits_only, values, minimum, maximum, multiple_of, min_length, max_length,
                  pattern, format, items, min_items, max_items, unique_items, contains, contains_evaluates,
                  unevaluated_items, properties, pattern_properties, additional_properties,
                  unevaluated_properties, property_names, required, min_properties, max_properties,
                  dependent_required, reading
        }
        all_of.$iter().chain(any_of.$iter()).chain(one_of.$iter()).for_each(&mut *visit);
        not.$iter().for_each(&mut *visit);
        if let Some((test, then, otherwise)) = conditional.$iter().next() {
            visit(test);
            then.$iter().chain(otherwise.$iter()).for_each(&mut *visit);
        }
        dependent_schemas.$iter().for_each(|(_, id)| visit(id));
    }};
}

impl Keywords {
    /// Calls `visit` for every subschema that the keywords apply, to the value itself or to its parts.
    pub(super) fn for_each_subschema(&self, mut visit: impl FnMut(SubschemaId)) {
        visit_parts!(self, &mut |id: &SubschemaId| visit(*id), iter);
        visit_in_place!(self, &mut |id: &SubschemaId| visit(*id), iter);
    }

    /// The same with the places where the subschemas are named, those of [`Keywords::reading`] included.
    pub(super) fn for_each_subschema_mut(&mut self, mut visit: impl FnMut(&mut SubschemaId)) {
        visit_parts!(&mut *self, &mut visit, iter_mut);
        visit_in_place!(&mut *self, &mut visit, iter_mut);
        self.reading.iter_mut().flatten().for_each(visit);
    }

    /// The subschemas that the keywords apply to the value itself.
    pub(super) fn in_place(&self) -> Vec<SubschemaId> {
        let mut all = Vec::new();
        visit_in_place!(self, &mut |id: &SubschemaId| all.push(*id), iter);
        all
    }

    /// What describes the value, in the order in which a reader of the document meets it: the subschemas that apply to
    /// the value itself, and as `None` the keywords about its parts.
    pub(super) fn in_reading_order(&self) -> Vec<Option<SubschemaId>> {
        if self.reading.is_empty() {
            return std::iter::once(None).chain(self.in_place().into_iter().map(Some)).collect();
        }
        self.reading.clone()
    }
}

/// The place of each node among all, in the order in which a reader of the root meets them who follows each reference where
/// it is written. `follow` leads from a reference to what it refers to.
pub(super) fn reading_order(schema: &Schema, follow: impl Fn(SubschemaId) -> SubschemaId) -> Vec<u32> {
    let mut places = vec![u32::MAX; schema.nodes.len()];
    let (mut next, mut todo, mut children) = (0, vec![schema.root], Vec::new());
    while let Some(node) = todo.pop() {
        let node = follow(node);
        if places[node.index()] != u32::MAX {
            continue;
        }
        places[node.index()] = next;
        next += 1;
        if let SchemaNode::Keywords(keywords) = &schema.nodes[node.index()] {
            for met in keywords.in_reading_order() {
                match met {
                    Some(child) => children.push(child),
                    None => visit_parts!(&**keywords, &mut |id: &SubschemaId| children.push(*id), iter),
                }
            }
            todo.extend(children.drain(..).rev());
        }
    }
    places
}

/// For each node whether it is one of `targets` or reaches one.
pub(super) fn reaching(nodes: &[SchemaNode], targets: &[SubschemaId]) -> Vec<bool> {
    above(nodes, targets, |keywords, visit| keywords.for_each_subschema(visit))
}

/// For each node whether it is one of `targets` or applies one to its own value.
pub(super) fn applying(nodes: &[SchemaNode], targets: &[SubschemaId]) -> Vec<bool> {
    above(nodes, targets, |keywords, visit| keywords.in_place().into_iter().for_each(visit))
}

/// For each node whether it describes whole values: the root, and what is applied to parts of values.
pub(super) fn of_values(schema: &Schema) -> Vec<bool> {
    let mut found = vec![false; schema.nodes.len()];
    found[schema.root.index()] = true;
    for node in &schema.nodes {
        if let SchemaNode::Keywords(keywords) = node {
            visit_parts!(&**keywords, &mut |id: &SubschemaId| found[id.index()] = true, iter);
        }
    }
    found
}

/// For each node whether one of `targets` is among it, its `children`, and theirs.
fn above(
    nodes: &[SchemaNode],
    targets: &[SubschemaId],
    children: impl Fn(&Keywords, &mut dyn FnMut(SubschemaId)),
) -> Vec<bool> {
    let mut parents: Vec<Vec<SubschemaId>> = vec![Vec::new(); nodes.len()];
    for (id, node) in nodes.iter().enumerate() {
        if let SchemaNode::Keywords(keywords) = node {
            children(keywords, &mut |child| parents[child.index()].push(SubschemaId::new(id)));
        }
    }
    let mut reaches = vec![false; nodes.len()];
    let mut open = targets.to_vec();
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut reaches[id.index()], true) {
            open.append(&mut parents[id.index()]);
        }
    }
    reaches
}

/// A subschema.
#[derive(Debug, Clone)]
pub(crate) enum SchemaNode {
    /// `true`, `{}`: every value.
    True,
    /// `false`: no value.
    False,
    /// Assertions.
    Keywords(Box<Keywords>),
}

/// A schema as it was read: all subschemas that the root reaches, and how values are written.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The subschemas, indexed by [`SubschemaId`]. Cycles are possible.
    pub(crate) nodes: Vec<SchemaNode>,
    /// The place of each subschema in its document as a JSON pointer; as many as nodes.
    pub(crate) places: SchemaPlaces,
    /// The whole.
    pub(crate) root: SubschemaId,
    /// How values are written.
    pub(crate) options: SchemaOptions,
    /// What lenient loading dropped.
    pub warnings: Vec<String>,
}

impl Schema {
    /// The tokens that its values are written with.
    pub(crate) fn named_tokens(&self) -> impl Iterator<Item = &TokenNames> {
        self.options.pairs.iter().flat_map(|form| form.named_tokens())
    }
}
