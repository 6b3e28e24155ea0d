//! Regular languages over bytes: patterns, character sets, lazy automata built by derivatives, and minimal automata.
//!
//! ```text
//! text -> pattern -> regex (code points) -> expr (bytes, derived where it is walked)
//!                            dfa (a finished automaton) ---^
//! ```
//!
//! The crate also holds the error type and the list of problems that every reader of a syntax reports.

pub mod charset;
mod chunks;
pub mod dfa;
pub mod endings;
pub mod error;
pub mod expr;
mod id;
mod id_table;
pub mod interrupt;
pub mod pattern;
pub mod problems;
pub mod regex;
pub mod spelling;
pub mod stack;

pub use charset::CharSet;
pub use chunks::Chunks;
pub use dfa::Dfa;
pub use error::{Error, ErrorKind, Result};
pub use id_table::IdTable;
pub use interrupt::Interrupt;
pub use regex::Regex;
