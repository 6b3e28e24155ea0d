//! Owned sets of token ids, in the form that takes the least memory; copies share it.

use std::sync::Arc;

use super::{bit, count, ids, insert_bits, remove_bits, words_for, AllowedTokens};
use crate::TokenId;

/// More ids than this are kept as words.
const MAX_LISTED: usize = 1_024;

/// An owned set of token ids.
#[derive(Debug, Clone)]
pub enum TokenSet {
    /// Every id.
    All,
    /// These ids: ascending, without repeats.
    Ids(Arc<[TokenId]>),
    /// The ids of these words.
    Words(Arc<[u32]>),
    /// Words that many sets share, but for a few ids.
    Changed(Arc<ChangedWords>),
}

/// The ids of `base` without `removed`, and those `added`: both ascending, without repeats.
#[derive(Debug)]
pub struct ChangedWords {
    /// The shared words.
    pub base: Arc<[u32]>,
    /// Ids that the base lacks.
    pub added: Box<[TokenId]>,
    /// Ids of the base that are not in the set: fewer than the base has.
    pub removed: Box<[TokenId]>,
}

/// The words of a [`TokenSet::Changed`], to be lent.
#[derive(Debug, Default)]
pub struct MaskBuffer {
    words: Vec<u32>,
    holds: Option<Arc<ChangedWords>>,
}

impl Default for TokenSet {
    /// The empty set.
    fn default() -> TokenSet {
        TokenSet::Ids(Arc::default())
    }
}

impl TokenSet {
    /// The set of `ids`, each given once, in any order, all below `size`.
    pub fn from_ids(mut ids: Vec<TokenId>, size: usize) -> TokenSet {
        if ids.len() <= MAX_LISTED {
            ids.sort_unstable();
        }
        TokenSet::from_sorted(&ids, size)
    }

    /// As [`TokenSet::from_ids`], of ascending ids.
    pub fn from_sorted(ids: &[TokenId], size: usize) -> TokenSet {
        if ids.len() <= MAX_LISTED {
            return TokenSet::Ids(ids.into());
        }
        let mut words = vec![0; words_for(size)];
        insert_bits(&mut words, ids);
        TokenSet::Words(words.into())
    }

    /// The set of the ids in `words`.
    pub fn from_words(words: impl AsRef<[u32]> + Into<Arc<[u32]>>) -> TokenSet {
        match count(words.as_ref()) {
            0..=MAX_LISTED => TokenSet::Ids(ids(words.as_ref()).collect()),
            _ => TokenSet::Words(words.into()),
        }
    }

    /// The set that a matcher lends, of ids below `size`.
    pub fn copy(allowed: AllowedTokens<'_>, size: usize) -> TokenSet {
        match allowed {
            AllowedTokens::All => TokenSet::All,
            AllowedTokens::Ids(ids) => TokenSet::Ids(ids.into()),
            AllowedTokens::Mask(_) => {
                let mut words = vec![0; words_for(size)];
                allowed.write(size, &mut words);
                TokenSet::Words(words.into())
            }
        }
    }

    /// The set, without a copy, where it is not shared words with changes.
    #[inline]
    pub fn borrow(&self) -> Option<AllowedTokens<'_>> {
        match self {
            TokenSet::All => Some(AllowedTokens::All),
            TokenSet::Ids(ids) => Some(AllowedTokens::Ids(ids)),
            TokenSet::Words(words) => Some(AllowedTokens::Mask(words)),
            TokenSet::Changed(_) => None,
        }
    }

    /// As [`TokenSet::borrow`]; the words of shared words with changes are written to `buffer`, if they are not there yet.
    pub fn lend<'a>(&'a self, size: usize, buffer: &'a mut MaskBuffer) -> AllowedTokens<'a> {
        if let TokenSet::Changed(changed) = self {
            if !buffer.holds.as_ref().is_some_and(|held| Arc::ptr_eq(held, changed)) {
                buffer.words.resize(words_for(size), 0);
                self.write(size, &mut buffer.words);
                buffer.holds = Some(Arc::clone(changed));
            }
        }
        self.borrow().unwrap_or(AllowedTokens::Mask(&buffer.words))
    }

    /// The ids, where they are listed.
    pub fn listed(&self) -> Option<&[TokenId]> {
        match self {
            TokenSet::Ids(ids) => Some(ids),
            _ => None,
        }
    }

    /// Whether `id` is in it.
    #[inline]
    pub fn contains(&self, id: TokenId) -> bool {
        match self {
            TokenSet::Changed(changed) => {
                bit(&changed.base, id) && changed.removed.binary_search(&id).is_err()
                    || changed.added.binary_search(&id).is_ok()
            }
            plain => plain.borrow().is_some_and(|plain| plain.contains(id)),
        }
    }

    /// Whether no id is in it.
    pub fn is_empty(&self) -> bool {
        match self {
            TokenSet::Ids(ids) => ids.is_empty(),
            TokenSet::Words(words) => super::is_empty(words),
            TokenSet::All | TokenSet::Changed(_) => false,
        }
    }

    /// The only id, if there is one only.
    pub fn sole(&self) -> Option<TokenId> {
        self.listed().and_then(|ids| if let [only] = ids { Some(*only) } else { None })
    }

    /// The ids below `size`, ascending.
    pub fn ids(&self, size: usize) -> Vec<TokenId> {
        if let Some(listed) = self.listed() {
            return listed.to_vec();
        }
        let mut words = vec![0; words_for(size)];
        self.write(size, &mut words);
        ids(&words).collect()
    }

    /// Writes the set as a mask of the ids below `size` over `words`, as [`AllowedTokens::write`].
    pub fn write(&self, size: usize, words: &mut [u32]) {
        match self {
            TokenSet::Changed(changed) => {
                AllowedTokens::Mask(&changed.base).write(size, words);
                remove_bits(words, &changed.removed);
                insert_bits(words, &changed.added);
            }
            plain => plain.borrow().unwrap_or(AllowedTokens::Ids(&[])).write(size, words),
        }
    }

    /// Bytes of memory of its ids and words.
    pub fn bytes(&self) -> usize {
        match self {
            TokenSet::All => 0,
            TokenSet::Ids(ids) => size_of_val(&**ids),
            TokenSet::Words(words) => size_of_val(&**words),
            TokenSet::Changed(changed) => {
                let ChangedWords { base, added, removed } = &**changed;
                size_of_val(&**base) + size_of_val(&**added) + size_of_val(&**removed)
            }
        }
    }

    /// As [`TokenSet::bytes`], without words that another set shares.
    pub fn own_bytes(&self) -> usize {
        let shared = match self {
            TokenSet::Words(words) => Some(words),
            TokenSet::Changed(changed) => Some(&changed.base),
            TokenSet::All | TokenSet::Ids(_) => None,
        };
        let shared = shared.filter(|words| Arc::strong_count(words) > 1);
        self.bytes() - shared.map_or(0, |words| size_of_val(&**words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_a_set_agree() {
        const SIZE: usize = 5_000;
        let odd: Vec<TokenId> = (1..SIZE as TokenId).step_by(2).collect();
        let TokenSet::Words(base) = TokenSet::from_ids(odd.clone(), SIZE) else {
            panic!("too many for a list")
        };
        let changed = ChangedWords { base, added: [0, 8].into(), removed: [1, 4_999].into() };
        let changed = TokenSet::Changed(Arc::new(changed));
        let expected: Vec<TokenId> = [&[0, 3, 5, 7, 8][..], &odd[4..odd.len() - 1]].concat();
        let mut words = vec![u32::MAX; words_for(SIZE) + 1];
        changed.write(SIZE, &mut words);
        let (plain, listed) = (TokenSet::from_words(words.clone()), TokenSet::Ids(expected.clone().into()));
        assert!(changed.borrow().is_none() && plain.listed().is_none());
        for set in [&changed, &plain, &listed] {
            assert_eq!(set.ids(SIZE), expected);
            let mut written = vec![u32::MAX; words.len()];
            set.write(SIZE, &mut written);
            assert_eq!(written, words);
            assert!(
                (0..SIZE as TokenId + 40).all(|id| set.contains(id) == expected.binary_search(&id).is_ok())
            );
        }
        assert_eq!(TokenSet::All.ids(40), (0..40).collect::<Vec<_>>());
        assert_eq!(TokenSet::from_ids(vec![9, 2], SIZE).listed(), Some(&[2, 9][..]));
        assert_eq!(TokenSet::from_words(vec![1 << 5]).sole(), Some(5));
        assert!(TokenSet::default().ids(SIZE).is_empty());
        // The base is shared, by the changed set only.
        assert_eq!(changed.own_bytes(), changed.bytes());
        let TokenSet::Changed(inner) = &changed else { panic!("changed") };
        let words = TokenSet::Words(Arc::clone(&inner.base));
        assert_eq!((changed.own_bytes(), words.own_bytes()), (16, 0));
    }
}
