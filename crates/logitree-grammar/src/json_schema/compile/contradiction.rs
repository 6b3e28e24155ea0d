//! Says why no value is valid under a schema: the fewest keywords that contradict each other, and their place.
//!
//! Keywords are taken away one after the other as long as no value becomes valid; what is left contradicts itself. If that is
//! because a part of every value is impossible, the part is looked into.

use std::sync::Arc;

use super::super::options::NumberSpelling;
use super::super::schema::{Keywords, Schema, SchemaNode, SubschemaId};
use super::rule_table::RuleTable;
use crate::expr::Exprs;
use crate::{Error, ErrorKind};

/// Most keywords of one value, and most subschemas of a schema, that are looked into.
const MAX_KEYWORDS: usize = 120;
const MAX_NODES: usize = 4_000;
/// Steps that all schemas that are tried may take, and one of them.
const FUEL: u64 = 1_500_000;
const FUEL_OF_ONE: u64 = 200_000;
/// Steps that a subschema costs that is copied.
const PER_NODE: u64 = 5;
/// Deepest part that is looked into.
const MAX_DEPTH: usize = 64;

/// A keyword: its name, whether a subschema has it, and the subschema without it.
struct Field {
    name: &'static str,
    is_in: fn(&Keywords) -> bool,
    clear: fn(&mut Keywords),
    kind: FieldKind,
}

#[derive(Clone, Copy, PartialEq)]
enum FieldKind {
    /// It says something itself.
    Own,
    /// Other subschemas apply as well.
    All,
    /// What other subschemas say decides.
    Some,
    /// Subschemas apply to values by their keys.
    Named,
    /// Subschemas apply to other parts.
    Parts,
}

macro_rules! fields {
    ($($field:ident $name:literal $kind:ident,)*) => {
        const FIELDS: &[Field] = &[$(Field {
            name: $name,
            is_in: |keywords| keywords.$field != Keywords::default().$field,
            clear: |keywords| {
                keywords.$field = Keywords::default().$field;
                // Nothing is ordered here.
                keywords.reading = Vec::new();
            },
            kind: FieldKind::$kind,
        }),*];

        /// Does not compile for a keyword that is missing above.
        const _: fn(Keywords) = |Keywords { $($field: _,)* digits_only: _, contains_evaluates: _, reading: _ }| {};
    };
}

fields! {
    types "type" Own,
    values "enum" Own,
    minimum "minimum" Own,
    maximum "maximum" Own,
    multiple_of "multipleOf" Own,
    min_length "minLength" Own,
    max_length "maxLength" Own,
    pattern "pattern" Own,
    format "format" Own,
    items "items" Parts,
    min_items "minItems" Own,
    max_items "maxItems" Own,
    unique_items "uniqueItems" Own,
    contains "contains" Parts,
    unevaluated_items "unevaluatedItems" Parts,
    properties "properties" Named,
    pattern_properties "patternProperties" Parts,
    additional_properties "additionalProperties" Parts,
    unevaluated_properties "unevaluatedProperties" Parts,
    property_names "propertyNames" Parts,
    required "required" Own,
    min_properties "minProperties" Own,
    max_properties "maxProperties" Own,
    dependent_required "dependentRequired" Own,
    dependent_schemas "dependentSchemas" Some,
    all_of "allOf" All,
    any_of "anyOf" Some,
    one_of "oneOf" Some,
    not "not" Some,
    conditional "if" Some,
}

/// A keyword of a subschema; `None` is the `false` that a subschema is.
type Part = (SubschemaId, Option<&'static Field>);

/// The error of a schema under which no value is valid.
pub(super) fn error(schema: &Arc<Schema>) -> Error {
    let mut search = Search { schema, fuel: FUEL };
    let (place, why) = match schema.nodes.len() {
        0..MAX_NODES => search.explain(schema.root, &mut Vec::new()),
        _ => None,
    }
    .unwrap_or((schema.root, "what it asks for contradicts itself".into()));
    let help = match search.is_numbers() {
        true => "plain numbers are those that a double can hold, of at most 100 digits: numbers=\"any\" allows all others",
        false => "change one of these; a value may be impossible as long as it is not required",
    };
    Error::new(ErrorKind::Constraint, format!("no value is valid under the schema: {why}"))
        .at(schema.places.get(place))
        .help(help)
}

struct Search<'s> {
    schema: &'s Schema,
    fuel: u64,
}

impl Search<'_> {
    /// Where the contradiction is that makes `node` impossible, and what it is; `None` if that takes too long.
    fn explain(&mut self, node: SubschemaId, above: &mut Vec<SubschemaId>) -> Option<(SubschemaId, String)> {
        if above.contains(&node) || above.len() > MAX_DEPTH {
            return Some((node, "it requires a value of its own kind inside of itself, without end".into()));
        }
        above.push(node);
        if let Some(part) = self.required_part(node) {
            if matches!(self.schema.nodes[part.index()], SchemaNode::False) {
                return Some((part, "`false` allows no value, and the key is required".into()));
            }
            return self.explain(part, above);
        }
        let core = self.core(node)?;
        for &(owner, field) in &core {
            let Some(field) = field.filter(|field| matches!(field.kind, FieldKind::Named | FieldKind::Parts))
            else {
                continue;
            };
            let mut only = Keywords::clone(self.keywords(owner)?);
            FIELDS.iter().filter(|other| other.name != field.name).for_each(|other| (other.clear)(&mut only));
            let mut parts = Vec::new();
            only.for_each_subschema(|part| parts.push(part));
            for part in parts {
                let is_false = matches!(self.schema.nodes[part.index()], SchemaNode::False);
                if !is_false
                    && self.is_dead(&self.schema.nodes, part)?
                    && self.is_dead_without(node, part) == Some(false)
                {
                    return self.explain(part, above);
                }
            }
        }
        Some(self.shown(node, &core))
    }

    /// The value of a required key that is impossible, if that alone makes `node` so, as far as that is decided.
    fn required_part(&mut self, node: SubschemaId) -> Option<SubschemaId> {
        let all: Vec<&Keywords> = self.applied(node).into_iter().filter_map(|at| self.keywords(at)).collect();
        let is_required = |name: &Arc<str>| all.iter().any(|keywords| keywords.required.contains(name));
        let named = all.iter().flat_map(|keywords| &keywords.properties);
        let parts: Vec<SubschemaId> =
            named.filter(|(name, _)| is_required(name)).map(|&(_, part)| part).collect();
        let mut exprs = Exprs::new(1 << 18);
        exprs.set_fuel(FUEL_OF_ONE.min(self.fuel));
        let mut table = RuleTable::new(Arc::new(self.schema.clone()), 0, None, &mut exprs).ok()?;
        parts.into_iter().find(|&part| {
            let is_dead =
                table.forms.schema_of(part).and_then(|part| table.alive(part, &mut exprs)) == Ok(false);
            is_dead && self.is_dead_without(node, part) != Some(true)
        })
    }

    /// The fewest keywords that make `node` impossible.
    fn core(&mut self, node: SubschemaId) -> Option<Vec<Part>> {
        let parts = self.parts(node);
        let mut nodes = self.schema.nodes.clone();
        if parts.len() > MAX_KEYWORDS {
            return None;
        }
        let mut core = Vec::new();
        for (at, field) in parts {
            let index = at.index();
            let before = nodes[index].clone();
            match (&mut nodes[index], field) {
                (SchemaNode::Keywords(keywords), Some(field)) => (field.clear)(keywords),
                (node, _) => *node = SchemaNode::True,
            }
            if !self.is_dead(&nodes, node)? {
                nodes[index] = before;
                core.push((at, field));
            }
        }
        Some(core)
    }

    /// The keywords that apply to the value of `node`, those of other subschemas included.
    fn parts(&self, node: SubschemaId) -> Vec<Part> {
        let mut seen = vec![node];
        let mut at = 0;
        let mut parts = Vec::new();
        while let Some(&node) = seen.get(at) {
            at += 1;
            match &self.schema.nodes[node.index()] {
                SchemaNode::True => {}
                SchemaNode::False => parts.push((node, None)),
                SchemaNode::Keywords(keywords) => {
                    let own = FIELDS.iter().filter(|field| (field.is_in)(keywords));
                    parts.extend(own.map(|field| (node, Some(field))));
                    for inner in keywords.in_place() {
                        if !seen.contains(&inner) {
                            seen.push(inner);
                        }
                    }
                }
            }
        }
        parts
    }

    fn keywords(&self, node: SubschemaId) -> Option<&Keywords> {
        match &self.schema.nodes[node.index()] {
            SchemaNode::Keywords(keywords) => Some(keywords),
            SchemaNode::True | SchemaNode::False => None,
        }
    }

    /// Whether no value is valid under `root`; `None` if that is not decided.
    fn is_dead(&mut self, nodes: &[SchemaNode], root: SubschemaId) -> Option<bool> {
        self.fuel = self.fuel.checked_sub(PER_NODE * (1 + nodes.len() as u64))?;
        let schema = Schema { nodes: nodes.to_vec(), root, ..self.schema.clone() };
        is_dead(schema, &mut self.fuel)
    }

    /// The same with any value for `part`.
    fn is_dead_without(&mut self, root: SubschemaId, part: SubschemaId) -> Option<bool> {
        let mut nodes = self.schema.nodes.clone();
        nodes[part.index()] = SchemaNode::True;
        self.is_dead(&nodes, root)
    }

    /// Whether values are valid whose numbers are not plain.
    fn is_numbers(&mut self) -> bool {
        let mut schema = self.schema.clone();
        let is_plain = schema.options.numbers == NumberSpelling::Plain;
        schema.options.numbers = NumberSpelling::Any;
        is_plain && is_dead(schema, &mut self.fuel) == Some(false)
    }

    /// The keywords of `core` that the reader shall see, and their common place.
    fn shown(&self, node: SubschemaId, core: &[Part]) -> (SubschemaId, String) {
        let applied = self.applied(node);
        let mut shown: Vec<Part> = core.iter().copied().filter(|(at, _)| applied.contains(at)).collect();
        let is_all = |part: &Part| part.1.is_some_and(|field| field.kind == FieldKind::All);
        if shown.iter().any(|part| !is_all(part)) {
            shown.retain(|part| !is_all(part));
        }
        let is_type = |part: &Part| part.1.is_some_and(|field| field.name == "type");
        if shown.iter().filter(|part| is_type(part)).count() == 1 && shown.len() > 2 {
            shown.retain(|part| !is_type(part));
        }
        let Some(&(place, first)) = shown.first() else {
            return (node, "what it asks for contradicts itself".into());
        };
        if shown.len() == 1 {
            let name = self.name((place, first));
            return (
                place,
                match first.map(|field| field.name) {
                    Some("anyOf" | "oneOf") => format!("no branch of {name} is possible"),
                    Some("not") => format!("{name} leaves no value"),
                    _ => format!("{name} allows no value"),
                },
            );
        }
        let common = if shown.iter().all(|part| part.0 == place) { place } else { node };
        let names: Vec<String> = shown
            .iter()
            .map(|&part| match part.0 == common {
                true => self.name(part),
                false => format!("{} (of {})", self.name(part), self.schema.places.get(part.0)),
            })
            .collect();
        let (last, others) = names.split_last().expect("there are several");
        (common, format!("{} and {last} contradict each other", others.join(", ")))
    }

    /// The subschemas that all apply wherever `node` does.
    fn applied(&self, node: SubschemaId) -> Vec<SubschemaId> {
        let mut applied = vec![node];
        let mut at = 0;
        while let Some(&node) = applied.get(at) {
            at += 1;
            for &inner in self.keywords(node).into_iter().flat_map(|keywords| &keywords.all_of) {
                if !applied.contains(&inner) {
                    applied.push(inner);
                }
            }
        }
        applied
    }

    /// The keyword as the document has it.
    fn name(&self, (at, field): Part) -> String {
        let (Some(field), Some(keywords)) = (field, self.keywords(at)) else { return "`false`".into() };
        let exclusive = match field.name {
            "minimum" => keywords.minimum.as_ref(),
            "maximum" => keywords.maximum.as_ref(),
            _ => None,
        };
        match field.name {
            "minimum" if exclusive.is_some_and(|bound| bound.exclusive) => "`exclusiveMinimum`".into(),
            "maximum" if exclusive.is_some_and(|bound| bound.exclusive) => "`exclusiveMaximum`".into(),
            "enum" if keywords.values.as_ref().is_some_and(|values| values.len() == 1) => {
                "`const` or `enum`".into()
            }
            name => format!("`{name}`"),
        }
    }
}

fn is_dead(schema: Schema, fuel: &mut u64) -> Option<bool> {
    let root = schema.root;
    let given = FUEL_OF_ONE.min(*fuel);
    let mut exprs = Exprs::new(1 << 18);
    exprs.set_fuel(given);
    let alive = RuleTable::new(Arc::new(schema), 0, None, &mut exprs).and_then(|mut table| {
        let schema = table.forms.schema_of(root)?;
        table.alive(schema, &mut exprs)
    });
    *fuel -= given.saturating_sub(exprs.fuel());
    alive.ok().map(|alive| !alive)
}
