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

use crate::{interrupt, Certain, ErrorKind, Result};
use logitree_grammar::expr::ByteSet;
use logitree_tokens::trie::TokenTrie;

pub(super) use compound::{Compound, Compounds};
pub(super) use matcher::LanguageMatcher;
use matcher::Plain;
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

/// A language that matchers share.
pub(crate) type SharedLanguage = Arc<dyn ByteLanguage + Send + Sync>;

/// What a matcher may still write, where that depends on bytes alone: see [`crate::Matcher::bytewise`].
pub struct Bytewise {
    pub(crate) language: SharedLanguage,
    /// Where the matcher is in it.
    pub(crate) state: ByteState,
}

impl Bytewise {
    /// The language of what may still be written.
    pub(crate) fn rest(self) -> SharedLanguage {
        Arc::new(self)
    }
}

/// A language whose states are all numbers with an exact `bytes`, for the length of a call: see
/// [`crate::Matcher::byte_walk`].
pub struct ByteWalk<'a>(pub(crate) Box<dyn ByteLanguage + 'a>);

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

    fn transitions(&self, state: &ByteState) -> Result<Vec<(ByteSet, ByteState)>> {
        self.language.transitions(state)
    }

    fn is_over(&self, state: &ByteState) -> Result<bool> {
        self.language.is_over(state)
    }

    fn fill(&self, state: &ByteState, trie: &TokenTrie, words: &mut [u32]) -> Result<()> {
        self.language.fill(state, trie, words)
    }

    fn expected(&self, state: &ByteState) -> Vec<String> {
        self.language.expected(state)
    }

    fn is_numbered(&self) -> bool {
        self.language.is_numbered()
    }
}

/// A language over bytes.
pub(crate) trait ByteLanguage {
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

    /// The bytes that may come, by the states that they lead to.
    ///
    /// # Errors
    /// As [`ByteLanguage::step`].
    fn transitions(&self, state: &ByteState) -> Result<Vec<(ByteSet, ByteState)>> {
        let mut found: Vec<(ByteSet, ByteState)> = Vec::new();
        for byte in self.bytes(state)?.iter() {
            let Some(next) = self.step(state, byte)? else { continue };
            match found.iter_mut().find(|(_, to)| *to == next) {
                Some((bytes, _)) => *bytes = bytes.or(&ByteSet::one(byte)),
                None => found.push((ByteSet::one(byte), next)),
            }
        }
        Ok(found)
    }

    /// Whether no byte may come.
    ///
    /// # Errors
    /// As [`ByteLanguage::step`].
    fn is_over(&self, state: &ByteState) -> Result<bool> {
        for byte in self.bytes(state)?.iter() {
            if self.step(state, byte)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the tokens whose bytes may come over `words`; those that end the generation may be among them.
    ///
    /// # Errors
    /// As [`ByteLanguage::step`].
    fn fill(&self, state: &ByteState, trie: &TokenTrie, words: &mut [u32]) -> Result<()> {
        let mut walk = Plain { language: self, stack: vec![state.clone()], failed: None };
        trie.allowed(&mut walk, words)?;
        walk.failed.map_or(Ok(()), Err)
    }

    /// The bytes, at most `most`, that every text from `state` on begins with: as long as one byte may come. Where the next
    /// takes more than the language allows, those before it.
    ///
    /// # Errors
    /// As [`ByteLanguage::step`], but for its limits.
    fn certain(&self, mut state: ByteState, most: usize) -> Result<Certain> {
        let mut bytes = Vec::new();
        while !self.is_end(&state)? {
            if bytes.len() == most {
                return Ok(Certain { bytes, complete: false });
            }
            let next = match self.sole_byte(&state) {
                Err(error) if error.kind == ErrorKind::Limit && !interrupt::must_end() => None,
                other => other?,
            };
            let Some((byte, after)) = next else { return Ok(Certain { bytes, complete: false }) };
            bytes.push(byte);
            state = after;
        }
        Ok(Certain { bytes, complete: true })
    }

    /// The byte that may come in `state`, if there is one only, and the state after it.
    ///
    /// # Errors
    /// As [`ByteLanguage::step`].
    fn sole_byte(&self, state: &ByteState) -> Result<Option<(u8, ByteState)>> {
        let mut sole = None;
        for byte in self.bytes(state)?.iter() {
            if let Some(after) = self.step(state, byte)? {
                if sole.replace((byte, after)).is_some() {
                    return Ok(None);
                }
            }
        }
        Ok(sole)
    }

    /// The state after as many of `bytes` as may come, and how many those are.
    ///
    /// # Errors
    /// As [`ByteLanguage::step`].
    fn walked(&self, mut state: ByteState, bytes: &[u8]) -> Result<(ByteState, usize)> {
        for (n, &byte) in bytes.iter().enumerate() {
            match self.step(&state, byte)? {
                Some(next) => state = next,
                None => return Ok((state, n)),
            }
        }
        Ok((state, bytes.len()))
    }

    /// What is expected after `bytes`, in words; empty if not all of them may come, or if unknown.
    ///
    /// # Errors
    /// As [`ByteLanguage::step`].
    fn expected_after(&self, state: ByteState, bytes: &[u8]) -> Result<Vec<String>> {
        Ok(match self.walked(state, bytes)? {
            (state, taken) if taken == bytes.len() => self.expected(&state),
            _ => Vec::new(),
        })
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
