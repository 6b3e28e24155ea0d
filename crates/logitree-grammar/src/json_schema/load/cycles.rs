//! Cuts cycles of subschemas that apply to the same value, such as `{"anyOf": [{"$ref": "#"}]}`, and limits the length of
//! such chains.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::schema::keywords;
use super::super::{Keywords, SchemaNode, SubschemaId};
use crate::{Error, ErrorKind, Result};

/// Maximum nesting of subschemas that apply to one value.
const LONGEST: usize = 1024;

/// Cuts every cycle; returns the node it was cut at and the message.
///
/// # Errors
/// Limit: a chain without a cycle is too long.
pub(super) fn cut(nodes: &mut [SchemaNode]) -> Result<Vec<(SubschemaId, String)>> {
    let mut closing: FxHashMap<SubschemaId, FxHashSet<SubschemaId>> = FxHashMap::default();
    for (from, to) in rounds(nodes)? {
        closing.entry(from).or_default().insert(to);
    }
    let mut cut = Vec::new();
    for (from, to) in closing {
        if let SchemaNode::Keywords(keywords) = &mut nodes[from.index()] {
            for keyword in forget(keywords, |id| to.contains(&id)) {
                let message =
                    "applies a schema to the value that the schema itself is applied to, without end";
                cut.push((from, format!("`{keyword}` {message}")));
            }
        }
    }
    Ok(cut)
}

/// The edges that close a cycle, by depth-first search with an explicit stack.
fn rounds(nodes: &[SchemaNode]) -> Result<Vec<(SubschemaId, SubschemaId)>> {
    const NEW: u32 = 0;
    const OPEN: u32 = u32::MAX;
    // NEW, OPEN, or how long the longest chain from here is.
    let mut heights = vec![NEW; nodes.len()];
    let mut found = Vec::new();
    for start in (0..nodes.len()).map(SubschemaId::new) {
        if heights[start.index()] != NEW {
            continue;
        }
        let mut stack = vec![(start, here(nodes, start), 0_usize, 1_u32)];
        heights[start.index()] = OPEN;
        while let Some((node, children, next, height)) = stack.last_mut() {
            let Some(&child) = children.get(*next) else {
                let (node, height) = (*node, *height);
                if height as usize > LONGEST {
                    let message =
                        format!("more than {LONGEST} subschemas apply to one value within each other");
                    return Err(Error::new(ErrorKind::Limit, message));
                }
                heights[node.index()] = height;
                stack.pop();
                if let Some((.., above)) = stack.last_mut() {
                    *above = (*above).max(height + 1);
                }
                continue;
            };
            *next += 1;
            match heights[child.index()] {
                OPEN => found.push((*node, child)),
                NEW => {
                    heights[child.index()] = OPEN;
                    stack.push((child, here(nodes, child), 0, 1));
                }
                known => *height = (*height).max(known + 1),
            }
        }
    }
    Ok(found)
}

/// The subschemas that apply to the same value.
fn here(nodes: &[SchemaNode], node: SubschemaId) -> Vec<SubschemaId> {
    match &nodes[node.index()] {
        SchemaNode::Keywords(keywords) => keywords.in_place(),
        SchemaNode::True | SchemaNode::False => Vec::new(),
    }
}

/// Takes those subschemas out of the keywords that apply to the same value; which keywords those were.
fn forget(keywords: &mut Keywords, closes: impl Fn(SubschemaId) -> bool) -> Vec<&'static str> {
    keywords! { keywords;
        read dependent_schemas, all_of, any_of, one_of, not, conditional;
        leave types, digits_only, values, minimum, maximum, multiple_of, min_length, max_length, pattern,
              format, items, min_items, max_items, unique_items, contains, contains_evaluates,
              unevaluated_items, properties, pattern_properties, additional_properties,
              unevaluated_properties, property_names, required, min_properties, max_properties,
              dependent_required, reading
    }
    let mut from = Vec::new();
    let lists = [("allOf` or `$ref", all_of), ("anyOf", any_of), ("oneOf", one_of)];
    for (name, list) in lists {
        let before = list.len();
        list.retain(|&id| !closes(id));
        from.extend((list.len() < before).then_some(name));
    }
    if not.is_some_and(&closes) {
        *not = None;
        from.push("not");
    }
    if let Some((test, then, otherwise)) = *conditional {
        if closes(test) || then.is_some_and(&closes) || otherwise.is_some_and(&closes) {
            *conditional = None;
            from.push("if");
        }
    }
    let before = dependent_schemas.len();
    dependent_schemas.retain(|(_, id)| !closes(*id));
    from.extend((dependent_schemas.len() < before).then_some("dependentSchemas"));
    from
}
