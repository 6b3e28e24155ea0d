//! What may follow a place, as columns that are filled again and again. It refuses to know where they come from.

use super::WalkState;
use crate::TokenId;

/// The ways on from a place: ascending tokens, each with the place behind it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Continuations {
    /// The tokens, ascending and distinct.
    pub tokens: Vec<TokenId>,
    /// The place behind each.
    pub states: Vec<WalkState>,
    /// The weight of each, or nothing where the tree has no weights.
    pub weights: Vec<f32>,
    /// Whether what was read up to here is an item.
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
