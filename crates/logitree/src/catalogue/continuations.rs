//! The continuations of a node, as columns that are reused.

use super::WalkState;
use crate::TokenId;

/// The continuations of a state: ascending tokens, each with the state after it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Continuations {
    /// The tokens, ascending and distinct.
    pub tokens: Vec<TokenId>,
    /// The state after each.
    pub states: Vec<WalkState>,
    /// The weight of each, or nothing where the tree has no weights.
    pub weights: Vec<f32>,
    /// Whether the tokens up to here are an item.
    pub is_item: bool,
}

impl Continuations {
    /// Empty again.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.states.clear();
        self.weights.clear();
        self.is_item = false;
    }

    /// Has room for so many more.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.tokens.reserve(more);
        self.states.reserve(more);
    }

    /// Only the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.states.truncate(len);
        self.weights.truncate(len);
    }

    pub(super) fn push(&mut self, token: TokenId, state: WalkState, weight: Option<f32>) {
        self.tokens.push(token);
        self.states.push(state);
        self.weights.extend(weight);
    }
}
