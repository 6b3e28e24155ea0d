//! Subschemas that say the same, word for word, taken as one: then a subschema and the negation of its twin are known to
//! contradict each other. It refuses to see through different words for the same thing.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::super::schema::{Keywords, NodeId, SchemaNode};

/// For each subschema the first one (or the last, where they lie so) that says the same.
pub(super) fn twins(nodes: &[SchemaNode]) -> Vec<NodeId> {
    let mut twin: Vec<NodeId> = (0..nodes.len() as NodeId).collect();
    let mut known: FxHashMap<u64, Vec<NodeId>> = FxHashMap::default();
    // Parts were read after what they are parts of, so most parts have their twin when their whole looks for its own.
    for node in (0..nodes.len()).rev() {
        let SchemaNode::Keywords(keywords) = &nodes[node] else { continue };
        let same = known.entry(digest(keywords, &twin)).or_default();
        let own = renamed(keywords, &twin);
        let found = same.iter().copied().find(|&other| match &nodes[other as usize] {
            SchemaNode::Keywords(other) => renamed(other, &twin) == own,
            SchemaNode::True | SchemaNode::False => false,
        });
        match found {
            Some(other) => twin[node] = other,
            None => same.push(node as NodeId),
        }
    }
    twin
}

/// A hash that equal keywords share.
fn digest(k: &Keywords, twin: &[NodeId]) -> u64 {
    let mut hasher = FxHasher::default();
    (k.types, k.min_length, k.max_length, k.min_items, k.max_items).hash(&mut hasher);
    (&k.minimum, &k.maximum, &k.multiple_of, k.unique_items, &k.required).hash(&mut hasher);
    (k.min_properties, k.max_properties, k.values.as_ref().map(|values| values.len())).hash(&mut hasher);
    k.properties.iter().for_each(|(key, _)| key.hash(&mut hasher));
    for_children(k, |child| twin[child as usize].hash(&mut hasher));
    hasher.finish()
}

fn renamed(k: &Keywords, twin: &[NodeId]) -> Keywords {
    let mut renamed = k.clone();
    let rename = |node: &mut NodeId| *node = twin[*node as usize];
    if let Some(items) = &mut renamed.items {
        items.prefix.iter_mut().chain(&mut items.rest).for_each(rename);
    }
    renamed.contains.iter_mut().for_each(|(node, ..)| rename(node));
    renamed.properties.iter_mut().for_each(|(_, node)| rename(node));
    renamed.pattern_properties.iter_mut().for_each(|(_, node)| rename(node));
    renamed.dependent_schemas.iter_mut().for_each(|(_, node)| rename(node));
    for list in [&mut renamed.all_of, &mut renamed.any_of, &mut renamed.one_of] {
        list.iter_mut().for_each(rename);
    }
    let single = [
        &mut renamed.additional_properties,
        &mut renamed.unevaluated_properties,
        &mut renamed.unevaluated_items,
        &mut renamed.property_names,
        &mut renamed.not,
    ];
    single.into_iter().flatten().for_each(rename);
    if let Some((test, then, otherwise)) = &mut renamed.conditional {
        [Some(test), then.as_mut(), otherwise.as_mut()].into_iter().flatten().for_each(rename);
    }
    renamed
}

/// Calls `child` with every subschema that the keywords apply.
pub(crate) fn for_children(k: &Keywords, mut child: impl FnMut(NodeId)) {
    if let Some(items) = &k.items {
        items.prefix.iter().copied().chain(items.rest).for_each(&mut child);
    }
    k.contains.iter().for_each(|&(node, ..)| child(node));
    k.properties.iter().for_each(|&(_, node)| child(node));
    k.pattern_properties.iter().for_each(|&(_, node)| child(node));
    k.dependent_schemas.iter().for_each(|&(_, node)| child(node));
    for list in [&k.all_of, &k.any_of, &k.one_of] {
        list.iter().copied().for_each(&mut child);
    }
    let single =
        [k.additional_properties, k.unevaluated_properties, k.unevaluated_items, k.property_names, k.not];
    single.into_iter().flatten().for_each(&mut child);
    if let Some((test, then, otherwise)) = k.conditional {
        [Some(test), then, otherwise].into_iter().flatten().for_each(child);
    }
}
