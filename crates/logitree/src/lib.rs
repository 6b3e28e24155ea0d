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
//! The core knows no Python, does no output, and reads files only where a vocabulary is loaded.

pub mod beam;
pub mod constraint;
pub mod decoder;
pub mod error;
mod file;
pub mod grammar;
mod kernel;
pub mod mask;
pub mod metrics;
pub mod prefix;
pub mod sampling;
mod threads;
pub mod trace;
pub mod trie;
pub mod vocabulary;

pub use error::{Error, ErrorKind, Result};

/// A token's number in its vocabulary.
pub type TokenId = u32;
