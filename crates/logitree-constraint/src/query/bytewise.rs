//! Grammars without a model: a vocabulary of the 256 bytes, and whole texts held against a grammar.

use std::sync::{Arc, OnceLock};

use crate::BoundGrammar;
use crate::{ErrorKind, Result, TokenId};
use logitree_tokens::vocabulary::{Builder, TokenKind, Vocabulary, VocabularyOptions};

/// The vocabulary in which every byte is a token, by its value.
///
/// # Panics
/// Never: 256 tokens of one byte are a vocabulary.
pub fn vocabulary() -> &'static Arc<Vocabulary> {
    static BYTES: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    BYTES.get_or_init(|| Arc::new(with_controls([]).expect("256 tokens are a vocabulary")))
}

/// The same with control tokens of these names after the bytes.
///
/// # Errors
/// [`ErrorKind::Limit`] for more names than a vocabulary has tokens.
pub(super) fn with_controls(names: impl IntoIterator<Item = String>) -> Result<Vocabulary> {
    let mut builder = Builder::with_capacity(256, 256);
    for byte in 0..=u8::MAX {
        builder.push(TokenKind::Byte, &[byte])?;
    }
    for name in names {
        builder.push(TokenKind::Control, name.as_bytes())?;
    }
    builder.build(VocabularyOptions::default())
}

/// Whether the whole of `text` matches a grammar that is bound to [`vocabulary`]. Tokens are not counted.
///
/// # Errors
/// [`ErrorKind::Limit`] if reading it takes more than the grammar's limits.
pub fn matches(grammar: &BoundGrammar, text: &[u8]) -> Result<bool> {
    if let Some(matches) = grammar.matches_uncounted(text)? {
        return Ok(matches);
    }
    let mut matcher = grammar.matcher()?;
    for &byte in text {
        if matcher.is_finished() {
            return Ok(false);
        }
        match matcher.accept(TokenId::from(byte)) {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::Token => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(matcher.is_accepting())
}
