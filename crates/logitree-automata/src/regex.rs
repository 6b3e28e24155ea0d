//! Regular languages over code points as plain data: what every syntax is read into before it is compiled.

use std::sync::Arc;

use super::dfa::ComputedDfa;
use super::expr::nested_counts;
use super::{CharSet, Dfa};

/// A regular language over Unicode scalar values. It matches whole strings: it has no anchors.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Regex {
    /// No string.
    Nothing,
    /// The empty string.
    Empty,
    /// One character of the set.
    Set(CharSet),
    /// This string.
    Text(String),
    /// Concatenation.
    Concat(Vec<Regex>),
    /// Union; an empty list is [`Regex::Nothing`].
    Or(Vec<Regex>),
    /// Intersection; an empty list is every string.
    And(Vec<Regex>),
    /// Complement.
    Not(Box<Regex>),
    /// At least `min` and at most `max` repetitions. Counted, never unrolled.
    Repeat {
        /// What is repeated.
        of: Box<Regex>,
        /// The minimum count.
        min: u32,
        /// The maximum count; `None` is unbounded.
        max: Option<u32>,
    },
    /// The language of an automaton over the bytes of UTF-8.
    Automaton(Arc<Dfa>),
    /// The language of an automaton over the bytes of UTF-8 whose states are computed.
    Computed(Arc<ComputedDfa>),
}

impl Regex {
    /// The string itself.
    pub fn text(text: impl Into<String>) -> Regex {
        let text = text.into();
        if text.is_empty() {
            Regex::Empty
        } else {
            Regex::Text(text)
        }
    }

    /// Every string.
    pub fn anything() -> Regex {
        Regex::Set(CharSet::all()).repeat(0, None)
    }

    /// One character from `from` to `to`, both included.
    pub fn range(from: char, to: char) -> Regex {
        Regex::Set(CharSet::range(from, to))
    }

    /// Concatenation.
    pub fn concat(parts: impl IntoIterator<Item = Regex>) -> Regex {
        Regex::Concat(parts.into_iter().collect())
    }

    /// Union.
    pub fn or(parts: impl IntoIterator<Item = Regex>) -> Regex {
        Regex::Or(parts.into_iter().collect())
    }

    /// Intersection.
    pub fn and(parts: impl IntoIterator<Item = Regex>) -> Regex {
        Regex::And(parts.into_iter().collect())
    }

    /// Complement.
    #[must_use]
    #[allow(clippy::should_implement_trait)] // the name the field uses
    pub fn not(self) -> Regex {
        Regex::Not(Box::new(self))
    }

    /// At least `min` and at most `max` repetitions. Of a repetition it is one repetition where that is exact.
    #[must_use]
    pub fn repeat(self, min: u32, max: Option<u32>) -> Regex {
        if let Regex::Repeat { of, min: least, max: most } = &self {
            if let Some((min, max)) = nested_counts((*least, *most), (min, max)) {
                return Regex::Repeat { of: of.clone(), min, max };
            }
        }
        Regex::Repeat { of: Box::new(self), min, max }
    }

    /// Zero or one repetition.
    #[must_use]
    pub fn optional(self) -> Regex {
        self.repeat(0, Some(1))
    }
}
