//! Whether some text keeps a token canonical: found by having the other matcher take tokens, where its bytes do not say.

use super::Spelled;
use crate::{Result, TokenId};
use logitree_automata::interrupt;
use logitree_tokens::mask::{count, ids, words_for};
use logitree_tokens::tokenizer::{DeadEnds, Place, Row};

/// Where more tokens than this may follow, one of them is taken to continue.
const ASSUME_ALIVE_ABOVE: usize = 24;
/// Steps for a token that the other matcher takes.
const TAKE: u64 = 8;
/// The most tokens that are tried after one another to see whether one token leads anywhere.
const MAX_TRIED: usize = 400;
/// Where more tokens than this are allowed, only those are looked at that may change the other matcher's state.
const SCAN_ALL_BELOW: usize = 96;
/// From so many characters on, a state is one in which tokens stay.
const MIN_LOOP_CHARS: u32 = 8;
/// Fewer tokens with the same beginning are looked at one by one.
const MIN_GROUP: usize = 12;
/// The most bytes of a token that are taken one by one.
const MAX_SHARED_BYTES: usize = 3;

/// Whether a state leads anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prospect {
    Alive,
    Dead,
    /// Not dead within so many tokens.
    Open(usize),
}

impl Spelled {
    /// Of the tokens in `words`, those that may lead to a dead end.
    pub(super) fn unproven(&mut self, words: &[u32]) -> Result<Vec<TokenId>> {
        if count(words) <= SCAN_ALL_BELOW {
            return Ok(ids(words).collect());
        }
        let Some(state) = self.inner.state() else { return Ok(ids(words).collect()) };
        self.spend_mask()?;
        let returning = self.known_returning(state)?;
        if returning.count_ones() >= MIN_LOOP_CHARS {
            let mut unproven = words.to_vec();
            self.tokenizer.judge().keep_unproven(self.at.set(), &Row::endless(returning), &mut unproven);
            return Ok(ids(&unproven).collect());
        }
        let mut unproven = Vec::new();
        self.partition_by_byte(ids(words).collect(), 0, &mut unproven)?;
        Ok(unproven)
    }

    /// Adds the tokens that may lead to a dead end, of some whose first `depth` bytes were taken: not those whose next bytes
    /// lead to a state to which the others lead back.
    fn partition_by_byte(
        &mut self,
        mut tokens: Vec<TokenId>,
        depth: usize,
        unproven: &mut Vec<TokenId>,
    ) -> Result<()> {
        let tokenizer = self.tokenizer.clone();
        let vocabulary = tokenizer.vocabulary();
        interrupt::spend(tokens.len() as u64)?;
        let byte_of = |id: TokenId| vocabulary.token_bytes(id).get(depth).copied();
        tokens.sort_by_key(|&id| byte_of(id));
        for chunk in tokens.chunk_by(|&a, &b| byte_of(a) == byte_of(b)) {
            let token = byte_of(chunk[0]).and_then(|byte| tokenizer.byte_token(byte));
            let Some(token) = token.filter(|_| chunk.len() >= MIN_GROUP && depth < MAX_SHARED_BYTES) else {
                unproven.extend_from_slice(chunk);
                continue;
            };
            if self.inner.is_finished() || !self.inner.take(token)? {
                unproven.extend_from_slice(chunk);
                continue;
            }
            let sifted = self.sift_after(chunk, depth + 1, unproven);
            self.inner.rollback(1)?;
            sifted?;
        }
        Ok(())
    }

    /// As [`Spelled::partition_by_byte`], once the other matcher has taken the byte.
    fn sift_after(&mut self, tokens: &[TokenId], depth: usize, unproven: &mut Vec<TokenId>) -> Result<()> {
        let Some(state) = self.inner.state().filter(|_| !self.inner.is_finished()) else {
            unproven.extend_from_slice(tokens);
            return Ok(());
        };
        let returning = self.known_returning(state)?;
        if returning.count_ones() >= MIN_LOOP_CHARS {
            self.tokenizer.judge().returns(self.at.set(), &Row::endless(returning), depth, tokens, unproven);
            return Ok(());
        }
        self.partition_by_byte(tokens.to_vec(), depth, unproven)
    }

    fn known_returning(&mut self, state: u64) -> Result<u128> {
        let known = self.known().returning.get(&state);
        Ok(match known {
            Some(known) => known,
            None => {
                let found = self.returning(state)?;
                self.known().returning.keep_bytes(state, found, 0);
                found
            }
        })
    }

    /// The ASCII characters that lead from here back to here, as bits; the highest bit answers for all others: one of each
    /// length is asked.
    fn returning(&mut self, state: u64) -> Result<u128> {
        interrupt::spend(TAKE << 7)?;
        let mut found = 0u128;
        let tokenizer = self.tokenizer.clone();
        let mut returns = |text: &[u8]| -> Result<bool> {
            let mut taken = 0;
            let mut run = || -> Result<bool> {
                for &byte in text {
                    let Some(token) = tokenizer.byte_token(byte) else { return Ok(false) };
                    if self.inner.is_finished() || !self.inner.take(token)? {
                        return Ok(false);
                    }
                    taken += 1;
                }
                Ok(self.inner.state() == Some(state))
            };
            let result = run();
            self.inner.rollback(taken)?;
            result
        };
        for byte in 0u8..127 {
            found |= u128::from(returns(&[byte])?) << byte;
        }
        let others = ["\u{e9}", "\u{4e2d}", "\u{1f600}"];
        let mut all = true;
        for text in others {
            all = all && returns(text.as_bytes())?;
        }
        Ok(found | u128::from(all) << 127)
    }

    /// Whether some text that the other matcher allows keeps `token`, which is allowed and canonical at `place`.
    pub(super) fn prospect(
        &mut self,
        place: Place,
        token: TokenId,
        ahead: usize,
        tried: &mut usize,
    ) -> Result<Prospect> {
        *tried += 1;
        interrupt::spend(TAKE)?;
        if self.inner.is_finished() || !self.inner.take(token)? {
            return Ok(Prospect::Dead);
        }
        let found = self.prospect_after(place, token, ahead, tried);
        self.inner.rollback(1)?;
        found
    }

    /// As [`Spelled::prospect`], once the other matcher has taken the token.
    fn prospect_after(
        &mut self,
        place: Place,
        token: TokenId,
        ahead: usize,
        tried: &mut usize,
    ) -> Result<Prospect> {
        let tokenizer = self.tokenizer.clone();
        let Some(place) = tokenizer.judge().step(place, token) else { return Ok(Prospect::Dead) };
        if self.inner.is_finished() {
            let ends = tokenizer.judge().can_end(place);
            return Ok(if ends { Prospect::Alive } else { Prospect::Dead });
        }
        if ahead == 0 || *tried > MAX_TRIED {
            return Ok(Prospect::Open(0));
        }
        if self.is_settled(place)? {
            return Ok(Prospect::Alive);
        }
        let state = self.inner.state();
        let free = state.zip(place.set_alone());
        if free.is_some_and(|free| self.known().free.get(&free).is_some()) {
            return Ok(Prospect::Alive);
        }
        let allowed = self.inner.allowed()?;
        if tokenizer.judge().begins_many(place, &allowed, ASSUME_ALIVE_ABOVE) {
            if let Some(free) = free {
                self.known().free.keep_bytes(free, (), 0);
            }
            return Ok(Prospect::Alive);
        }
        let key = state.map(|state| (state, place));
        match key.and_then(|key| self.known().prospects.get(&key)) {
            Some(Prospect::Open(seen)) if seen < ahead => {}
            Some(known) => return Ok(known),
            None => {}
        }
        let found = self.search(place, ahead, tried)?;
        if let Some(key) = key.filter(|_| *tried <= MAX_TRIED) {
            self.known().prospects.keep_bytes(key, found, 0);
        }
        Ok(found)
    }

    /// Whether some token that may follow leads anywhere.
    fn search(&mut self, place: Place, ahead: usize, tried: &mut usize) -> Result<Prospect> {
        self.spend_mask()?;
        let mut words = vec![0; words_for(self.inner.vocabulary_size())];
        let allowed = self.inner.allowed()?;
        self.tokenizer.judge().fill(place, &allowed, &DeadEnds::default(), &mut words);
        // The end of a text comes with its end tokens.
        let ends = self.inner.is_accepting() && self.tokenizer.ends_any(&words);
        if ends || count(&words) > ASSUME_ALIVE_ABOVE {
            return Ok(Prospect::Alive);
        }
        let mut found = Prospect::Dead;
        for next in ids(&words) {
            match self.prospect(place, next, ahead - 1, tried)? {
                Prospect::Alive => return Ok(Prospect::Alive),
                Prospect::Open(_) => found = Prospect::Open(ahead),
                Prospect::Dead => {}
            }
        }
        Ok(found)
    }
}
