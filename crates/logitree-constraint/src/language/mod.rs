//! Languages over bytes as automata whose states are values: what a constraint is where tokens matter only by their bytes.
//!
//! ```text
//! grammar, recogniser          a language of their own
//! joined                       languages in sequence, in turn or repeated
//! product                      texts that two languages both have, without dead ends
//! matcher                      any of them met with a vocabulary
//! ```
//!
//! A language takes a byte only if some text continues so. The naive version feeds whole texts to each language.

mod compound;
pub(super) mod joined;
mod matcher;
pub(super) mod product;
pub(super) mod text;

use std::sync::Arc;

use crate::Result;
use logitree_grammar::expr::ByteSet;

pub(super) use compound::{Compound, Compounds};
pub(super) use matcher::LanguageMatcher;
pub(super) use text::Text;

/// A state of a language. Equal states have equal futures; states of other forms may have as well.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ByteState {
    /// Numbered by the language.
    Number(u64),
    /// The bytes that were read.
    Text(Text),
    /// States of other languages.
    Compound(Arc<Compound>),
}

impl ByteState {
    /// The number, where the state has one.
    pub fn number(&self) -> Option<u64> {
        match self {
            ByteState::Number(number) => Some(*number),
            _ => None,
        }
    }
}

/// What a matcher may still write, where that depends on bytes alone: see [`crate::Matcher::bytewise`].
pub struct Bytewise {
    pub(crate) language: Arc<dyn ByteLanguage>,
    /// Where the matcher is in it.
    pub(crate) state: ByteState,
}

impl Bytewise {
    /// The language of what may still be written.
    pub(crate) fn rest(self) -> Arc<dyn ByteLanguage> {
        Arc::new(self)
    }
}

impl ByteLanguage for Bytewise {
    fn start(&self) -> Result<ByteState> {
        Ok(self.state.clone())
    }

    fn step(&self, state: &ByteState, byte: u8) -> Result<Option<ByteState>> {
        self.language.step(state, byte)
    }

    fn is_end(&self, state: &ByteState) -> Result<bool> {
        self.language.is_end(state)
    }

    fn bytes(&self, state: &ByteState) -> Result<ByteSet> {
        self.language.bytes(state)
    }

    fn expected(&self, state: &ByteState) -> Vec<String> {
        self.language.expected(state)
    }

    fn is_numbered(&self) -> bool {
        self.language.is_numbered()
    }
}

/// A language over bytes.
pub(crate) trait ByteLanguage: Send + Sync {
    /// Where every text begins.
    ///
    /// # Errors
    /// As [`ByteLanguage::step`]; [`crate::ErrorKind::Constraint`] for a language without texts.
    fn start(&self) -> Result<ByteState>;

    /// The state after `byte`; `None` if no text continues so.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if finding it takes more work or memory than the language allows.
    fn step(&self, state: &ByteState, byte: u8) -> Result<Option<ByteState>>;

    /// Whether a text may end here.
    ///
    /// # Errors
    /// As [`ByteLanguage::step`].
    fn is_end(&self, state: &ByteState) -> Result<bool>;

    /// The bytes that may come; a superset where that is simpler.
    ///
    /// # Errors
    /// As [`ByteLanguage::step`].
    fn bytes(&self, _state: &ByteState) -> Result<ByteSet> {
        Ok(ByteSet::ALL)
    }

    /// What is expected here, in words; empty if unknown.
    fn expected(&self, _state: &ByteState) -> Vec<String> {
        Vec::new()
    }

    /// Whether all states are numbers.
    fn is_numbered(&self) -> bool {
        false
    }
}
