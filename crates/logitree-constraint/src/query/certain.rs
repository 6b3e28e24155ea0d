//! The text that is certain: the bytes that every legal continuation begins with, however it is cut into tokens.
//!
//! The slow version is the common beginning of all continuations, which the tests compute.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::Matcher;
use crate::{interrupt, Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::AllowedTokens;
use logitree_tokens::vocabulary::Vocabulary;

/// Where certain bytes are found through tokens, at most so many states are looked at, ...
const MAX_STATES: usize = 512;
/// ... and at most so many tokens: what they leave open is not certain.
const MAX_READ: usize = 1 << 16;
/// At most so many tokens at the end of a text are open.
const MAX_OPEN: usize = 4;

/// What is certain from a state on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certain {
    /// The bytes that every legal continuation begins with; empty where the text may end.
    pub bytes: Vec<u8>,
    /// Whether the text may end after them.
    pub complete: bool,
}

/// The bytes, at most `most`, that are certain from the state of `matcher`, which is unchanged. They end where a token may
/// come that is no text. A search that grows too long gives fewer.
///
/// # Errors
/// [`ErrorKind::Constraint`] for a vocabulary that is smaller than the matcher's; [`ErrorKind::Limit`] as
/// [`Matcher::allowed`].
pub fn certain(matcher: &mut dyn Matcher, vocabulary: &Vocabulary, most: usize) -> Result<Certain> {
    if vocabulary.len() < matcher.vocabulary_size() {
        let (own, other) = (matcher.vocabulary_size(), vocabulary.len());
        let message = format!("the matcher covers {own} tokens, the vocabulary has {other}");
        return Err(Error::new(ErrorKind::Constraint, message).help("give the vocabulary it was made with"));
    }
    match matcher.certain(most)? {
        Some(known) => Ok(known),
        None => Search::new(vocabulary, most).run(matcher),
    }
}

/// A search through the tokens of any matcher, the states after the fewest bytes first: when those after `at` bytes are
/// next, all continuations agree on as many.
struct Search<'v> {
    vocabulary: &'v Vocabulary,
    most: usize,
    /// What all continuations that were looked at agree on, as far as they went.
    bytes: Vec<u8>,
    /// Whether nothing can be added: two differ there, or there are `most`.
    closed: bool,
    /// How many states and tokens may still be looked at.
    states: usize,
    tokens: usize,
}

impl<'v> Search<'v> {
    fn new(vocabulary: &'v Vocabulary, most: usize) -> Self {
        let closed = most == 0;
        Search { vocabulary, most, bytes: Vec::new(), closed, states: MAX_STATES, tokens: MAX_READ }
    }

    fn run(mut self, matcher: &dyn Matcher) -> Result<Certain> {
        let mut waiting: BTreeMap<usize, Vec<Box<dyn Matcher>>> = BTreeMap::new();
        waiting.insert(0, vec![matcher.fork()]);
        while let Some((at, states)) = waiting.pop_first() {
            if at > self.bytes.len() {
                break;
            }
            if states.iter().any(|state| state.is_accepting()) {
                self.close(at);
                return Ok(Certain { bytes: self.bytes, complete: true });
            }
            let mut known: FxHashSet<u64> = FxHashSet::default();
            for mut state in states {
                if self.closed && at == self.bytes.len() {
                    break;
                }
                if state.state().is_some_and(|number| !known.insert(number)) {
                    continue;
                }
                for token in self.look(&mut *state, at)? {
                    let mut after = state.fork();
                    match after.take(token) {
                        Ok(true) => {
                            let end = at + self.vocabulary.token_bytes(token).len();
                            waiting.entry(end).or_default().push(after);
                        }
                        Ok(false) => {}
                        Err(error) => self.leave(error, at)?,
                    }
                }
            }
        }
        Ok(Certain { bytes: self.bytes, complete: false })
    }

    /// Holds all tokens that `state`, which is `at` bytes on, allows against the text. Returns those that may lead to more.
    fn look(&mut self, state: &mut dyn Matcher, at: usize) -> Result<Vec<TokenId>> {
        let mut agreeing = Vec::new();
        let settled = self.states > 0
            && !state.is_finished()
            && match state.allowed() {
                Ok(AllowedTokens::All) => false,
                Ok(some) => some.ids(self.vocabulary.len()).all(|id| self.read(id, at, &mut agreeing)),
                Err(error) => {
                    self.leave(error, at)?;
                    false
                }
            };
        self.states = self.states.saturating_sub(1);
        if !settled {
            self.close(at);
        }
        agreeing.retain(|&id| at + self.vocabulary.token_bytes(id).len() <= self.bytes.len());
        Ok(agreeing)
    }

    /// Holds one token against the text. False: nothing after `at` is certain.
    fn read(&mut self, id: TokenId, at: usize, agreeing: &mut Vec<TokenId>) -> bool {
        let token = self.vocabulary.token_bytes(id);
        if self.tokens == 0 || token.is_empty() || !self.vocabulary.kind(id).is_text() {
            return false;
        }
        self.tokens -= 1;
        let rest = &self.bytes[at..];
        let same = rest.iter().zip(token).take_while(|(a, b)| a == b).count();
        if same == token.len() {
            agreeing.push(id);
        } else if same < rest.len() {
            self.close(at + same);
        } else if !self.closed {
            self.bytes.extend_from_slice(&token[same..]);
            agreeing.push(id);
            if self.bytes.len() >= self.most {
                self.close(self.most);
            }
        }
        !(self.closed && self.bytes.len() == at)
    }

    /// Leaves open what takes too long to find out, after the first bytes: decoding may never come to ask it.
    fn leave(&mut self, error: Error, at: usize) -> Result<()> {
        if at == 0 || error.kind != ErrorKind::Limit || interrupt::must_end() {
            return Err(error);
        }
        self.close(at);
        Ok(())
    }

    fn close(&mut self, at: usize) {
        self.bytes.truncate(at);
        self.closed = true;
    }
}

/// How many of `tokens`, from the first, `matcher` takes and are closed: no legal token begins with the bytes of the last
/// few of them and reaches past their end. At most four tokens at the end are open. The matcher is unchanged.
///
/// # Errors
/// As [`Matcher::allowed`].
pub fn count_closed(matcher: &mut dyn Matcher, vocabulary: &Vocabulary, tokens: &[TokenId]) -> Result<usize> {
    let start = matcher.accepted();
    let counted = closed(matcher, vocabulary, tokens);
    matcher.rollback(matcher.accepted() - start)?;
    counted
}

/// As [`count_closed`], with the matcher moved.
fn closed(matcher: &mut dyn Matcher, vocabulary: &Vocabulary, tokens: &[TokenId]) -> Result<usize> {
    let trie = vocabulary.trie()?;
    let mut taken = 0;
    while taken < tokens.len() && !matcher.is_finished() && matcher.take(tokens[taken])? {
        taken += 1;
    }
    let mut closed = taken;
    for first in (taken.saturating_sub(MAX_OPEN)..taken).rev() {
        matcher.rollback(1)?;
        let end: Vec<u8> =
            tokens[first..taken].iter().flat_map(|&id| vocabulary.token_bytes(id)).copied().collect();
        let longer = trie.with_prefix(&end);
        if longer.is_empty() {
            continue;
        }
        let allowed = matcher.allowed()?;
        if longer.iter().any(|&id| vocabulary.token_bytes(id).len() > end.len() && allowed.contains(id)) {
            closed = first;
        }
    }
    Ok(closed)
}
