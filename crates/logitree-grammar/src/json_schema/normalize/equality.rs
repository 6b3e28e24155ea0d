//! Finds subschemas that are equal keyword by keyword, so that a subschema and the negation of its twin contradict.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::super::schema::{keywords, Keywords, SchemaNode, SubschemaId};

/// For each subschema the representative of those that are equal to it.
pub(super) fn twins(nodes: &[SchemaNode]) -> Vec<SubschemaId> {
    let mut twin: Vec<SubschemaId> = (0..nodes.len()).map(SubschemaId::new).collect();
    let mut known: FxHashMap<u64, Vec<SubschemaId>> = FxHashMap::default();
    // Parts are numbered after the whole, so most parts have their representative before their whole needs it.
    for node in (0..nodes.len()).rev() {
        let SchemaNode::Keywords(keywords) = &nodes[node] else { continue };
        let same = known.entry(digest(keywords, &twin)).or_default();
        if same.is_empty() {
            same.push(SubschemaId::new(node));
            continue;
        }
        let mut own = None;
        let found = same.iter().copied().find(|&other| match &nodes[other.index()] {
            SchemaNode::Keywords(other) if keywords == other => true,
            SchemaNode::Keywords(other) if is_leaf(keywords) || is_leaf(other) => false,
            SchemaNode::Keywords(other) => {
                renamed(other, &twin) == *own.get_or_insert_with(|| renamed(keywords, &twin))
            }
            SchemaNode::True | SchemaNode::False => false,
        });
        match found {
            Some(other) => twin[node] = other,
            None => same.push(SubschemaId::new(node)),
        }
    }
    twin
}

/// A hash that equal keywords share.
fn digest(k: &Keywords, twin: &[SubschemaId]) -> u64 {
    keywords! { k;
        read types, values, minimum, maximum, multiple_of, min_length, max_length, min_items, max_items,
             unique_items, properties, required, min_properties, max_properties;
        leave digits_only, pattern, format, items, contains, contains_evaluates, unevaluated_items,
              pattern_properties, additional_properties, unevaluated_properties, property_names,
              dependent_required, dependent_schemas, all_of, any_of, one_of, not, conditional, reading
    }
    let mut hasher = FxHasher::default();
    (types, min_length, max_length, min_items, max_items).hash(&mut hasher);
    (minimum, maximum, multiple_of, unique_items, required).hash(&mut hasher);
    (min_properties, max_properties, values.as_ref().map(|values| values.len())).hash(&mut hasher);
    properties.iter().for_each(|(key, _)| key.hash(&mut hasher));
    k.for_each_subschema(|child| twin[child.index()].hash(&mut hasher));
    hasher.finish()
}

/// Whether the keywords apply no subschema.
fn is_leaf(k: &Keywords) -> bool {
    let mut leaf = true;
    k.for_each_subschema(|_| leaf = false);
    leaf
}

/// The keywords with every subschema replaced by its twin.
fn renamed(k: &Keywords, twin: &[SubschemaId]) -> Keywords {
    let mut renamed = k.clone();
    renamed.for_each_subschema_mut(|id| *id = twin[id.index()]);
    renamed
}
