//! The owned mask and its set operations.

use super::words_for;
use crate::simd;
use crate::{Error, ErrorKind, Result, TokenId};

/// A set of the token ids `0..size`, as 32-bit words, least significant bit first.
///
/// The bits of the last word that stand for no id are always 0, so that equal sets are equal words.
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
        let mut mask = Mask::new(size);
        mask.fill(true);
        mask
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

    /// The set whose words are `words`; bits that stand for no id below `size` are dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Mask`] if `words` are not [`words_for`]`(size)`.
    pub fn from_words(size: usize, words: Vec<u32>) -> Result<Mask> {
        if words.len() != words_for(size) {
            return Err(Error::new(ErrorKind::Mask, format!("{} words for {size} ids", words.len()))
                .help(format!("{size} ids take {} words", words_for(size))));
        }
        let mut mask = Mask { words, size };
        mask.trim();
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

    /// How many ids the mask speaks about.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many ids are in the set.
    pub fn count(&self) -> usize {
        count(&self.words)
    }

    /// Whether no id is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether `id` is in the set; ids past the size never are.
    pub fn contains(&self, id: TokenId) -> bool {
        self.words.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
    }

    /// The lowest id in the set.
    pub fn first(&self) -> Option<TokenId> {
        self.iter().next()
    }

    /// The ids in the set, ascending.
    pub fn iter(&self) -> Ids<'_> {
        ids(&self.words)
    }

    /// Puts `id` in; says whether it is new.
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

    /// Takes `id` out; says whether it was there.
    pub fn remove(&mut self, id: TokenId) -> bool {
        let Some(word) = self.words.get_mut(id as usize / 32) else { return false };
        let was = *word;
        *word &= !(1 << (id % 32));
        *word != was
    }

    /// Puts every id in, or takes every id out.
    pub fn fill(&mut self, all: bool) {
        self.words.fill(if all { u32::MAX } else { 0 });
        self.trim();
    }

    /// Keeps the ids that are in `other` too.
    ///
    /// # Errors
    /// [`ErrorKind::Mask`] if the sizes differ, as in the other three.
    pub fn and(&mut self, other: &Mask) -> Result<()> {
        self.combine(other, |a, b| a & b)
    }

    /// Adds the ids of `other`.
    ///
    /// # Errors
    /// As [`Mask::and`].
    pub fn or(&mut self, other: &Mask) -> Result<()> {
        self.combine(other, |a, b| a | b)
    }

    /// Takes the ids of `other` out.
    ///
    /// # Errors
    /// As [`Mask::and`].
    pub fn and_not(&mut self, other: &Mask) -> Result<()> {
        self.combine(other, |a, b| a & !b)
    }

    /// Keeps the ids that are in exactly one of the two.
    ///
    /// # Errors
    /// As [`Mask::and`].
    pub fn xor(&mut self, other: &Mask) -> Result<()> {
        self.combine(other, |a, b| a ^ b)
    }

    /// The ids below the size that were not in the set.
    pub fn not(&mut self) {
        for word in &mut self.words {
            *word = !*word;
        }
        self.trim();
    }

    fn combine(&mut self, other: &Mask, with: impl Fn(u32, u32) -> u32) -> Result<()> {
        if self.size != other.size {
            return Err(Error::new(
                ErrorKind::Mask,
                format!("a mask of {} ids with one of {}", self.size, other.size),
            ));
        }
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine = with(*mine, *theirs);
        }
        Ok(())
    }

    fn trim(&mut self) {
        if let (Some(last), false) = (self.words.last_mut(), self.size.is_multiple_of(32)) {
            *last &= (1 << (self.size % 32)) - 1;
        }
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
