//! Whether what was written can be completed: a search over tokens from one state to one that is complete, and what it
//! found out of numbered states.
//!
//! The slow version tries every sequence of tokens. Where a state allows many tokens that matter only by their bytes, those
//! of one byte spell every continuation.

use super::searched::{Key, Searchable};
use crate::reachable::{Completable, Reached};
use crate::{interrupt, Error, ErrorKind, Result, TokenId};

/// Tokens that one search may try.
pub const MAX_TRIED: usize = 1 << 17;
/// States that are remembered.
const MAX_KNOWN: usize = 1 << 20;
/// Tokens that are tried between two checks for an interrupt.
const AT_ONCE: usize = 1 << 8;
/// Steps that a token is charged for.
const TAKE: u64 = 8;

/// What searches found out.
pub(super) struct Known {
    states: Completable<Key, MAX_KNOWN>,
    /// Whether long continuations are looked at first.
    deep: bool,
}

/// One search: a state that is moved between those that it reached.
struct Search<'a, S> {
    known: &'a Known,
    state: S,
    /// Where the state is.
    at: usize,
    reached: Reached<Key>,
    /// For each state that was reached the token that leads there, and how many tokens do.
    tokens: Vec<(TokenId, usize)>,
    tried: usize,
}

impl Known {
    /// Searches the shortest continuations first, or, where `deep`, the longest.
    pub fn new(deep: bool) -> Known {
        Known { states: Completable::default(), deep }
    }

    /// What is known of a state.
    pub fn get(&self, key: &Key) -> Option<bool> {
        self.states.get(key)
    }

    /// Whether `start` can be completed.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if that is not decided by [`MAX_TRIED`] tokens; those of the state.
    pub fn can_complete<S: Searchable>(&self, start: S) -> Result<bool> {
        let reached = Reached::new(start.key());
        let mut search = Search { known: self, state: start, at: 0, reached, tokens: vec![(0, 0)], tried: 0 };
        let found = if self.deep { search.deep() } else { search.wide() }?;
        self.states.keep(search.reached.decided(found).into_iter(), found.is_some());
        Ok(found.is_some())
    }
}

impl<S: Searchable> Search<'_, S> {
    /// Whether the state, which is at `at`, is complete or known to lead to something that is.
    fn is_found(&mut self, at: usize) -> Result<bool> {
        Ok(self.reached.is_known(at, &self.known.states) || self.state.is_complete()?)
    }

    /// Takes a token and says where that leads, if it is a state that was not seen. The state is there then.
    fn reach(&mut self, token: TokenId) -> Result<Option<usize>> {
        self.tried += 1;
        if self.tried > MAX_TRIED {
            let message = format!("no end of the output was found by trying {MAX_TRIED} tokens");
            return Err(Error::new(ErrorKind::Limit, message).help("compose less, or what has fewer states"));
        }
        if self.tried.is_multiple_of(AT_ONCE) {
            interrupt::consume(TAKE * AT_ONCE as u64);
            interrupt::check()?;
        }
        if !self.state.take(token)? {
            return Ok(None);
        }
        match self.reached.add(self.at, self.state.key(), &self.known.states) {
            Some(to) => {
                self.tokens.push((token, self.tokens[self.at].1 + 1));
                self.at = to;
                Ok(Some(to))
            }
            None => self.state.rollback(1).map(|()| None),
        }
    }

    /// Back to the state before.
    fn back(&mut self) -> Result<()> {
        self.state.rollback(1)?;
        self.at = self.reached.before(self.at);
        Ok(())
    }

    /// Moves the state to one that was reached.
    fn go(&mut self, to: usize) -> Result<()> {
        let (mut above, mut tokens) = (to, Vec::new());
        let mut surplus = 0;
        while self.at != above {
            if self.tokens[above].1 >= self.tokens[self.at].1 {
                tokens.push(self.tokens[above].0);
                above = self.reached.before(above);
            } else {
                surplus += 1;
                self.at = self.reached.before(self.at);
            }
        }
        self.state.rollback(surplus)?;
        for token in tokens.into_iter().rev() {
            self.state.take(token)?;
        }
        self.at = to;
        Ok(())
    }

    fn wide(&mut self) -> Result<Option<usize>> {
        let mut at = 0;
        // States are reached in the order of their depth.
        while at < self.reached.len() {
            self.go(at)?;
            if self.is_found(at)? {
                return Ok(Some(at));
            }
            for token in self.state.tokens()? {
                if self.reach(token)?.is_some() {
                    self.back()?;
                }
            }
            at += 1;
        }
        Ok(None)
    }

    fn deep(&mut self) -> Result<Option<usize>> {
        if self.is_found(0)? {
            return Ok(Some(0));
        }
        let mut open = vec![self.state.tokens()?.into_iter()];
        while let Some(tokens) = open.last_mut() {
            match tokens.next() {
                Some(token) => {
                    let Some(next) = self.reach(token)? else { continue };
                    if self.is_found(next)? {
                        return Ok(Some(next));
                    }
                    open.push(self.state.tokens()?.into_iter());
                }
                None => {
                    open.pop();
                    if !open.is_empty() {
                        self.back()?;
                    }
                }
            }
        }
        Ok(None)
    }
}
