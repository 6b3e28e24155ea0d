//! A constraint in the tokenizer's own spelling: of the tokens that another matcher allows, those after which the tokenizer
//! itself would give the tokens so far, for the text so far and some text that the other matcher allows after it.
//!
//! The text begins where the matcher was made, or after the tokens before it, which are given: a first token that continues
//! their last piece must be what the tokenizer gives there.
//!
//! The other matcher may allow a token that is canonical by itself although no text that it allows next keeps it so: `"`
//! where only `:` may follow, and `":` is a token. Such a token leads to a dead end and is refused: after it, a few tokens
//! are looked ahead. Where tens of tokens may follow, one of them is taken to continue.
//!
//! Where many tokens are allowed, most of them leave the other matcher where it is, as in a string. That is seen from single
//! characters: a token of characters that lead back to the same state leads back to it. Only the others are looked at.

use std::sync::{Arc, Mutex};

mod dead_ends;
mod prospects;
mod spelling;

use super::query::Certain;
use super::{AfterEnd, Matcher, Sequence, States};
use crate::{Error, ErrorKind, Result, TokenId};
use dead_ends::{DeadEndCandidates, Lookahead, WalkMemo};
use prospects::Prospect;

pub use spelling::CanonicalSpelling;

use logitree_automata::interrupt::{self, Allowance};
use logitree_tokens::mask::{bit, count, remove_bit, words_for, AllowedTokens, TokenSet};
use logitree_tokens::memo::{Memo, Numbers};
use logitree_tokens::tokenizer::{CanonicalStepper, DeadEnds, Place, SharedCanonical, Tokenizer};

/// How many tokens are looked ahead.
const MAX_AHEAD: usize = 6;
/// How many tokens are asked one by one whether they are the only one.
const MAX_ASKED: usize = 64;
/// Longer lists of tokens are kept as words, which are written faster.
const MAX_LISTED: usize = 24;
/// The most bytes of masks, and of each of the other answers, that are kept.
const MAX_MASK_BYTES: usize = 32 << 20;
const MAX_BYTES: usize = 8 << 20;
/// States whose numbers are known again.
const MAX_NUMBERED: usize = 1 << 17;
/// Words of a mask that one step of fuel covers.
const WORDS_A_STEP: usize = 16;

/// What the copies of a matcher share: what was found of states that have numbers.
#[derive(Default)]
struct Known {
    allowed: Memo<(u64, Place), Arc<TokenSet>, MAX_MASK_BYTES>,
    /// Whether a state leads anywhere.
    prospects: Memo<(u64, Place), Prospect, MAX_BYTES>,
    /// States and sets of guesses from which many tokens may begin a piece, whatever the last token is.
    free: Memo<(u64, u32), (), MAX_BYTES>,
    /// The characters that lead from a state back to it.
    returning: Memo<u64, u128, MAX_BYTES>,
    /// The tokens that may lead to a dead end, by state and set of guesses.
    doubts: Memo<(u64, u32), Arc<DeadEndCandidates>, MAX_BYTES>,
    walked: WalkMemo,
    numbers: Numbers<(u64, Place), MAX_NUMBERED>,
    /// The steps that all calls consumed.
    steps: u64,
}

/// A matcher in the tokenizer's own spelling.
pub type Canonical = Sequence<Spelled>;

/// Another matcher, and where the tokenizer is after the same tokens.
#[derive(Clone)]
pub struct Spelled {
    inner: Box<dyn Matcher>,
    tokenizer: SharedCanonical,
    known: Arc<Mutex<Known>>,
    at: Place,
    /// The steps that one call may take.
    fuel: u64,
    /// The mask here, once it was asked for.
    allowed: Option<Arc<TokenSet>>,
}

impl Canonical {
    /// Steps that one call may take, where nothing else is said.
    pub const FUEL: u64 = 10_000_000;

    /// `inner` from its present state on, after the tokens `before`.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the two have different vocabularies, or no text that `inner` allows has a canonical
    /// spelling; [`ErrorKind::Limit`] if finding out takes more than [`Canonical::FUEL`]; those of `inner`.
    pub fn new(inner: &dyn Matcher, tokenizer: &Arc<Tokenizer>, before: &[TokenId]) -> Result<Canonical> {
        Canonical::with_fuel(inner, tokenizer, before, Canonical::FUEL)
    }

    /// As [`Canonical::new`], with `fuel` for each call, in steps as those of [`GrammarLimits`](super::GrammarLimits): one sum
    /// for its own work and for what it asks `inner`, which keeps its own limits.
    ///
    /// # Errors
    /// As [`Canonical::new`].
    pub fn with_fuel(
        inner: &dyn Matcher,
        tokenizer: &Arc<Tokenizer>,
        before: &[TokenId],
        fuel: u64,
    ) -> Result<Canonical> {
        let (own, other) = (tokenizer.vocabulary().len(), inner.vocabulary_size());
        if own != other {
            let message = format!("the tokenizer has {own} tokens and the matcher {other}");
            return Err(
                Error::new(ErrorKind::Constraint, message).help("give both the vocabulary of the same file")
            );
        }
        tokenizer.check_canonical()?;
        let tokenizer = SharedCanonical::new(tokenizer);
        let mut at = CanonicalStepper::start();
        {
            let mut judge = tokenizer.judge();
            for &token in before {
                tokenizer.vocabulary().check(token)?;
                at = judge
                    .step(at, token)
                    .or_else(|| judge.step(CanonicalStepper::start(), token))
                    .unwrap_or_else(CanonicalStepper::start);
            }
        }
        let (inner, known) = (inner.fork(), Arc::default());
        let mut states = Spelled { inner, tokenizer, known, at, fuel, allowed: None };
        let number = states.arrive();
        let mut made = Sequence::begin(states, (at, number));
        // A matcher's history before this one began is not its own.
        if !made.is_finished() {
            made.allowed()?;
        }
        Ok(made)
    }

    /// The steps of fuel that all calls on it and its copies have consumed. Counted, not timed.
    pub fn steps(&self) -> u64 {
        self.states.known().steps
    }
}

impl Spelled {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        // Entries are written when they are whole.
        interrupt::lock(&self.known)
    }

    /// Takes the mask of the state that was reached, if it is known, and gives the state's number.
    fn arrive(&mut self) -> Option<u64> {
        self.allowed = None;
        let key = (self.inner.state()?, self.at);
        let (mask, number) = {
            let mut known = self.known();
            (known.allowed.get(&key), known.numbers.number(key))
        };
        self.allowed = mask;
        Some(number)
    }

    /// Does the work of one call, within its fuel.
    fn spending<R>(&mut self, work: impl FnOnce(&mut Spelled) -> Result<R>) -> Result<R> {
        let allowance = Allowance::new(self.fuel);
        let done = work(self);
        self.spent(&allowance, done)
    }

    /// Counts the steps of one call, and names the limit where they were too many.
    fn spent<R>(&self, allowance: &Allowance, done: Result<R>) -> Result<R> {
        let steps = allowance.consumed();
        self.known().steps += steps;
        done.map_err(|error| {
            if error.kind != ErrorKind::Limit || interrupt::left() != Some(0) || interrupt::has_come() {
                return error;
            }
            let message = format!("finding the tokens in canonical spelling takes more than {steps} steps");
            Error::new(ErrorKind::Limit, message)
                .help("give canonical more fuel, or allow every spelling: leave it out")
        })
    }

    /// Consumes the fuel for a few operations on whole masks.
    fn spend_mask(&self) -> Result<()> {
        interrupt::spend((words_for(self.inner.vocabulary_size()) / WORDS_A_STEP) as u64 + 1)
    }

    /// The mask here; never empty.
    fn find(&mut self) -> Result<Arc<TokenSet>> {
        if let Some(found) = &self.allowed {
            return Ok(found.clone());
        }
        let key = self.inner.state().map(|state| (state, self.at));
        let kept = key.and_then(|key| self.known().allowed.get(&key));
        let found = match kept {
            Some(found) => found,
            None => {
                let found = Arc::new(self.compute()?);
                if let Some(key) = key {
                    self.known().allowed.keep_bytes(key, found.clone(), found.bytes());
                }
                found
            }
        };
        self.allowed = Some(found.clone());
        Ok(found)
    }

    fn compute(&mut self) -> Result<TokenSet> {
        self.spend_mask()?;
        let mut words = vec![0; words_for(self.inner.vocabulary_size())];
        let place = self.at;
        let doubts = self.doubts()?;
        let tokenizer = self.tokenizer.clone();
        let allowed = self.inner.allowed()?;
        let unproven: Vec<TokenId> = match doubts {
            Some(doubts) => {
                tokenizer.judge().fill(place, &allowed, &doubts.dead, &mut words);
                let listed = |id: &&TokenId| bit(&words, **id);
                doubts.open.iter().filter(listed).copied().collect()
            }
            None => {
                tokenizer.judge().fill(place, &allowed, &DeadEnds::default(), &mut words);
                self.unproven(&words)?
            }
        };
        for token in unproven {
            let mut tried = 0;
            if self.prospect(place, token, MAX_AHEAD, &mut tried)? == Prospect::Dead {
                remove_bit(&mut words, token);
            }
        }
        let found = match count(&words) <= MAX_LISTED {
            true => TokenSet::from_words(words),
            false => TokenSet::Words(words.into()),
        };
        if found.is_empty() {
            return Err(Error::new(
                ErrorKind::Constraint,
                "no text that the constraint allows here has a spelling that the tokenizer would give",
            )
            .help("allow every spelling: leave out canonical"));
        }
        Ok(found)
    }

    /// The tokens that may lead to a dead end here, whatever the last token is; `None` where the other matcher's bytes cannot
    /// be walked.
    fn doubts(&mut self) -> Result<Option<Arc<DeadEndCandidates>>> {
        let key = self.inner.state().zip(self.at.set_alone());
        let Some(key) = key.filter(|_| self.inner.byte_walk().is_some()) else { return Ok(None) };
        let kept = self.known().doubts.get(&key);
        if kept.is_some() {
            return Ok(kept);
        }
        self.spend_mask()?;
        // The other matcher's locks come before the tokenizer's: a walk takes both.
        let allowed = self.inner.allowed()?;
        let candidates = self.tokenizer.judge().candidates(key.1, &allowed);
        let Some(walk) = self.inner.byte_walk() else { return Ok(None) };
        let mut known = self.known();
        let known = &mut *known;
        let mut judge = self.tokenizer.judge();
        let vocabulary = self.tokenizer.vocabulary();
        let mut look = Lookahead { walk, walked: &mut known.walked };
        let found = Arc::new(look.doubts(&mut judge, vocabulary, key, &candidates)?);
        known.doubts.keep_bytes(key, found.clone(), found.bytes());
        Ok(Some(found))
    }

    /// The place after `token`, which the other matcher allows, if it may come here: as the mask says, decided for one token.
    fn decide(&mut self, token: TokenId) -> Result<Option<Place>> {
        let place = self.at;
        let Some(next) = self.tokenizer.judge().step(place, token) else { return Ok(None) };
        let is_open = match self.doubt(token)? {
            Some(doubts) if self.tokenizer.judge().is_dead(place, token, &doubts.dead) => return Ok(None),
            Some(doubts) => doubts.open.binary_search(&token).is_ok(),
            None => true,
        };
        let is_dead = is_open && self.prospect(place, token, MAX_AHEAD, &mut 0)? == Prospect::Dead;
        Ok((!is_dead).then_some(next))
    }

    /// As [`Spelled::doubts`], of one token, where they are not known of all.
    fn doubt(&mut self, token: TokenId) -> Result<Option<Arc<DeadEndCandidates>>> {
        let Some(key) = self.inner.state().zip(self.at.set_alone()) else { return Ok(None) };
        let Some(walk) = self.inner.byte_walk() else { return Ok(None) };
        let mut known = self.known();
        if let Some(doubts) = known.doubts.get(&key) {
            return Ok(Some(doubts));
        }
        let mut judge = self.tokenizer.judge();
        let mut look = Lookahead { walk, walked: &mut known.walked };
        let found = look.looked(&mut judge, self.tokenizer.vocabulary(), key, vec![token])?;
        Ok(Some(Arc::new(found)))
    }

    /// The token here, if only one is allowed. That two are is mostly seen from the first of the other matcher's.
    fn only(&mut self) -> Result<Option<TokenId>> {
        if !self.is_known() {
            let (mut found, mut asked) = (None, 0);
            for token in self.first(MAX_ASKED)? {
                asked += 1;
                if self.decide(token)?.is_some() && found.replace(token).is_some() {
                    return Ok(None);
                }
            }
            if asked < MAX_ASKED && found.is_some() {
                return Ok(found);
            }
        }
        Ok(self.find()?.sole())
    }

    /// The first of the tokens that the other matcher allows, at most `most`.
    fn first(&mut self, most: usize) -> Result<Vec<TokenId>> {
        let size = self.inner.vocabulary_size();
        Ok(self.inner.allowed()?.ids(size).take(most).collect())
    }

    /// Whether the mask here is known.
    fn is_known(&self) -> bool {
        let key = || self.inner.state().map(|state| (state, self.at));
        self.allowed.is_some() || key().is_some_and(|key| self.known().allowed.get(&key).is_some())
    }

    /// Whether what may come in the other matcher's state shows that the text at `place` leads on.
    fn is_settled(&self, place: Place) -> Result<bool> {
        let (Some(walk), Some(state)) = (self.inner.byte_walk(), self.inner.state()) else {
            return Ok(false);
        };
        let mut known = self.known();
        let mut look = Lookahead { walk, walked: &mut known.walked };
        look.is_settled(&mut self.tokenizer.judge(), state, place)
    }
}

impl States for Spelled {
    type At = (Place, Option<u64>);

    fn vocabulary_size(&self) -> usize {
        self.inner.vocabulary_size()
    }

    fn after_end(&self) -> &AfterEnd {
        self.inner.after_end()
    }

    fn is_accepting(&self, _at: &Self::At) -> bool {
        self.inner.is_accepting() && (self.inner.is_finished() || self.tokenizer.judge().can_end(self.at))
    }

    fn is_finished(&self, _at: &Self::At) -> bool {
        self.inner.is_finished()
    }

    fn allowed<'a>(&'a mut self, _at: &'a Self::At) -> Result<AllowedTokens<'a>> {
        if self.allowed.is_none() {
            self.spending(Spelled::find)?;
        }
        Ok(self.allowed.as_deref().and_then(TokenSet::borrow).unwrap_or(AllowedTokens::Ids(&[])))
    }

    fn next(&mut self, _at: &Self::At, token: TokenId) -> Result<Option<Self::At>> {
        if token as usize >= self.inner.vocabulary_size() {
            return Ok(None);
        }
        let next = self.spending(|here| {
            let next = match here.is_known() {
                true if !here.find()?.contains(token) => None,
                true => here.tokenizer.judge().step(here.at, token),
                false => here.decide(token)?,
            };
            let Some(next) = next else { return Ok(None) };
            Ok(here.inner.take(token)?.then_some(next))
        })?;
        Ok(next.map(|next| {
            self.at = next;
            (next, self.arrive())
        }))
    }

    fn back(&mut self, to: &Self::At, left: &mut [Self::At]) -> Result<()> {
        self.inner.rollback(left.len())?;
        self.at = to.0;
        self.allowed = None;
        Ok(())
    }

    fn speaker(&self, _at: &Self::At) -> Option<&dyn Matcher> {
        Some(&*self.inner)
    }

    fn in_any_spelling(&self, _at: &Self::At) -> Option<&dyn Matcher> {
        Some(&*self.inner)
    }

    fn speaker_mut(&mut self, _at: &Self::At) -> Option<&mut dyn Matcher> {
        Some(&mut *self.inner)
    }

    fn is_allowed(&mut self, at: &Self::At, token: TokenId) -> Result<Option<bool>> {
        if self.is_known() {
            return Ok(Some(self.allowed(at)?.contains(token)));
        }
        if token as usize >= self.inner.vocabulary_size() {
            return Ok(Some(false));
        }
        self.spending(|here| Ok(Some(here.inner.is_allowed(token)? && here.decide(token)?.is_some())))
    }

    fn allowed_superset<'a>(&'a mut self, _at: &'a Self::At) -> Result<Option<AllowedTokens<'a>>> {
        if self.is_known() {
            return Ok(None);
        }
        self.inner.allowed().map(Some)
    }

    fn sole(&mut self, _at: &Self::At) -> Result<Option<TokenId>> {
        self.only()
    }

    fn within<R>(
        sequence: &mut Sequence<Self>,
        work: impl FnOnce(&mut Sequence<Self>) -> Result<R>,
    ) -> Result<R> {
        let allowance = Allowance::new(sequence.states.fuel);
        let done = work(sequence);
        sequence.states.spent(&allowance, done)
    }

    fn refusal(&mut self, _at: &Self::At, token: TokenId) -> Result<Option<String>> {
        let otherwise = || "the tokenizer would spell the text otherwise".to_string();
        Ok(self.inner.is_allowed(token)?.then(otherwise))
    }

    fn state(&self, at: &Self::At) -> Option<u64> {
        at.1
    }

    fn certain(&mut self, _at: &Self::At, most: usize) -> Result<Option<Certain>> {
        self.inner.certain(most)
    }

    fn is_ready(&self, _at: &Self::At) -> bool {
        self.allowed.is_some()
    }
}
