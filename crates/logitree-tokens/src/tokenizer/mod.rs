//! A vocabulary's own tokenizer: text to the tokens that the model was trained on, and whether tokens are what it would give.
//!
//! ```text
//! text -> user-defined tokens cut out -> pieces of the pre-tokenizer -> merges -> tokens
//! ```
//!
//! Read are byte-pair encodings with a known pre-tokenizer and SentencePiece models with scores (GGUF), and the byte-level
//! byte-pair encodings of tokenizer.json. Everything else is an error when it is loaded: a tokenizer that is nearly right
//! is wrong.

mod boundaries;
mod canonical_memo;
mod canonical_stepper;
mod canonical_tables;
mod classes;
mod gguf;
mod lookahead;
mod merges;
mod ordered_nfa;
mod pattern;
mod patterns;
mod spines;
mod splitter;
mod token_classes;
mod tokenizer_json;
mod transitions;
mod user;

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::mask::{insert_bit, words_for};
use crate::vocabulary::TokenKind;
use crate::vocabulary::Vocabulary;
use crate::{Result, TokenId};
#[doc(hidden)] // canonical spelling
pub use canonical_memo::SharedCanonical;
#[doc(hidden)] // canonical spelling
pub use canonical_stepper::{CanonicalStepper, DeadEnds};
use canonical_tables::CanonicalTables;
#[doc(hidden)] // canonical spelling
pub use canonical_tables::Place;
#[doc(hidden)] // canonical spelling
pub use lookahead::Row;
use merges::{Merges, Scratch, Whole};
use splitter::Splitter;
#[doc(hidden)] // canonical spelling
pub use token_classes::TokenClasses;
use user::{Fragment, UserTokens};

/// The tokenizer of a vocabulary. Immutable; shared between threads.
pub struct Tokenizer {
    vocabulary: Arc<Vocabulary>,
    splitter: Splitter,
    merges: Merges,
    user: UserTokens,
    /// Pieces that are one token although the merges give something else.
    whole: FxHashMap<Box<[u8]>, TokenId>,
    /// Whether one space is put in front of a text, and of what follows a user-defined token.
    prefix_space: bool,
    /// The tokens between which texts are: those that are no text, those that end one, and user-defined ones.
    other: Box<[u32]>,
    canon: OnceLock<CanonicalTables>,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokenizer({} tokens, {} merges)", self.vocabulary.len(), self.merges.pairs.len())
    }
}

/// What a file says of a tokenizer.
struct Parts {
    vocabulary: Arc<Vocabulary>,
    splitter: Splitter,
    merges: Merges,
    user: UserTokens,
    whole: Whole,
    prefix_space: bool,
}

impl Tokenizer {
    fn new(parts: Parts) -> Tokenizer {
        let Parts { vocabulary, splitter, merges, user, whole, prefix_space } = parts;
        let whole = whole_pieces(&vocabulary, &merges, whole);
        let mut other = vec![0u32; words_for(vocabulary.len())];
        for id in 0..vocabulary.len() as TokenId {
            let kind = vocabulary.kind(id);
            let ends = vocabulary.end_of_generation().binary_search(&id).is_ok();
            if !kind.is_text() || kind == TokenKind::UserDefined || ends {
                insert_bit(&mut other, id);
            }
        }
        let (other, canon) = (other.into(), OnceLock::new());
        Tokenizer { vocabulary, splitter, merges, user, whole, prefix_space, other, canon }
    }

    /// The vocabulary that it was loaded with.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The tokens of `text`, without tokens that begin or end a sequence. The texts of control tokens are ordinary text; those
    /// of user-defined tokens are these tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Token`](crate::ErrorKind::Token) if the vocabulary has no token for a byte of it.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>> {
        let mut out = Vec::with_capacity(text.len() / 3 + 1);
        let mut scratch = Scratch::default();
        let mut starts = true;
        for fragment in self.user.fragments(text) {
            match fragment {
                Fragment::Token(token) => {
                    out.push(token);
                    starts = true;
                }
                Fragment::Text(from, to) if self.prefix_space && starts => {
                    let spaced = format!(" {}", &text[from..to]);
                    self.encode_fragment(&spaced, &mut scratch, &mut out)?;
                    starts = false;
                }
                Fragment::Text(from, to) => {
                    self.encode_fragment(&text[from..to], &mut scratch, &mut out)?;
                    starts = false;
                }
            }
        }
        Ok(out)
    }

    /// Whether `tokens` are what the tokenizer gives for their bytes: each run of text between other tokens by itself, without
    /// a space in front. Tokens that are not in the vocabulary are not.
    pub fn is_canonical(&self, tokens: &[TokenId]) -> bool {
        let found = self.canon().found(canonical_memo::MAX_BYTES);
        let mut judge = CanonicalStepper::new(self, &found);
        let mut place = CanonicalStepper::start();
        for &token in tokens {
            match self.vocabulary.check(token).ok().and_then(|token| judge.step(place, token)) {
                Some(next) => place = next,
                None => return false,
            }
        }
        judge.can_end(place)
    }

    /// The token of one byte that is text.
    pub fn byte_token(&self, byte: u8) -> Option<TokenId> {
        self.canon().byte_token(byte)
    }

    /// Whether one of these tokens ends a text.
    pub fn ends_any(&self, words: &[u32]) -> bool {
        words.iter().zip(&self.other).any(|(word, other)| word & other != 0)
    }

    fn canon(&self) -> &CanonicalTables {
        self.canon.get_or_init(|| CanonicalTables::new(self))
    }

    /// Appends the tokens of a text without user-defined tokens.
    fn encode_fragment(&self, text: &str, scratch: &mut Scratch, out: &mut Vec<TokenId>) -> Result<()> {
        self.splitter.pieces(text, |piece| match self.whole.get(piece.as_bytes()) {
            Some(&token) => {
                out.push(token);
                Ok(())
            }
            None => self.merges.encode(piece, scratch, out),
        })
    }
}

/// The texts of tokens that a piece of the pre-tokenizer becomes although its merges give something else.
fn whole_pieces(vocabulary: &Vocabulary, merges: &Merges, whole: Whole) -> FxHashMap<Box<[u8]>, TokenId> {
    let mut found = FxHashMap::default();
    if whole == Whole::Never {
        return found;
    }
    let (mut units, mut scratch) = (Vec::new(), Scratch::default());
    for id in 0..vocabulary.len() as TokenId {
        let text = vocabulary.token_bytes(id);
        if vocabulary.kind(id) != TokenKind::Normal || text.is_empty() || !whole.is_about(text) {
            continue;
        }
        let known = merges.units(text, &mut units).is_some();
        let is_sole = units.len() == 1;
        if !known || !is_sole && merges.whole(&units, &mut scratch).is_none_or(|(token, _)| token != id) {
            found.insert(text.into(), id);
        }
    }
    found
}
