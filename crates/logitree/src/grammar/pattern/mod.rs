//! Regular expressions as people write them in schemas and grammars: ECMA-262 with what RE2, Python and PCRE write
//! beside it, read into a [`Regex`].
//!
//! ```text
//! text -> read (node: plain languages and assertions) -> translate (no assertions left) -> Regex
//! ```
//!
//! Meanings are ECMA-262's: `\d` and `\w` are ASCII, `\s` is Unicode's white space, `$` is the end and not the last new
//! line, `[]` matches nothing. What ECMA-262 has not is taken where the others agree: POSIX classes, `\A`, `\z`, `\Z` (the
//! end), `(?P<name>..)`, flags such as `(?i)` and `(?s:..)`, `\x{..}`, comments. What no regular language can say
//! (backreferences, recursion), or what changes the way of matching (atomic groups, possessive quantifiers), is an error
//! that names it and its column. Greedy or lazy is one language.
//!
//! Anchors, word boundaries, lookaheads and lookbehinds may stand anywhere; what is left of them is exact. It refuses to
//! know JSON and bytes.

mod class;
mod escape;
mod group;
mod node;
mod read;
mod terms;
mod tracker;
mod translate;
mod unicode;

use super::Regex;
use crate::{Error, ErrorKind, Result};
use terms::{Terms, ANY};

/// Characters of a pattern at most.
pub const MOST_CHARACTERS: usize = 1_000_000;
/// Groups inside each other at most.
pub const MOST_NESTED: usize = 250;

/// How much of a text a pattern speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The whole text matches.
    Whole,
    /// Some part of the text matches, as `pattern` of JSON Schema means it.
    Search,
}

/// What ends a line, for `.` and for `^` and `$` in multi-line mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Lines {
    /// Line feed, carriage return, U+2028 and U+2029, as ECMA-262 says.
    #[default]
    Ecma,
    /// Line feed only, as RE2, Python and PCRE say.
    LineFeed,
}

/// The letters that may stand in `(?..)`, where they hold from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags {
    /// `i`: letters stand for both cases, by Unicode's simple folding.
    pub ignore_case: bool,
    /// `m`: `^` and `$` also hold at lines' ends.
    pub multi_line: bool,
    /// `s`: `.` is every character.
    pub dot_all: bool,
    /// `x`: white space and `#` comments outside classes mean nothing.
    pub extended: bool,
}

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Options {
    /// How much of a text it speaks of.
    pub scope: Scope,
    /// What ends a line.
    pub lines: Lines,
    /// Flags from the start.
    pub flags: Flags,
}

impl Options {
    /// As `pattern` and `patternProperties` of JSON Schema mean it.
    pub const SEARCH: Options = Options::new(Scope::Search);
    /// The whole text matches.
    pub const WHOLE: Options = Options::new(Scope::Whole);

    const fn new(scope: Scope) -> Options {
        let flags = Flags { ignore_case: false, multi_line: false, dot_all: false, extended: false };
        Options { scope, lines: Lines::Ecma, flags }
    }
}

/// Reads a pattern.
///
/// # Errors
/// [`ErrorKind::Constraint`] with all that is wrong in it, [`ErrorKind::Limit`] if it is too long, too deep, or too large
/// once its assertions are resolved; the place is the column (in characters, from 1) of the first.
pub fn parse(text: &str, options: &Options) -> Result<Regex> {
    let mut terms = Terms::new();
    let node = read::read(&mut terms, text, options).map_err(|problems| error(&problems))?;
    let node = match options.scope {
        Scope::Whole => node,
        Scope::Search => {
            node::Node::concat(&mut terms, vec![node::Node::Plain(ANY), node, node::Node::Plain(ANY)])
        }
    };
    let language = translate::whole(&mut terms, &node).map_err(|problem| error(&[problem]))?;
    let regex = if terms.is_full() { None } else { terms.regex(language) };
    regex.ok_or_else(|| error(&[Problem::too_large()]))
}

/// Something wrong in a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    kind: ErrorKind,
    /// From 1; 0 where it is about the whole pattern.
    column: usize,
    message: String,
}

impl Problem {
    fn new(column: usize, message: impl Into<String>) -> Problem {
        Problem { kind: ErrorKind::Constraint, column, message: message.into() }
    }

    fn limit(column: usize, message: impl Into<String>) -> Problem {
        Problem { kind: ErrorKind::Limit, column, message: message.into() }
    }

    fn unsupported(column: usize, what: &str, place: &str) -> Problem {
        Problem::new(column, format!("{what} {place} is not supported"))
    }

    fn too_large() -> Problem {
        Problem::limit(0, "the pattern is too large once its classes, counts and assertions are written out")
    }
}

/// One error of all problems.
fn error(problems: &[Problem]) -> Error {
    let limits = problems.iter().all(|p| p.kind == ErrorKind::Limit);
    let kind = if limits { ErrorKind::Limit } else { ErrorKind::Constraint };
    let first = problems.iter().map(|p| p.column).min().unwrap_or(0);
    let message = match problems {
        [only] => only.message.clone(),
        _ => {
            let all = problems.iter().map(|p| format!("{} (column {})", p.message, p.column));
            format!("{} problems: {}", problems.len(), all.collect::<Vec<_>>().join("; "))
        }
    };
    let error = Error::new(kind, message);
    if first > 0 {
        error.at(format!("column {first}"))
    } else {
        error
    }
}
