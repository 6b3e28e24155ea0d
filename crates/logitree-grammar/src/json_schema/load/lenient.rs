//! What is dropped may only allow more. Where a subschema lost something, whatever turns its "more" into "less" (a
//! negation, a count of matches) goes too. It refuses to know documents.

use super::super::{Keywords, NodeId, SchemaNode};

/// Widens all nodes that depend on one of the lossy ones in the other direction.
pub(super) fn widen(nodes: &mut [SchemaNode], lossy: &[NodeId]) {
    if lossy.is_empty() {
        return;
    }
    let lossy = reaching(nodes, lossy);
    for node in nodes {
        if let SchemaNode::Keywords(keywords) = node {
            turn(keywords, |id| lossy[id as usize]);
        }
    }
}

/// Drops what would allow less because `lossy` subschemas allow more.
fn turn(keywords: &mut Keywords, lossy: impl Fn(NodeId) -> bool) {
    keywords.not = keywords.not.filter(|&id| !lossy(id));
    keywords.conditional = keywords.conditional.filter(|&(test, ..)| !lossy(test));
    if keywords.one_of.iter().any(|&id| lossy(id)) {
        let all = std::mem::take(&mut keywords.one_of);
        if keywords.any_of.is_empty() {
            keywords.any_of = all;
        }
    }
    if let Some((id, _, most)) = &mut keywords.contains {
        if lossy(*id) {
            *most = None;
        }
    }
}

/// Which nodes reach one of `lossy`, that one included.
fn reaching(nodes: &[SchemaNode], lossy: &[NodeId]) -> Vec<bool> {
    let mut parents: Vec<Vec<NodeId>> = vec![Vec::new(); nodes.len()];
    for (id, node) in (0..).zip(nodes) {
        if let SchemaNode::Keywords(keywords) = node {
            children(keywords, |child| parents[child as usize].push(id));
        }
    }
    let mut reaches = vec![false; nodes.len()];
    let mut open = lossy.to_vec();
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut reaches[id as usize], true) {
            open.append(&mut parents[id as usize]);
        }
    }
    reaches
}

/// Calls `each` for every subschema that the keywords name.
fn children(keywords: &Keywords, each: impl FnMut(NodeId)) {
    let k = keywords;
    let items = k.items.iter().flat_map(|items| items.prefix.iter().copied().chain(items.rest));
    let (test, then, otherwise) = k.conditional.map_or((None, None, None), |(a, b, c)| (Some(a), b, c));
    let single = [k.unevaluated_items, k.additional_properties, k.unevaluated_properties, k.property_names];
    items
        .chain(k.contains.map(|(id, ..)| id))
        .chain(k.properties.iter().map(|(_, id)| *id))
        .chain(k.pattern_properties.iter().map(|(_, id)| *id))
        .chain(k.dependent_schemas.iter().map(|(_, id)| *id))
        .chain([&k.all_of, &k.any_of, &k.one_of].into_iter().flatten().copied())
        .chain(single.into_iter().chain([k.not, test, then, otherwise]).flatten())
        .for_each(each);
}
