//! Single ids in a mask's words. An id past the last word is not in the set, and is not put into it.

use crate::TokenId;

/// Whether `id` is in the set.
#[inline]
pub fn bit(words: &[u32], id: TokenId) -> bool {
    words.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
}

/// Adds `id`; an id past the words is left out.
#[inline]
pub fn insert_bit(words: &mut [u32], id: TokenId) {
    if let Some(word) = words.get_mut(id as usize / 32) {
        *word |= 1 << (id % 32);
    }
}

/// Adds `id` if `wanted`, without a branch on it. Panics for an id past the words: where such an id is left out instead,
/// the walk over a table takes a tenth longer.
#[inline]
pub fn insert_bit_if(words: &mut [u32], id: TokenId, wanted: bool) {
    words[id as usize / 32] |= u32::from(wanted) << (id % 32);
}

/// Removes `id`.
#[inline]
pub fn remove_bit(words: &mut [u32], id: TokenId) {
    if let Some(word) = words.get_mut(id as usize / 32) {
        *word &= !(1 << (id % 32));
    }
}

/// Adds `ids`.
pub fn insert_bits(words: &mut [u32], ids: &[TokenId]) {
    ids.iter().for_each(|&id| insert_bit(words, id));
}

/// Removes `ids`.
pub fn remove_bits(words: &mut [u32], ids: &[TokenId]) {
    ids.iter().for_each(|&id| remove_bit(words, id));
}

/// Whether no id is in the set.
pub fn is_empty(words: &[u32]) -> bool {
    words.iter().all(|&word| word == 0)
}

/// How many ids are in the set.
pub fn count(words: &[u32]) -> usize {
    crate::simd::count(words)
}

/// The ids in the set, ascending.
pub fn ids(words: &[u32]) -> Ids<'_> {
    Ids { rest: words, word: 0, base: 0u32.wrapping_sub(32) }
}

/// The ids of a mask's words, ascending.
#[derive(Debug, Clone)]
pub struct Ids<'a> {
    /// The words after the present one.
    rest: &'a [u32],
    /// What is left of the present word.
    word: u32,
    /// The present word's first id.
    base: u32,
}

impl Iterator for Ids<'_> {
    type Item = TokenId;

    #[inline]
    fn next(&mut self) -> Option<TokenId> {
        while self.word == 0 {
            let (&word, rest) = self.rest.split_first()?;
            (self.word, self.rest) = (word, rest);
            self.base = self.base.wrapping_add(32);
        }
        let bit = self.word.trailing_zeros();
        self.word &= self.word - 1;
        Some(self.base + bit)
    }
}
