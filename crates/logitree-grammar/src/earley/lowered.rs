//! Rules as a flat list of nodes: each a lexeme, a reference, or a way to put nodes together. Children stand before
//! what they are part of. It refuses to know states.

use std::sync::Arc;

use super::super::expr::ExprId;
use super::super::rules::{RuleId, TokenSet};
use super::StateId;

/// The place of a node in [`LoweredRules`].
pub(super) type LoweredId = usize;

/// What a node is.
pub(super) enum LoweredKind {
    /// Text.
    Lexeme(ExprId),
    /// What another rule says.
    Ref(RuleId),
    /// One after the other.
    Seq(Vec<LoweredId>),
    /// Any of these.
    Alt(Vec<LoweredId>),
    /// At least `min` times, at most `max` times; never `{1}`.
    Repeat { of: LoweredId, min: u32, max: Option<u32> },
    /// One whole token.
    Tokens(u32),
    /// A JSON value that starts in this state of the JSON source; none if there is no such value.
    Json(Option<StateId>),
}

/// A node.
pub(super) struct LoweredNode {
    pub(super) body: LoweredKind,
    /// The rule it is part of.
    pub(super) rule: RuleId,
    /// What it says, if there are few words for it.
    pub(super) said: Option<Arc<str>>,
}

/// A grammar in nodes.
pub(super) struct LoweredRules {
    pub(super) nodes: Vec<LoweredNode>,
    /// For each rule its node, if anything refers to the rule as such.
    pub(super) roots: Vec<Option<LoweredId>>,
    /// The names of the rules.
    pub(super) names: Vec<String>,
    pub(super) token_sets: Vec<TokenSet>,
}

impl LoweredRules {
    /// The children of a node.
    pub(super) fn children(&self, node: LoweredId) -> &[LoweredId] {
        match &self.nodes[node].body {
            LoweredKind::Seq(parts) | LoweredKind::Alt(parts) => parts,
            LoweredKind::Repeat { of, .. } => std::slice::from_ref(of),
            LoweredKind::Lexeme(_) | LoweredKind::Ref(_) | LoweredKind::Tokens(_) | LoweredKind::Json(_) => {
                &[]
            }
        }
    }
}
