//! Joins what the threads of a configuration allow: as words that many masks share, where they differ in a few ids.

use std::sync::Arc;

use logitree_tokens::mask::{bit, insert_bits, remove_bits, ChangedWords, TokenSet};
use logitree_tokens::TokenId;

/// More changes of shared words than this are written into a copy.
const MAX_CHANGES: usize = 200;
/// More ids than this are put in order by way of bits: cheaper than sorting.
const MAX_SORTED: usize = 24;

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

/// What the threads of a configuration allow, of ids below `size`: `dense`, and `few` in any order, with repeats.
pub(super) fn join(
    mut dense: Vec<Allowed>,
    few: &mut Vec<TokenId>,
    size: usize,
    sorter: &mut Sorter,
) -> TokenSet {
    sorter.sort(few);
    let Some((mut base, mut removed)) = dense.pop() else { return TokenSet::from_sorted(few, size) };
    if !dense.is_empty() {
        let all = Arc::make_mut(&mut base);
        remove_bits(all, &removed);
        removed.clear();
        for (mut more, missing) in dense {
            if !missing.is_empty() {
                remove_bits(Arc::make_mut(&mut more), &missing);
            }
            all.iter_mut().zip(&*more).for_each(|(word, more)| *word |= more);
        }
    }
    if few.len() + removed.len() > MAX_CHANGES {
        let all = Arc::make_mut(&mut base);
        remove_bits(all, &removed);
        insert_bits(all, few);
        // Without losses there are no fewer than the base has, which has many.
        return if removed.is_empty() { TokenSet::Words(base) } else { TokenSet::from_words(base) };
    }
    removed.retain(|id| few.binary_search(id).is_err());
    sorter.sort(&mut removed);
    few.retain(|&id| !bit(&base, id));
    if few.is_empty() && removed.is_empty() {
        return TokenSet::Words(base);
    }
    TokenSet::Changed(Arc::new(ChangedWords { base, added: few[..].into(), removed: removed.into() }))
}
