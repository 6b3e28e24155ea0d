//! Rules of one grammar put behind those of another. It refuses to know what either says.

use super::rules::{Node, Rule, RuleId, Rules};

/// Puts `other` behind `rules`, each name with `prefix` before it; where it starts there.
pub(super) fn append(rules: &mut Vec<Rule>, other: &Rules, prefix: &str) -> RuleId {
    let offset = rules.len();
    rules.extend(
        other
            .rules
            .iter()
            .map(|rule| Rule { name: format!("{prefix}{}", rule.name), body: shifted(&rule.body, offset) }),
    );
    offset + other.start
}

/// The node with every rule's number larger by `offset`. As deep as the node nests, which whoever made it bounds.
fn shifted(node: &Node, offset: usize) -> Node {
    let all = |parts: &[Node]| parts.iter().map(|part| shifted(part, offset)).collect();
    match node {
        Node::Ref(id) => Node::Ref(id + offset),
        Node::Seq(parts) => Node::Seq(all(parts)),
        Node::Alt(parts) => Node::Alt(all(parts)),
        Node::Repeat { of, min, max } => {
            Node::Repeat { of: Box::new(shifted(of, offset)), min: *min, max: *max }
        }
        Node::Lexeme(_) | Node::Tokens(_) | Node::Json(_) => node.clone(),
    }
}
