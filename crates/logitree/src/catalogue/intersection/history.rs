//! The history of an intersection, and its refusal.

use crate::constraint::AfterEnd;
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

    /// Records a token that was accepted in state `before`.
    #[inline]
    pub fn push(&mut self, before: S) {
        self.before.push(before);
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
fn check_rollback(n: usize, accepted: usize) -> Result<()> {
    if n <= accepted {
        return Ok(());
    }
    Err(Error::new(ErrorKind::State, format!("cannot roll back {n} tokens: {accepted} were accepted")))
}

/// The error for a token that is not in the row of allowed tokens.
pub(super) fn not_allowed(token: TokenId, row: &[TokenId], accepted: usize, of: &str) -> Error {
    let shown: Vec<String> = row.iter().take(8).map(TokenId::to_string).collect();
    let more = if row.len() > 8 { format!(" and {} more", row.len() - 8) } else { String::new() };
    let error = Error::new(ErrorKind::Token, format!("token {token} is not allowed here"))
        .at(format!("token {accepted} of the {of}"));
    match row {
        [] => error.help("it is complete, and no token ends it"),
        _ => error.help(format!("allowed: {}{more}", shown.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_returns_the_state_before_the_first_forgotten_token() {
        let mut history = History::default();
        "abc".chars().for_each(|state| history.push(state));
        assert!(history.take_past_end(&AfterEnd::Free, 0));
        assert_eq!((history.accepted(), history.before_end()), (4, 3));
        assert_eq!(history.rollback(1).unwrap(), None);
        assert_eq!(history.rollback(2).unwrap(), Some('b'));
        assert_eq!(history.rollback(2).unwrap_err().kind, ErrorKind::State);
        assert_eq!(history.accepted(), 1);
        assert_eq!((history.reset(), history.reset()), (Some('a'), None));
    }
}
