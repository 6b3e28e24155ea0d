//! A mask as it is kept: a dense base that many masks share, and the few ids beside it.

use std::sync::Arc;

use logitree_tokens::mask::{count, ids};
use logitree_tokens::TokenId;

/// More ids than this are kept as words.
const MAX_LISTED: usize = 1_024;
/// More ids than this beside words are written into them.
const MAX_BESIDE: usize = 200;
/// More ids than this are put in order by way of bits: cheaper than sorting.
const MAX_SORTED: usize = 24;

/// A set of ids.
#[derive(Debug, Clone)]
pub(super) enum IdSet {
    /// Ascending, without repeats.
    Few(Box<[TokenId]>),
    /// Words, as masks have them.
    Dense(Arc<[u32]>),
}

impl IdSet {
    /// The set of `ids`, each there once, in any order.
    pub fn new(mut ids: Vec<TokenId>, words: usize) -> IdSet {
        if ids.len() <= MAX_LISTED {
            ids.sort_unstable();
            return IdSet::Few(ids.into());
        }
        let mut dense = vec![0u32; words];
        for id in ids {
            dense[id as usize / 32] |= 1 << (id % 32);
        }
        IdSet::Dense(dense.into())
    }

    /// The set of these words.
    pub fn from_words(words: Vec<u32>) -> IdSet {
        if count(&words) <= MAX_LISTED {
            return IdSet::Few(ids(&words).collect());
        }
        IdSet::Dense(words.into())
    }

    /// The words of the ids that are in one of the two only.
    pub fn differing(&self, other: &IdSet, words: usize) -> Vec<u32> {
        let mut made = vec![0u32; words];
        for set in [self, other] {
            match set {
                IdSet::Few(ids) => ids.iter().for_each(|&id| made[id as usize / 32] ^= 1 << (id % 32)),
                IdSet::Dense(words) => made.iter_mut().zip(&**words).for_each(|(a, b)| *a ^= b),
            }
        }
        made
    }

    pub fn contains(&self, id: TokenId) -> bool {
        match self {
            IdSet::Few(ids) => ids.binary_search(&id).is_ok(),
            IdSet::Dense(words) => words.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1),
        }
    }

    pub fn memory(&self) -> usize {
        match self {
            IdSet::Few(ids) => size_of_val(&**ids),
            IdSet::Dense(words) => size_of_val(&**words),
        }
    }
}

/// The allowed tokens of a configuration.
#[derive(Debug)]
pub(super) enum Entry {
    /// These only: ascending, without repeats.
    Few(Box<[TokenId]>),
    /// The words but for the ids in `without`, and the ids in `beside`: both ascending.
    Dense { base: Arc<[u32]>, beside: Box<[TokenId]>, without: Box<[TokenId]> },
}

/// Words that a thread allows, but for some ids.
pub(super) type Allowed = (Arc<[u32]>, Vec<TokenId>);

/// Puts ids in order. Keeps its memory: a bit for each id, and one for each 64 of these; all 0 between two calls.
#[derive(Default)]
pub(super) struct Sorter {
    bits: Vec<u64>,
    groups: Vec<u64>,
}

impl Sorter {
    /// `ids` ascending, without repeats.
    pub fn sort(&mut self, ids: &mut Vec<TokenId>) {
        if ids.is_sorted_by(|a, b| a < b) {
            return;
        }
        if ids.len() <= MAX_SORTED {
            ids.sort_unstable();
            ids.dedup();
            return;
        }
        for &id in &*ids {
            let at = id as usize / 64;
            if at >= self.bits.len() {
                self.bits.resize(at + 1, 0);
                self.groups.resize(at / 64 + 1, 0);
            }
            self.bits[at] |= 1 << (id % 64);
            self.groups[at / 64] |= 1 << (at % 64);
        }
        ids.clear();
        for (group, within) in self.groups.iter_mut().enumerate() {
            let mut within = std::mem::take(within);
            while within != 0 {
                let at = group * 64 + within.trailing_zeros() as usize;
                within &= within - 1;
                let mut bits = std::mem::take(&mut self.bits[at]);
                while bits != 0 {
                    ids.push(at as TokenId * 64 + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
        }
    }
}

impl Entry {
    /// Joins what the threads of a configuration allow: `few` in any order, with repeats. Masks have `words` words.
    pub fn join(mut dense: Vec<Allowed>, few: &mut Vec<TokenId>, words: usize, sorter: &mut Sorter) -> Entry {
        sorter.sort(few);
        let Some((mut base, mut without)) = dense.pop() else { return Entry::listed(few, words) };
        if !dense.is_empty() {
            let mut made: Arc<[u32]> = Arc::from(&base[..]);
            let all = Arc::make_mut(&mut made);
            clear_all(all, &without);
            without.clear();
            for (more, missing) in dense {
                if missing.is_empty() {
                    all.iter_mut().zip(&*more).for_each(|(word, more)| *word |= more);
                    continue;
                }
                let mut more = more.to_vec();
                clear_all(&mut more, &missing);
                all.iter_mut().zip(&more).for_each(|(word, more)| *word |= more);
            }
            base = made;
        }
        if few.len() + without.len() > MAX_BESIDE {
            let mut made: Arc<[u32]> = Arc::from(&base[..]);
            let all = Arc::make_mut(&mut made);
            clear_all(all, &without);
            set_all(all, few);
            // Without losses there are no fewer than the base has, which has many.
            if !without.is_empty() && count(&made) <= MAX_LISTED {
                return Entry::Few(ids(&made).collect());
            }
            return Entry::Dense { base: made, beside: Box::default(), without: Box::default() };
        }
        without.retain(|id| few.binary_search(id).is_err());
        sorter.sort(&mut without);
        few.retain(|&id| !has(&base, id));
        Entry::Dense { base, beside: few[..].into(), without: without.into() }
    }

    /// The entry of `few`, which are ascending and without repeats.
    fn listed(few: &[TokenId], words: usize) -> Entry {
        if few.len() <= MAX_LISTED {
            return Entry::Few(few.into());
        }
        let mut made: Arc<[u32]> = std::iter::repeat_n(0, words).collect();
        set_all(Arc::make_mut(&mut made), few);
        Entry::Dense { base: made, beside: Box::default(), without: Box::default() }
    }

    pub fn contains(&self, id: TokenId) -> bool {
        match self {
            Entry::Few(few) => few.binary_search(&id).is_ok(),
            Entry::Dense { base, beside, without } => {
                has(base, id) && without.binary_search(&id).is_err() || beside.binary_search(&id).is_ok()
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Entry::Few(few) => few.is_empty(),
            // The base has more ids than are left out.
            Entry::Dense { .. } => false,
        }
    }

    /// The only id, if there is one only.
    pub fn sole(&self) -> Option<TokenId> {
        match self {
            Entry::Few(few) if few.len() == 1 => Some(few[0]),
            _ => None,
        }
    }

    /// The words, if they are stored plainly.
    pub fn plain_words(&self) -> Option<&[u32]> {
        match self {
            Entry::Dense { base, beside, without } if beside.is_empty() && without.is_empty() => Some(base),
            _ => None,
        }
    }

    /// Writes the set over `words`; what lies past the vocabulary is cleared.
    pub fn write(&self, words: &mut [u32]) {
        match self {
            Entry::Few(few) => {
                words.fill(0);
                set_all(words, few);
            }
            Entry::Dense { base, beside, without } => {
                let n = base.len().min(words.len());
                words[..n].copy_from_slice(&base[..n]);
                words[n..].fill(0);
                clear_all(words, without);
                set_all(words, beside);
            }
        }
    }

    pub fn memory(&self) -> usize {
        match self {
            Entry::Few(few) => size_of_val(&**few) + 64,
            // A base that only this entry has is counted whole.
            Entry::Dense { base, beside, without } => {
                let own = if Arc::strong_count(base) == 1 { size_of_val(&**base) } else { 0 };
                own + size_of_val(&**beside) + size_of_val(&**without) + 64
            }
        }
    }
}

pub(super) fn has(words: &[u32], id: TokenId) -> bool {
    words.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
}

fn set_all(words: &mut [u32], ids: &[TokenId]) {
    for &id in ids {
        if let Some(word) = words.get_mut(id as usize / 32) {
            *word |= 1 << (id % 32);
        }
    }
}

fn clear_all(words: &mut [u32], ids: &[TokenId]) {
    for &id in ids {
        if let Some(word) = words.get_mut(id as usize / 32) {
            *word &= !(1 << (id % 32));
        }
    }
}
