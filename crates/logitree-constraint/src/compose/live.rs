//! A matcher over states of which some lead nowhere: a token is allowed only if what is written can be completed after it.
//! Intersections, bans and counts of tokens are such states.
//!
//! The tokens that end the generation are no part of the output here; they are allowed where it is complete.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::forced::forced_run;
use super::search::Known;
use crate::history::check_rollback;
use crate::{AfterEnd, Matcher, SpanProgress};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::{ids, words_for, AllowedTokens};
use logitree_tokens::vocabulary::Vocabulary;

/// Masks that are kept for all matchers of one composition; then all are forgotten.
const MAX_MASKS: usize = 1 << 10;

/// The numbers of a state.
pub(super) type Key = (u64, u64);

/// A state that tokens change in place.
pub(super) trait Live: Send + Sync + Sized + 'static {
    /// An independent copy.
    fn fork(&self) -> Self;

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
    fn is_alive(&mut self, known: &Known) -> Result<bool> {
        known.is_alive(self.fork())
    }

    /// Whether what is written can certainly be completed after each of these tokens, or after this one.
    fn is_harmless(&mut self, _known: &Known, _words: &[u32]) -> Result<bool> {
        Ok(false)
    }

    /// As [`Live::is_harmless`], of one token.
    fn is_token_harmless(&mut self, _token: TokenId) -> bool {
        false
    }

    /// The matchers inside that say what is expected.
    fn matchers(&self) -> Vec<&dyn Matcher>;

    /// The same, to ask them.
    fn matchers_mut(&mut self) -> Vec<&mut Box<dyn Matcher>>;
}

/// Where a sequence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At {
    complete: bool,
    /// Whether nothing may follow.
    finished: bool,
    /// Whether a token ended the generation.
    ended: bool,
}

type Words = Arc<[u32]>;

/// What all matchers of one composition share.
struct Shared {
    known: Known,
    masks: Mutex<FxHashMap<Key, Words>>,
    numbers: Mutex<FxHashMap<Key, u64>>,
    ends: Box<[TokenId]>,
    after: AfterEnd,
    size: usize,
}

/// A matcher over live states.
pub(super) struct LiveMatcher<S> {
    shared: Arc<Shared>,
    state: S,
    at: At,
    history: Vec<At>,
    past_end: usize,
    /// The continuations here, once they were computed.
    mask: Option<Words>,
    /// What was lent last.
    shown: Words,
}

impl Shared {
    /// A number for a state's numbers.
    fn number(&self, key: Key) -> u64 {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let next = numbers.len() as u64;
        *numbers.entry(key).or_insert(next)
    }
}

impl<S: Live> LiveMatcher<S> {
    /// `deep`: whether a search looks at long continuations first.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] with the message `empty` if nothing can be written; those of the state.
    pub fn new(
        mut state: S,
        vocabulary: &Arc<Vocabulary>,
        deep: bool,
        empty: &str,
    ) -> Result<LiveMatcher<S>> {
        let shared = Shared {
            known: Known::new(deep),
            masks: Mutex::default(),
            numbers: Mutex::default(),
            ends: vocabulary.end_of_generation().into(),
            after: AfterEnd::tokens(&[], vocabulary.end_of_generation()),
            size: vocabulary.len(),
        };
        let alive = state.is_alive(&shared.known)?;
        let complete = state.is_complete()?;
        let at = At { complete, finished: false, ended: false };
        let (history, shown) = (Vec::new(), Arc::from([]));
        let mut made =
            LiveMatcher { shared: Arc::new(shared), state, at, history, past_end: 0, mask: None, shown };
        if !alive || made.continuations()?.iter().all(|&word| word == 0) {
            return Err(Error::new(ErrorKind::Constraint, empty)
                .help("no output, or only the empty one, is allowed by all parts"));
        }
        Ok(made)
    }

    /// The tokens after which what is written can be completed, without those that end the generation.
    fn continuations(&mut self) -> Result<Words> {
        if let Some(known) = &self.mask {
            return Ok(Arc::clone(known));
        }
        let key = self.state.key();
        let shared = Arc::clone(&self.shared);
        let masks = || shared.masks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = key.and_then(|key| masks().get(&key).map(Arc::clone)) {
            self.mask = Some(Arc::clone(&known));
            return Ok(known);
        }
        let mut words = vec![0; words_for(shared.size)];
        self.state.write(&mut words)?;
        for &end in &shared.ends {
            words[end as usize / 32] &= !(1 << (end % 32));
        }
        if !self.state.is_harmless(&shared.known, &words)? {
            let tried: Vec<TokenId> = ids(&words).collect();
            for token in tried {
                if self.state.is_token_harmless(token) {
                    continue;
                }
                let mut alive = false;
                if self.state.take(token)? {
                    let found = match self.state.key().and_then(|key| shared.known.get(&key)) {
                        Some(known) => Ok(known),
                        None => self.state.is_alive(&shared.known),
                    };
                    self.state.rollback(1)?;
                    alive = found?;
                }
                if !alive {
                    words[token as usize / 32] &= !(1 << (token % 32));
                }
            }
        }
        let made: Words = words.into();
        if let Some(key) = key {
            let mut masks = masks();
            if masks.len() >= MAX_MASKS {
                masks.clear();
            }
            masks.insert(key, Arc::clone(&made));
        }
        self.mask = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Where the state is, after a token that led to something alive.
    fn look(&mut self) -> Result<At> {
        let complete = self.state.is_complete()?;
        let finished = complete && self.continuations()?.iter().all(|&word| word == 0);
        Ok(At { complete, finished, ended: false })
    }
}

impl<S: Live> Matcher for LiveMatcher<S> {
    fn vocabulary_size(&self) -> usize {
        self.shared.size
    }

    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        if self.at.finished {
            return self.shared.after.allowed();
        }
        let mut words = self.continuations()?;
        if self.at.complete && !self.shared.ends.is_empty() {
            let mut with_ends = words.to_vec();
            self.shared.ends.iter().for_each(|&end| with_ends[end as usize / 32] |= 1 << (end % 32));
            words = with_ends.into();
        }
        if words.iter().all(|&word| word == 0) {
            return Err(Error::new(ErrorKind::Constraint, "no token continues the output here")
                .at(format!("token {} of the text", self.history.len())));
        }
        self.shown = words;
        Ok(AllowedTokens::Mask(&self.shown))
    }

    fn is_allowed(&mut self, token: TokenId) -> Result<bool> {
        if self.at.finished {
            return Ok(self.shared.after.takes(token));
        }
        if self.mask.is_some() {
            return Ok(self.allowed()?.contains(token));
        }
        let before = self.accepted();
        let taken = self.take(token)?;
        self.rollback(self.accepted() - before)?;
        Ok(taken)
    }

    fn accept(&mut self, token: TokenId) -> Result<()> {
        if self.take(token)? {
            return Ok(());
        }
        let mut error = Error::new(ErrorKind::Token, format!("token {token} is not allowed here"))
            .at(format!("token {} of the text", self.accepted()));
        let expected = self.expected();
        if !expected.is_empty() {
            error = error.help(format!("expected: {}", expected.join("; or ")));
        }
        Err(error)
    }

    fn take(&mut self, token: TokenId) -> Result<bool> {
        if self.at.finished {
            let takes = self.shared.after.takes(token);
            self.past_end += usize::from(takes);
            return Ok(takes);
        }
        if self.shared.ends.contains(&token) {
            if self.at.complete {
                self.history.push(self.at);
                self.at = At { complete: true, finished: true, ended: true };
            }
            return Ok(self.at.ended);
        }
        if token as usize >= self.shared.size
            || self.mask.as_ref().is_some_and(|mask| !AllowedTokens::Mask(mask).contains(token))
            || !self.state.take(token)?
        {
            return Ok(false);
        }
        let mask = self.mask.take();
        let shared = Arc::clone(&self.shared);
        let alive = match &mask {
            Some(_) => Ok(true),
            None => self.state.is_alive(&shared.known),
        };
        match alive.and_then(|alive| Ok(if alive { Some(self.look()?) } else { None })) {
            Ok(Some(at)) => {
                self.history.push(std::mem::replace(&mut self.at, at));
                Ok(true)
            }
            failed => {
                self.mask = mask;
                self.state.rollback(1)?;
                failed.map(|_| false)
            }
        }
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        check_rollback(n, self.accepted())?;
        let late = n.min(self.past_end);
        self.past_end -= late;
        let n = n - late;
        if n == 0 {
            return Ok(());
        }
        self.state.rollback(n - usize::from(self.at.ended))?;
        let kept = self.history.len() - n;
        if let Some(at) = self.history.drain(kept..).next() {
            self.at = at;
        }
        self.mask = None;
        Ok(())
    }

    fn fork(&self) -> Box<dyn Matcher> {
        Box::new(LiveMatcher {
            shared: Arc::clone(&self.shared),
            state: self.state.fork(),
            at: self.at,
            history: self.history.clone(),
            past_end: self.past_end,
            mask: self.mask.clone(),
            shown: Arc::from([]),
        })
    }

    fn reset(&mut self) {
        // Cannot fail: so many were accepted.
        drop(self.rollback(self.accepted()));
    }

    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        let mut run = Vec::new();
        let walked = forced_run(self, &mut run);
        self.rollback(run.len())?;
        walked.map(|()| out.append(&mut run))
    }

    fn is_accepting(&self) -> bool {
        self.at.complete
    }

    fn is_finished(&self) -> bool {
        self.at.finished
    }

    fn after_end(&self) -> &AfterEnd {
        &self.shared.after
    }

    fn state(&self) -> Option<u64> {
        if self.at.ended {
            return Some(u64::MAX);
        }
        self.state.key().map(|key| self.shared.number(key))
    }

    fn bias(&mut self) -> Result<Option<(TokenId, f32)>> {
        if self.at.finished {
            return Ok(None);
        }
        let mut wanted = None;
        for matcher in self.state.matchers_mut() {
            if !matcher.is_finished() {
                wanted = wanted.or(matcher.bias()?);
            }
        }
        let Some((token, by)) = wanted else { return Ok(None) };
        Ok(self.is_allowed(token)?.then_some((token, by)))
    }

    fn spans(&self) -> Option<&SpanProgress> {
        self.state.matchers().into_iter().find_map(Matcher::spans)
    }

    fn is_free(&self) -> bool {
        self.at.complete && !self.at.ended && self.state.matchers().iter().all(|matcher| matcher.is_free())
    }

    fn expected(&self) -> Vec<String> {
        if self.at.finished {
            return Vec::new();
        }
        let each = self.state.matchers().into_iter().map(|matcher| matcher.expected().join("; or "));
        let each: Vec<String> = each.filter(|text| !text.is_empty()).collect();
        if each.is_empty() {
            return each;
        }
        vec![each.join("; and ")]
    }

    fn taken(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut least = if self.at.finished { 0 } else { bytes.len() };
        for matcher in self.state.matchers_mut() {
            least = least.min(matcher.taken(bytes)?);
        }
        Ok(least)
    }

    fn is_ready(&self) -> bool {
        self.at.finished || self.mask.is_some() && self.state.matchers().iter().all(|one| one.is_ready())
    }

    fn accepted(&self) -> usize {
        self.history.len() + self.past_end
    }
}
