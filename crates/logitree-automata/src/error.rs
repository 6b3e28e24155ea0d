//! The error type of the workspace: kind, place, message, help.
//!
//! Errors are raised when something is built; the per-token path fails only on misuse. A kind states what went
//! wrong for the caller; it does not name the module that raised it.

use std::fmt;
use std::sync::Arc;

/// What went wrong, as the caller sees it. Each kind is one Python exception class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A vocabulary file or object is malformed, truncated or of an unsupported format.
    Vocabulary,
    /// A token-tree payload (JSON or binary) is malformed or does not fit the vocabulary.
    Payload,
    /// A constraint cannot be built or cannot be satisfied.
    Constraint,
    /// A mask has the wrong length, type or shape.
    Mask,
    /// Logits have the wrong length or type, contain NaN, or allow no token.
    Logits,
    /// A sampler or chain has invalid parameters, or no selecting sampler.
    Sampling,
    /// A token is not allowed here, or is not in the vocabulary.
    Token,
    /// A call is invalid in the current state (a step after the end, a rollback past the start).
    State,
    /// A limit of size, depth or time was reached.
    Limit,
    /// The operating system refused (file not found, no permission).
    Io,
}

impl ErrorKind {
    /// Every kind, for tests that check that each is mapped.
    pub const ALL: [ErrorKind; 10] = [
        ErrorKind::Vocabulary,
        ErrorKind::Payload,
        ErrorKind::Constraint,
        ErrorKind::Mask,
        ErrorKind::Logits,
        ErrorKind::Sampling,
        ErrorKind::Token,
        ErrorKind::State,
        ErrorKind::Limit,
        ErrorKind::Io,
    ];
}

/// An error with its kind, its place and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// The class of the error.
    pub kind: ErrorKind,
    /// What is wrong, with the evidence, in one sentence without a full stop.
    pub message: String,
    /// Where: a byte offset, a JSON pointer, a row and an id; empty if there is no place.
    pub place: String,
    /// How to fix it; empty if unknown.
    pub help: String,
    /// The error of the host program or of the operating system that caused this one, such as a callback's exception.
    pub cause: Option<Cause>,
}

/// An error that caused another, unchanged. It equals only its clones.
#[derive(Debug, Clone)]
pub struct Cause(pub Arc<dyn std::error::Error + Send + Sync>);

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}

impl Eq for Cause {}

/// Result with logitree's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` with its message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), place: String::new(), help: String::new(), cause: None }
    }

    /// The same error with its place.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = place.into();
        self
    }

    /// The same error with how to fix it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// The same error, within a larger place: `"row 3"` of `"id 7"` is `"row 3, id 7"`.
    #[must_use]
    pub fn within(mut self, place: &str) -> Self {
        let inner = std::mem::take(&mut self.place);
        self.place = if inner.is_empty() { place.into() } else { format!("{place}, {inner}") };
        self
    }

    /// The same error with its cause.
    #[must_use]
    pub fn because(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Cause(Arc::new(cause)));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.place.is_empty() {
            write!(f, " (at {})", self.place)?;
        }
        if !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_message_place_and_way_out() {
        let plain = Error::new(ErrorKind::Token, "token 7 is not allowed");
        assert_eq!(plain.to_string(), "token 7 is not allowed");
        let full = plain.at("step 3").help("allowed: 1, 2");
        assert_eq!(full.to_string(), "token 7 is not allowed (at step 3); allowed: 1, 2");
        assert_eq!(full.within("row 2").place, "row 2, step 3");
        assert_eq!(Error::new(ErrorKind::Token, "").within("row 2").place, "row 2");
    }

    #[test]
    fn carries_a_cause_unchanged() {
        let error = Error::new(ErrorKind::Sampling, "a callback failed").because(fmt::Error);
        let cause = error.cause.clone().unwrap();
        assert!(cause.0.downcast_ref::<fmt::Error>().is_some());
        assert_eq!(error.clone(), error);
        assert_ne!(Error::new(ErrorKind::Sampling, "a callback failed").because(fmt::Error), error);
    }
}
