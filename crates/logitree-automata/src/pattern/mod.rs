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
//! that names it and its place. Greedy or lazy is one language.
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

use super::problems::Problems;
use super::Regex;
use crate::{Error, ErrorKind, Result};
pub use terms::MAX_WORK;
use terms::{Terms, ANY};
pub use unicode::property;

/// Characters of a pattern at most.
pub const MAX_CHARACTERS: usize = 1_000_000;
/// Groups inside each other at most.
pub const MAX_NESTED: usize = 250;

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
/// once its assertions are resolved; the place is line and column of the first.
pub fn parse(text: &str, options: &Options) -> Result<Regex> {
    let mut work = MAX_WORK;
    parse_within(text, options, &mut work)
}

/// Reads a pattern with what is left of the work that several may take together, and takes its own from that.
///
/// # Errors
/// As [`parse`]'s, earlier where little is left.
pub fn parse_within(text: &str, options: &Options, work: &mut usize) -> Result<Regex> {
    let given = MAX_WORK.min(*work);
    let mut terms = Terms::new(given);
    let read = read_all(&mut terms, text, options);
    *work -= given - terms.work();
    read
}

fn read_all(terms: &mut Terms, text: &str, options: &Options) -> Result<Regex> {
    let node = read::read(terms, text, options).map_err(|problems| error(text, &problems))?;
    let node = match options.scope {
        Scope::Whole => node,
        Scope::Search => node::PatternNode::concat(
            terms,
            vec![node::PatternNode::Plain(ANY), node, node::PatternNode::Plain(ANY)],
        ),
    };
    let language = translate::whole(terms, &node).map_err(|problem| error(text, &[problem]))?;
    let regex = if terms.is_full() { None } else { terms.regex(language) };
    regex.ok_or_else(|| error(text, &[Problem::too_large()]))
}

const TOO_LARGE: &str = "classes, counts and assertions are too much once they are written out";

/// Something wrong in a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    kind: ErrorKind,
    /// The place in the text, counted in characters; `None` where it is about the whole.
    at: Option<usize>,
    message: String,
}

impl Problem {
    fn new(at: usize, message: impl Into<String>) -> Problem {
        Problem { kind: ErrorKind::Constraint, at: Some(at), message: message.into() }
    }

    fn limit(at: usize, message: impl Into<String>) -> Problem {
        Problem { kind: ErrorKind::Limit, at: Some(at), message: message.into() }
    }

    fn unsupported(at: usize, what: &str, place: &str) -> Problem {
        Problem::new(at, format!("{what} {place} is not supported"))
    }

    fn too_large() -> Problem {
        Problem { kind: ErrorKind::Limit, at: None, message: TOO_LARGE.into() }
    }

    /// The same problem, here if nobody said where.
    fn or_at(mut self, at: usize) -> Problem {
        self.at.get_or_insert(at);
        self
    }
}

/// One error of all problems.
fn error(text: &str, problems: &[Problem]) -> Error {
    let mut offsets: Vec<usize> = text.char_indices().map(|(offset, _)| offset).collect();
    offsets.push(text.len());
    let mut all = Problems::default();
    for problem in problems {
        all.add(offsets[problem.at.unwrap_or(0).min(offsets.len() - 1)], problem.message.as_str(), "");
    }
    match all.finish(text, "the regular expression") {
        Err(mut error) => {
            if problems.iter().all(|problem| problem.kind == ErrorKind::Limit) {
                error.kind = ErrorKind::Limit;
            }
            error
        }
        Ok(()) => Error::new(ErrorKind::Limit, TOO_LARGE),
    }
}
