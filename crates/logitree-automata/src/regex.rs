//! Regular languages over code points, as plain data: what every reader of a syntax produces, before anything is
//! compiled. It refuses to know tags and how languages are compiled.

use std::sync::Arc;

use super::{CharSet, Dfa};

/// A regular language over Unicode scalar values. A value matches as a whole: there are no anchors here.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Regex {
    /// No text at all.
    Nothing,
    /// The empty text.
    Empty,
    /// One character of the set.
    Set(CharSet),
    /// This text.
    Text(String),
    /// One after the other.
    Concat(Vec<Regex>),
    /// Any of these; none is [`Regex::Nothing`].
    Or(Vec<Regex>),
    /// All of these at once; none is every text.
    And(Vec<Regex>),
    /// Every text that does not match.
    Not(Box<Regex>),
    /// At least `min` times and at most `max` times, where there is a most. Counted, never unrolled.
    Repeat {
        /// What is repeated.
        of: Box<Regex>,
        /// How often at least.
        min: u32,
        /// How often at most; `None` is without end.
        max: Option<u32>,
    },
    /// What an automaton over ASCII reads.
    Automaton(Arc<Dfa>),
}

impl Regex {
    /// The text as it stands.
    pub fn text(text: impl Into<String>) -> Regex {
        let text = text.into();
        if text.is_empty() {
            Regex::Empty
        } else {
            Regex::Text(text)
        }
    }

    /// Every text.
    pub fn anything() -> Regex {
        Regex::Set(CharSet::all()).repeat(0, None)
    }

    /// One character from `from` to `to`, both included.
    pub fn range(from: char, to: char) -> Regex {
        Regex::Set(CharSet::range(from, to))
    }

    /// One after the other.
    pub fn concat(parts: impl IntoIterator<Item = Regex>) -> Regex {
        Regex::Concat(parts.into_iter().collect())
    }

    /// Any of these.
    pub fn or(parts: impl IntoIterator<Item = Regex>) -> Regex {
        Regex::Or(parts.into_iter().collect())
    }

    /// All of these at once.
    pub fn and(parts: impl IntoIterator<Item = Regex>) -> Regex {
        Regex::And(parts.into_iter().collect())
    }

    /// Every text that does not match.
    #[must_use]
    #[allow(clippy::should_implement_trait)] // the name the field uses
    pub fn not(self) -> Regex {
        Regex::Not(Box::new(self))
    }

    /// At least `min` times and at most `max` times.
    #[must_use]
    pub fn repeat(self, min: u32, max: Option<u32>) -> Regex {
        Regex::Repeat { of: Box::new(self), min, max }
    }

    /// Once or not at all.
    #[must_use]
    pub fn optional(self) -> Regex {
        self.repeat(0, Some(1))
    }
}
