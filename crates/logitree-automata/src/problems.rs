//! Collects what is wrong in a text and reports it as one error with the line and column, or the JSON pointer,
//! of each problem.

pub use crate::spelling::did_you_mean;
use crate::{Error, ErrorKind, Result};

/// How many problems are listed; the rest are counted.
pub const LISTED: usize = 30;

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    kind: ErrorKind,
    /// Byte offset in the text, 0 if unknown; the order of insertion for problems with a pointer.
    at: Option<usize>,
    /// JSON pointer, for values that are not text.
    pointer: Option<String>,
    message: String,
    help: String,
}

impl Problem {
    /// Something wrong at the byte offset `at`.
    pub fn new(at: usize, message: impl Into<String>) -> Problem {
        let (kind, message) = (ErrorKind::Constraint, message.into());
        Problem { kind, at: Some(at), pointer: None, message, help: String::new() }
    }

    /// A limit that was reached, at an offset if it is known.
    pub fn limit(at: Option<usize>, message: impl Into<String>) -> Problem {
        Problem { kind: ErrorKind::Limit, at, ..Problem::new(0, message) }
    }

    /// The same problem, at `at` if it has no offset.
    #[must_use]
    pub fn or_at(mut self, at: usize) -> Problem {
        self.at.get_or_insert(at);
        self
    }

    /// The same problem at another offset, computed from its own.
    #[must_use]
    pub fn moved(mut self, to: impl FnOnce(usize) -> usize) -> Problem {
        self.at = self.at.map(to);
        self
    }

    fn offset(&self) -> usize {
        self.at.unwrap_or(0)
    }
}

/// All problems of one text.
#[derive(Debug, Default)]
pub struct Problems {
    found: Vec<Problem>,
    unlisted: usize,
}

impl Problems {
    /// Adds a problem at the byte offset `at`, with how to fix it.
    pub fn add(&mut self, at: usize, message: impl Into<String>, help: impl Into<String>) {
        self.push(Problem { help: help.into(), ..Problem::new(at, message) });
    }

    /// Adds a problem at a JSON pointer.
    pub fn add_at(&mut self, pointer: &str, message: impl Into<String>, help: impl Into<String>) {
        let pointer = if pointer.is_empty() { "the top" } else { pointer };
        let (at, pointer) = (self.found.len(), Some(pointer.into()));
        self.push(Problem { pointer, help: help.into(), ..Problem::new(at, message) });
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        if self.found.len() < LISTED {
            self.found.push(problem);
        } else {
            self.unlisted += 1;
        }
    }

    /// Adds the error of another reader for a part of the text that starts at `at`.
    pub fn take(&mut self, at: usize, error: &Error) {
        self.add(at, with_place(error), error.help.clone());
    }

    /// Adds the error of another reader for the value at a JSON pointer.
    pub fn take_at(&mut self, pointer: &str, error: &Error) {
        self.add_at(pointer, with_place(error), error.help.clone());
    }

    /// Counts problems that will not be listed.
    pub fn add_unlisted(&mut self, count: usize) {
        self.unlisted += count;
    }

    /// Whether no problem was found.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether further problems would only be counted, so that reading can stop.
    pub fn is_full(&self) -> bool {
        self.found.len() == LISTED
    }

    /// The number of listed problems; [`Problems::forget`] removes those found later.
    pub fn mark(&self) -> usize {
        self.found.len()
    }

    /// Removes the problems found after `mark`: they followed from another problem.
    pub fn forget(&mut self, mark: usize) {
        self.found.truncate(mark);
    }

    /// The error that lists all problems, if there are any. `what` names the text: "the GBNF grammar".
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if anything was found, [`ErrorKind::Limit`] if nothing but limits.
    pub fn finish(mut self, text: &str, what: &str) -> Result<()> {
        self.found.sort_by_key(Problem::offset);
        let places = places(text, self.found.iter().map(Problem::offset));
        self.report(&places, what)
    }

    /// The same for problems with pointers.
    ///
    /// # Errors
    /// As [`Problems::finish`].
    pub fn finish_pointers(self, what: &str) -> Result<()> {
        let places: Vec<String> =
            self.found.iter().map(|problem| problem.pointer.clone().unwrap_or_default()).collect();
        self.report(&places, what)
    }

    fn report(&self, places: &[String], what: &str) -> Result<()> {
        let Some(first) = places.first() else { return Ok(()) };
        let limits = self.found.iter().all(|problem| problem.kind == ErrorKind::Limit);
        let kind = if limits { ErrorKind::Limit } else { ErrorKind::Constraint };
        if let [only] = &self.found[..] {
            let error = Error::new(kind, format!("{} in {what}", only.message));
            return Err(error.at(first).help(&only.help));
        }
        let mut message = format!("{} problems in {what}:", self.found.len() + self.unlisted);
        for (problem, place) in self.found.iter().zip(places) {
            let help = if problem.help.is_empty() { String::new() } else { format!(" ({})", problem.help) };
            message.push_str(&format!("\n  {place}: {}{help}", problem.message));
        }
        if self.unlisted > 0 {
            message.push_str(&format!("\n  and {} more", self.unlisted));
        }
        Err(Error::new(kind, message).at(first))
    }
}

/// An error's message with its place within the part.
fn with_place(error: &Error) -> String {
    if error.place.is_empty() {
        return error.message.clone();
    }
    format!("{} (at {})", error.message, error.place)
}

/// `line:column` of ascending byte offsets; both count from 1, the column in characters.
fn places(text: &str, offsets: impl Iterator<Item = usize>) -> Vec<String> {
    let (mut line, mut column, mut seen) = (1, 1, 0);
    let count = |offset: usize| {
        for (at, c) in text[seen..].char_indices() {
            if seen + at >= offset {
                seen += at;
                return format!("{line}:{column}");
            }
            if c == '\n' {
                (line, column) = (line + 1, 1);
            } else {
                column += 1;
            }
        }
        seen = text.len();
        format!("{line}:{column}")
    };
    offsets.map(count).collect()
}

/// The text at `at`, short enough for a message.
pub fn excerpt(text: &str, at: usize) -> String {
    let rest = text[at..].lines().next().unwrap_or("").trim_end();
    if rest.is_empty() {
        return if at < text.len() { "the end of the line".into() } else { "the end of the text".into() };
    }
    let mut short: String = rest.chars().take(20).collect();
    if short.len() < rest.len() {
        short.push_str("...");
    }
    format!("`{short}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_problem_is_the_error() {
        let mut problems = Problems::default();
        problems.add(5, "a stray `x`", "take it out");
        let error = problems.finish("ab\néx", "the text").unwrap_err();
        assert_eq!(error.to_string(), "a stray `x` in the text (at 2:2); take it out");
        assert!(Problems::default().finish("", "the text").is_ok());
    }

    #[test]
    fn several_are_listed_in_the_order_of_the_text() {
        let mut problems = Problems::default();
        for at in (0..LISTED + 7).rev() {
            problems.add(at, "bad", "");
        }
        let text = "\n".repeat(100);
        let error = problems.finish(&text, "it").unwrap_err();
        assert!(error.message.starts_with("37 problems in it:\n  8:1: bad\n  9:1: bad"), "{error}");
        assert!(error.message.ends_with("\n  and 7 more"), "{error}");
        assert_eq!(error.place, "8:1");
    }
}
