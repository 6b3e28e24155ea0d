//! The owned mask, and the ids of a mask's words.

use super::words_for;
use crate::simd;
use crate::{Error, ErrorKind, Result, TokenId};

/// A set of the token ids `0..size`, as 32-bit words, least significant bit first.
///
/// The bits of the last word past the size are always 0, so that equal sets are equal words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mask {
    words: Vec<u32>,
    size: usize,
}

impl Mask {
    /// The empty set of ids below `size`.
    pub fn new(size: usize) -> Mask {
        Mask { words: vec![0; words_for(size)], size }
    }

    /// The set of all ids below `size`.
    pub fn full(size: usize) -> Mask {
        let mut words = vec![u32::MAX; words_for(size)];
        if let (Some(last), false) = (words.last_mut(), size.is_multiple_of(32)) {
            *last = (1 << (size % 32)) - 1;
        }
        Mask { words, size }
    }

    /// The set of `ids`, in any order, repeats allowed.
    ///
    /// # Errors
    /// [`ErrorKind::Mask`] if an id is not below `size`.
    pub fn from_ids(size: usize, ids: impl IntoIterator<Item = TokenId>) -> Result<Mask> {
        let mut mask = Mask::new(size);
        for id in ids {
            mask.insert(id)?;
        }
        Ok(mask)
    }

    /// The words: bit `id % 32` of word `id / 32`.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The words, given away.
    pub fn into_words(self) -> Vec<u32> {
        self.words
    }

    /// Adds `id`; returns whether it is new.
    ///
    /// # Errors
    /// [`ErrorKind::Mask`] if `id` is not below the size.
    pub fn insert(&mut self, id: TokenId) -> Result<bool> {
        if id as usize >= self.size {
            return Err(Error::new(ErrorKind::Mask, format!("id {id} in a mask of {} ids", self.size)));
        }
        let word = &mut self.words[id as usize / 32];
        let was = *word;
        *word |= 1 << (id % 32);
        Ok(*word != was)
    }
}

/// How many bits of `words` are set.
pub fn count(words: &[u32]) -> usize {
    simd::count(words)
}

/// The ids whose bits are set in `words`, ascending.
pub fn ids(words: &[u32]) -> Ids<'_> {
    Ids { words, word: words.first().copied().unwrap_or(0), base: 0 }
}

/// The set bits of a mask, ascending.
#[derive(Debug, Clone)]
pub struct Ids<'a> {
    words: &'a [u32],
    /// What is left of the first of `words`.
    word: u32,
    base: u32,
}

impl Iterator for Ids<'_> {
    type Item = TokenId;

    #[inline]
    fn next(&mut self) -> Option<TokenId> {
        while self.word == 0 {
            self.words = self.words.get(1..)?;
            self.word = *self.words.first()?;
            self.base += 32;
        }
        let bit = self.word.trailing_zeros();
        self.word &= self.word - 1;
        Some(self.base + bit)
    }
}
