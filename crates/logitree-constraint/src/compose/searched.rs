//! A matcher that allows a token only if the output can still be completed after it. Intersections, bans and counts of
//! tokens have states from which nothing can be completed.
//!
//! The tokens that end the generation are no part of the output here; they are allowed where it is complete.

use std::sync::{Arc, Mutex};

use super::search::Known;
use crate::matcher::highest_temperature;
use crate::sequence::{History, Scratch};
use crate::{interrupt, AfterEnd, Matcher, Sequence, SpanProgress, States};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::{self, words_for, AllowedTokens, TokenSet};
use logitree_tokens::memo::{Memo, Numbers};
use logitree_tokens::vocabulary::Vocabulary;

/// Masks that are kept for all matchers of one composition.
const MAX_MASKS: usize = 1 << 10;
/// States whose numbers are known again.
pub(super) const MAX_NUMBERED: usize = 1 << 20;

/// The numbers of a state.
pub(super) type Key = (u64, u64);

/// A state that tokens change in place.
pub(super) trait Searchable: Clone + Send + Sync + 'static {
    /// Its numbers, where it has them.
    fn key(&self) -> Option<Key>;

    /// Whether what was written is complete.
    ///
    /// # Errors
    /// Those of the matchers inside; the same of all methods.
    fn is_complete(&mut self) -> Result<bool>;

    /// Writes the tokens that may come, whether they lead anywhere or not, over `words`.
    fn write(&mut self, words: &mut [u32]) -> Result<()>;

    /// Tokens that are enough to spell every continuation.
    fn tokens(&mut self) -> Result<Vec<TokenId>>;

    /// Takes a token if it may come, whether it leads anywhere or not; whether it may.
    fn take(&mut self, token: TokenId) -> Result<bool>;

    /// Forgets the last `n` tokens.
    fn rollback(&mut self, n: usize) -> Result<()>;

    /// Whether what was written can be completed.
    fn can_complete(&mut self, known: &Known) -> Result<bool> {
        known.can_complete(self.clone())
    }

    /// Whether what is written can certainly be completed after each of these tokens, or after this one.
    fn all_keep_completable(&mut self, _known: &Known, _words: &[u32]) -> Result<bool> {
        Ok(false)
    }

    /// As [`Searchable::all_keep_completable`], of one token.
    fn keeps_completable(&mut self, _token: TokenId) -> bool {
        false
    }

    /// The matchers inside that say what is expected.
    fn matchers(&self) -> Vec<&dyn Matcher>;

    /// The same, to ask them.
    fn matchers_mut(&mut self) -> Vec<&mut Box<dyn Matcher>>;
}

/// Where a sequence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    complete: bool,
    /// Whether nothing may follow.
    finished: bool,
}

/// What all matchers of one composition share.
struct Shared {
    known: Known,
    masks: Mutex<Memo<Key, TokenSet, MAX_MASKS>>,
    numbers: Mutex<Numbers<Key, MAX_NUMBERED>>,
    after: AfterEnd,
    size: usize,
}

/// A matcher over searched states.
pub(super) type SearchedMatcher<S> = Sequence<SearchedStates<S>>;

/// A state that tokens change, and what can be completed after it.
#[derive(Clone)]
pub(super) struct SearchedStates<S> {
    shared: Arc<Shared>,
    state: S,
    /// The continuations here, once they were computed.
    mask: Option<TokenSet>,
    /// The same with the tokens that end the generation.
    ending: Scratch<Vec<u32>>,
}

impl<S: Searchable> SearchedMatcher<S> {
    /// `deep`: whether a search looks at long continuations first.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] with the message `empty` if nothing can be written; those of the state.
    pub fn new(
        mut state: S,
        vocabulary: &Arc<Vocabulary>,
        deep: bool,
        empty: &str,
    ) -> Result<SearchedMatcher<S>> {
        let shared = Shared {
            known: Known::new(deep),
            masks: Mutex::default(),
            numbers: Mutex::default(),
            after: AfterEnd::tokens(&[], vocabulary.end_tokens()),
            size: vocabulary.len(),
        };
        let alive = state.can_complete(&shared.known)?;
        let complete = state.is_complete()?;
        let mut states =
            SearchedStates { shared: Arc::new(shared), state, mask: None, ending: Scratch::default() };
        if !alive || states.continuations()?.is_empty() {
            return Err(Error::new(ErrorKind::Constraint, empty)
                .help("no output, or only the empty one, is allowed by all parts"));
        }
        Ok(Sequence::begin(states, At { complete, finished: false }))
    }
}

impl<S: Searchable> SearchedStates<S> {
    /// The tokens after which what is written can be completed, without those that end the generation.
    fn continuations(&mut self) -> Result<TokenSet> {
        if let Some(known) = &self.mask {
            return Ok(known.clone());
        }
        let key = self.state.key();
        let shared = Arc::clone(&self.shared);
        let masks = || interrupt::lock(&shared.masks);
        if let Some(known) = key.and_then(|key| masks().get(&key)) {
            self.mask = Some(known.clone());
            return Ok(known);
        }
        let mut words = vec![0; words_for(shared.size)];
        self.state.write(&mut words)?;
        mask::remove_bits(&mut words, shared.after.ids());
        if !self.state.all_keep_completable(&shared.known, &words)? {
            let tried: Vec<TokenId> = mask::ids(&words).collect();
            for token in tried {
                if self.state.keeps_completable(token) {
                    continue;
                }
                let mut alive = false;
                if self.state.take(token)? {
                    let found = match self.state.key().and_then(|key| shared.known.get(&key)) {
                        Some(known) => Ok(known),
                        None => self.state.can_complete(&shared.known),
                    };
                    self.state.rollback(1)?;
                    alive = found?;
                }
                if !alive {
                    mask::remove_bit(&mut words, token);
                }
            }
        }
        let made = TokenSet::from_words(words);
        if let Some(key) = key {
            masks().keep(key, made.clone());
        }
        self.mask = Some(made.clone());
        Ok(made)
    }

    /// Where the state is, after a token that led to something alive.
    fn look(&mut self) -> Result<At> {
        let complete = self.state.is_complete()?;
        let finished = complete && self.continuations()?.is_empty();
        Ok(At { complete, finished })
    }
}

impl<S: Searchable> States for SearchedStates<S> {
    type At = At;

    fn vocabulary_size(&self) -> usize {
        self.shared.size
    }

    fn after_end(&self) -> &AfterEnd {
        &self.shared.after
    }

    fn ends(&self) -> &[TokenId] {
        self.shared.after.ids()
    }

    fn is_accepting(&self, at: &At) -> bool {
        at.complete
    }

    fn is_finished(&self, at: &At) -> bool {
        at.finished
    }

    fn allowed<'a>(&'a mut self, at: &'a At) -> Result<AllowedTokens<'a>> {
        let set = self.continuations()?;
        let shared = &self.shared;
        if at.complete && !shared.after.ids().is_empty() {
            let Scratch(ending) = &mut self.ending;
            ending.resize(words_for(shared.size), 0);
            set.write(shared.size, ending);
            mask::insert_bits(ending, shared.after.ids());
            return Ok(AllowedTokens::Mask(ending));
        }
        let lent = self.mask.as_ref().filter(|set| !set.is_empty()).and_then(TokenSet::borrow);
        lent.ok_or_else(|| Error::new(ErrorKind::Constraint, "no token continues the output here"))
    }

    fn next(&mut self, _at: &At, token: TokenId) -> Result<Option<At>> {
        if self.shared.after.ids().contains(&token)
            || token as usize >= self.shared.size
            || self.mask.as_ref().is_some_and(|mask| !mask.contains(token))
            || !self.state.take(token)?
        {
            return Ok(None);
        }
        let mask = self.mask.take();
        let shared = Arc::clone(&self.shared);
        let alive = match &mask {
            Some(_) => Ok(true),
            None => self.state.can_complete(&shared.known),
        };
        let found = alive.and_then(|alive| if alive { self.look().map(Some) } else { Ok(None) });
        if !matches!(found, Ok(Some(_))) {
            self.mask = mask;
            self.state.rollback(1)?;
        }
        found
    }

    fn back(&mut self, _to: &At, left: &mut [At]) -> Result<()> {
        self.mask = None;
        self.state.rollback(left.len())
    }

    fn is_allowed(&mut self, _at: &At, token: TokenId) -> Result<Option<bool>> {
        Ok(self.mask.as_ref().map(|mask| mask.contains(token)))
    }

    fn state(&self, _at: &At) -> Option<u64> {
        let numbers = || interrupt::lock(&self.shared.numbers);
        self.state.key().map(|key| numbers().number(key))
    }

    fn named(&self, _at: &At, out: &mut Vec<TokenId>) {
        self.state.matchers().iter().for_each(|matcher| matcher.named(out));
    }

    fn bias(&mut self, _at: &At) -> Result<Option<(TokenId, f32)>> {
        let mut wanted = None;
        for matcher in self.state.matchers_mut() {
            if !matcher.is_finished() {
                wanted = wanted.or(matcher.bias()?);
            }
        }
        Ok(wanted)
    }

    fn temperature(&self, _at: &At) -> Option<f32> {
        highest_temperature(self.state.matchers())
    }

    fn spans<'a>(&'a self, _history: &'a History<At>) -> Option<&'a SpanProgress> {
        self.state.matchers().into_iter().find_map(Matcher::spans)
    }

    fn is_free(&self, at: &At) -> bool {
        at.complete && self.state.matchers().iter().all(|matcher| matcher.is_free())
    }

    fn expected(&self, _at: &At) -> Vec<String> {
        let each = self.state.matchers().into_iter().map(|matcher| matcher.expected().join("; or "));
        let each: Vec<String> = each.filter(|text| !text.is_empty()).collect();
        if each.is_empty() {
            return each;
        }
        vec![each.join("; and ")]
    }

    fn accepted_prefix(&mut self, _at: &At, bytes: &[u8]) -> Result<usize> {
        let mut least = bytes.len();
        for matcher in self.state.matchers_mut() {
            least = least.min(matcher.accepted_prefix(bytes)?);
        }
        Ok(least)
    }

    fn is_ready(&self, _at: &At) -> bool {
        self.mask.is_some() && self.state.matchers().iter().all(|one| one.is_ready())
    }
}
