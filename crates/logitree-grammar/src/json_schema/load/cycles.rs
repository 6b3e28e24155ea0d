//! Schemas that apply to the same value as themselves: `{"anyOf": [{"$ref": "#"}, ...]}` would never be decided. Such
//! rounds are found and cut, and so are chains that are too long to follow. It refuses to know documents.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::{Keywords, NodeId, SchemaNode};
use crate::{Error, ErrorKind, Result};

/// Subschemas that may apply to one value within each other.
const LONGEST: usize = 1024;

/// Cuts every round; the node it was cut at, and what is wrong there.
///
/// # Errors
/// Limit: a chain without a round is too long.
pub(super) fn cut(nodes: &mut [SchemaNode]) -> Result<Vec<(NodeId, String)>> {
    let mut closing: FxHashMap<NodeId, FxHashSet<NodeId>> = FxHashMap::default();
    for (from, to) in rounds(nodes)? {
        closing.entry(from).or_default().insert(to);
    }
    let mut cut = Vec::new();
    for (from, to) in closing {
        if let SchemaNode::Keywords(keywords) = &mut nodes[from as usize] {
            for keyword in forget(keywords, |id| to.contains(&id)) {
                let message = "applies a schema to the very value it is applied to: it never ends";
                cut.push((from, format!("`{keyword}` {message}")));
            }
        }
    }
    Ok(cut)
}

/// The edges that close a round, by a search in depth that keeps its own stack.
fn rounds(nodes: &[SchemaNode]) -> Result<Vec<(NodeId, NodeId)>> {
    const NEW: u32 = 0;
    const OPEN: u32 = u32::MAX;
    // NEW, OPEN, or how long the longest chain from here is.
    let mut heights = vec![NEW; nodes.len()];
    let mut found = Vec::new();
    for start in 0..nodes.len() as NodeId {
        if heights[start as usize] != NEW {
            continue;
        }
        let mut stack = vec![(start, here(nodes, start), 0_usize, 1_u32)];
        heights[start as usize] = OPEN;
        while let Some((node, children, next, height)) = stack.last_mut() {
            let Some(&child) = children.get(*next) else {
                let (node, height) = (*node, *height);
                if height as usize > LONGEST {
                    let message =
                        format!("more than {LONGEST} subschemas apply to one value within each other");
                    return Err(Error::new(ErrorKind::Limit, message));
                }
                heights[node as usize] = height;
                stack.pop();
                if let Some((.., above)) = stack.last_mut() {
                    *above = (*above).max(height + 1);
                }
                continue;
            };
            *next += 1;
            match heights[child as usize] {
                OPEN => found.push((*node, child)),
                NEW => {
                    heights[child as usize] = OPEN;
                    stack.push((child, here(nodes, child), 0, 1));
                }
                known => *height = (*height).max(known + 1),
            }
        }
    }
    Ok(found)
}

/// The subschemas that apply to the same value.
fn here(nodes: &[SchemaNode], node: NodeId) -> Vec<NodeId> {
    let SchemaNode::Keywords(keywords) = &nodes[node as usize] else { return Vec::new() };
    let mut all: Vec<NodeId> = keywords.all_of.clone();
    all.extend(&keywords.any_of);
    all.extend(&keywords.one_of);
    all.extend(keywords.not);
    if let Some((test, then, otherwise)) = keywords.conditional {
        all.push(test);
        all.extend(then.into_iter().chain(otherwise));
    }
    all.extend(keywords.dependent_schemas.iter().map(|(_, id)| *id));
    all
}

/// Takes those subschemas out of the keywords that apply to the same value; which keywords those were.
fn forget(keywords: &mut Keywords, closes: impl Fn(NodeId) -> bool) -> Vec<&'static str> {
    let mut from = Vec::new();
    let lists = [
        ("allOf` or `$ref", &mut keywords.all_of),
        ("anyOf", &mut keywords.any_of),
        ("oneOf", &mut keywords.one_of),
    ];
    for (name, list) in lists {
        let before = list.len();
        list.retain(|&id| !closes(id));
        from.extend((list.len() < before).then_some(name));
    }
    if keywords.not.is_some_and(&closes) {
        keywords.not = None;
        from.push("not");
    }
    if let Some((test, then, otherwise)) = keywords.conditional {
        if closes(test) || then.is_some_and(&closes) || otherwise.is_some_and(&closes) {
            keywords.conditional = None;
            from.push("if");
        }
    }
    let before = keywords.dependent_schemas.len();
    keywords.dependent_schemas.retain(|(_, id)| !closes(*id));
    from.extend((keywords.dependent_schemas.len() < before).then_some("dependentSchemas"));
    from
}
