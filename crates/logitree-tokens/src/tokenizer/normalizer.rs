//! What is done to a text before it is cut into pieces and merged.

use std::borrow::Cow;

use logitree_automata::{pattern, CharSet};
use unicode_normalization::UnicodeNormalization;

use super::splitter::Splitter;

/// SentencePiece's space.
pub(super) const MARK: char = '\u{2581}';

/// A normalization form of Unicode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

/// One step.
pub(super) enum Change {
    /// In front of a text that is not empty.
    Prepend(Box<str>),
    Replace(Box<str>, Box<str>),
    /// The matches of a pattern.
    ReplaceMatches(Box<Splitter>, Box<str>),
    Form(Form),
    Lowercase,
    /// Without characters of a set.
    Remove(CharSet),
    /// Without white space at its begin, at its end.
    Strip(bool, bool),
}

/// The steps in turn.
#[derive(Default)]
pub(super) struct Normalizer(pub Vec<Change>);

impl Normalizer {
    /// Without combining marks.
    pub fn strip_accents() -> Change {
        Change::Remove(pattern::property("M").unwrap_or_default())
    }

    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.iter().fold(Cow::Borrowed(text), |text, change| match change.apply(&text) {
            Some(changed) => Cow::Owned(changed),
            None => text,
        })
    }

    /// Whether texts that differ by more than their normalization form become the same.
    pub fn loses(&self) -> bool {
        self.0.iter().any(|change| match change {
            Change::Prepend(text) => !matches!(&**text, " " | "\u{2581}"),
            Change::Replace(from, to) => (&**from, &**to) != (" ", "\u{2581}"),
            Change::Form(form) => matches!(form, Form::Nfkc | Form::Nfkd),
            _ => true,
        })
    }
}

impl Change {
    /// The text after it; `None` if it stays as it is.
    fn apply(&self, text: &str) -> Option<String> {
        match self {
            Change::Prepend(front) => (!text.is_empty()).then(|| format!("{front}{text}")),
            Change::Replace(from, to) => text.contains(&**from).then(|| text.replace(&**from, to)),
            Change::ReplaceMatches(splitter, to) => {
                let mut changed = String::with_capacity(text.len());
                splitter.matches(text, |part, is_match| changed.push_str(if is_match { to } else { part }));
                Some(changed)
            }
            Change::Form(_) if text.is_ascii() => None,
            Change::Form(Form::Nfc) => Some(text.nfc().collect()),
            Change::Form(Form::Nfd) => Some(text.nfd().collect()),
            Change::Form(Form::Nfkc) => Some(text.nfkc().collect()),
            Change::Form(Form::Nfkd) => Some(text.nfkd().collect()),
            Change::Lowercase => Some(text.chars().flat_map(char::to_lowercase).collect()),
            Change::Remove(set) => Some(text.chars().filter(|&c| !set.contains(c)).collect()),
            Change::Strip(left, right) => {
                let text = if *left { text.trim_start() } else { text };
                Some(if *right { text.trim_end() } else { text }.to_string())
            }
        }
    }
}

/// A space that the pre-tokenizer puts in front of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lead {
    /// Not after a user-defined token.
    pub first_only: bool,
    /// Whether U+2581 is a space: no second one is put in front of one.
    pub marks: bool,
}

impl Lead {
    pub fn apply<'a>(self, text: &'a str, is_first: bool) -> Cow<'a, str> {
        let begun = text.starts_with(' ') || self.marks && text.starts_with(MARK);
        if begun || self.first_only && !is_first {
            return Cow::Borrowed(text);
        }
        Cow::Owned(format!(" {text}"))
    }
}
