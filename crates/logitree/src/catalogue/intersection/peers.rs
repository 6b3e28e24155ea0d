//! The constraints that an item must satisfy besides the tree, all after the same tokens.

use crate::constraint::Matcher;
use crate::{Error, ErrorKind, Result, TokenId};

/// Matchers that take the same tokens. They start in the state in which they were given, and only this type advances them.
#[derive(Clone)]
pub(super) struct Peers {
    matchers: Vec<Box<dyn Matcher>>,
    taken: usize,
}

impl Peers {
    /// # Errors
    /// [`ErrorKind::Constraint`] if there is none.
    pub fn new(matchers: Vec<Box<dyn Matcher>>) -> Result<Peers> {
        if matchers.is_empty() {
            let error = Error::new(ErrorKind::Constraint, "no matcher to intersect the prefix tree with");
            return Err(error.help("to allow all items, do not intersect"));
        }
        Ok(Peers { matchers, taken: 0 })
    }

    /// How many tokens they took since.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Has all of them take the token, or none; whether they did.
    ///
    /// # Errors
    /// As [`Matcher::allowed`] of whichever; then none took it.
    pub fn take(&mut self, token: TokenId) -> Result<bool> {
        for at in 0..self.matchers.len() {
            let matcher = &mut self.matchers[at];
            let taken = if matcher.is_finished() { Ok(false) } else { matcher.take(token) };
            if !matches!(taken, Ok(true)) {
                self.matchers[..at].iter_mut().try_for_each(|matcher| matcher.rollback(1))?;
                return taken;
            }
        }
        self.taken += 1;
        Ok(true)
    }

    /// Forgets all but the first `kept` tokens.
    ///
    /// # Errors
    /// As [`Matcher::rollback`].
    pub fn back_to(&mut self, kept: usize) -> Result<()> {
        let n = self.taken.saturating_sub(kept);
        if n > 0 {
            self.matchers.iter_mut().try_for_each(|matcher| matcher.rollback(n))?;
            self.taken = kept;
        }
        Ok(())
    }

    /// Whether each is complete here, or after `end`.
    ///
    /// # Errors
    /// As [`Peers::take`]. The peers are unchanged.
    pub fn are_complete(&mut self, end: Option<TokenId>) -> Result<bool> {
        for matcher in &mut self.matchers {
            // What is finished is accepting.
            let complete = match end {
                _ if matcher.is_accepting() => true,
                Some(end) if matcher.take(end)? => {
                    let complete = matcher.is_accepting();
                    matcher.rollback(1)?;
                    complete
                }
                _ => false,
            };
            if !complete {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether each can take a token at once.
    pub fn are_ready(&self) -> bool {
        self.matchers.iter().all(|matcher| matcher.is_ready())
    }
}
