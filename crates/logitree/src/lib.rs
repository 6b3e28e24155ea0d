//! Decides the next token of a language model: which tokens are allowed, how the sampler chain changes the model's logits,
//! which token is picked, and why.
//!
//! ```text
//! vocabulary, trie, mask -> constraint -> sampling -> metrics, trace -> decoder
//!                               catalogue (items, beams)
//! ```
//!
//! Languages over bytes are in the crates `logitree-automata` and `logitree-grammar`. The crate does not depend on Python and
//! prints nothing. Only the vocabulary loaders and `catalogue` touch files.

pub mod catalogue;
pub mod constraint;
pub mod decoder;
mod file;
pub mod mask;
pub mod metrics;
pub mod sampling;
mod simd;
mod threads;
pub mod trace;
pub mod trie;
pub mod vocabulary;

pub use logitree_automata::error::{self, Error, ErrorKind, Result};
pub use logitree_grammar as grammar;
pub use logitree_grammar::TokenId;
