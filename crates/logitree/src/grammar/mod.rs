//! Grammars: what may be written, as bytes. Every syntax (regular expressions, GBNF, Lark, JSON Schema, tags) is read
//! into one inner form and run by one machine.
//!
//! ```text
//! syntaxes -> regex, rules, json -> expr (lazy automata of lexemes) -> machine (pushdown, byte by byte)
//! ```
//!
//! The room refuses to know tokens' bytes and logits: it is bytewise. A terminal that stands for whole tokens is an
//! opaque set of ids to it.

mod append;
pub mod charset;
pub mod dfa;
mod endings;
pub mod expr;
pub mod gbnf;
pub mod json;
pub mod lark;
pub mod lazy;
pub mod machine;
pub mod part;
pub mod pattern;
mod problems;
pub mod regex;
pub mod rules;
pub mod tags;

pub use charset::CharSet;
pub use dfa::Dfa;
pub use regex::Regex;
