//! Reads GBNF, the grammars of llama.cpp (`grammars/README.md` and `src/llama-grammar.cpp` there), into
//! [`Rules`].
//!
//! Extensions: left recursion, repetitions of any size (counted, never unrolled), `_` in names, and lines that
//! continue with `|`. Rejected although llama.cpp accepts it: a rule defined twice (there the last one wins),
//! an empty class `[]`, a reversed range, a repetition whose maximum is less than its minimum.

mod characters;
mod names;
mod read;

use super::rules::Rules;
use crate::Result;

/// Reads a grammar with the start rule `root`.
///
/// # Errors
/// [`crate::ErrorKind::Constraint`] with every problem of the text, each with its line, its column and how to
/// fix it.
///
/// # Examples
/// ```
/// let rules = logitree_grammar::gbnf::parse("root ::= [a-z]+ (\",\" root)?")?;
/// assert_eq!(rules.rules[rules.start.index()].name, "root");
/// # Ok::<(), logitree_grammar::Error>(())
/// ```
pub fn parse(text: &str) -> Result<Rules> {
    parse_from(text, "root")
}

/// Reads a grammar with the start rule `start`.
///
/// # Errors
/// As [`parse`].
pub fn parse_from(text: &str, start: &str) -> Result<Rules> {
    read::rules(text, start)
}
