//! A vocabulary's own tokenizer: text to the tokens that the model was trained on, and whether tokens are what it would give.
//!
//! ```text
//! text -> user-defined tokens cut out -> pieces of the pre-tokenizer -> merges -> tokens
//! ```
//!
//! Read are byte-pair encodings, SentencePiece models with scores, unigram models and WordPiece (GGUF), and the byte-pair encodings
//! of tokenizer.json. Everything else is an error when it is loaded: a tokenizer that is nearly right is wrong.

mod ahead;
mod boundaries;
mod canonical_memo;
mod canonical_stepper;
mod canonical_tables;
mod classes;
mod gguf;
mod lookahead;
mod merges;
mod normalizer;
mod ordered_nfa;
mod pattern;
mod patterns;
mod pipeline;
mod program;
mod spines;
mod splitter;
mod token_classes;
mod tokenizer_json;
mod transitions;
mod unigram;
mod user;
mod word_piece;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::mask::{insert_bit, words_for};
use crate::vocabulary::TokenKind;
use crate::vocabulary::Vocabulary;
use crate::{Error, ErrorKind, Result, TokenId};
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
use normalizer::{Lead, Normalizer};
use splitter::Splitter;
#[doc(hidden)] // canonical spelling
pub use token_classes::TokenClasses;
use unigram::Unigram;
use user::{Fragment, UserTokens};
use word_piece::WordPiece;

/// The tokenizer of a vocabulary. Immutable; shared between threads.
pub struct Tokenizer {
    vocabulary: Arc<Vocabulary>,
    splitter: Splitter,
    merges: Merges,
    model: Model,
    user: UserTokens,
    /// Pieces that are one token although the merges give something else.
    whole: FxHashMap<Box<[u8]>, TokenId>,
    /// What is done to a text, and to what follows a user-defined token.
    normalizer: Normalizer,
    /// The space in front of it, if it has none.
    lead: Option<Lead>,
    /// The tokens between which texts are: those that are no text, those that end one, and user-defined ones.
    other: Box<[u32]>,
    canon: OnceLock<CanonicalTables>,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokenizer({} tokens, {} merges)", self.vocabulary.len(), self.merges.pairs.len())
    }
}

/// How a text without user-defined tokens is spelled.
enum Model {
    /// In pieces, and those by merges.
    Merges,
    Unigram(Unigram),
    WordPiece(WordPiece),
}

/// What a file says of a tokenizer.
struct Parts {
    vocabulary: Arc<Vocabulary>,
    splitter: Splitter,
    merges: Merges,
    model: Model,
    user: UserTokens,
    whole: Whole,
    normalizer: Normalizer,
    lead: Option<Lead>,
}

impl Tokenizer {
    fn new(parts: Parts) -> Tokenizer {
        let Parts { vocabulary, splitter, merges, model, user, whole, normalizer, lead } = parts;
        let whole = whole_pieces(&vocabulary, &merges, whole);
        let mut other = vec![0u32; words_for(vocabulary.len())];
        for id in 0..vocabulary.len() as TokenId {
            let kind = vocabulary.kind(id);
            let ends = vocabulary.end_tokens().binary_search(&id).is_ok();
            if !kind.is_text() || kind == TokenKind::UserDefined || ends {
                insert_bit(&mut other, id);
            }
        }
        let (other, canon) = (other.into(), OnceLock::new());
        Tokenizer { vocabulary, splitter, merges, model, user, whole, normalizer, lead, other, canon }
    }

    /// The vocabulary that it was loaded with.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The tokens of `text`, without tokens that begin or end a sequence. The texts of control tokens are ordinary text; those
    /// of user-defined tokens are these tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Token`] if the vocabulary has no token for a byte of it.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>> {
        let mut out = Vec::with_capacity(text.len() / 3 + 1);
        let mut scratch = Scratch::default();
        for fragment in self.user.fragments(text) {
            let (from, to) = match fragment {
                Fragment::Text(from, to) => (from, to),
                Fragment::Token(token) => {
                    out.push(token);
                    continue;
                }
            };
            let text = self.normalizer.apply(&text[from..to]);
            for fragment in self.user.normalized_fragments(&text) {
                match fragment {
                    Fragment::Token(token) => out.push(token),
                    Fragment::Text(begin, end) => {
                        let part = &text[begin..end];
                        let led =
                            self.lead.map_or(Cow::Borrowed(part), |lead| lead.apply(part, from + begin == 0));
                        self.encode_fragment(&led, &mut scratch, &mut out)?;
                    }
                }
            }
        }
        Ok(out)
    }

    /// Whether `tokens` are what the tokenizer gives for their bytes: each run of text between other tokens by itself, without
    /// a space in front. Tokens that are not in the vocabulary are not, nor any where [`Tokenizer::check_canonical`] fails.
    pub fn is_canonical(&self, tokens: &[TokenId]) -> bool {
        if self.check_canonical().is_err() {
            return false;
        }
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

    /// Whether its tokens spell the text that they are given for, so that a text has a canonical spelling.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if they do not.
    pub fn check_canonical(&self) -> Result<()> {
        let what = match &self.model {
            Model::Merges if !self.normalizer.loses() => return Ok(()),
            Model::Merges => "its normalizer makes different texts the same",
            Model::Unigram(_) => "a unigram model weighs whole texts",
            Model::WordPiece(_) => "WordPiece loses white space",
        };
        let message = format!("the tokenizer has no canonical spelling: {what}");
        Err(Error::new(ErrorKind::Constraint, message).help("use any spelling"))
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
        match &self.model {
            Model::Merges => {}
            Model::Unigram(model) => return model.encode(text, out),
            Model::WordPiece(model) => {
                model.encode(text, out);
                return Ok(());
            }
        }
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
