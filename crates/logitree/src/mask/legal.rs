//! The legal set as a matcher hands it over: everything, a few ids, or a dense mask.

use crate::TokenId;

/// The legal next tokens, borrowed from whoever knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Legal<'a> {
    /// Nothing is masked.
    All,
    /// These ids only: ascending, without repeats. Costs what is legal.
    Few(&'a [TokenId]),
    /// A dense mask: bit `id % 32` of word `id / 32`. Ids past the last word are illegal.
    Words(&'a [u32]),
}

impl Legal<'_> {
    /// Whether `id` is legal.
    pub fn contains(&self, id: TokenId) -> bool {
        match self {
            Legal::All => true,
            Legal::Few(ids) => ids.binary_search(&id).is_ok(),
            Legal::Words(words) => words.get(id as usize / 32).is_some_and(|w| w >> (id % 32) & 1 == 1),
        }
    }

    /// How many of the ids `0..size` are legal.
    pub fn count(&self, size: usize) -> usize {
        match self {
            Legal::All => size,
            Legal::Few(ids) => ids.partition_point(|&id| (id as usize) < size),
            Legal::Words(words) => {
                let full = (size / 32).min(words.len());
                let mut n = super::count(&words[..full]);
                if !size.is_multiple_of(32) && full < words.len() {
                    n += (words[full] & ((1u32 << (size % 32)) - 1)).count_ones() as usize;
                }
                n
            }
        }
    }

    /// Writes the set as a dense mask of the ids `0..size` into `words` (length [`super::words_for`]`(size)`).
    pub fn write(&self, size: usize, words: &mut [u32]) {
        match self {
            Legal::All => words.fill(u32::MAX),
            Legal::Few(ids) => {
                words.fill(0);
                for &id in ids.iter().take_while(|&&id| (id as usize) < size) {
                    words[id as usize / 32] |= 1 << (id % 32);
                }
            }
            Legal::Words(from) => {
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
        let few = Legal::Few(&ids);
        let mut words = [0u32; 2];
        few.write(41, &mut words);
        let dense = Legal::Words(&words);
        for id in 0..70 {
            assert_eq!(few.contains(id), dense.contains(id), "id {id}");
        }
        assert_eq!((few.count(41), dense.count(41)), (4, 4));
        assert_eq!((few.count(32), dense.count(32)), (2, 2));
        let mut all = [0u32; 2];
        Legal::All.write(41, &mut all);
        assert_eq!(all, [u32::MAX, 0x1ff]);
        assert_eq!(Legal::All.count(41), 41);
    }
}
