//! Where in the trie a state begins: at the root, or after the texts of an uninformative part, such as the
//! whitespace before a key. That part is walked once for a vocabulary, and not again for every state that follows it.
//! The naive version begins at the root; the tests hold both equal.

use std::sync::Arc;

use crate::grammar::lexeme::Lexeme;
use logitree_grammar::expr::{ByteSet, ExprId};
use logitree_tokens::trie::{Node, TokenTrie};
use logitree_tokens::TokenId;

/// A state and the nodes that its first bytes lead to.
pub(in crate::grammar) struct StartState {
    /// What is left to be read there.
    pub state: ExprId,
    /// The nodes, each with the byte that leads into it: disjoint subtrees, ascending.
    pub starts: Vec<(u8, Node)>,
    /// The tables of what was left out.
    before: Option<Arc<Lexeme>>,
}

impl StartState {
    /// `state` from the root on; it can read these bytes.
    pub fn root(state: ExprId, first: &ByteSet, trie: &TokenTrie) -> StartState {
        let start = |byte| trie.child(trie.root(), byte).map(|node| (byte, node));
        let starts = first.iter().filter_map(start).collect();
        StartState { state, starts, before: None }
    }

    /// The same, for states that can read these bytes too; what was left out has none of them.
    pub fn with(&self, first: &ByteSet, trie: &TokenTrie) -> StartState {
        let first = self.starts.iter().fold(*first, |all, start| all.or(&ByteSet::one(start.0)));
        match &self.before {
            Some(before) => StartState::behind(Arc::clone(before), self.state, &first, trie),
            None => StartState::root(self.state, &first, trie),
        }
    }

    /// `state`, which can read these bytes, where nothing came before it or a text of `before`, which has none of them.
    pub fn behind(before: Arc<Lexeme>, state: ExprId, first: &ByteSet, trie: &TokenTrie) -> StartState {
        let mut place = StartState::root(state, first, trie);
        for crossing in &before.crossings {
            crossing.nodes(first, &mut place.starts);
        }
        place.starts.sort_unstable_by_key(|start| start.1);
        place.before = Some(before);
        place
    }

    /// The tokens that end in what was left out.
    pub fn before(&self) -> &[TokenId] {
        self.before.as_deref().and_then(|before| before.inside.listed()).unwrap_or_default()
    }

    /// How many nodes there are from here on.
    pub fn nodes(&self, trie: &TokenTrie) -> usize {
        self.starts.iter().map(|&(_, node)| trie.size(node)).sum()
    }

    /// Walks them, as [`TokenTrie::explore`] does.
    pub fn explore<S: Copy>(&self, trie: &TokenTrie, start: S, step: impl FnMut(S, u8, Node) -> Option<S>) {
        trie.explore_each(&self.starts, start, step);
    }
}
