//! Widens what depends negatively on a subschema that lost a keyword, so that lenient loading only allows more.

use super::super::schema::{self, Keywords, SchemaNode, SubschemaId};

/// Widens all nodes that depend on one of the lossy ones in the other direction.
pub(super) fn widen(nodes: &mut [SchemaNode], lossy: &[SubschemaId]) {
    if lossy.is_empty() {
        return;
    }
    let lossy = schema::reaching(nodes, lossy);
    for node in nodes {
        if let SchemaNode::Keywords(keywords) = node {
            turn(keywords, |id| lossy[id.index()]);
        }
    }
}

/// Drops what would allow less because `lossy` subschemas allow more.
fn turn(keywords: &mut Keywords, lossy: impl Fn(SubschemaId) -> bool) {
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
