//! Constraints: what may be generated. A constraint, bound to a vocabulary and running for one sequence, is a
//! [`Matcher`].
//!
//! A [`Constraint`] is a value without a vocabulary: [`OneOf`], a [`Grammar`](logitree_grammar::ast::Grammar),
//! [`TreeSpan`], [`Skeleton`], [`ReasoningBudget`], [`Recogniser`], and in `catalogue` an `ItemWalk` or an `Intersection`; a
//! [`Composition`] is made of others. What its sequences share is made once for a vocabulary, which keeps it: [`BoundGrammar`],
//! [`BoundOneOf`], [`BoundReasoning`].
//!
//! ```
//! use std::sync::Arc;
//! use logitree_constraint::{Constraint, OneOf};
//! use logitree_tokens::vocabulary::{Token, TokenKind, Vocabulary, VocabularyOptions};
//!
//! let tokens = ["Y", "ES", "NO"].map(|text| Token { bytes: text.into(), kind: TokenKind::Normal });
//! let vocabulary = Arc::new(Vocabulary::new(tokens, VocabularyOptions::default())?);
//! let mut matcher = OneOf::new(["YES", "NO"]).matcher(&vocabulary)?;
//! assert!(matcher.is_allowed(0)? && !matcher.is_allowed(1)?);
//! matcher.accept(0)?;
//! let mut forced = Vec::new();
//! matcher.forced(&mut forced)?;
//! assert_eq!(forced, [1]); // after Y only ES is allowed
//! # Ok::<(), logitree_constraint::Error>(())
//! ```
//!
//! A kind of one's own implements [`States`]; [`Sequence`] makes a matcher of them.

mod after_end;
mod binding;
mod canonical;
mod choices;
pub mod compose;
mod finder;
pub mod form;
mod grammar;
mod language;
mod matcher;
pub mod query;
mod reachable;
pub mod reasoning;
mod recogniser;
mod row_matcher;
mod sequence;
pub mod skeleton;
pub mod token_tree;

use std::sync::Arc;

pub use after_end::AfterEnd;
pub use binding::Key;
#[doc(hidden)] // tests and the bindings look at what is kept
pub use binding::{binding_count, clear_bindings, MAX_BINDINGS, MAX_KEY_BYTES};
pub use canonical::{Canonical, CanonicalSpelling};
pub use choices::{BoundOneOf, OneOf, MAX_CHOICE_BYTES};
pub use compose::Composition;
pub use grammar::{BoundGrammar, GrammarLimits};
pub use language::{ByteWalk, Bytewise};
pub use matcher::{Constraint, Matcher};
pub use query::{
    accept_all, captures, certain, count_allowed, count_closed, draft_masks, explain, fill, fill_batch,
    shortest_ending, Certain, ExplainQuery, Explanation, Verdict,
};
pub use reachable::Completable;
pub use reasoning::{BoundReasoning, ReasoningBudget, ReasoningOptions};
pub use recogniser::{ByteRecogniser, Recogniser};
pub use sequence::{History, Sequence, States};
pub use skeleton::{Skeleton, SkeletonOptions, SpanProgress};
pub use token_tree::{
    Descriptor, DescriptorTree, Leaf, Node, OnMismatch, Payload, PayloadCheck, TokenTree, TreeSpan,
    MAX_TOKENS, MAX_TOKEN_ID, ROOT,
};

pub use logitree_tokens::error::{Error, ErrorKind, Result};
use logitree_tokens::interrupt;
use logitree_tokens::vocabulary::Vocabulary;
pub use logitree_tokens::TokenId;

/// What ends a constrained region.
///
/// A value that is a prefix of another ("REPLY" of "REPLY_THREAD") needs something to say that it is complete.
/// End tokens compete with the continuations there; following text is matched after every value. Where no value is a
/// prefix of another, neither is needed: the region is over with the value's last token.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// Tokens that may follow a complete value that could also continue; `None` means the vocabulary's
    /// end-of-generation ids, where there is a vocabulary.
    pub tokens: Option<Vec<TokenId>>,
    /// Text that comes after every value and is part of the region (a closing quote, say).
    pub following: Option<Vec<u8>>,
    /// Needed for following text; where it is given, ids are checked against it.
    pub vocabulary: Option<Arc<Vocabulary>>,
}

impl End {
    /// The end tokens that are in force.
    pub fn tokens(&self) -> &[TokenId] {
        let default = || self.vocabulary.as_ref().map_or(&[][..], |v| v.end_tokens());
        self.tokens.as_deref().unwrap_or_else(default)
    }
}
