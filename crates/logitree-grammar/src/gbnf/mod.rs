//! GBNF, the grammars of llama.cpp (`grammars/README.md` and `src/llama-grammar.cpp` there), read into [`Rules`] and
//! written from them.
//!
//! Taken beyond llama.cpp: left recursion, repetitions of any size (counted, never unrolled), `_` in names, and a line
//! that goes on with `|`. Not taken although llama.cpp takes it: a rule defined twice (there the last one wins), an
//! empty class `[]`, a range from back to front, a repetition whose most is less than its least.
//!
//! It refuses to know how rules are run, and which tokens exist.

mod characters;
mod names;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub use write::{show, write};

use super::rules::Rules;
use crate::Result;

/// The grammar that `text` says, from its rule `root`.
///
/// # Errors
/// [`crate::ErrorKind::Constraint`] with every problem of the text, each with line, column and the way out.
///
/// # Examples
/// ```
/// let rules = logitree::grammar::gbnf::parse("root ::= [a-z]+ (\",\" root)?")?;
/// assert_eq!(rules.rules[rules.start].name, "root");
/// # Ok::<(), logitree::Error>(())
/// ```
pub fn parse(text: &str) -> Result<Rules> {
    parse_from(text, "root")
}

/// The grammar that `text` says, from the rule `start`.
///
/// # Errors
/// As [`parse`].
pub fn parse_from(text: &str, start: &str) -> Result<Rules> {
    read::rules(text, start)
}
