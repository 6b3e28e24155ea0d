//! Regular languages over bytes: patterns, character sets, lazy automata built by derivatives, and minimal automata.
//!
//! ```text
//! text -> pattern -> regex (code points) -> expr (bytes, derived where it is walked)
//!                            dfa (a finished automaton) ---^
//! ```
//!
//! ```
//! use logitree_automata::expr::{Encoding, Exprs};
//! use logitree_automata::pattern::{parse, PatternOptions};
//!
//! let digits = parse("[0-9]+", &PatternOptions::WHOLE)?;
//! let mut exprs = Exprs::new(1 << 16);
//! let number = exprs.compile(&digits, Encoding::Utf8)?;
//! assert!(exprs.matches(number, b"42")?);
//! assert!(!exprs.matches(number, b"4x")?);
//! # Ok::<(), logitree_automata::Error>(())
//! ```
//!
//! The crate also holds the error type and the list of problems that every reader of a syntax reports.

pub mod charset;
mod chunks;
pub mod dfa;
#[doc(hidden)] // how lexemes end
pub mod endings;
pub mod error;
pub mod expr;
mod id;
mod id_table;
pub mod interrupt;
pub mod pattern;
#[doc(hidden)] // the readers of syntaxes report with it
pub mod problems;
pub mod regex;
#[doc(hidden)] // suggestions of messages
pub mod spelling;
#[doc(hidden)] // room for recursion
pub mod stack;

pub use charset::CharSet;
#[doc(hidden)] // tables of the recogniser
pub use chunks::Chunks;
pub use dfa::Dfa;
pub use error::{Error, ErrorKind, Result};
#[doc(hidden)] // tables of the recogniser
pub use id_table::IdTable;
pub use interrupt::Interrupt;
pub use regex::Regex;
