//! The matcher of a [`ByteRecogniser`]: it walks the vocabulary's trie with the recogniser and keeps the mask of the
//! present state. The naive version feeds each token's bytes to the recogniser.

use std::sync::Arc;

use super::{ByteRecogniser, MakeRecogniser};
use crate::history::History;
use crate::language::text::RecognisedTexts;
use crate::language::{ByteState, Text};
use crate::{AfterEnd, Bytewise, Matcher};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::{ids, words_for, AllowedTokens};
use logitree_tokens::trie::Recognizer;
use logitree_tokens::vocabulary::Vocabulary;

/// The most forced tokens given at once.
const MAX_FORCED: usize = 1000;

/// Where a sequence is in the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    /// Number of bytes taken.
    bytes: usize,
    /// Whether they are a text of the language.
    accepting: bool,
    /// Whether nothing may follow: the language has no longer text, or an end token came.
    finished: bool,
}

pub(super) struct RecogniserMatcher {
    make: Arc<MakeRecogniser>,
    vocabulary: Arc<Vocabulary>,
    after: AfterEnd,
    /// `None` in a new fork and after an error, until it is needed.
    recogniser: Option<Box<dyn ByteRecogniser>>,
    /// The bytes accepted; those that `recogniser` has taken.
    bytes: Vec<u8>,
    at: Position,
    history: History<Position>,
    /// The mask here, once it was asked for.
    mask: Option<Vec<u32>>,
}

impl RecogniserMatcher {
    pub fn new(make: Arc<MakeRecogniser>, vocabulary: Arc<Vocabulary>) -> Result<RecogniserMatcher> {
        vocabulary.trie()?;
        let at = Position { bytes: 0, accepting: false, finished: false };
        let after = AfterEnd::tokens(&[], vocabulary.end_of_generation());
        let (bytes, history) = (Vec::new(), History::default());
        let mut made =
            RecogniserMatcher { make, vocabulary, after, recogniser: None, bytes, at, history, mask: None };
        made.at = made.with(|recogniser| position(recogniser, 0))?;
        if !made.at.finished {
            made.mask()?;
        }
        Ok(made)
    }

    /// Calls the recogniser, which has taken `bytes` then and must have taken them again afterwards unless the caller
    /// changes `bytes` too. After an error it is dropped.
    fn with<T>(&mut self, call: impl FnOnce(&mut dyn ByteRecogniser) -> Result<T>) -> Result<T> {
        let mut recogniser = match self.recogniser.take() {
            Some(recogniser) => recogniser,
            None => replayed(&*self.make, &self.bytes)?,
        };
        let result = call(&mut *recogniser)?;
        self.recogniser = Some(recogniser);
        Ok(result)
    }

    fn ends(&self, token: TokenId) -> bool {
        self.at.accepting && self.vocabulary.end_of_generation().contains(&token)
    }

    /// The mask here; never empty.
    fn mask(&mut self) -> Result<&[u32]> {
        if self.mask.is_none() {
            let vocabulary = Arc::clone(&self.vocabulary);
            let mut words = vec![0; words_for(vocabulary.len())];
            self.with(|recogniser| {
                let mut walk = Walk { recogniser, error: None };
                vocabulary.trie()?.allowed(&mut walk, &mut words)?;
                walk.error.map_or(Ok(()), Err)
            })?;
            if self.at.accepting {
                for &end in vocabulary.end_of_generation() {
                    words[end as usize / 32] |= 1 << (end % 32);
                }
            }
            if words.iter().all(|&word| word == 0) {
                return Err(Error::new(ErrorKind::Constraint, "the recogniser allows no token here")
                    .at(format!("token {}", self.history.accepted()))
                    .help(
                        "take a byte only if a text continues so, and accept only with an end token at hand",
                    ));
            }
            self.mask = Some(words);
        }
        Ok(self.mask.as_deref().unwrap_or_default())
    }

    fn go(&mut self, to: Position) {
        self.history.push(std::mem::replace(&mut self.at, to));
        self.mask = None;
    }
}

/// A new recogniser that has taken these bytes.
fn replayed(make: &MakeRecogniser, bytes: &[u8]) -> Result<Box<dyn ByteRecogniser>> {
    let mut made = make()?;
    for (at, &byte) in bytes.iter().enumerate() {
        if !made.push(byte)? {
            let message = "a new recogniser refuses what another one took";
            return Err(Error::new(ErrorKind::State, message)
                .at(format!("byte {at}"))
                .help("a recogniser depends on the bytes it took, and on nothing else"));
        }
    }
    Ok(made)
}

/// Where the recogniser is after so many bytes.
fn position(recogniser: &mut dyn ByteRecogniser, bytes: usize) -> Result<Position> {
    let accepting = recogniser.is_end()?;
    let mut finished = accepting;
    for byte in 0..=u8::MAX {
        if !finished {
            break;
        }
        if recogniser.push(byte)? {
            recogniser.pop(1)?;
            finished = false;
        }
    }
    Ok(Position { bytes, accepting, finished })
}

/// The recogniser during a walk: after an error it refuses everything, so that the walk ends soon.
struct Walk<'a> {
    recogniser: &'a mut dyn ByteRecogniser,
    error: Option<Error>,
}

impl Walk<'_> {
    fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.error.get_or_insert(error)).ok()
    }
}

impl Recognizer for Walk<'_> {
    fn push(&mut self, byte: u8) -> bool {
        if self.error.is_some() {
            return false;
        }
        let taken = self.recogniser.push(byte);
        self.keep(taken).unwrap_or(false)
    }

    fn pop(&mut self, n: usize) {
        if n > 0 && self.error.is_none() {
            let popped = self.recogniser.pop(n);
            self.keep(popped);
        }
    }
}

impl Matcher for RecogniserMatcher {
    fn vocabulary_size(&self) -> usize {
        self.vocabulary.len()
    }

    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        if self.at.finished {
            return self.after.allowed();
        }
        self.mask().map(AllowedTokens::Mask)
    }

    fn is_allowed(&mut self, token: TokenId) -> Result<bool> {
        if self.at.finished {
            return Ok(self.after.takes(token));
        }
        if self.ends(token) {
            return Ok(true);
        }
        if let Some(words) = &self.mask {
            return Ok(AllowedTokens::Mask(words).contains(token));
        }
        let before = self.history.accepted();
        let taken = self.take(token)?;
        self.rollback(self.history.accepted() - before)?;
        Ok(taken)
    }

    fn accept(&mut self, token: TokenId) -> Result<()> {
        if self.take(token)? {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Token, format!("token {token} is not allowed here"))
            .at(format!("token {} of the text", self.history.accepted())))
    }

    fn take(&mut self, token: TokenId) -> Result<bool> {
        if self.at.finished {
            return Ok(self.history.take_past_end(&self.after, token));
        }
        if self.ends(token) {
            self.go(Position { finished: true, ..self.at });
            return Ok(true);
        }
        let vocabulary = Arc::clone(&self.vocabulary);
        let is_text = (token as usize) < vocabulary.len() && vocabulary.kind(token).is_text();
        let bytes = if is_text { vocabulary.token_bytes(token) } else { &[] };
        if bytes.is_empty() {
            return Ok(false);
        }
        let total = self.bytes.len() + bytes.len();
        let to = self.with(|recogniser| {
            for (pushed, &byte) in bytes.iter().enumerate() {
                if !recogniser.push(byte)? {
                    if pushed > 0 {
                        recogniser.pop(pushed)?;
                    }
                    return Ok(None);
                }
            }
            position(recogniser, total).map(Some)
        })?;
        let Some(to) = to else { return Ok(false) };
        self.bytes.extend_from_slice(bytes);
        self.go(to);
        Ok(true)
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        let remaining = self.history.remaining(n)?;
        if remaining == self.history.before_end() {
            return self.history.rollback(n).map(|_| ());
        }
        let to = *self.history.state(remaining);
        let surplus = self.bytes.len() - to.bytes;
        if surplus > 0 && self.recogniser.is_some() {
            self.with(|recogniser| recogniser.pop(surplus))?;
        }
        self.history.rollback(n)?;
        self.bytes.truncate(to.bytes);
        self.at = to;
        self.mask = None;
        Ok(())
    }

    fn fork(&self) -> Box<dyn Matcher> {
        Box::new(RecogniserMatcher {
            make: Arc::clone(&self.make),
            vocabulary: Arc::clone(&self.vocabulary),
            after: self.after.clone(),
            recogniser: None,
            bytes: self.bytes.clone(),
            at: self.at,
            history: self.history.clone(),
            mask: self.mask.clone(),
        })
    }

    fn reset(&mut self) {
        if let Some(start) = self.history.reset() {
            self.at = start;
            self.bytes.clear();
            self.recogniser = None;
            self.mask = None;
        }
    }

    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        let mut run = Vec::new();
        let walked = (|| {
            while run.len() < MAX_FORCED && !self.at.accepting {
                let mut allowed = ids(self.mask()?);
                let (Some(only), None) = (allowed.next(), allowed.next()) else { break };
                self.accept(only)?;
                run.push(only);
            }
            Ok(())
        })();
        self.rollback(run.len())?;
        walked.map(|()| out.append(&mut run))
    }

    fn is_accepting(&self) -> bool {
        self.at.accepting
    }

    fn is_finished(&self) -> bool {
        self.at.finished
    }

    fn after_end(&self) -> &AfterEnd {
        &self.after
    }

    fn taken(&mut self, bytes: &[u8]) -> Result<usize> {
        if self.at.finished {
            return Ok(0);
        }
        self.with(|recogniser| {
            let mut taken = 0;
            while taken < bytes.len() && recogniser.push(bytes[taken])? {
                taken += 1;
            }
            if taken > 0 {
                recogniser.pop(taken)?;
            }
            Ok(taken)
        })
    }

    fn bytewise(&self) -> Option<Bytewise> {
        // After an end token nothing may come, whatever the recogniser would take.
        let ended = self.at.finished
            && self.history.before_end() > 0
            && self.history.state(self.history.before_end() - 1).bytes == self.at.bytes;
        let texts = || RecognisedTexts::new(Arc::clone(&self.make), &self.bytes);
        (!ended).then(|| Bytewise { language: Arc::new(texts()), state: ByteState::Text(Text::default()) })
    }

    fn accepted(&self) -> usize {
        self.history.accepted()
    }
}
