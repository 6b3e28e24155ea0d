//! Constraints: what may be generated. A constraint, bound to a vocabulary and running for one sequence, is a
//! [`Matcher`]. The room refuses to know logits and sampling.

mod byte_rows;
pub mod bytewise;
pub mod cache;
mod check;
mod choices;
pub mod codec;
mod drafts;
mod explain;
mod fill;
mod grammar;
mod intersection;
mod matcher;
mod payload;
mod row_matcher;
mod sequence_trie;
pub mod skeleton;
pub mod thought;
mod token_tree;
mod tree_rows;

use std::sync::Arc;

pub use check::{Check, OnMismatch};
pub use choices::{Choices, MAX_CHOICE_BYTES};
pub use drafts::{accept_all, count_allowed, draft_masks};
pub use explain::{explain, Ask, Explanation, Verdict};
pub use fill::{fill, fill_batch};
pub use grammar::{Grammar, GrammarLimits};
pub use intersection::{intersect, IntersectionMatcher};
pub(crate) use matcher::check_rollback;
pub use matcher::Matcher;
pub use payload::{Descriptor, Leaf, Payload, MAX_TOKENS, MAX_TOKEN_ID};
pub(crate) use row_matcher::not_allowed;
pub use sequence_trie::{Node, ROOT};
pub use thought::{Thinking, Thought};
pub use token_tree::{SpanTree, TokenTree};

use crate::vocabulary::Vocabulary;
use crate::TokenId;

/// What ends a constrained span.
///
/// A value that is a prefix of another ("REPLY" of "REPLY_THREAD") needs something to say that it is complete.
/// End tokens compete with the ways on there; following text is matched after every value. Where no value is a
/// prefix of another, neither is needed: the span is over with the value's last token.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// Tokens that may follow a complete value that could also go on; `None` means the vocabulary's
    /// end-of-generation ids, where there is a vocabulary.
    pub tokens: Option<Vec<TokenId>>,
    /// Text that comes after every value and is part of the span (a closing quote, say).
    pub following: Option<Vec<u8>>,
    /// Needed for following text; where it is given, ids are checked against it.
    pub vocabulary: Option<Arc<Vocabulary>>,
}

impl End {
    /// The end tokens that are in force.
    pub fn tokens(&self) -> &[TokenId] {
        let default = || self.vocabulary.as_ref().map_or(&[][..], |v| v.end_of_generation());
        self.tokens.as_deref().unwrap_or_else(default)
    }
}
