//! Which tokens may be neighbours within a piece: a sequence is what byte-pair encoding gives exactly if each two neighbours
//! are what it gives for their two texts (Vieira et al. 2025, "Language models over canonical byte-pair encodings").
//!
//! Two tokens are not neighbours if some merge crosses from one into the other. What the first ends with, while its own
//! merges happen, is its right spine: its last unit, what that is joined to, and so on; what the second begins with is its
//! left spine. A merge of `x` of the one and `y` of the other crosses if both are there at a time at which no merge of a
//! lower rank is left to do in either. The time of a merge is the highest rank of those that had to come before it, itself
//! included:
//!
//! ```text
//! x is there in [time(x), time(x'))        x' the next of the spine, or no end
//! y later than x    crosses if time(x') > time(y) and rank < time(x') and rank <= wait(y, y')
//! x later than y    crosses if time(y') >= time(x) and rank < wait(x, x') and rank <= time(y')
//! ```
//!
//! `wait` is the highest rank done between the two: mostly the time of the later one. The naive version encodes both texts
//! together.
//!
//! All tokens that may not follow a token are found at once: tokens lie in the order of a walk over left spines, children by
//! falling time, so that the tokens that a merge of `x` and `y` rules out are one run.

use super::merges::{Merges, Scratch, NO_TOKEN};
use crate::mask::{insert_bits, remove_bits, words_for};
use crate::vocabulary::Vocabulary;
use crate::TokenId;

/// Before all merges: when units are there.
const BORN: i64 = -1;
/// After all merges.
const NEVER: i64 = i64::MAX;

/// How a token comes about, where the merges make it of its own text.
#[derive(Debug, Clone, Copy)]
struct Origin {
    left: TokenId,
    right: TokenId,
    time: i64,
    /// What is waited for after `left` before it is joined; after `right`.
    wait_left: i64,
    wait_right: i64,
    /// Where its run in the order begins and ends.
    from: u32,
    to: u32,
}

/// The neighbours of all tokens.
pub(super) struct Spines {
    /// By token; `time` is [`NEVER`] for those that no text is merged to.
    origins: Box<[Origin]>,
    /// The tokens in the order of a walk over left spines.
    order: Box<[TokenId]>,
    /// What each token is the left part of, in the order of the walk: `children[first_child[id]..first_child[id + 1]]`.
    children: Box<[TokenId]>,
    first_child: Box<[u32]>,
    /// The right partners of each token with the rank of the merge: `partners[first_partner[id]..]`.
    partners: Box<[(TokenId, u32)]>,
    first_partner: Box<[u32]>,
}

impl Spines {
    pub fn new(vocabulary: &Vocabulary, merges: &Merges) -> Spines {
        let size = vocabulary.len();
        let none = Origin {
            left: NO_TOKEN,
            right: NO_TOKEN,
            time: NEVER,
            wait_left: 0,
            wait_right: 0,
            from: 0,
            to: 0,
        };
        let mut origins = vec![none; size];
        let (mut units, mut scratch) = (Vec::new(), Scratch::default());
        // Parts are shorter than what they are joined to.
        let mut by_length: Vec<TokenId> = (0..size as TokenId).collect();
        by_length.sort_by_key(|&id| vocabulary.token_bytes(id).len());
        for &id in &by_length {
            if merges.units(vocabulary.token_bytes(id), &mut units).is_none() {
                continue;
            }
            if let [only] = units[..] {
                if only == id {
                    origins[id as usize].time = BORN;
                }
                continue;
            }
            let Some((made, (left, right, rank))) = merges.whole(&units, &mut scratch) else { continue };
            if made != id {
                continue;
            }
            let (l, r, rank) = (origins[left as usize], origins[right as usize], i64::from(rank));
            origins[id as usize] = Origin {
                left,
                right,
                time: l.time.max(r.time).max(rank),
                wait_left: if r.time < l.time { rank } else { rank.max(r.time) },
                wait_right: if l.time <= r.time { rank } else { rank.max(l.time) },
                ..none
            };
        }
        let (children, first_child) = children_of(&origins);
        let (partners, first_partner) = partners_of(merges, size);
        let mut made = Spines {
            origins: origins.into(),
            order: Box::default(),
            children,
            first_child,
            partners,
            first_partner,
        };
        made.lay_out();
        made
    }

    /// Puts the tokens in the order of the walk.
    fn lay_out(&mut self) {
        let mut order = Vec::with_capacity(self.origins.len());
        let roots = 0..self.origins.len() as TokenId;
        let mut left: Vec<(TokenId, bool)> =
            roots.filter(|&id| self.origins[id as usize].time == BORN).map(|id| (id, false)).collect();
        while let Some((id, done)) = left.pop() {
            if done {
                self.origins[id as usize].to = order.len() as u32;
                continue;
            }
            self.origins[id as usize].from = order.len() as u32;
            order.push(id);
            left.push((id, true));
            left.extend(self.children(id).iter().rev().map(|&child| (child, false)));
        }
        self.order = order.into();
    }

    fn children(&self, id: TokenId) -> &[TokenId] {
        &self.children[self.first_child[id as usize] as usize..self.first_child[id as usize + 1] as usize]
    }

    fn partners(&self, id: TokenId) -> &[(TokenId, u32)] {
        &self.partners[self.first_partner[id as usize] as usize..self.first_partner[id as usize + 1] as usize]
    }

    /// Whether the merges make `id` of its own text.
    #[inline]
    pub fn is_made(&self, id: TokenId) -> bool {
        self.origins[id as usize].time != NEVER
    }

    /// The right spine of `id` from its last unit up: each with its time, the time of the next and the wait before that.
    fn right_spine(&self, id: TokenId) -> impl Iterator<Item = (TokenId, i64, i64, i64)> + '_ {
        let (mut at, mut next, mut wait) = (Some(id), NEVER, NEVER);
        std::iter::from_fn(move || {
            let here = at?;
            let origin = &self.origins[here as usize];
            let found = (here, origin.time, next, wait);
            (next, wait) = (origin.time, origin.wait_right);
            at = (origin.right != NO_TOKEN).then_some(origin.right);
            Some(found)
        })
    }

    /// Whether `b` may follow `a` within a piece. Equal to [`Spines::refuse`] for one token.
    pub fn may_follow(&self, merges: &Merges, a: TokenId, b: TokenId) -> bool {
        if !self.is_made(a) || !self.is_made(b) {
            return false;
        }
        for (x, x_time, x_next, x_wait) in self.right_spine(a) {
            let (mut y, mut y_next, mut y_wait) = (b, NEVER, NEVER);
            loop {
                let origin = &self.origins[y as usize];
                let y_time = origin.time;
                let meet = if y_time < x_time { y_next >= x_time } else { x_next > y_time };
                if meet {
                    if let Some(&(rank, _)) = merges.pairs.get(&super::merges::pair(x, y)) {
                        let rank = i64::from(rank);
                        let crosses = if y_time < x_time {
                            rank < x_wait && rank <= y_next
                        } else {
                            rank < x_next && rank <= y_wait
                        };
                        if crosses {
                            return false;
                        }
                    }
                }
                (y_next, y_wait) = (y_time, origin.wait_left);
                if origin.left == NO_TOKEN {
                    break;
                }
                y = origin.left;
            }
        }
        true
    }

    /// Clears in `words` the tokens that may not follow `a` within a piece, but for those that no text is merged to.
    pub fn refuse(&self, a: TokenId, words: &mut [u32]) {
        let mut clear = |from: u32, to: u32| {
            remove_bits(words, &self.order[from as usize..to as usize]);
        };
        for (x, x_time, x_next, x_wait) in self.right_spine(a) {
            for &(y, rank) in self.partners(x) {
                let (origin, rank) = (&self.origins[y as usize], i64::from(rank));
                if origin.time == NEVER {
                    continue;
                }
                let earlier = origin.time < x_time;
                let crosses = if earlier { rank < x_wait } else { x_next > origin.time && rank < x_next };
                if !crosses {
                    continue;
                }
                let least = if earlier { rank.max(x_time) } else { rank };
                let mut to = origin.from + 1;
                let mut regular = true;
                for &child in self.children(y) {
                    let child = &self.origins[child as usize];
                    let level = if earlier { child.time } else { child.wait_left };
                    if child.wait_left == child.time && regular {
                        // From here on, children of the first kind are earlier still.
                        if level >= least {
                            to = child.to;
                        } else {
                            regular = false;
                        }
                    } else if child.wait_left != child.time && level >= least {
                        clear(child.from, child.to);
                    }
                }
                clear(origin.from, to);
            }
        }
    }

    /// The words of a mask of all tokens that some text is merged to.
    pub fn all(&self) -> Vec<u32> {
        let mut words = vec![0; words_for(self.origins.len())];
        insert_bits(&mut words, &self.order);
        words
    }
}

/// The tokens by their left parts: those that wait for nothing else first, by falling time, then the others.
fn children_of(origins: &[Origin]) -> Lists<TokenId> {
    let mut made: Vec<TokenId> = (0..origins.len() as TokenId)
        .filter(|&id| origins[id as usize].time != NEVER && origins[id as usize].left != NO_TOKEN)
        .collect();
    made.sort_by_key(|&id| {
        let origin = &origins[id as usize];
        (origin.left, origin.wait_left != origin.time, std::cmp::Reverse(origin.time))
    });
    let mut first = vec![0u32; origins.len() + 1];
    made.iter().for_each(|&id| first[origins[id as usize].left as usize + 1] += 1);
    (1..first.len()).for_each(|at| first[at] += first[at - 1]);
    (made.into(), first.into())
}

/// A list for each token: all of them joined, and where each begins.
type Lists<T> = (Box<[T]>, Box<[u32]>);

fn partners_of(merges: &Merges, size: usize) -> Lists<(TokenId, u32)> {
    let mut all: Vec<(TokenId, TokenId, u32)> = merges
        .pairs
        .iter()
        .map(|(&pair, &(rank, _))| ((pair >> 32) as TokenId, pair as TokenId, rank))
        .collect();
    all.sort_unstable();
    let mut first = vec![0u32; size + 1];
    all.iter().for_each(|&(left, ..)| first[left as usize + 1] += 1);
    (1..first.len()).for_each(|at| first[at] += first[at - 1]);
    (all.into_iter().map(|(_, right, rank)| (right, rank)).collect(), first.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::bit;
    use crate::tokenizer::merges::{pair, Units};
    use crate::vocabulary::{Builder, TokenKind, VocabularyOptions};
    use proptest::prelude::*;
    use rustc_hash::FxHashMap;

    /// Three letters, then tokens that pairs of earlier ones make, with any ranks: also those that come too early.
    fn tokenizer(
        joins: &[(prop::sample::Index, prop::sample::Index)],
        ranks: &[u32],
    ) -> (Vocabulary, Merges) {
        let mut texts: Vec<Vec<u8>> = vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec()];
        let mut pairs = FxHashMap::default();
        for ((left, right), &rank) in joins.iter().zip(ranks) {
            let (left, right) = (left.index(texts.len()), right.index(texts.len()));
            let text = [&texts[left][..], &texts[right]].concat();
            if text.len() > 12 {
                continue;
            }
            let id = texts.iter().position(|known| *known == text).unwrap_or_else(|| {
                texts.push(text);
                texts.len() - 1
            });
            pairs.entry(pair(left as u32, right as u32)).or_insert((rank, id as u32));
        }
        let mut builder = Builder::new();
        for text in &texts {
            builder.push(TokenKind::Normal, text).unwrap();
        }
        let mut bytes = Box::new([NO_TOKEN; 256]);
        (0..3).for_each(|n| bytes[usize::from(b'a') + n] = n as TokenId);
        (builder.build(VocabularyOptions::default()).unwrap(), Merges { units: Units::Bytes(bytes), pairs })
    }

    fn check(vocabulary: &Vocabulary, merges: &Merges) {
        let spines = Spines::new(vocabulary, merges);
        let mut scratch = Scratch::default();
        let mut encode = |ids: &[TokenId]| {
            let text: Vec<u8> = ids.iter().flat_map(|&id| vocabulary.token_bytes(id)).copied().collect();
            let mut out = Vec::new();
            merges.encode(std::str::from_utf8(&text).unwrap(), &mut scratch, &mut out).unwrap();
            out
        };
        for a in 0..vocabulary.len() as TokenId {
            assert_eq!(spines.is_made(a), encode(&[a]) == [a]);
            if !spines.is_made(a) {
                continue;
            }
            let mut row = spines.all();
            spines.refuse(a, &mut row);
            for b in 0..vocabulary.len() as TokenId {
                let naive = encode(&[a, b]) == [a, b];
                assert_eq!(spines.may_follow(merges, a, b), naive, "{a} {b}");
                assert_eq!(bit(&row, b), naive, "row {a} {b}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3_000) })]

        /// Ranks in the order of learning, in any order, and with ties, as scores may have.
        #[test]
        fn neighbours_are_those_of_encoding_both_texts(
            joins in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 1..24),
            ranks in prop::collection::vec(0u32..40, 24),
            kind in 0usize..3,
        ) {
            let ranks: Vec<u32> = match kind {
                0 => (0..24).collect(),
                1 => ranks.iter().zip(0..).map(|(rank, n)| rank * 24 + n).collect(),
                _ => ranks,
            };
            let (vocabulary, merges) = tokenizer(&joins, &ranks);
            check(&vocabulary, &merges);
        }
    }
}
