//! Decides the next token of a language model: which tokens are allowed, how the sampler chain changes the model's logits,
//! which token is picked, and why.
//!
//! ```text
//! vocabulary, trie, mask -> constraint -> sampling -> metrics, trace -> decoder
//!                               catalogue (items, beams)
//! ```
//!
//! A [`Constraint`] says what may be generated and needs no vocabulary; its [`Matcher`] runs for one sequence. A [`Chain`] of
//! samplers draws from the allowed tokens, and a [`Decoder`] joins the two:
//!
//! ```
//! use std::sync::Arc;
//! use logitree::sampling::presets::greedy;
//! use logitree::{VocabularyOptions, Constraint, Decoder, OneOf, Stop, Token, TokenKind, Vocabulary};
//!
//! # fn main() -> logitree::Result<()> {
//! let tokens = ["Y", "ES", "N", "O", "</s>"].map(|text| Token { bytes: text.into(), kind: TokenKind::Normal });
//! let about = VocabularyOptions { end_tokens: vec![4], ..VocabularyOptions::default() };
//! let vocabulary = Arc::new(Vocabulary::new(tokens.to_vec(), about)?);
//!
//! let matcher = OneOf::new(["YES", "NO"]).matcher(&vocabulary)?;
//! let mut decoder = Decoder::new(Arc::clone(&vocabulary), greedy(), Some(matcher), Stop::default())?;
//! let logits = [0.1, 9.0, 0.3, 0.2, 5.0f32];
//! assert_eq!(decoder.step(&logits)?, 2); // ES and </s> are likelier, but only Y and N are allowed
//!
//! let mut forced = Vec::new();
//! decoder.take_forced(&mut forced)?; // after N only O is allowed: no forward pass
//! assert_eq!(vocabulary.decode(decoder.tokens(), true)?, b"NO");
//! # Ok(())
//! # }
//! ```
//!
//! The crate's root has the names that most programs need; the modules have the others.
//!
//! Languages over bytes are in the crates `logitree-automata` and `logitree-grammar`. The crate does not depend on Python and
//! prints nothing. Only the vocabulary loaders and `catalogue` touch files.

pub mod catalogue;
pub mod decoder;
pub mod form;
pub mod trace;

pub use catalogue::{
    BuildOptions, Catalogue, CatalogueBuilder, CatalogueSnapshot, Intersection, ItemIndex, ItemWalk,
};
pub use decoder::{Decoder, Finish, Stop};
pub use logitree_automata::error::{self, Error, ErrorKind, Result};
pub use logitree_automata::interrupt;
pub use logitree_constraint::{
    self as constraint, BoundGrammar, BoundOneOf, BoundReasoning, ByteRecogniser, Canonical, Composition,
    Constraint, GrammarLimits, Matcher, OneOf, Payload, PayloadCheck, ReasoningBudget, ReasoningOptions,
    Recogniser, TokenTree, TreeSpan,
};
pub use logitree_grammar as grammar;
pub use logitree_grammar::ast::{Grammar, Syntax};
pub use logitree_grammar::TokenId;
pub use logitree_sampling::metrics;
pub use logitree_sampling::{self as sampling, Chain, Floats, Mode, Params, Sampler, Seed, Steering};
#[doc(no_inline)]
pub use logitree_tokens::{mask, tokenizer, trie, vocabulary};
pub use mask::{AllowedTokens, TokenSet};
pub use tokenizer::Tokenizer;
pub use trace::Step;
pub use trie::TokenTrie;
pub use vocabulary::{Token, TokenKind, Vocabulary, VocabularyOptions};
