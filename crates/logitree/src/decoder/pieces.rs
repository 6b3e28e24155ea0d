//! The tokens' texts that the infill sampler reads, from a vocabulary.

use crate::sampling::Pieces;
use crate::vocabulary::Vocabulary;
use crate::{Error, ErrorKind, Result, TokenId};
use std::sync::Arc;

/// Texts of end-of-turn tokens, by which llama.cpp (src/llama-vocab.cpp) finds the one that a file does not name.
const ENDS: [&str; 11] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
    "<end_of_utterance>",
];

/// A vocabulary with its end-of-text token.
#[derive(Debug, Clone)]
pub struct VocabularyPieces {
    vocabulary: Arc<Vocabulary>,
    end: TokenId,
}

impl VocabularyPieces {
    /// The vocabulary's pieces. `end` is the token that ends a text; without it the first of its end-of-generation
    /// tokens with a text that llama.cpp knows for that, and else the first of them.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if the vocabulary ends no generation, [`ErrorKind::Token`] if `end` is not in it.
    pub fn new(vocabulary: Arc<Vocabulary>, end: Option<TokenId>) -> Result<Self> {
        let ends = vocabulary.end_of_generation();
        let known = |id: &&TokenId| ENDS.iter().any(|text| text.as_bytes() == vocabulary.token_bytes(**id));
        let found = match end {
            Some(id) => Some(vocabulary.check(id)?),
            None => ends.iter().find(known).or(ends.first()).copied(),
        };
        let end = found.ok_or_else(|| {
            Error::new(ErrorKind::Vocabulary, "the vocabulary has no end-of-generation token")
                .help("infill ends a text with one; name it: Vocabulary.replace(eog_ids=[...])")
        })?;
        Ok(VocabularyPieces { vocabulary, end })
    }
}

impl Pieces for VocabularyPieces {
    fn piece(&self, token: TokenId) -> &[u8] {
        // Logits may be longer than the vocabulary.
        if (token as usize) < self.vocabulary.len() && self.vocabulary.kind(token).is_text() {
            self.vocabulary.token_bytes(token)
        } else {
            &[]
        }
    }

    fn is_end(&self, token: TokenId) -> bool {
        token == self.end || self.vocabulary.end_of_generation().binary_search(&token).is_ok()
    }

    fn end(&self) -> TokenId {
        self.end
    }

    fn describe(&self) -> String {
        format!("<vocabulary {:032x}>, eot={}", self.vocabulary.fingerprint(), self.end)
    }
}
