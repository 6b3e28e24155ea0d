//! A skeleton running for one sequence: the grammar's matcher, and the tracker beside it.

use std::sync::Arc;

use super::tracker::{ActiveSpan, Tracker};
use crate::history::History;
use crate::query::Certain;
use crate::{AfterEnd, ByteWalk, Matcher};
use crate::{ErrorKind, Result, TokenId};
use logitree_tokens::mask::AllowedTokens;
use logitree_tokens::vocabulary::Vocabulary;

/// Where a sequence is in a skeleton, and where it was after each token.
#[derive(Debug, Clone)]
pub struct SpanProgress {
    tracker: Tracker,
    history: History<Tracker>,
}

impl SpanProgress {
    /// Number of tokens of the skeleton's text.
    pub fn tokens(&self) -> usize {
        self.history.accepted()
    }

    /// The span in which the next token begins; `None` in fixed text and after the end.
    pub fn active(&self) -> Option<ActiveSpan> {
        self.tracker.active()
    }

    /// The readings after the first `tokens` of the skeleton's tokens.
    pub fn after(&self, tokens: usize) -> &Tracker {
        let is_past = tokens >= self.history.before_end();
        if is_past {
            &self.tracker
        } else {
            self.history.state(tokens)
        }
    }

    /// The readings after all tokens, where the text ends with them.
    pub fn ended(&self) -> Tracker {
        let mut tracker = self.tracker.clone();
        tracker.finish();
        tracker
    }
}

/// A matcher of a skeleton.
pub(super) struct SkeletonMatcher {
    inner: Box<dyn Matcher>,
    vocabulary: Arc<Vocabulary>,
    progress: SpanProgress,
}

impl SkeletonMatcher {
    pub fn new(
        inner: Box<dyn Matcher>,
        vocabulary: &Arc<Vocabulary>,
        mut tracker: Tracker,
    ) -> SkeletonMatcher {
        if inner.is_finished() {
            tracker.finish();
        }
        let progress = SpanProgress { tracker, history: History::default() };
        SkeletonMatcher { inner, vocabulary: Arc::clone(vocabulary), progress }
    }

    /// The tracker after a token that the inner matcher has taken. `may_end` says whether the text was complete before it.
    fn follow(&mut self, token: TokenId, may_end: bool) -> Result<()> {
        let mut after = self.progress.tracker.clone();
        let vocabulary = &*self.vocabulary;
        let ends = may_end && vocabulary.end_of_generation().binary_search(&token).is_ok();
        let text: &[u8] = match vocabulary.kind(token).is_text() && !ends {
            true => vocabulary.token_bytes(token),
            false => &[],
        };
        if let Err(mut error) = after.push(text) {
            self.inner.rollback(1)?;
            if error.kind == ErrorKind::Token {
                // The grammar took the text, so a reading exists.
                error.kind = ErrorKind::State;
            }
            return Err(error);
        }
        if self.inner.is_finished() {
            after.finish();
        }
        self.progress.history.push(std::mem::replace(&mut self.progress.tracker, after));
        Ok(())
    }
}

impl Matcher for SkeletonMatcher {
    fn vocabulary_size(&self) -> usize {
        self.inner.vocabulary_size()
    }

    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        self.inner.allowed()
    }

    fn write(&mut self, words: &mut [u32]) -> Result<()> {
        self.inner.write(words)
    }

    fn is_allowed(&mut self, token: TokenId) -> Result<bool> {
        self.inner.is_allowed(token)
    }

    fn accept(&mut self, token: TokenId) -> Result<()> {
        let (was_over, may_end) = (self.inner.is_finished(), self.inner.is_accepting());
        self.inner.accept(token)?;
        if was_over {
            self.progress.history.push_past_end();
            return Ok(());
        }
        self.follow(token, may_end)
    }

    fn take(&mut self, token: TokenId) -> Result<bool> {
        let (was_over, may_end) = (self.inner.is_finished(), self.inner.is_accepting());
        if !self.inner.take(token)? {
            return Ok(false);
        }
        if was_over {
            self.progress.history.push_past_end();
            return Ok(true);
        }
        self.follow(token, may_end).map(|()| true)
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        self.inner.rollback(n)?;
        if let Some(tracker) = self.progress.history.rollback(n)? {
            self.progress.tracker = tracker;
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn Matcher> {
        Box::new(SkeletonMatcher {
            inner: self.inner.fork(),
            vocabulary: Arc::clone(&self.vocabulary),
            progress: self.progress.clone(),
        })
    }

    fn reset(&mut self) {
        self.inner.reset();
        if let Some(tracker) = self.progress.history.reset() {
            self.progress.tracker = tracker;
        }
    }

    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        self.inner.forced(out)
    }

    fn is_accepting(&self) -> bool {
        self.inner.is_accepting()
    }

    fn is_finished(&self) -> bool {
        self.inner.is_finished()
    }

    fn after_end(&self) -> &AfterEnd {
        self.inner.after_end()
    }

    fn state(&self) -> Option<u64> {
        self.inner.state()
    }

    fn byte_walk(&self) -> Option<Box<dyn ByteWalk + '_>> {
        self.inner.byte_walk()
    }

    fn spans(&self) -> Option<&SpanProgress> {
        Some(&self.progress)
    }

    fn expected(&self) -> Vec<String> {
        self.inner.expected()
    }

    fn expected_after(&mut self, bytes: &[u8]) -> Result<Vec<String>> {
        self.inner.expected_after(bytes)
    }

    fn taken(&mut self, bytes: &[u8]) -> Result<usize> {
        self.inner.taken(bytes)
    }

    fn certain(&mut self, most: usize) -> Result<Option<Certain>> {
        self.inner.certain(most)
    }

    fn is_ready(&self) -> bool {
        self.inner.is_ready()
    }

    fn accepted(&self) -> usize {
        self.inner.accepted()
    }
}
