//! Byte-level regular expressions as hash-consed nodes, and their derivatives: a deterministic automaton that is built
//! state by state, where it is walked.
//!
//! An expression's derivative by a byte is what may follow that byte; equal expressions have one number, so an
//! expression is a state of its own minimal-enough automaton. And, or and not are exact. [`NOTHING`] is the only
//! expression that matches nothing, wherever [`Exprs::is_alive`] was asked.
//!
//! The room refuses to know rules, tokens and schemas.

use super::Regex;
use crate::Result;

/// A number of an expression in its [`Exprs`]; equal numbers are equal languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

/// Matches nothing.
pub const NOTHING: ExprId = ExprId(0);
/// Matches the empty text only, with tag 0.
pub const EMPTY: ExprId = ExprId(1);

/// What an alternative says when it is complete: 0 where nobody said anything.
pub type Tag = u32;

/// How a code point is written in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// As it stands between the quotes of a JSON string, in the one spelling that Python's `json.dumps` writes: `\"`,
    /// `\\`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u00xx` for the other control characters, everything else as UTF-8, or as
    /// `\uxxxx` (pairs of surrogates past the first plane) where `ascii` says so.
    Json {
        /// Whether everything past U+007F is escaped.
        ascii: bool,
    },
}

/// An arena of expressions.
pub struct Exprs {}

impl Exprs {
    /// An arena that holds at most `most` expressions.
    pub fn new(most: usize) -> Exprs {
        todo!("{most}")
    }
    /// `regex` as an expression over the bytes of `encoding`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the arena is full.
    pub fn compile(&mut self, regex: &Regex, encoding: Encoding) -> Result<ExprId> {
        todo!("{regex:?} {encoding:?}")
    }
    /// These bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<ExprId> {
        todo!("{bytes:?}")
    }
    /// One after the other. Only the last part may have tags.
    pub fn concat(&mut self, parts: &[ExprId]) -> Result<ExprId> {
        todo!("{parts:?}")
    }
    /// Any of these.
    pub fn or(&mut self, parts: &[ExprId]) -> Result<ExprId> {
        todo!("{parts:?}")
    }
    /// All of these; tags are not allowed inside.
    pub fn and(&mut self, parts: &[ExprId]) -> Result<ExprId> {
        todo!("{parts:?}")
    }
    /// Every text (of any bytes) but those of `of`; tags are not allowed inside. Combine it with what is legal there.
    pub fn not(&mut self, of: ExprId) -> Result<ExprId> {
        todo!("{of:?}")
    }
    /// `of`, at least `min` and at most `max` times; no tags inside.
    pub fn repeat(&mut self, of: ExprId, min: u32, max: Option<u32>) -> Result<ExprId> {
        todo!("{of:?}{min}{max:?}")
    }
    /// The empty text, complete with `tag`.
    pub fn tag(&mut self, tag: Tag) -> Result<ExprId> {
        todo!("{tag}")
    }
    /// Any of these texts, each followed by its expression (often the same one, or ending in a tag). Cheap for
    /// hundreds of thousands of texts. Texts may repeat and may be prefixes of each other.
    pub fn literals(&mut self, texts: &[(&[u8], ExprId)]) -> Result<ExprId> {
        todo!("{texts:?}")
    }
    /// Whether any text matches. Exact, explores the automaton where `and` or `not` make that necessary; remembered.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if that takes more than the fuel allows.
    pub fn is_alive(&mut self, e: ExprId) -> Result<bool> {
        todo!("{e:?}")
    }
    /// Whether these bytes match.
    pub fn matches(&mut self, e: ExprId, bytes: &[u8]) -> Result<bool> {
        todo!("{e:?}{bytes:?}")
    }
    /// What may follow `byte`: [`NOTHING`] exactly if nothing does.
    pub fn derive(&mut self, e: ExprId, byte: u8) -> Result<ExprId> {
        todo!("{e:?}{byte}")
    }
    /// The tags with which `e` is complete where it stands; empty if it is not.
    pub fn outcomes(&self, e: ExprId) -> &[Tag] {
        todo!("{e:?}")
    }
}
