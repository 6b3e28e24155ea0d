//! Regular expressions over bytes as hash-consed nodes, and their derivatives: a deterministic automaton whose
//! states are built on demand (Brzozowski 1964; Owens, Reppy, Turon 2009).
//!
//! An expression's derivative by a byte is the language of what may follow that byte. Equal expressions have
//! one id, so an expression is a state of its own automaton. Intersection and complement are exact:
//! [`Exprs::derive`] returns [`NOTHING`] exactly if no string matches.
//!
//! ```text
//! (a|b)*c   by a: (a|b)*c    by c: the empty text    by d: NOTHING
//! ```
//!
//! The naive version, a set of positions in the expression, is the oracle of `tests/it/exprs.rs`.

mod alive;
mod alternatives;
mod automaton;
mod bounded_loop;
mod build;
mod byteset;
mod classes;
mod compile;
mod computed;
mod counts;
mod derive;
mod determine;
mod encode;
mod finite;
mod literals;
mod meeting;
mod necessary;
mod node;
mod parting;
mod saturate;
mod show;
mod spelled;
#[cfg(test)]
mod testing;
mod widen;

#[doc(hidden)] // masks of grammars
pub use bounded_loop::{BoundedLoop, CountedText};
pub use byteset::ByteSet;
#[doc(hidden)] // masks of grammars
pub use counts::{nested_counts, Counts};
#[doc(hidden)] // masks of grammars
pub use meeting::{Meeting, MAX_MEETING};
pub(crate) use necessary::Contained;
pub(super) use node::digest;
pub use node::{Exprs, StructureHash};

/// The id of an expression in its [`Exprs`]. Equal ids are equal languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

/// The empty language.
pub const NOTHING: ExprId = ExprId(0);
/// The empty string only, with tag 0.
pub const EMPTY: ExprId = ExprId(1);

/// Identifies the alternative that is complete; 0 if none was given.
pub type Tag = u32;

/// How a code point is written in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// The content of a JSON string in the spelling of Python's `json.dumps`: `\"`, `\\`, `\b`, `\f`, `\n`,
    /// `\r`, `\t`, `\u00xx` for the other control characters. Everything else is UTF-8, or `\uxxxx` (surrogate
    /// pairs past the first plane) if `ascii` is set.
    Json {
        /// Whether characters past U+007F are escaped.
        ascii: bool,
    },
    /// The content of a JSON string in every spelling that JSON has: each character as it is, where JSON allows that, and
    /// by each of its escapes. Computed automata are of numbers and keep their one spelling.
    AnyJson {
        /// Whether characters past U+007F are escaped.
        ascii: bool,
    },
}
