//! Grammars as constraints: the machine's configurations met with a vocabulary.
//!
//! ```text
//! configuration = threads (lexeme state q, continuation k)
//! token allowed   = all of it inside q, or q complete after its first bytes and k takes the rest
//! mask          = Inside(q), by table, and those of Cross(q) whose rest is viable from k
//! ```
//!
//! Inside and Cross know nothing of the grammar: they are kept with the vocabulary under the structure of q, so that
//! strings, numbers and dates of all grammars share them. The naive version, which feeds every token's bytes to the
//! machine, is the oracle of `tests/it/grammar/masks.rs`.

mod bound;
mod counted;
mod engine;
mod join;
mod known;
mod language;
mod lazy;
mod lexeme;
mod matcher;
mod memory;
mod show;
mod suffixes;
mod table;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use bound::is_crowded;
pub use bound::{BoundGrammar, GrammarLimits};
