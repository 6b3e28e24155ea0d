//! The allowed tokens as a matcher hands it over: everything, a few ids, or a dense mask.

use super::{bit, insert_bits, words_for};
use crate::TokenId;

/// The allowed next tokens, borrowed from the matcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedTokens<'a> {
    /// Nothing is masked.
    All,
    /// These ids only: ascending, without repeats. Costs what is allowed.
    Ids(&'a [TokenId]),
    /// A dense mask: bit `id % 32` of word `id / 32`. Ids past the last word are not allowed.
    Mask(&'a [u32]),
}

impl AllowedTokens<'_> {
    /// Whether `id` is allowed.
    pub fn contains(&self, id: TokenId) -> bool {
        match self {
            AllowedTokens::All => true,
            AllowedTokens::Ids(ids) => ids.binary_search(&id).is_ok(),
            AllowedTokens::Mask(words) => bit(words, id),
        }
    }

    /// How many of the ids `0..size` are allowed.
    pub fn count(&self, size: usize) -> usize {
        match self {
            AllowedTokens::All => size,
            AllowedTokens::Ids(ids) => ids.partition_point(|&id| (id as usize) < size),
            AllowedTokens::Mask(words) => {
                let full = (size / 32).min(words.len());
                let mut n = super::count(&words[..full]);
                if !size.is_multiple_of(32) && full < words.len() {
                    n += (words[full] & ((1u32 << (size % 32)) - 1)).count_ones() as usize;
                }
                n
            }
        }
    }

    /// The ids below `size`, ascending.
    pub fn ids(&self, size: usize) -> impl Iterator<Item = TokenId> + use<'_> {
        let size = size as TokenId;
        let (all, listed, words) = match *self {
            AllowedTokens::All => (0..size, &[][..], &[][..]),
            AllowedTokens::Ids(ids) => (0..0, ids, &[][..]),
            AllowedTokens::Mask(words) => (0..0, &[][..], words),
        };
        all.chain(listed.iter().copied()).chain(super::ids(words)).take_while(move |&id| id < size)
    }

    /// Writes the set as a mask of the ids below `size` over `words`, at least [`words_for`]`(size)` of
    /// them; bits past the size are cleared.
    pub fn write(&self, size: usize, words: &mut [u32]) {
        let (words, past) = words.split_at_mut(words_for(size).min(words.len()));
        past.fill(0);
        match self {
            AllowedTokens::All => words.fill(u32::MAX),
            AllowedTokens::Ids(ids) => {
                words.fill(0);
                insert_bits(words, ids);
            }
            AllowedTokens::Mask(from) => {
                let n = from.len().min(words.len());
                words[..n].copy_from_slice(&from[..n]);
                words[n..].fill(0);
            }
        }
        if !size.is_multiple_of(32) {
            if let Some(last) = words.get_mut(size / 32) {
                *last &= (1u32 << (size % 32)) - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_agree() {
        let ids = [1u32, 31, 32, 40];
        let few = AllowedTokens::Ids(&ids);
        let mut words = [0u32; 2];
        few.write(41, &mut words);
        let dense = AllowedTokens::Mask(&words);
        for id in 0..70 {
            assert_eq!(few.contains(id), dense.contains(id), "id {id}");
        }
        assert_eq!(
            (few.ids(40).collect::<Vec<_>>(), dense.ids(41).collect()),
            (ids[..3].to_vec(), ids.to_vec())
        );
        assert_eq!(AllowedTokens::All.ids(3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((few.count(41), dense.count(41)), (4, 4));
        assert_eq!((few.count(32), dense.count(32)), (2, 2));
        let mut all = [0u32; 2];
        AllowedTokens::All.write(41, &mut all);
        assert_eq!(all, [u32::MAX, 0x1ff]);
        assert_eq!(AllowedTokens::All.count(41), 41);
    }
}
