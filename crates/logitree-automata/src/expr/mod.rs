//! Byte-level regular expressions as hash-consed nodes, and their derivatives: a deterministic automaton that is built
//! state by state, where it is walked.
//!
//! An expression's derivative by a byte is what may follow that byte; equal expressions have one number, so an
//! expression is a state of its own automaton. And, or and not are exact: what [`Exprs::derive`] hands out is
//! [`NOTHING`] exactly if no text matches it.
//!
//! ```text
//! (a|b)*c   by a: (a|b)*c    by c: the empty text    by d: NOTHING
//! ```
//!
//! The naive version, a set of positions in the expression, is the oracle of `tests/grammar_exprs.rs`. The room
//! refuses to know rules, tokens and schemas.

mod alive;
mod alternatives;
mod automaton;
mod bounded_loop;
mod build;
mod byteset;
mod classes;
mod compile;
mod derive;
mod encode;
mod finite;
mod literals;
mod node;
mod saturate;
mod show;
mod widen;

pub use bounded_loop::BoundedLoop;
pub use byteset::ByteSet;
pub(super) use node::digest;
pub use node::{Exprs, StructureHash};

/// A number of an expression in its [`Exprs`]; equal numbers are equal languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

/// Matches nothing.
pub const NOTHING: ExprId = ExprId(0);
/// Matches the empty text only, with tag 0.
pub const EMPTY: ExprId = ExprId(1);

/// What an alternative says when it is complete: 0 where nobody said anything.
pub type Tag = u32;

/// How a code point is written in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// As it stands between the quotes of a JSON string, in the one spelling that Python's `json.dumps` writes: `\"`,
    /// `\\`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u00xx` for the other control characters, everything else as UTF-8, or as
    /// `\uxxxx` (pairs of surrogates past the first plane) where `ascii` says so.
    Json {
        /// Whether everything past U+007F is escaped.
        ascii: bool,
    },
}
