//! Reads GBNF, the grammars of llama.cpp (`grammars/README.md` and `src/llama-grammar.cpp` there), and EBNF, those of
//! XGrammar ("EBNF Grammar" in its documentation), into [`Rules`].
//!
//! Extensions of GBNF: left recursion, repetitions of any size (counted, never unrolled), `_` in names, and lines that
//! continue with `|`. Rejected although llama.cpp accepts it: a rule defined twice (there the last one wins),
//! an empty class `[]`, a reversed range, a repetition whose maximum is less than its minimum.
//!
//! EBNF has more escapes, names with dots, line ends wherever white space may be, macros (`Regex`, `Substring`,
//! `TagDispatch`, `TokenTagDispatch`, `Token`, `ExcludeToken`) and options of rules: `lazy`, `max_chars` and `max_tokens`
//! of rules that are one regular expression, and `capture` and `temperature`, which change no text. A look-ahead `(= ...)` at
//! the end of a rule repeats what follows the rule anyway: it is read and has no effect, as in XGrammar, where it only makes
//! masks faster. GBNF's token terminals are read in EBNF, too.

mod attributes;
mod characters;
mod macros;
mod names;
mod read;

use std::fmt;

use super::rules::Rules;
use crate::Result;

/// Whose notation a text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// llama.cpp's.
    Gbnf,
    /// XGrammar's.
    Ebnf,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Gbnf => "GBNF",
            Dialect::Ebnf => "EBNF",
        })
    }
}

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
    read::rules(text, start, Dialect::Gbnf)
}

/// Reads a grammar of XGrammar with the start rule `start`.
///
/// # Errors
/// As [`parse`].
///
/// # Examples
/// ```
/// let text = "root ::= Regex(\"[a-z]+\") end\nend[lazy] ::= [^]* \"!\"";
/// let rules = logitree_grammar::gbnf::parse_ebnf(text, "root")?;
/// assert_eq!(rules.rules.len(), 2);
/// # Ok::<(), logitree_grammar::Error>(())
/// ```
pub fn parse_ebnf(text: &str, start: &str) -> Result<Rules> {
    read::rules(text, start, Dialect::Ebnf)
}
