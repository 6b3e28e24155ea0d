//! Schemas that plainly have a value and nothing to refuse: their tables are made when a text first reaches them. A response
//! with a hundred tools has a hundred schemas, and is about one of them.

use serde_json::Value;

use crate::json_schema::schema::{keywords, Keywords, Schema, SchemaNode, SubschemaId, TypeSet};

/// More subschemas may need more memory than there is, which is found out at once.
const MAX_NODES: usize = 500;
/// How deep required properties may nest.
const MAX_DEPTH: usize = 16;

/// Whether some value fulfils the schema, no keyword of it can be refused, and, where arguments are written as pairs, there is
/// one and each can be written.
pub(super) fn is_plain(schema: &Schema) -> bool {
    let plain = |node: &SchemaNode| match node {
        SchemaNode::True | SchemaNode::False => true,
        SchemaNode::Keywords(keywords) => is_plain_node(keywords),
    };
    !schema.options.lenient
        && schema.nodes.len() <= MAX_NODES
        && schema.nodes.iter().all(plain)
        && has_value(schema, schema.root, 0)
        && has_plain_pairs(schema)
}

/// Whether the keywords say types, scalars, properties and items, and no more.
fn is_plain_node(keywords: &Keywords) -> bool {
    keywords! { keywords;
        read types, values, minimum, maximum, multiple_of, min_length, max_length, pattern, format, items, min_items,
             max_items, unique_items, contains, unevaluated_items, properties, pattern_properties,
             unevaluated_properties, property_names, required, min_properties, max_properties, dependent_required;
        leave digits_only, contains_evaluates, additional_properties, dependent_schemas, all_of, any_of, one_of, not,
              conditional, reading
    }
    let numbers = minimum.is_none() && maximum.is_none() && multiple_of.is_none();
    let strings = *min_length == 0 && max_length.is_none() && pattern.is_none() && format.is_none();
    let arrays = *min_items == 0
        && max_items.is_none()
        && !*unique_items
        && contains.is_none()
        && unevaluated_items.is_none()
        && items.as_ref().is_none_or(|items| items.prefix.is_empty());
    let objects = pattern_properties.is_empty()
        && unevaluated_properties.is_none()
        && property_names.is_none()
        && *min_properties == 0
        && max_properties.is_none()
        && dependent_required.is_empty()
        && required.iter().all(|key| properties.iter().any(|(name, _)| name == key));
    let is_scalar = |value: &Value| match value {
        Value::String(_) => types.is_none_or(|types| types.has(TypeSet::STRING)),
        Value::Bool(_) => types.is_none_or(|types| types.has(TypeSet::BOOLEAN)),
        _ => false,
    };
    let scalars = values.as_ref().is_none_or(|values| !values.is_empty() && values.iter().all(is_scalar));
    numbers && strings && arrays && objects && scalars && keywords.in_place().is_empty()
}

/// Whether some value fulfils a subschema of plain ones.
fn has_value(schema: &Schema, id: SubschemaId, depth: usize) -> bool {
    let keywords = match &schema.nodes[id.index()] {
        SchemaNode::True => return true,
        SchemaNode::False => return false,
        SchemaNode::Keywords(keywords) => keywords,
    };
    let types = keywords.types.unwrap_or(TypeSet::ALL);
    if keywords.values.is_some() || types != TypeSet::OBJECT {
        return types != TypeSet(0);
    }
    let is_required = |name| keywords.required.contains(name);
    let mut required = keywords.properties.iter().filter(|(name, _)| is_required(name));
    depth < MAX_DEPTH && required.all(|(_, id)| has_value(schema, *id, depth + 1))
}

/// Whether arguments, where they are written as pairs, are at least one, and each can be written.
fn has_plain_pairs(schema: &Schema) -> bool {
    let Some(form) = &schema.options.pairs else { return true };
    let SchemaNode::Keywords(whole) = &schema.nodes[schema.root.index()] else { return false };
    let is_closed = whole
        .additional_properties
        .is_some_and(|others| matches!(schema.nodes[others.index()], SchemaNode::False));
    let is_word = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    form.writes_all(schema)
        && whole.types == Some(TypeSet::OBJECT)
        && whole.values.is_none()
        && is_closed
        && !whole.required.is_empty()
        && whole.properties.iter().all(|(name, _)| is_word(name))
}
