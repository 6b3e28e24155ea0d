//! The tokens of a language model: their bytes and ids, all of them as one trie, sets of them, and the tokenizer that gives them.
//!
//! ```text
//! file -> vocabulary <-> trie, mask -> tokenizer
//! ```
//!
//! The crate knows no constraints and no logits but as floats to compare and add (`simd`). Only the loaders touch files.

pub mod file;
pub mod mask;
pub mod memo;
pub mod simd;
pub mod threads;
pub mod tokenizer;
pub mod trie;
pub mod vocabulary;

pub use logitree_automata::error::{self, Error, ErrorKind, Result};
pub use logitree_automata::interrupt;

/// The id of a token: its index in the vocabulary and in the logits.
pub type TokenId = u32;
