//! Lowered rules: a flat list of nodes, children before parents.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::expr::ExprId;
use super::super::rules::{RuleId, TokenNames};
use super::StateId;
use crate::id;

id!(
    /// The index of a node in [`LoweredRules`].
    pub(super) struct LoweredId
);

/// The kind of a node.
pub(super) enum LoweredKind {
    /// A lexeme.
    Lexeme(ExprId),
    /// A lexeme that ends as soon as it can after so many tokens.
    Counted(ExprId, u32),
    /// A reference to a rule.
    Ref(RuleId),
    /// Concatenation.
    Seq(Vec<LoweredId>),
    /// Union.
    Alt(Vec<LoweredId>),
    /// At least `min` and at most `max` repetitions; never `{1}`.
    Repeat { of: LoweredId, min: u32, max: Option<u32> },
    /// One whole token of a set.
    Tokens(u32),
    /// A JSON value that starts in this state of the JSON source; `None` if no value is valid.
    Json(Option<StateId>),
    /// The non-empty texts of an intersection from this state on; `None` if there are none.
    Embedded(Option<StateId>),
    /// A part that has a temperature ([`Machine::temperature`](super::Machine::temperature)).
    Tempered(LoweredId, f32),
}

/// A node.
pub(super) struct LoweredNode {
    pub(super) body: LoweredKind,
    /// The rule that contains it.
    pub(super) rule: RuleId,
    /// A short description for messages, if there is one.
    pub(super) said: Option<Arc<str>>,
}

/// A lowered grammar.
pub(super) struct LoweredRules {
    pub(super) nodes: Vec<LoweredNode>,
    /// For each rule its node, unless every reference is inlined.
    pub(super) roots: Vec<Option<LoweredId>>,
    /// The names of the rules.
    pub(super) names: Vec<String>,
    pub(super) token_sets: TokenSets,
}

/// The sets of whole tokens of a grammar, numbered.
#[derive(Debug, Default)]
pub struct TokenSets {
    all: Vec<TokenNames>,
    ids: FxHashMap<TokenNames, u32>,
}

impl TokenSets {
    /// The number of a set, which [`Edge::Tokens`](super::Edge::Tokens) has.
    pub fn number(&mut self, set: &TokenNames) -> u32 {
        if let Some(&known) = self.ids.get(set) {
            return known;
        }
        let number = self.all.len() as u32;
        self.all.push(set.clone());
        self.ids.insert(set.clone(), number);
        number
    }

    /// All sets, by number.
    pub(super) fn all(&self) -> &[TokenNames] {
        &self.all
    }
}

impl LoweredRules {
    /// The children of a node.
    pub(super) fn children(&self, node: LoweredId) -> &[LoweredId] {
        match &self.nodes[node.index()].body {
            LoweredKind::Seq(parts) | LoweredKind::Alt(parts) => parts,
            LoweredKind::Repeat { of, .. } | LoweredKind::Tempered(of, _) => std::slice::from_ref(of),
            LoweredKind::Lexeme(_)
            | LoweredKind::Counted(..)
            | LoweredKind::Ref(_)
            | LoweredKind::Tokens(_)
            | LoweredKind::Json(_)
            | LoweredKind::Embedded(_) => &[],
        }
    }
}
