//! The accepted tokens and the count of each among the last n, which penalties read.

use super::{follow, StateReader, StateWriter};
use crate::{Result, TokenId};

/// A window over the accepted tokens.
#[derive(Debug, Clone, Default)]
pub struct TokenHistory {
    last_n: usize,
    /// Every accepted token, so that a rollback finds what slides back into the window.
    all: Vec<TokenId>,
    /// The count of each token in the window, by ascending id.
    counts: Vec<(TokenId, u32)>,
}

impl TokenHistory {
    /// A window of the last `last_n` tokens, empty.
    pub fn new(last_n: usize) -> Self {
        TokenHistory { last_n, ..TokenHistory::default() }
    }

    /// The length of the window.
    pub fn last_n(&self) -> usize {
        self.last_n
    }

    /// Another window over the same tokens.
    pub fn set_last_n(&mut self, last_n: usize) {
        if last_n != self.last_n {
            self.last_n = last_n;
            self.recount();
        }
    }

    /// The number of tokens in the window.
    pub fn len(&self) -> usize {
        self.all.len().min(self.last_n)
    }

    /// Whether the window has no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The count of `token` in the window.
    pub fn count(&self, token: TokenId) -> u32 {
        self.counts.binary_search_by_key(&token, |c| c.0).map_or(0, |at| self.counts[at].1)
    }

    /// Each token of the window once, by ascending id, with its count.
    pub fn counts(&self) -> &[(TokenId, u32)] {
        &self.counts
    }

    /// Records an accepted token.
    pub fn accept(&mut self, token: TokenId) {
        if self.last_n > 0 {
            if self.all.len() >= self.last_n {
                self.leave(self.all[self.all.len() - self.last_n]);
            }
            self.enter(token);
        }
        follow(&mut self.all, token);
    }

    /// Forgets the last `n` accepted tokens; tokens that had left the window return.
    pub fn rollback(&mut self, n: usize) {
        for _ in 0..n {
            let Some(token) = self.all.pop() else { return };
            if self.last_n == 0 {
                continue;
            }
            self.leave(token);
            if self.all.len() >= self.last_n {
                self.enter(self.all[self.all.len() - self.last_n]);
            }
        }
    }

    /// Forgets all.
    pub fn reset(&mut self) {
        self.all.clear();
        self.counts.clear();
    }

    /// Writes what [`TokenHistory::load`] needs.
    pub fn save(&self, state: &mut StateWriter) {
        state.ids(&self.all);
    }

    /// Takes the tokens that a history of any window saved.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn load(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        self.all = state.ids()?;
        self.recount();
        Ok(())
    }

    fn recount(&mut self) {
        self.counts.clear();
        for at in self.all.len().saturating_sub(self.last_n)..self.all.len() {
            self.enter(self.all[at]);
        }
    }

    fn enter(&mut self, token: TokenId) {
        match self.counts.binary_search_by_key(&token, |c| c.0) {
            Ok(at) => self.counts[at].1 += 1,
            Err(at) => self.counts.insert(at, (token, 1)),
        }
    }

    fn leave(&mut self, token: TokenId) {
        if let Ok(at) = self.counts.binary_search_by_key(&token, |c| c.0) {
            self.counts[at].1 -= 1;
            if self.counts[at].1 == 0 {
                self.counts.remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Equal to the last n of a plain list.
        #[test]
        fn equals_the_end_of_a_list(
            window in 0usize..6,
            steps in prop::collection::vec((0u32..5, 0usize..4, 0usize..6), 1..60),
        ) {
            let (mut history, mut list) = (TokenHistory::new(window), Vec::new());
            for (token, back, other) in steps {
                history.accept(token);
                list.push(token);
                if back == 3 {
                    history.rollback(back);
                    list.truncate(list.len().saturating_sub(back));
                    history.set_last_n(other);
                }
                let end = &list[list.len().saturating_sub(history.last_n())..];
                prop_assert_eq!(history.len(), end.len());
                for id in 0..6 {
                    prop_assert_eq!(history.count(id) as usize, end.iter().filter(|&&t| t == id).count());
                }
                prop_assert!(history.counts().iter().all(|c| c.1 > 0));
                prop_assert!(history.counts().is_sorted_by(|a, b| a.0 < b.0));
            }
        }
    }
}
