//! A recogniser of one's own as a constraint: anything that takes bytes one at a time and can take them back.

use std::sync::Arc;

use super::language::text::RecognisedTexts;
use super::language::LanguageMatcher;
use super::{Constraint, Matcher};
use crate::Result;
use logitree_tokens::vocabulary::Vocabulary;

/// A recogniser of a language over bytes, with a stack: one entry for each byte taken.
///
/// It must take a byte only if some text of the language continues so. If it takes bytes that lead nowhere, generation
/// can end in [`crate::ErrorKind::Constraint`]: no token is allowed.
///
/// After an error of any method the matcher drops the recogniser and feeds the accepted bytes to a new one.
pub trait ByteRecogniser: Send + Sync {
    /// Tries one more byte: on `true` it is taken, on `false` nothing changed.
    ///
    /// # Errors
    /// Its own.
    fn push(&mut self, byte: u8) -> Result<bool>;

    /// Takes back the last `n` bytes; never more than were taken.
    ///
    /// # Errors
    /// Its own.
    fn pop(&mut self, n: usize) -> Result<()>;

    /// Whether the bytes taken are a text of the language.
    ///
    /// # Errors
    /// Its own.
    fn is_end(&mut self) -> Result<bool>;
}

/// Makes recognisers that have taken no byte yet.
pub type MakeRecogniser = dyn Fn() -> Result<Box<dyn ByteRecogniser>> + Send + Sync;

/// The texts that a [`ByteRecogniser`] accepts, in any tokens that spell them. An end-of-generation token ends a text
/// that could continue.
#[derive(Clone)]
pub struct Recogniser {
    make: Arc<MakeRecogniser>,
}

impl Recogniser {
    /// The constraint of the recognisers that `make` makes: one for each matcher, and more once it has forks.
    pub fn new(make: impl Fn() -> Result<Box<dyn ByteRecogniser>> + Send + Sync + 'static) -> Recogniser {
        Recogniser { make: Arc::new(make) }
    }
}

impl Constraint for Recogniser {
    /// # Errors
    /// Those of `make` and of the recogniser; [`crate::ErrorKind::Constraint`] if it takes no byte and accepts no empty
    /// text; those of the vocabulary's trie.
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        let texts = RecognisedTexts::new(Arc::clone(&self.make));
        Ok(Box::new(LanguageMatcher::new(Arc::new(texts), vocabulary)?))
    }
}
