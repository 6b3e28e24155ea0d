//! Whether what was written can be completed: a search over tokens from one state to one that is complete, and what it
//! found out of numbered states.
//!
//! The slow version tries every sequence of tokens. Where a state allows many tokens that matter only by their bytes, those
//! of one byte spell every continuation.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use super::live::{Key, Live};
use crate::{interrupt, Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::{ids, AllowedTokens};
use logitree_tokens::vocabulary::Vocabulary;

/// Tokens that one search may try.
pub const MAX_TRIED: usize = 1 << 17;
/// Where at most so many tokens are allowed, each of them is tried even if single bytes would do.
const MAX_LISTED: usize = 512;
/// States that are remembered; then all are forgotten.
const MAX_KNOWN: usize = 1 << 20;
/// Tokens that are tried between two checks for an interrupt.
const AT_ONCE: usize = 1 << 8;
/// Steps that a token is charged for.
const TAKE: u64 = 8;

/// What searches found out.
pub(super) struct Known {
    alive: Mutex<FxHashMap<Key, bool>>,
    /// Whether long continuations are looked at first.
    deep: bool,
}

/// A state that a search reached: the one before, the token in between, how many tokens lead here, and its numbers.
struct Reached {
    before: usize,
    token: TokenId,
    depth: usize,
    key: Option<Key>,
}

/// One search: a state that is moved between those that it reached.
struct Search<'a, S> {
    known: &'a Known,
    state: S,
    /// Where the state is.
    at: usize,
    all: Vec<Reached>,
    seen: FxHashSet<Key>,
    tried: usize,
}

impl Known {
    /// Searches the shortest continuations first, or, where `deep`, the longest.
    pub fn new(deep: bool) -> Known {
        Known { alive: Mutex::default(), deep }
    }

    /// What is known of a state.
    pub fn get(&self, key: &Key) -> Option<bool> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    fn keep(&self, keys: impl Iterator<Item = Key>, alive: bool) {
        let mut known = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            if known.len() >= MAX_KNOWN {
                known.clear();
            }
            known.insert(key, alive);
        }
    }

    /// Whether `start` can be completed.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if that is not decided by [`MAX_TRIED`] tokens; those of the state.
    pub fn is_alive<S: Live>(&self, start: S) -> Result<bool> {
        let key = start.key();
        let first = Reached { before: 0, token: 0, depth: 0, key };
        let (all, seen) = (vec![first], key.into_iter().collect());
        let mut search = Search { known: self, state: start, at: 0, all, seen, tried: 0 };
        let found = if self.deep { search.deep() } else { search.wide() }?;
        match found {
            Some(end) => self.keep(search.path(end).into_iter().filter_map(|at| search.all[at].key), true),
            // All that can be reached was looked at, and nothing ends.
            None => self.keep(search.all.iter().filter_map(|reached| reached.key), false),
        }
        Ok(found.is_some())
    }
}

impl<S: Live> Search<'_, S> {
    /// The states from the first one to this one, the last first.
    fn path(&self, mut at: usize) -> Vec<usize> {
        let mut path = vec![at];
        while at != 0 {
            at = self.all[at].before;
            path.push(at);
        }
        path
    }

    /// Whether the state, which is at `at`, is complete or known to lead to something that is.
    fn is_found(&mut self, at: usize) -> Result<bool> {
        Ok(self.all[at].key.and_then(|key| self.known.get(&key)) == Some(true) || self.state.is_complete()?)
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
        let key = self.state.key();
        let is_new = key.is_none_or(|key| self.known.get(&key) != Some(false) && self.seen.insert(key));
        if !is_new {
            self.state.rollback(1)?;
            return Ok(None);
        }
        self.all.push(Reached { before: self.at, token, depth: self.all[self.at].depth + 1, key });
        self.at = self.all.len() - 1;
        Ok(Some(self.at))
    }

    /// Back to the state before.
    fn back(&mut self) -> Result<()> {
        self.state.rollback(1)?;
        self.at = self.all[self.at].before;
        Ok(())
    }

    /// Moves the state to one that was reached.
    fn go(&mut self, to: usize) -> Result<()> {
        let (mut above, mut tokens) = (to, Vec::new());
        let mut surplus = 0;
        while self.at != above {
            if self.all[above].depth >= self.all[self.at].depth {
                tokens.push(self.all[above].token);
                above = self.all[above].before;
            } else {
                surplus += 1;
                self.at = self.all[self.at].before;
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
        let mut open = VecDeque::from([0]);
        while let Some(at) = open.pop_front() {
            self.go(at)?;
            if self.is_found(at)? {
                return Ok(Some(at));
            }
            for token in self.state.tokens()? {
                if let Some(next) = self.reach(token)? {
                    open.push_back(next);
                    self.back()?;
                }
            }
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

/// Which tokens are enough to spell every continuation.
pub(super) struct Spelling {
    /// One token for each byte, where every byte has one.
    singles: Option<Box<[TokenId]>>,
}

impl Spelling {
    pub fn new(vocabulary: &Vocabulary) -> Spelling {
        let mut found: [Option<TokenId>; 256] = [None; 256];
        for id in (0..vocabulary.len() as TokenId).rev() {
            let is_text = vocabulary.kind(id).is_text() && !vocabulary.end_of_generation().contains(&id);
            if let (true, &[byte]) = (is_text, vocabulary.token_bytes(id)) {
                found[usize::from(byte)] = Some(id);
            }
        }
        Spelling { singles: found.into_iter().collect() }
    }

    /// Whether every byte has a token.
    pub fn is_whole(&self) -> bool {
        self.singles.is_some()
    }

    /// Whether a token is one of those.
    pub fn is_single(&self, token: TokenId) -> bool {
        self.singles.as_ref().is_some_and(|singles| singles.contains(&token))
    }

    /// The tokens to try of a set: all, or those of one byte where they are many and only bytes matter.
    pub fn enough(&self, allowed: &AllowedTokens<'_>, size: usize, bytewise: bool) -> Vec<TokenId> {
        match &self.singles {
            Some(singles) if bytewise && allowed.count(size) > MAX_LISTED => {
                singles.iter().copied().filter(|&id| allowed.contains(id)).collect()
            }
            _ => listed(allowed, size),
        }
    }
}

/// The ids of a set.
pub(super) fn listed(allowed: &AllowedTokens<'_>, size: usize) -> Vec<TokenId> {
    match allowed {
        AllowedTokens::All => (0..size as TokenId).collect(),
        AllowedTokens::Ids(ids) => ids.to_vec(),
        AllowedTokens::Mask(words) => ids(words).collect(),
    }
}
