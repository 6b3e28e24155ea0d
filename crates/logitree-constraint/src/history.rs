//! The rollback history that matchers share: the state before each accepted token.
//!
//! Three others do not fit. A sampler's value may change between tokens, by a draw, so samplers keep the value after each
//! token, and snapshots store it. A decoder rolls its regions, chain and trace back by a number of tokens and has no state
//! of its own to restore. The peers of an intersection are matchers, each with a history of its own.

use super::AfterEnd;
use crate::{Error, ErrorKind, Result, TokenId};

/// The state of a matcher before each token that it accepted. Tokens accepted after the end change no state: they are
/// counted only.
#[derive(Debug, Clone)]
pub struct History<S> {
    before: Vec<S>,
    past_end: usize,
}

impl<S> Default for History<S> {
    fn default() -> Self {
        History { before: Vec::new(), past_end: 0 }
    }
}

impl<S> History<S> {
    /// Number of tokens accepted.
    #[inline]
    pub fn accepted(&self) -> usize {
        self.before.len() + self.past_end
    }

    /// Number of tokens accepted up to the end.
    #[inline]
    pub fn before_end(&self) -> usize {
        self.before.len()
    }

    /// The state before token `at`, which was accepted before the end.
    pub fn state(&self, at: usize) -> &S {
        &self.before[at]
    }

    /// Records a token that was accepted in state `before`.
    #[inline]
    pub fn push(&mut self, before: S) {
        self.before.push(before);
    }

    /// Records a token accepted after the end.
    #[inline]
    pub fn push_past_end(&mut self) {
        self.past_end += 1;
    }

    /// Records a token that comes after the end, if it may; whether it may.
    #[inline]
    pub fn take_past_end(&mut self, after: &AfterEnd, token: TokenId) -> bool {
        let takes = after.takes(token);
        self.past_end += usize::from(takes);
        takes
    }

    /// How many tokens up to the end remain after a rollback of `n`.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if fewer than `n` were accepted.
    pub fn remaining(&self, n: usize) -> Result<usize> {
        check_rollback(n, self.accepted())?;
        Ok(self.before.len() - (n - n.min(self.past_end)))
    }

    /// Forgets the last `n` tokens. Returns the state to restore, or `None` if the state did not change since.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if fewer than `n` were accepted; nothing changes then.
    pub fn rollback(&mut self, n: usize) -> Result<Option<S>> {
        let remaining = self.remaining(n)?;
        self.past_end -= n.min(self.past_end);
        Ok(self.before.drain(remaining..).next())
    }

    /// Forgets all tokens. Returns the state to restore, or `None` if the state did not change since.
    pub fn reset(&mut self) -> Option<S> {
        self.past_end = 0;
        self.before.drain(..).next()
    }
}

/// Whether `n` tokens can be rolled back after `accepted` were accepted.
///
/// # Errors
/// [`ErrorKind::State`] if they are too many.
pub(crate) fn check_rollback(n: usize, accepted: usize) -> Result<()> {
    if n <= accepted {
        return Ok(());
    }
    Err(Error::new(ErrorKind::State, format!("cannot roll back {n} tokens: {accepted} were accepted")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_returns_the_state_before_the_first_forgotten_token() {
        let mut history = History::default();
        "abc".chars().for_each(|state| history.push(state));
        history.push_past_end();
        assert_eq!((history.accepted(), history.before_end()), (4, 3));
        assert_eq!(history.rollback(1).unwrap(), None);
        assert_eq!(history.rollback(2).unwrap(), Some('b'));
        assert_eq!(history.rollback(2).unwrap_err().kind, ErrorKind::State);
        assert_eq!(history.accepted(), 1);
        assert_eq!((history.reset(), history.reset()), (Some('a'), None));
    }
}
