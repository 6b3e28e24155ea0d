//! The tokens of a language model: their bytes and ids, all of them as one trie, sets of them, and the tokenizer that gives them.
//!
//! ```text
//! file -> vocabulary <-> trie, mask -> tokenizer
//! ```
//!
//! ```
//! use logitree_tokens::vocabulary::{Token, TokenKind, Vocabulary, VocabularyOptions};
//!
//! let tokens = ["a", "ab", "b"].map(|text| Token { bytes: text.into(), kind: TokenKind::Normal });
//! let vocabulary = Vocabulary::new(tokens, VocabularyOptions::default())?;
//! let trie = vocabulary.trie()?;
//! assert_eq!(trie.with_prefix(b"a"), [0, 1]);
//! assert_eq!(trie.longest_match(b"abc"), Some((1, 2)));
//! # Ok::<(), logitree_tokens::Error>(())
//! ```
//!
//! The crate knows no constraints and no logits but as floats to compare and add (`simd`). Only the loaders touch files.

#[doc(hidden)] // maps the files of indexes
pub mod file;
pub mod mask;
#[doc(hidden)] // bounded tables of the matchers
pub mod memo;
#[doc(hidden)] // loops of masks and samplers
pub mod simd;
#[doc(hidden)] // rows of a batch
pub mod threads;
pub mod tokenizer;
pub mod trie;
pub mod vocabulary;

pub use logitree_automata::error::{self, Error, ErrorKind, Result};
pub use logitree_automata::interrupt;

/// The id of a token: its index in the vocabulary and in the logits.
pub type TokenId = u32;
