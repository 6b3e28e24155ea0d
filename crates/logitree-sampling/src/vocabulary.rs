//! What samplers read of a vocabulary: the tokens' texts for infill, the tokens of sequence breakers for dry. The samplers
//! themselves work on ids; a caller builds these values from a vocabulary and passes them in.
//!
//! Breakers as llama.cpp makes them (src/llama-sampler.cpp, after koboldcpp #982): a token that contains the breaker is one
//! by itself; a token that ends with a beginning of the breaker is the head of one, and the rest of the text, tokenised by
//! the caller, is its tail.

use super::Pieces;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::vocabulary::{TokenKind, Vocabulary};
use std::sync::Arc;

/// A vocabulary with its end-of-text token.
#[derive(Debug, Clone)]
pub struct VocabularyPieces {
    vocabulary: Arc<Vocabulary>,
    end: TokenId,
}

impl VocabularyPieces {
    /// The vocabulary's pieces. `end` is the token that ends a text; without it [`Vocabulary::end_of_turn`].
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if the vocabulary ends no generation, [`ErrorKind::Token`] if `end` is not in it.
    pub fn new(vocabulary: Arc<Vocabulary>, end: Option<TokenId>) -> Result<Self> {
        let found = match end {
            Some(id) => Some(vocabulary.check(id)?),
            None => vocabulary.end_of_turn(),
        };
        let end = found.ok_or_else(|| {
            Error::new(ErrorKind::Vocabulary, "the vocabulary has no end-of-generation token")
                .help("infill ends a text with one; name the ids of those tokens")
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
        token == self.end || self.vocabulary.end_tokens().binary_search(&token).is_ok()
    }

    fn end(&self) -> TokenId {
        self.end
    }

    fn describe(&self) -> String {
        format!("<vocabulary {:032x}>, eot={}", self.vocabulary.fingerprint(), self.end)
    }
}

/// llama.cpp's breakers where none are named: newline, colon, double quote, asterisk.
pub const DRY_BREAKERS: [&str; 4] = ["\n", ":", "\"", "*"];

/// Bytes of a breaker that count.
const MAX_BYTES: usize = 40;
/// Tokens of a tail that count.
const MAX_TAIL: usize = 20;

/// The token sequences, head first, that make up the breakers `texts`. `tokenize` turns the rest of a breaker into
/// tokens, without special ones; breakers of one byte have no rest. Of a breaker 40 bytes count, of a tail 20 tokens.
///
/// # Errors
/// [`ErrorKind::Sampling`] for an empty breaker, and those of `tokenize`.
pub fn dry_breakers(
    vocabulary: &Vocabulary,
    texts: &[impl AsRef<[u8]>],
    mut tokenize: impl FnMut(&[u8]) -> Result<Vec<TokenId>>,
) -> Result<Vec<Vec<TokenId>>> {
    let mut sequences = Vec::new();
    for (text, at) in texts.iter().zip(0..) {
        let text = text.as_ref();
        if text.is_empty() {
            return Err(Error::new(ErrorKind::Sampling, "a breaker of dry is empty")
                .at(format!("breaker {at}"))
                .help("leave it out"));
        }
        let text = &text[..text.len().min(MAX_BYTES)];
        let mut tails: Vec<Option<Vec<TokenId>>> = vec![None; text.len()];
        for id in vocabulary.ids() {
            let word = text_of(vocabulary, id);
            if word.windows(text.len()).any(|w| w == text) {
                sequences.push(vec![id]);
                continue;
            }
            for matched in overlaps(word, text) {
                let tail = match &mut tails[matched] {
                    Some(tail) => tail,
                    unknown => unknown.insert(tokenize(&text[matched..])?),
                };
                let tail = tail.iter().take(MAX_TAIL).copied();
                sequences.push(std::iter::once(id).chain(tail).collect());
            }
        }
    }
    sequences.sort_unstable();
    sequences.dedup();
    Ok(sequences)
}

/// A token's text, markers' names included, as llama.cpp's detokeniser gives it for the token alone.
fn text_of(vocabulary: &Vocabulary, id: TokenId) -> &[u8] {
    if vocabulary.kind(id) == TokenKind::Unused {
        return &[];
    }
    let bytes = vocabulary.token_bytes(id);
    match bytes {
        [b' ', rest @ ..] if vocabulary.about().adds_prefix_space => rest,
        _ => bytes,
    }
}

/// Lengths of the beginnings of `text` that `word` ends with.
fn overlaps<'a>(word: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    (1..text.len().min(word.len() + 1)).filter(move |&n| word.ends_with(&text[..n]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use logitree_tokens::vocabulary::{Token, VocabularyOptions};

    /// ```text
    /// 0 a   1 b   2 ab   3 xa   4 bx   5 (b, unused)   6 <ab> (a marker's name)
    /// ```
    fn vocabulary() -> Vocabulary {
        let token = |bytes: &str, kind| Token { bytes: bytes.as_bytes().to_vec(), kind };
        let texts = ["a", "b", "ab", "xa", "bx"].map(|t| token(t, TokenKind::Normal));
        let others = [token("b", TokenKind::Unused), token("<ab>", TokenKind::Control)];
        Vocabulary::new(texts.into_iter().chain(others), VocabularyOptions::default()).unwrap()
    }

    #[test]
    fn one_byte_needs_no_tokenizer() {
        let none = |_: &[u8]| -> Result<Vec<TokenId>> { panic!("asked") };
        let found = dry_breakers(&vocabulary(), &["b"], none).unwrap();
        assert_eq!(found, [vec![1], vec![2], vec![4], vec![6]]);
    }

    #[test]
    fn the_rest_of_a_breaker_is_its_tail() {
        let mut asked = Vec::new();
        let tokenize = |rest: &[u8]| {
            asked.push(rest.to_vec());
            Ok(vec![1; 30])
        };
        let found = dry_breakers(&vocabulary(), &["ab"], tokenize).unwrap();
        let headed = |head| [vec![head], vec![1; 20]].concat();
        assert_eq!(found, [headed(0), vec![2], headed(3), vec![6]]);
        assert_eq!(asked, [b"b".to_vec()]);
    }

    #[test]
    fn impossible_breakers_are_errors() {
        let fail = |_: &[u8]| Err(Error::new(ErrorKind::Sampling, "no tokenizer"));
        assert_eq!(dry_breakers(&vocabulary(), &["ab"], fail).unwrap_err().message, "no tokenizer");
        assert!(dry_breakers(&vocabulary(), &["b", ""], fail).unwrap_err().place == "breaker 1");
        // Bytes past the 40th do not count.
        let long = "b".to_owned() + &"q".repeat(100);
        let found = dry_breakers(&vocabulary(), &[long], |rest| Ok(vec![rest.len() as TokenId]));
        assert_eq!(found.unwrap(), [vec![1, 39], vec![2, 39]]);
    }
}
