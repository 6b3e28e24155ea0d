//! no_repeat_ngram: bans the tokens that would complete an n-gram that the accepted tokens already contain.
//!
//! Paulus, Xiong, Socher: "A Deep Reinforced Model for Abstractive Summarization", 2017, arXiv:1705.04304, section 2.5;
//! the same tokens as `NoRepeatNGramLogitsProcessor` of transformers bans. A prompt counts if it was accepted. Where
//! every candidate would be banned, no candidate is, so that an allowed token always remains.
//!
//! The naive version looks for the last n - 1 tokens in the whole history at each step. Here each place in the history
//! points to the one before it that continues the same n - 1 tokens in another way; a table holds the last such place.

use crate::{arguments, check, Arguments, Candidates, Sampler, StateReader, StateWriter};
use crate::{Result, TokenId};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;

/// No place.
const NONE: u32 = u32::MAX;
/// The mark of a place that nothing points to, because its n-gram occurred before.
const AGAIN: u32 = u32::MAX - 1;

/// Bans every second occurrence of the same `n` tokens in a row.
#[derive(Debug, Clone, Default)]
pub struct NoRepeatNgram {
    n: usize,
    history: Vec<TokenId>,
    /// For each place the one before it with the same n - 1 tokens before it and another token, or a mark.
    earlier: Vec<u32>,
    /// Hash of n - 1 tokens to the last place that continues them.
    last: FxHashMap<u64, u32>,
    /// Hash of n tokens to the place where the first such n-gram ends.
    first: FxHashMap<u64, u32>,
    banned: Vec<(TokenId, ())>,
}

impl NoRepeatNgram {
    /// `n <= 0` bans nothing; 1 bans every token accepted before.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `n` is above 1024.
    pub fn new(n: i32) -> Result<Self> {
        check("no_repeat_ngram", [n.into()])?;
        Ok(NoRepeatNgram { n: usize::try_from(n).unwrap_or(0), ..NoRepeatNgram::default() })
    }

    /// The n tokens that end at `place`, if there are so many.
    fn gram(&self, place: usize) -> Option<&[TokenId]> {
        (place + 1).checked_sub(self.n).map(|start| &self.history[start..=place])
    }

    /// Adds the n-gram that ends at `place`, the last one so far.
    fn enter(&mut self, place: usize) {
        let mut earlier = NONE;
        if let Some((gram, (_, before))) = self.gram(place).and_then(|g| Some((g, g.split_last()?))) {
            let (gram_hash, before_hash) = (hash(gram), hash(before));
            let known = self.first.get(&gram_hash).and_then(|&at| self.gram(at as usize));
            if known == Some(gram) {
                earlier = AGAIN;
            } else {
                // Of two n-grams with one hash the first holds the table's place.
                self.first.entry(gram_hash).or_insert(place as u32);
                earlier = self.last.insert(before_hash, place as u32).unwrap_or(NONE);
            }
        }
        self.earlier.push(earlier);
    }

    /// Removes the last place.
    fn leave(&mut self) {
        let Some(earlier) = self.earlier.pop() else { return };
        let place = self.earlier.len();
        if earlier != AGAIN {
            if let Some((gram, (_, before))) = self.gram(place).and_then(|g| Some((g, g.split_last()?))) {
                let (gram_hash, before_hash) = (hash(gram), hash(before));
                if self.first.get(&gram_hash) == Some(&(place as u32)) {
                    self.first.remove(&gram_hash);
                }
                match earlier {
                    NONE => self.last.remove(&before_hash),
                    at => self.last.insert(before_hash, at),
                };
            }
        }
        self.history.pop();
    }

    /// Builds the tables again from the history, for another n or after a snapshot.
    fn index(&mut self) {
        self.earlier.clear();
        self.last.clear();
        self.first.clear();
        if self.n > 0 {
            (0..self.history.len()).for_each(|place| self.enter(place));
        } else {
            self.earlier.resize(self.history.len(), NONE);
        }
    }

    /// Lists what would complete an n-gram now, by ascending id.
    fn list_banned(&mut self) {
        self.banned.clear();
        let Some(start) = (self.history.len() + 1).checked_sub(self.n) else { return };
        let before = &self.history[start..];
        let mut place = self.last.get(&hash(before)).copied().unwrap_or(NONE);
        while place != NONE {
            let at = place as usize;
            // Other tokens may have the same hash.
            if self.history[at + 1 - self.n..at] == *before {
                self.banned.push((self.history[at], ()));
            }
            place = self.earlier[at];
        }
        self.banned.sort_unstable_by_key(|b| b.0);
        self.banned.dedup_by_key(|b| b.0);
    }

    /// Whether a candidate above -inf stays if the listed ones go.
    fn leaves_a_candidate(&self, candidates: &Candidates<'_>) -> bool {
        let stays = |id: TokenId| self.banned.binary_search_by_key(&id, |b| b.0).is_err();
        // Usually the best one decides.
        if candidates.id_at(candidates.first_max()).is_some_and(stays) {
            return true;
        }
        let mut any = false;
        candidates.for_each(|id, x| any = any || (x > f32::NEG_INFINITY && stays(id)));
        any
    }
}

fn hash(tokens: &[TokenId]) -> u64 {
    let mut hasher = FxHasher::default();
    tokens.iter().for_each(|&token| hasher.write_u32(token));
    hasher.finish()
}

arguments! {
    NoRepeatNgram, s => s.n;

    fn reconfigure(&mut self, a: &Arguments) -> Result<()> {
        self.n = a.read(0)?;
        self.index();
        Ok(())
    }
}

impl Sampler for NoRepeatNgram {
    fn name(&self) -> &'static str {
        "no_repeat_ngram"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.n == 0 {
            return;
        }
        self.list_banned();
        if !self.banned.is_empty() && self.leaves_a_candidate(candidates) {
            candidates.update(&self.banned, |_, ()| f32::NEG_INFINITY);
            candidates.unsort();
        }
    }

    fn accept(&mut self, token: TokenId) {
        // Kept even while nothing is banned, for n may be changed between two tokens.
        self.history.push(token);
        if self.n > 0 {
            self.enter(self.history.len() - 1);
        } else {
            self.earlier.push(NONE);
        }
    }

    fn rollback(&mut self, n: usize) {
        for _ in 0..n {
            self.leave();
        }
    }

    fn reset(&mut self) {
        self.history.clear();
        self.index();
    }

    fn is_noop(&self) -> bool {
        self.n == 0
    }

    fn save(&self, state: &mut StateWriter) {
        state.ids(&self.history);
    }

    fn load(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        self.history = state.ids()?;
        self.index();
        Ok(())
    }
}
