//! One sequence of any kind of constraint: a kind has states, which tokens lead from one to the next and which are allowed;
//! the history, what follows the end, refusals, forced runs and forks are the same for all.

use super::after_end::AfterEnd;
use super::language::{ByteWalk, Bytewise};
use super::query::Certain;
use super::skeleton::SpanProgress;
use super::Matcher;
use crate::{interrupt, Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::{count, ids, words_for, AllowedTokens};

/// Longer runs of forced tokens are given in pieces.
pub(crate) const MAX_FORCED: usize = 1_000;
/// How many of the allowed tokens a refusal names.
const NAMED: usize = 8;

/// The states of a kind of constraint that is bound to a vocabulary: [`Sequence`] makes a [`Matcher`] of them. A kind
/// writes the first six methods; the others have answers that fit where the tokens alone decide.
///
/// Methods get the present state of the sequence. What is kept beside it, such as the matcher of a part, is in step with
/// it: [`States::next`] moves it with the state, and [`States::back`] takes it back. No method but those two changes an
/// answer. After the end none of them is asked, but for the size, the end and the spans.
pub trait States: Clone + Send + Sync + 'static {
    /// A state of one sequence.
    type At: Clone + Send + Sync + 'static;

    /// What the places of errors count tokens of.
    const TEXT: &'static str = "text";

    /// As [`Matcher::vocabulary_size`].
    fn vocabulary_size(&self) -> usize;

    /// As [`Matcher::after_end`].
    fn after_end(&self) -> &AfterEnd;

    /// The tokens that end what is accepting and could continue; some of those after the end. [`Sequence`] takes them: they are
    /// among the allowed tokens there, and [`States::next`] does not get one.
    fn ends(&self) -> &[TokenId] {
        &[]
    }

    /// As [`Matcher::is_accepting`].
    fn is_accepting(&self, at: &Self::At) -> bool;

    /// As [`Matcher::is_finished`].
    fn is_finished(&self, at: &Self::At) -> bool;

    /// The allowed tokens; never empty.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn allowed<'a>(&'a mut self, at: &'a Self::At) -> Result<AllowedTokens<'a>>;

    /// The state after `token`; `None` if it is not allowed.
    ///
    /// # Errors
    /// As [`Matcher::allowed`]; nothing has changed then.
    fn next(&mut self, at: &Self::At, token: TokenId) -> Result<Option<Self::At>>;

    /// Takes what is kept beside the state back to `to`, from the last of the states `left`; the first came next.
    ///
    /// # Errors
    /// Those of what is kept.
    fn back(&mut self, _to: &Self::At, _left: &mut [Self::At]) -> Result<()> {
        Ok(())
    }

    /// The matcher that answers here what the kind does not answer itself.
    fn speaker(&self, _at: &Self::At) -> Option<&dyn Matcher> {
        None
    }

    /// The same, to ask it what it may have to find out.
    fn speaker_mut(&mut self, _at: &Self::At) -> Option<&mut dyn Matcher> {
        None
    }

    /// Whether `token` is allowed, where that takes less than trying it; `None` elsewhere.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn is_allowed(&mut self, at: &Self::At, token: TokenId) -> Result<Option<bool>> {
        Ok(if self.is_ready(at) { Some(self.allowed(at)?.contains(token)) } else { None })
    }

    /// As [`Matcher::allowed_superset`].
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn allowed_superset<'a>(&'a mut self, _at: &'a Self::At) -> Result<Option<AllowedTokens<'a>>> {
        Ok(None)
    }

    /// Writes the allowed tokens over the words that the vocabulary needs.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn write(&mut self, at: &Self::At, words: &mut [u32]) -> Result<()> {
        let size = self.vocabulary_size();
        self.allowed(at)?.write(size, words);
        Ok(())
    }

    /// The token here, if only one is allowed.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn sole(&mut self, at: &Self::At) -> Result<Option<TokenId>> {
        Ok(match self.allowed(at)? {
            AllowedTokens::Ids(&[only]) => Some(only),
            AllowedTokens::Mask(words) => {
                let mut ids = ids(words);
                ids.next().filter(|_| ids.next().is_none())
            }
            _ => None,
        })
    }

    /// Appends the forced tokens to `out` where they are found without taking them; whether they are.
    ///
    /// # Errors
    /// As [`Matcher::forced`].
    fn forced(&mut self, _at: &Self::At, _out: &mut Vec<TokenId>) -> Result<bool> {
        Ok(false)
    }

    /// Does the work of one call that takes several tokens.
    ///
    /// # Errors
    /// Those of the work, and of what one call may cost.
    fn within<R>(
        sequence: &mut Sequence<Self>,
        work: impl FnOnce(&mut Sequence<Self>) -> Result<R>,
    ) -> Result<R> {
        work(sequence)
    }

    /// Why a token is refused, where that is not seen from what is expected.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn refusal(&mut self, _at: &Self::At, _token: TokenId) -> Result<Option<String>> {
        Ok(None)
    }

    /// As [`Matcher::state`].
    fn state(&self, _at: &Self::At) -> Option<u64> {
        None
    }

    /// As [`Matcher::in_any_spelling`].
    fn in_any_spelling(&self, at: &Self::At) -> Option<&dyn Matcher> {
        self.speaker(at)?.in_any_spelling()
    }

    /// As [`Matcher::named`].
    fn named(&self, at: &Self::At, out: &mut Vec<TokenId>) {
        if let Some(speaker) = self.speaker(at) {
            speaker.named(out);
        }
    }

    /// As [`Matcher::bytewise`].
    fn bytewise(&self, _at: &Self::At) -> Option<Bytewise> {
        None
    }

    /// As [`Matcher::byte_walk`].
    fn byte_walk(&self) -> Option<ByteWalk<'_>> {
        None
    }

    /// As [`Matcher::bias`], of a token that need not be allowed.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn bias(&mut self, at: &Self::At) -> Result<Option<(TokenId, f32)>> {
        self.speaker_mut(at).map_or(Ok(None), |matcher| matcher.bias())
    }

    /// As [`Matcher::temperature`].
    fn temperature(&self, at: &Self::At) -> Option<f32> {
        self.speaker(at)?.temperature()
    }

    /// As [`Matcher::is_free`].
    fn is_free(&self, at: &Self::At) -> bool {
        self.speaker(at).is_some_and(Matcher::is_free)
    }

    /// As [`Matcher::spans`].
    fn spans<'a>(&'a self, history: &'a History<Self::At>) -> Option<&'a SpanProgress> {
        self.speaker(history.at()).and_then(Matcher::spans)
    }

    /// As [`Matcher::expected`].
    fn expected(&self, at: &Self::At) -> Vec<String> {
        self.speaker(at).map(Matcher::expected).unwrap_or_default()
    }

    /// As [`Matcher::expected_after`], after at least one byte.
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn expected_after(&mut self, at: &Self::At, bytes: &[u8]) -> Result<Vec<String>> {
        self.speaker_mut(at).map_or(Ok(Vec::new()), |matcher| matcher.expected_after(bytes))
    }

    /// As [`Matcher::accepted_prefix`].
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn accepted_prefix(&mut self, at: &Self::At, bytes: &[u8]) -> Result<usize> {
        self.speaker_mut(at).map_or(Ok(bytes.len()), |matcher| matcher.accepted_prefix(bytes))
    }

    /// As [`Matcher::certain`].
    ///
    /// # Errors
    /// As [`Matcher::allowed`].
    fn certain(&mut self, _at: &Self::At, _most: usize) -> Result<Option<Certain>> {
        Ok(None)
    }

    /// As [`Matcher::is_ready`].
    fn is_ready(&self, at: &Self::At) -> bool {
        self.speaker(at).is_none_or(Matcher::is_ready)
    }
}

/// The states of one sequence. Tokens after the end change no state: they are counted only.
#[derive(Debug, Clone)]
pub struct History<A> {
    at: A,
    /// Those before the present one.
    before: Vec<A>,
    /// The tokens that ended it, and those since.
    past_end: usize,
}

impl<A> History<A> {
    /// The present state.
    #[inline]
    pub fn at(&self) -> &A {
        &self.at
    }

    /// Number of tokens accepted.
    #[inline]
    pub fn accepted(&self) -> usize {
        self.before.len() + self.past_end
    }

    /// The state after the first `tokens`; the present one where they are fewer.
    pub fn after(&self, tokens: usize) -> &A {
        self.before.get(tokens).unwrap_or(&self.at)
    }
}

/// A matcher over the states of a kind of constraint.
#[derive(Clone)]
pub struct Sequence<S: States> {
    pub(crate) states: S,
    history: History<S::At>,
}

impl<S: States> Sequence<S> {
    /// A sequence without tokens, in state `at`.
    pub fn begin(states: S, at: S::At) -> Sequence<S> {
        Sequence { states, history: History { at, before: Vec::new(), past_end: 0 } }
    }

    /// Whether a token ended what could have gone on.
    fn is_ended(&self) -> bool {
        self.history.past_end > 0 && !self.states.is_finished(self.history.at())
    }

    /// Whether `token` ends what could continue here.
    #[inline]
    fn ends(&self, token: TokenId) -> bool {
        self.states.is_accepting(self.history.at()) && self.states.ends().contains(&token)
    }

    /// Appends the forced tokens to `run` and takes them.
    fn take_forced(&mut self, run: &mut Vec<TokenId>) -> Result<()> {
        while run.len() < MAX_FORCED && !self.is_accepting() && !self.is_finished() {
            let (accepted, only) = (self.accepted(), self.states.sole(self.history.at()));
            let Some(only) = only.map_err(|error| placed::<S>(error, accepted))? else { break };
            if !self.take(only)? {
                break;
            }
            run.push(only);
        }
        Ok(())
    }

    /// The error for a token that is not allowed.
    fn refused(&mut self, token: TokenId) -> Result<Error> {
        let error = Error::new(ErrorKind::Token, format!("token {token} is not allowed here"))
            .at(place::<S>(self.accepted()));
        if !self.is_finished() {
            if let Some(why) = self.states.refusal(self.history.at(), token)? {
                return Ok(error.help(why));
            }
        }
        let expected = self.expected();
        if !expected.is_empty() {
            return Ok(error.help(format!("expected: {}", expected.join("; or "))));
        }
        if self.is_finished() && self.after_end().ids().is_empty() {
            return Ok(error.help("it is complete, and no token ends it"));
        }
        Ok(match self.is_ready() {
            true => error.help(listed(self.allowed()?)),
            false => error,
        })
    }
}

fn place<S: States>(accepted: usize) -> String {
    format!("token {accepted} of the {}", S::TEXT)
}

/// An error that says nothing of its place, with the number of tokens before it.
fn placed<S: States>(error: Error, accepted: usize) -> Error {
    match error.kind {
        ErrorKind::Constraint | ErrorKind::Limit if error.place.is_empty() => error.at(place::<S>(accepted)),
        _ => error,
    }
}

/// The first of the allowed tokens, and how many more there are.
fn listed(allowed: AllowedTokens<'_>) -> String {
    let (shown, total): (Vec<TokenId>, usize) = match allowed {
        AllowedTokens::All => (Vec::new(), 0),
        AllowedTokens::Ids(row) => (row.iter().take(NAMED).copied().collect(), row.len()),
        AllowedTokens::Mask(words) => (ids(words).take(NAMED).collect(), count(words)),
    };
    let more = if total > NAMED { format!(" and {} more", total - NAMED) } else { String::new() };
    let shown: Vec<String> = shown.iter().map(TokenId::to_string).collect();
    format!("allowed: {}{more}", shown.join(", "))
}

impl<S: States> Matcher for Sequence<S> {
    fn vocabulary_size(&self) -> usize {
        self.states.vocabulary_size()
    }

    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        if self.is_finished() {
            return self.states.after_end().allowed();
        }
        let (at, accepted) = (self.history.at(), self.history.accepted());
        self.states.allowed(at).map_err(|error| placed::<S>(error, accepted))
    }

    fn allowed_superset(&mut self) -> Result<Option<AllowedTokens<'_>>> {
        if self.is_finished() {
            return Ok(None);
        }
        self.states.allowed_superset(self.history.at())
    }

    fn write(&mut self, words: &mut [u32]) -> Result<()> {
        let size = self.vocabulary_size();
        let covered = words_for(size).min(words.len());
        let (words, past) = words.split_at_mut(covered);
        past.fill(0);
        if self.is_finished() {
            self.after_end().allowed()?.write(size, words);
            return Ok(());
        }
        let accepted = self.accepted();
        self.states.write(self.history.at(), words).map_err(|error| placed::<S>(error, accepted))
    }

    fn is_allowed(&mut self, token: TokenId) -> Result<bool> {
        if self.is_finished() {
            return Ok(self.after_end().takes(token));
        }
        if self.ends(token) {
            return Ok(true);
        }
        let accepted = self.accepted();
        let known = self.states.is_allowed(self.history.at(), token);
        if let Some(known) = known.map_err(|error| placed::<S>(error, accepted))? {
            return Ok(known);
        }
        let taken = self.take(token)?;
        self.rollback(usize::from(taken))?;
        Ok(taken)
    }

    fn accept(&mut self, token: TokenId) -> Result<()> {
        if self.take(token)? {
            return Ok(());
        }
        Err(self.refused(token)?)
    }

    #[inline]
    fn take(&mut self, token: TokenId) -> Result<bool> {
        if self.is_finished() || self.ends(token) {
            let takes = self.states.after_end().takes(token);
            self.history.past_end += usize::from(takes);
            return Ok(takes);
        }
        match self.states.next(self.history.at(), token) {
            Ok(Some(next)) => {
                let left = std::mem::replace(&mut self.history.at, next);
                self.history.before.push(left);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => Err(placed::<S>(error, self.accepted())),
        }
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        let accepted = self.accepted();
        if n > accepted {
            let message = format!("cannot roll back {n} tokens: {accepted} were accepted");
            return Err(Error::new(ErrorKind::State, message));
        }
        let History { at, before, past_end } = &mut self.history;
        let late = n.min(*past_end);
        if n > late {
            let kept = before.len() - (n - late);
            let left = &mut before[kept..];
            std::mem::swap(at, &mut left[0]);
            left.rotate_left(1);
            if let Err(error) = self.states.back(at, left) {
                left.rotate_right(1);
                std::mem::swap(at, &mut left[0]);
                return Err(error);
            }
            before.truncate(kept);
        }
        *past_end -= late;
        Ok(())
    }

    fn fork(&self) -> Box<dyn Matcher> {
        Box::new(self.clone())
    }

    fn reset(&mut self) {
        // Cannot fail: so many were accepted.
        drop(self.rollback(self.accepted()));
    }

    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        if self.is_finished() || self.is_accepting() || self.states.forced(self.history.at(), out)? {
            return Ok(());
        }
        let accepted = self.accepted();
        let work = |here: &mut Self| {
            let mut run = Vec::new();
            let walked = here.take_forced(&mut run);
            here.rollback(run.len())?;
            // What is left of a run is found when it is asked for there, with fuel of its own.
            let is_piece = !run.is_empty() && interrupt::left() == Some(0) && !interrupt::has_come();
            if !is_piece {
                walked?;
            }
            out.append(&mut run);
            Ok(())
        };
        S::within(self, work).map_err(|error| placed::<S>(error, accepted))
    }

    fn is_accepting(&self) -> bool {
        self.states.is_accepting(self.history.at())
    }

    fn is_finished(&self) -> bool {
        self.history.past_end > 0 || self.states.is_finished(self.history.at())
    }

    fn after_end(&self) -> &AfterEnd {
        self.states.after_end()
    }

    fn state(&self) -> Option<u64> {
        if self.is_ended() {
            return Some(u64::MAX);
        }
        self.states.state(self.history.at())
    }

    fn in_any_spelling(&self) -> Option<&dyn Matcher> {
        self.states.in_any_spelling(self.history.at())
    }

    fn named(&self, out: &mut Vec<TokenId>) {
        self.states.named(self.history.at(), out);
    }

    fn bytewise(&self) -> Option<Bytewise> {
        if self.is_ended() {
            return None;
        }
        self.states.bytewise(self.history.at())
    }

    fn byte_walk(&self) -> Option<ByteWalk<'_>> {
        self.states.byte_walk()
    }

    fn bias(&mut self) -> Result<Option<(TokenId, f32)>> {
        if self.is_finished() {
            return Ok(None);
        }
        match self.states.bias(self.history.at())? {
            Some((token, by)) if self.is_allowed(token)? => Ok(Some((token, by))),
            _ => Ok(None),
        }
    }

    fn temperature(&self) -> Option<f32> {
        if self.is_finished() {
            return None;
        }
        self.states.temperature(self.history.at())
    }

    fn is_free(&self) -> bool {
        !self.is_finished() && self.states.is_free(self.history.at())
    }

    fn spans(&self) -> Option<&SpanProgress> {
        self.states.spans(&self.history)
    }

    fn expected(&self) -> Vec<String> {
        if self.is_finished() {
            return Vec::new();
        }
        self.states.expected(self.history.at())
    }

    fn expected_after(&mut self, bytes: &[u8]) -> Result<Vec<String>> {
        if self.is_finished() || bytes.is_empty() {
            return Ok(self.expected());
        }
        self.states.expected_after(self.history.at(), bytes)
    }

    fn accepted_prefix(&mut self, bytes: &[u8]) -> Result<usize> {
        if self.is_finished() {
            return Ok(if self.after_end().is_free() { bytes.len() } else { 0 });
        }
        self.states.accepted_prefix(self.history.at(), bytes)
    }

    fn certain(&mut self, most: usize) -> Result<Option<Certain>> {
        if self.is_finished() {
            return Ok(Some(Certain { bytes: Vec::new(), complete: true }));
        }
        self.states.certain(self.history.at(), most)
    }

    fn is_ready(&self) -> bool {
        self.is_finished() || self.states.is_ready(self.history.at())
    }

    fn accepted(&self) -> usize {
        self.history.accepted()
    }
}

/// A buffer that copies do not take with them.
#[derive(Default)]
pub(crate) struct Scratch<T>(pub T);

impl<T: Default> Clone for Scratch<T> {
    fn clone(&self) -> Self {
        Scratch::default()
    }
}

impl Clone for Box<dyn Matcher> {
    fn clone(&self) -> Self {
        self.fork()
    }
}
