//! Reads regular expressions as schemas and grammars contain them: ECMA-262 with extensions of RE2, Python and
//! PCRE, read into a [`Regex`].
//!
//! ```text
//! text -> read (node: plain languages and assertions) -> translate (no assertions left) -> Regex
//! ```
//!
//! The semantics are ECMA-262's: `\d` and `\w` are ASCII, `\s` is Unicode white space, `$` is the end and not
//! the last line break, `[]` matches nothing. Syntax that ECMA-262 lacks is accepted where the other dialects
//! agree: POSIX classes, `\A`, `\z`, `\Z` (the end), `(?P<name>..)`, flags such as `(?i)` and `(?s:..)`,
//! `\x{..}`, comments. Constructs that are not regular (backreferences, recursion) or that change the search
//! order (atomic groups, possessive quantifiers) are errors that name the construct and its place. Greedy and
//! lazy quantifiers describe the same language.
//!
//! Anchors, word boundaries, lookaheads and lookbehinds may occur anywhere; they are resolved exactly.

mod class;
mod escape;
mod group;
mod node;
mod read;
mod terms;
mod tracker;
mod translate;
mod unicode;

use super::problems::{Problem, Problems};
use super::Regex;
use crate::stack::with_room;
use crate::{Error, ErrorKind, Result};
#[doc(hidden)] // the readers of syntaxes
pub use terms::MAX_WORK;
use terms::{Terms, ANY};
#[doc(hidden)] // the readers of syntaxes
pub use unicode::{fold, property};

/// Maximum number of characters of a pattern.
pub const MAX_CHARACTERS: usize = 1_000_000;
/// Maximum nesting of groups.
pub const MAX_NESTED: usize = 250;

/// Whether a pattern matches the whole string or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchScope {
    /// The whole string.
    Whole,
    /// Some substring, as `pattern` of JSON Schema.
    Search,
}

/// The line terminators for `.`, and for `^` and `$` in multi-line mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LineEnds {
    /// Line feed, carriage return, U+2028 and U+2029, as in ECMA-262.
    #[default]
    Ecma,
    /// Line feed only, as in RE2, Python and PCRE.
    LineFeed,
}

/// The flags of `(?..)`, set from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PatternFlags {
    /// `i`: ignore case, by Unicode's simple case folding.
    pub ignore_case: bool,
    /// `m`: `^` and `$` also match at line ends.
    pub multi_line: bool,
    /// `s`: `.` matches every character.
    pub dot_all: bool,
    /// `x`: white space and `#` comments outside classes are ignored.
    pub extended: bool,
}

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PatternOptions {
    /// Whole string or substring.
    pub scope: MatchScope,
    /// The line terminators.
    pub lines: LineEnds,
    /// The flags from the start.
    pub flags: PatternFlags,
}

impl PatternOptions {
    /// As `pattern` and `patternProperties` of JSON Schema.
    pub const SEARCH: PatternOptions = PatternOptions::new(MatchScope::Search);
    /// The whole string matches.
    pub const WHOLE: PatternOptions = PatternOptions::new(MatchScope::Whole);

    const fn new(scope: MatchScope) -> PatternOptions {
        let flags = PatternFlags { ignore_case: false, multi_line: false, dot_all: false, extended: false };
        PatternOptions { scope, lines: LineEnds::Ecma, flags }
    }
}

/// Reads a pattern.
///
/// # Errors
/// [`ErrorKind::Constraint`] with every problem of the pattern; [`ErrorKind::Limit`] if it is too long, too
/// deep, or too large once its assertions are resolved. The place is the line and column of the first problem.
pub fn parse(text: &str, options: &PatternOptions) -> Result<Regex> {
    let mut work = MAX_WORK;
    parse_within(text, options, &mut work)
}

/// Reads a pattern within a work budget that several patterns share, and deducts the work done.
///
/// # Errors
/// As [`parse`], with less work allowed if the budget is low.
pub fn parse_within(text: &str, options: &PatternOptions, work: &mut usize) -> Result<Regex> {
    let given = MAX_WORK.min(*work);
    let mut terms = Terms::new(given);
    let read = with_room(|| read_all(&mut terms, text, options));
    *work -= given - terms.work();
    read
}

fn read_all(terms: &mut Terms, text: &str, options: &PatternOptions) -> Result<Regex> {
    let node = read::read(terms, text, options).map_err(|problems| error(text, problems))?;
    let node = match options.scope {
        MatchScope::Whole => node,
        MatchScope::Search => node::PatternNode::concat(
            terms,
            vec![node::PatternNode::Plain(ANY), node, node::PatternNode::Plain(ANY)],
        ),
    };
    let language = translate::whole(terms, &node).map_err(|problem| error(text, [problem]))?;
    let regex = if terms.is_full() { None } else { terms.regex(language) };
    regex.ok_or_else(|| error(text, [too_large()]))
}

const TOO_LARGE: &str = "classes, counts and assertions are too much once they are written out";

fn too_large() -> Problem {
    Problem::limit(None, TOO_LARGE)
}

fn unsupported(at: usize, what: &str, place: &str) -> Problem {
    Problem::new(at, format!("{what} {place} is not supported"))
}

/// One error for all problems, whose offsets count characters.
fn error(text: &str, problems: impl IntoIterator<Item = Problem>) -> Error {
    let mut offsets: Vec<usize> = text.char_indices().map(|(offset, _)| offset).collect();
    offsets.push(text.len());
    let mut all = Problems::default();
    problems.into_iter().for_each(|p| all.push(p.moved(|at| offsets[at.min(offsets.len() - 1)])));
    let failed = all.finish(text, "the regular expression");
    failed.err().unwrap_or_else(|| Error::new(ErrorKind::Limit, TOO_LARGE))
}
