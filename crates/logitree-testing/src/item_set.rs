//! An ordered set of items that answers every question by scanning them, and random items for it: the oracle of
//! catalogues.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::rc::Rc;

use logitree::TokenId;

/// Numbers that look random: SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.draw() % n as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// What the items of a item_set are like.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    /// How many tokens there are, and how far apart they lie.
    pub tokens: (usize, u32),
    /// Tokens of an item, at least and at most.
    pub lengths: (usize, usize),
    /// Item numbers are below this.
    pub numbers: u64,
    /// Items at first.
    pub items: usize,
    pub weighted: bool,
    /// What ends an item, where anything does.
    pub end: TokenId,
}

impl Kind {
    pub fn token(&self, random: &mut Random) -> TokenId {
        random.below(self.tokens.0) as TokenId * self.tokens.1
    }

    /// Any item.
    pub fn item(&self, random: &mut Random) -> Item {
        let length = self.lengths.0 + random.below(self.lengths.1 - self.lengths.0 + 1);
        ((0..length).map(|_| self.token(random)).collect(), random.draw() % self.numbers)
    }
}

/// An item: its tokens and its number.
pub type Item = (Vec<TokenId>, u64);

/// The weight of the last token of each of these beginnings.
pub type Weights = BTreeMap<Vec<TokenId>, f32>;

/// The items that are there, and where weighted, what weight each token has in its place.
#[derive(Clone, Default)]
pub struct ItemSet {
    pub items: BTreeSet<Item>,
    pub weighted: bool,
    /// Beginnings of all items that were there when the index was made.
    made: Rc<Weights>,
    /// Beginnings that were added since.
    added: Weights,
}

impl ItemSet {
    /// These items, with the weights of their beginnings.
    pub fn new(items: BTreeSet<Item>, weight: Option<fn(&[TokenId]) -> f32>) -> ItemSet {
        let mut item_set = ItemSet { items, weighted: weight.is_some(), ..ItemSet::default() };
        if let Some(weight) = weight {
            let tokens = item_set.items.iter().map(|(tokens, _)| tokens);
            let begins = tokens.flat_map(|tokens| (1..=tokens.len()).map(|n| tokens[..n].to_vec()));
            item_set.made = Rc::new(begins.map(|begin| (begin.clone(), weight(&begin))).collect());
        }
        item_set
    }

    /// Adds an item, and returns whether it is new. A weight that is already there does not change.
    pub fn add(&mut self, tokens: &[TokenId], weights: &[f32], item: u64) -> bool {
        for n in (1..=tokens.len()).filter(|_| self.weighted) {
            let begin = &tokens[..n];
            if !self.made.contains_key(begin) && !self.begins(begin) {
                self.added.insert(begin.to_vec(), weights.get(n - 1).copied().unwrap_or(0.0));
            }
        }
        self.items.insert((tokens.to_vec(), item))
    }

    /// Removes the items for which `which` is true, and counts them.
    pub fn remove(&mut self, which: impl Fn(&Item) -> bool) -> u64 {
        let before = self.items.len();
        self.items.retain(|item| !which(item));
        (before - self.items.len()) as u64
    }

    /// Removes the items of these tokens, or the one with this number; how many there were.
    pub fn remove_tokens(&mut self, tokens: &[TokenId], item: Option<u64>) -> u64 {
        let gone = self.numbers(tokens).into_iter().filter(|&known| item.is_none_or(|item| item == known));
        gone.map(|item| u64::from(self.items.remove(&(tokens.to_vec(), item)))).sum()
    }

    /// A new index is made of what is there.
    pub fn merge(&mut self) {
        let weights = self.items.iter().flat_map(|(tokens, _)| (1..=tokens.len()).map(|n| &tokens[..n]));
        let weights = weights.filter(|_| self.weighted).map(|begin| (begin.to_vec(), self.weight(begin)));
        self.made = Rc::new(weights.collect());
        self.added.clear();
    }

    /// One of the items.
    pub fn any(&self, random: &mut Random, kind: &Kind) -> Option<Item> {
        let from = kind.item(random);
        self.items.range(from..).next().or_else(|| self.items.first()).cloned()
    }

    /// All items that begin with these tokens.
    fn under<'c>(&'c self, begin: &'c [TokenId]) -> impl Iterator<Item = &'c Item> {
        let from = (begin.to_vec(), 0);
        self.items.range(from..).take_while(move |(tokens, _)| tokens.starts_with(begin))
    }

    /// Whether any item begins with these tokens.
    pub fn begins(&self, tokens: &[TokenId]) -> bool {
        self.under(tokens).next().is_some()
    }

    /// Numbers of the items that are exactly these tokens.
    pub fn numbers(&self, tokens: &[TokenId]) -> Vec<u64> {
        self.under(tokens).take_while(|item| item.0.len() == tokens.len()).map(|item| item.1).collect()
    }

    /// The tokens that may follow these, ascending.
    pub fn follow(&self, begin: &[TokenId]) -> Vec<TokenId> {
        let mut follow = Vec::new();
        let mut from = Bound::Included((begin.to_vec(), 0));
        while let Some((tokens, _)) = self.items.range((from, Bound::Unbounded)).next() {
            if !tokens.starts_with(begin) {
                break;
            }
            let mut next = tokens[..(begin.len() + 1).min(tokens.len())].to_vec();
            match next.get(begin.len()) {
                // The item ends here: the next is one that is longer.
                None => next.push(0),
                Some(&token) => {
                    follow.push(token);
                    next[begin.len()] += 1;
                }
            }
            from = Bound::Included((next, 0));
        }
        follow
    }

    /// The weight of the last of these tokens, where they begin an item.
    pub fn weight(&self, begin: &[TokenId]) -> f32 {
        self.made.get(begin).or_else(|| self.added.get(begin)).copied().unwrap_or(0.0)
    }

    /// The weight of every token of these.
    pub fn weights(&self, tokens: &[TokenId]) -> Vec<f32> {
        (1..=tokens.len()).filter(|_| self.weighted).map(|n| self.weight(&tokens[..n])).collect()
    }
}
