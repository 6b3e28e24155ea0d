//! logitree decides an LLM's next token: which tokens may come next, what the sampler chain makes of the
//! model's logits, which token is picked, and why.
//!
//! The rooms, in the order a request flows (a room imports only what stands left of it, see ARCHITECTURE.md):
//!
//! ```text
//! vocabulary, trie, mask, grammar -> constraint -> sampling -> metrics, trace
//!              \____________ decoder ____________/
//! ```
//!
//! The crate does not depend on Python and prints nothing. Only the vocabulary loaders and `prefix` touch files.

pub mod catalogue;
pub mod constraint;
pub mod decoder;
mod file;
mod kernel;
pub mod mask;
pub mod metrics;
pub mod sampling;
mod threads;
pub mod trace;
pub mod trie;
pub mod vocabulary;

pub use logitree_automata::error::{self, Error, ErrorKind, Result};
pub use logitree_grammar as grammar;
pub use logitree_grammar::TokenId;
