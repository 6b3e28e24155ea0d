//! A skeleton running for one sequence: the grammar's matcher, and the tracker beside it.

use std::sync::Arc;

use super::tracker::{ActiveSpan, Tracker};
use crate::query::Certain;
use crate::sequence::History;
use crate::{AfterEnd, ByteWalk, Matcher, Sequence, States};
use crate::{ErrorKind, Result, TokenId};
use logitree_tokens::mask::AllowedTokens;
use logitree_tokens::vocabulary::Vocabulary;

/// Where a sequence is in a skeleton, and where it was after each token.
pub type SpanProgress = History<Tracker>;

impl SpanProgress {
    /// Number of tokens of the skeleton's text.
    pub fn tokens(&self) -> usize {
        self.accepted()
    }

    /// The span in which the next token begins; `None` in fixed text and after the end.
    pub fn active(&self) -> Option<ActiveSpan> {
        self.at().active()
    }

    /// The readings after all tokens, where the text ends with them.
    pub fn ended(&self) -> Tracker {
        let mut tracker = self.at().clone();
        tracker.finish();
        tracker
    }
}

/// A matcher of a skeleton.
pub(super) type SkeletonMatcher = Sequence<SkeletonStates>;

/// The grammar's matcher, which takes the same tokens; the state of a sequence is the tracker.
#[derive(Clone)]
pub(super) struct SkeletonStates {
    inner: Box<dyn Matcher>,
    vocabulary: Arc<Vocabulary>,
}

impl SkeletonMatcher {
    /// At the state of `inner`.
    pub fn new(
        inner: Box<dyn Matcher>,
        vocabulary: &Arc<Vocabulary>,
        mut tracker: Tracker,
    ) -> SkeletonMatcher {
        if inner.is_finished() {
            tracker.finish();
        }
        Sequence::begin(SkeletonStates { inner, vocabulary: Arc::clone(vocabulary) }, tracker)
    }
}

impl SkeletonStates {
    /// The tracker after a token that the inner matcher has taken. `may_end` says whether the text was complete before it.
    fn follow(&self, tracker: &Tracker, token: TokenId, may_end: bool) -> Result<Tracker> {
        let mut after = tracker.clone();
        let vocabulary = &*self.vocabulary;
        let ends = may_end && vocabulary.end_tokens().binary_search(&token).is_ok();
        let text: &[u8] = match vocabulary.kind(token).is_text() && !ends {
            true => vocabulary.token_bytes(token),
            false => &[],
        };
        if let Err(mut error) = after.push(text) {
            if error.kind == ErrorKind::Token {
                // The grammar took the text, so a reading exists.
                error.kind = ErrorKind::State;
            }
            return Err(error);
        }
        if self.inner.is_finished() {
            after.finish();
        }
        Ok(after)
    }
}

impl States for SkeletonStates {
    type At = Tracker;

    fn vocabulary_size(&self) -> usize {
        self.inner.vocabulary_size()
    }

    fn after_end(&self) -> &AfterEnd {
        self.inner.after_end()
    }

    fn is_accepting(&self, _at: &Tracker) -> bool {
        self.inner.is_accepting()
    }

    fn is_finished(&self, _at: &Tracker) -> bool {
        self.inner.is_finished()
    }

    fn allowed<'a>(&'a mut self, _at: &'a Tracker) -> Result<AllowedTokens<'a>> {
        self.inner.allowed()
    }

    fn next(&mut self, at: &Tracker, token: TokenId) -> Result<Option<Tracker>> {
        let may_end = self.inner.is_accepting();
        if !self.inner.take(token)? {
            return Ok(None);
        }
        let next = self.follow(at, token, may_end);
        if next.is_err() {
            self.inner.rollback(1)?;
        }
        next.map(Some)
    }

    fn back(&mut self, _to: &Tracker, left: &mut [Tracker]) -> Result<()> {
        self.inner.rollback(left.len())
    }

    fn speaker(&self, _at: &Tracker) -> Option<&dyn Matcher> {
        Some(&*self.inner)
    }

    fn speaker_mut(&mut self, _at: &Tracker) -> Option<&mut dyn Matcher> {
        Some(&mut *self.inner)
    }

    fn is_allowed(&mut self, _at: &Tracker, token: TokenId) -> Result<Option<bool>> {
        self.inner.is_allowed(token).map(Some)
    }

    fn write(&mut self, _at: &Tracker, words: &mut [u32]) -> Result<()> {
        self.inner.write(words)
    }

    fn forced(&mut self, _at: &Tracker, out: &mut Vec<TokenId>) -> Result<bool> {
        self.inner.forced(out).map(|()| true)
    }

    fn state(&self, _at: &Tracker) -> Option<u64> {
        self.inner.state()
    }

    fn byte_walk(&self) -> Option<ByteWalk<'_>> {
        self.inner.byte_walk()
    }

    fn spans<'a>(&'a self, history: &'a SpanProgress) -> Option<&'a SpanProgress> {
        Some(history)
    }

    fn certain(&mut self, _at: &Tracker, most: usize) -> Result<Option<Certain>> {
        self.inner.certain(most)
    }
}
