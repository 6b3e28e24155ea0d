//! Groups the tokens that lead from a set of guesses to the same guesses: tokens of one class are decided together.
//!
//! A token's group leads from each guess to two lists. Groups with equal lists are one class; a set of guesses has a few tens.
//! The naive version asks of each token ([`CanonicalStepper::settles_after`]).

use rustc_hash::FxHashMap;

use super::boundaries::Settled;
use super::canonical_stepper::CanonicalStepper;
use super::canonical_tables::NO_GROUP;
use super::lookahead::After;
use crate::mask::{bit, ids, insert_bit, words_for};
use crate::trie::TokenTrie;
use crate::{interrupt, Result, TokenId};

/// Not found yet.
const UNKNOWN: u32 = u32::MAX;
/// Fewer tokens are sorted by comparing them.
const FEW: usize = 256;
/// The most sets of guesses whose kinds are kept.
const MAX_KEPT: usize = 256;

/// The kinds of tokens after a set of guesses, as far as they were asked for.
pub struct TokenClasses {
    set: u32,
    of_group: Box<[u32]>,
    numbers: FxHashMap<Box<[(u32, u32)]>, u32>,
    /// Before which characters the piece is over, by kind: where the token begins it, and where it continues one.
    settled: Vec<[Settled; 2]>,
    /// Tokens of pieces that are one token whatever the merges say, as a mask: they have no kind.
    own: Option<Box<[u32]>>,
}

impl CanonicalStepper<'_> {
    /// The kinds of a set, to be given back.
    pub fn take_kinds(&mut self, set: u32) -> TokenClasses {
        if let Some(known) = self.memo.kinds.remove(&set) {
            return known;
        }
        let canon = self.canon;
        let hypotheses = &self.memo.sets[set as usize];
        interrupt::consume(canon.words.len() as u64 / 16);
        let mut own = None;
        let is_here = |word: u32| word == 0 || hypotheses.iter().any(|h| h.word == word);
        for (_, id) in canon.words.keys().filter(|key| is_here(key.0)) {
            let size = words_for(self.tokenizer.vocabulary.len());
            insert_bit(own.get_or_insert_with(|| vec![0u32; size].into_boxed_slice()), *id);
        }
        let of_group = vec![UNKNOWN; canon.groups.len()].into();
        TokenClasses { set, of_group, numbers: FxHashMap::default(), settled: Vec::new(), own }
    }

    /// Keeps the kinds of a set.
    pub fn give_kinds(&mut self, kinds: TokenClasses) {
        if self.memo.kinds.len() >= MAX_KEPT {
            self.memo.kinds.clear();
        }
        self.memo.kinds.insert(kinds.set, kinds);
    }

    /// The kind of a token of whole characters; `None` for others, and for those that need a look of their own.
    #[inline]
    pub fn kind(&mut self, kinds: &mut TokenClasses, token: TokenId) -> Option<u32> {
        let group = self.canon.group_of[token as usize];
        let is_own = kinds.own.as_deref().is_some_and(|own| bit(own, token));
        if group == NO_GROUP || is_own || !bit(&self.canon.plain, token) {
            return None;
        }
        Some(self.kind_of(kinds, group))
    }

    /// The kind of a group.
    #[inline]
    pub(super) fn kind_of(&mut self, kinds: &mut TokenClasses, group: u32) -> u32 {
        match kinds.of_group[group as usize] {
            UNKNOWN => self.find_kind(kinds, group),
            known => known,
        }
    }

    #[cold]
    fn find_kind(&mut self, kinds: &mut TokenClasses, group: u32) -> u32 {
        let hypotheses = std::sync::Arc::clone(&self.memo.sets[kinds.set as usize]);
        let lists: Box<[(u32, u32)]> = hypotheses.iter().map(|h| self.walk_lists(h.guess, group)).collect();
        let next = kinds.settled.len() as u32;
        let kind = *kinds.numbers.entry(lists).or_insert(next);
        if kind == next {
            let mut settled = [Settled::default(), Settled::default()];
            for h in hypotheses.iter() {
                let walk = self.walk(h.guess, group);
                let begins = if self.canon.may_end(h.word) { &walk.begins[..] } else { &[] };
                for (guesses, all) in [begins, &walk.inside[..]].into_iter().zip(&mut settled) {
                    for &guess in guesses {
                        all.add(&self.memo.boundaries.settled(&self.tokenizer.splitter, guess));
                    }
                }
            }
            kinds.settled.push(settled);
        }
        kinds.of_group[group as usize] = kind;
        kind
    }

    /// As [`CanonicalStepper::settles_after`], for a token of this kind.
    ///
    /// # Errors
    /// Those of `after`.
    pub fn kind_settles(
        &self,
        kinds: &TokenClasses,
        kind: u32,
        classes: u64,
        after: &mut After<'_>,
    ) -> Result<[bool; 2]> {
        let [begun, inside] = &kinds.settled[kind as usize];
        Ok([self.settles(begun, classes, after)?, self.settles(inside, classes, after)?])
    }

    /// Sorts tokens of the trie by their bytes; others come last.
    pub fn sort(&self, tokens: &mut [TokenId], trie: &TokenTrie) {
        let ranks = self.canon.ranks.get_or_init(|| {
            let mut ranks = vec![u32::MAX; trie.vocabulary_size()];
            let all = trie.tokens_below(trie.root());
            all.iter().zip(0..).for_each(|(&id, rank)| ranks[id as usize] = rank);
            ranks.into()
        });
        let all = trie.tokens_below(trie.root());
        if tokens.len() < FEW {
            tokens.sort_unstable_by_key(|&id| ranks[id as usize]);
            return;
        }
        let (mut found, mut others) = (vec![0u32; words_for(all.len())], Vec::new());
        for &id in &*tokens {
            match ranks[id as usize] {
                u32::MAX => others.push(id),
                rank => insert_bit(&mut found, rank),
            }
        }
        let sorted = ids(&found).map(|rank| all[rank as usize]).chain(others);
        tokens.iter_mut().zip(sorted).for_each(|(to, id)| *to = id);
    }

    /// The number of whole characters of a token; `None` for what is more than that.
    #[inline]
    pub fn characters(&self, token: TokenId) -> Option<usize> {
        let group = self.canon.group_of[token as usize];
        (group != NO_GROUP && bit(&self.canon.plain, token))
            .then(|| self.canon.groups[group as usize].classes.len())
    }
}
