//! dry (don't repeat yourself): penalises tokens that would continue a repetition, the more the longer it is.
//!
//! p-e-w's sampler (text-generation-webui #5677), as llama.cpp (src/llama-sampler.cpp) has it. A token that followed
//! an earlier occurrence of the last `length` accepted tokens loses `multiplier * base ^ (length - allowed)`;
//! occurrences are searched in the last n tokens, and none extends across a breaker. Costs O(n) a step: Gusfield's
//! Z algorithm over the reversed history. A breaker is a list of token ids (`vocabulary.rs` makes them from texts).

use crate::reference::{Reference, TokenArray};
use crate::{
    arguments, check, follow, within, Arguments, Candidates, OnRejected, Sampler, StateReader, StateWriter,
    Value,
};
use crate::{Error, ErrorKind, Result, TokenId};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Tokens of a breaker that count, its head not included.
const MAX_TAIL: usize = 20;
/// Descriptions list up to this many breakers.
const MAX_SHOWN: usize = 8;
/// About the logarithm of the largest f32: beyond it the power would overflow.
const MAX_LOG: f32 = 88.722_84;

/// DRY's sequence breakers: head and tail of each, sorted. Of a breaker the head and 20 more tokens count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Breakers(pub(super) Arc<[(TokenId, Vec<TokenId>)]>);

impl Breakers {
    /// Breakers of token ids, head first.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a breaker without tokens.
    pub fn new(breakers: &[Vec<TokenId>]) -> Result<Self> {
        let mut parts = Vec::with_capacity(breakers.len());
        for (breaker, at) in breakers.iter().zip(0..) {
            let Some((&head, tail)) = breaker.split_first() else {
                return Err(Error::new(ErrorKind::Sampling, "a breaker of dry has no tokens")
                    .at(format!("breaker {at}"))
                    .help("a breaker is a list of token ids; the first is its head"));
            };
            parts.push((head, tail[..tail.len().min(MAX_TAIL)].to_vec()));
        }
        parts.sort_unstable();
        parts.dedup();
        Ok(Breakers(parts.into()))
    }

    /// The breakers as token ids, head first.
    pub fn ids(&self) -> Vec<Vec<TokenId>> {
        self.0.iter().map(|(head, tail)| [&[*head], tail.as_slice()].concat()).collect()
    }

    /// The ids; of more than 8 breakers their number and a hash.
    pub fn describe(&self) -> String {
        let list = |ids: &[TokenId]| {
            let each: Vec<String> = ids.iter().map(u32::to_string).collect();
            format!("[{}]", each.join(", "))
        };
        let ids: Vec<String> = self.ids().iter().map(|ids| list(ids)).collect();
        let ids = ids.join(", ");
        match self.0.len() {
            n if n <= MAX_SHOWN => format!("[{ids}]"),
            n => format!("<{n}, {:016x}>", xxh3_64(ids.as_bytes())),
        }
    }

    /// The breakers that begin with `head`.
    fn starting_with(&self, head: TokenId) -> &[(TokenId, Vec<TokenId>)] {
        let first = self.0.partition_point(|b| b.0 < head);
        let n = self.0[first..].partition_point(|b| b.0 == head);
        &self.0[first..first + n]
    }
}

/// The penalty and the history it looks at.
#[derive(Debug, Clone)]
pub struct Dry {
    multiplier: f32,
    base: f32,
    allowed: i32,
    last_n: usize,
    breakers: Breakers,
    /// Every accepted token, kept even while the sampler is off.
    history: Vec<TokenId>,
    /// Scratch: length of the common end of the history and of the history without its last k tokens.
    common: Vec<usize>,
    /// Scratch: tokens and the longest repetition that each continues; then their penalties, by ascending id.
    repeats: Vec<(TokenId, usize)>,
    table: Vec<(TokenId, f32)>,
}

impl Dry {
    /// Reads the last `last_n` accepted tokens (0 or less: none, as in this llama.cpp) and penalises tokens that
    /// continue a repetition of `allowed` tokens or more. A multiplier of 0, a base below 1 and a `last_n` of 0 turn it
    /// off.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] if a number is not finite.
    pub fn new(multiplier: f32, base: f32, allowed: i32, last_n: i32, breakers: Breakers) -> Result<Self> {
        check("dry", [multiplier.into(), base.into()])?;
        Ok(Dry {
            multiplier,
            base,
            allowed,
            last_n: usize::try_from(last_n).unwrap_or(0),
            breakers,
            history: Vec::new(),
            common: Vec::new(),
            repeats: Vec::new(),
            table: Vec::new(),
        })
    }

    /// The number of tokens in `window` after its last breaker: the longest repetition that counts.
    fn limit(&self, window: &[TokenId]) -> usize {
        for (at, &token) in window.iter().enumerate().rev() {
            let after = &window[at + 1..];
            let fits = |tail: &&[TokenId]| after.starts_with(tail);
            let tails = self.breakers.starting_with(token).iter().map(|b| b.1.as_slice());
            if let Some(longest) = tails.filter(fits).map(<[TokenId]>::len).max() {
                return after.len() - longest;
            }
        }
        window.len()
    }

    /// Fills the table of penalties; `false` where llama.cpp does not read the candidates.
    fn weigh(&mut self) -> bool {
        if self.is_noop() {
            return false;
        }
        let n = self.last_n.min(self.history.len());
        let window = &self.history[self.history.len() - n..];
        // As llama.cpp compares: `allowed` may be below 0.
        if n as i64 <= i64::from(self.allowed) {
            return false;
        }
        let limit = self.limit(window);
        if (limit as i64) < i64::from(self.allowed) {
            return false;
        }
        common_ends(window, &mut self.common);
        self.repeats.clear();
        for (k, &common) in self.common.iter().enumerate().skip(1) {
            let length = common.min(limit);
            if length as i64 >= i64::from(self.allowed) {
                self.repeats.push((window[n - k], length));
            }
        }
        // By token, the longest first, so that the first of each token is its longest.
        self.repeats.sort_unstable_by_key(|r| (r.0, std::cmp::Reverse(r.1)));
        self.repeats.dedup_by_key(|r| r.0);
        self.table.clear();
        for at in 0..self.repeats.len() {
            let (token, length) = self.repeats[at];
            if self.breakers.starting_with(token).iter().all(|b| !b.1.is_empty()) {
                self.table.push((token, self.penalty(length)));
            }
        }
        true
    }

    /// The penalty of a token that continues a repetition of this length. The power is of doubles.
    fn penalty(&self, length: usize) -> f32 {
        let most = if self.base > 1.000_001 { (MAX_LOG / self.base.ln()) as i64 } else { 0 };
        let mut exponent = length as i64 - i64::from(self.allowed);
        if most > 0 {
            exponent = exponent.min(most);
        }
        (f64::from(self.multiplier) * f64::from(self.base).powf(exponent as f64)) as f32
    }
}

/// Writes to `common[k]`, for k from 1, how many tokens the end of `window` and the end of `window` without its last
/// k tokens have in common (the Z algorithm over the window read backwards).
fn common_ends(window: &[TokenId], common: &mut Vec<usize>) {
    let n = window.len();
    let back = |i: usize| window[n - 1 - i];
    common.clear();
    common.resize(n, 0);
    // The match that reaches furthest back: from `start` to before `end`.
    let (mut start, mut end) = (0, 0);
    for k in 1..n {
        let mut length = if k < end { common[k - start].min(end - k) } else { 0 };
        while k + length < n && back(length) == back(k + length) {
            length += 1;
        }
        common[k] = length;
        if k + length > end {
            (start, end) = (k, k + length);
        }
    }
}

arguments! {
    Dry, s => s.multiplier, s.base, s.allowed, s.last_n,
    if s.breakers.0.is_empty() { Value::Nothing } else { s.breakers.clone().into() };

    fn reconfigure(&mut self, a: &Arguments) -> Result<()> {
        (self.multiplier, self.base) = (a.read(0)?, a.read(1)?);
        (self.allowed, self.last_n) = (a.read(2)?, a.read(3)?);
        Ok(())
    }
}

impl Sampler for Dry {
    fn name(&self) -> &'static str {
        "dry"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.weigh() {
            candidates.update(&self.table, |x, penalty| within(x - penalty, x == f32::NEG_INFINITY));
            candidates.unsort();
        }
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn accept(&mut self, token: TokenId) {
        follow(&mut self.history, token);
    }

    fn rollback(&mut self, n: usize) {
        self.history.truncate(self.history.len().saturating_sub(n));
    }

    fn reset(&mut self) {
        self.history.clear();
    }

    fn is_noop(&self) -> bool {
        self.multiplier == 0.0 || self.base < 1.0 || self.last_n == 0
    }

    fn save(&self, state: &mut StateWriter) {
        state.ids(&self.history);
    }

    fn load(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        self.history = state.ids()?;
        Ok(())
    }
}

impl Reference for Dry {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        if !self.weigh() {
            return;
        }
        for c in &mut array.data {
            if let Ok(at) = self.table.binary_search_by_key(&c.id, |entry| entry.0) {
                c.logit -= self.table[at].1;
            }
        }
        array.sorted = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The naive version: every earlier place, counted token by token.
    fn naive(
        window: &[TokenId],
        allowed: i64,
        breakers: &[Vec<TokenId>],
    ) -> Option<BTreeMap<TokenId, usize>> {
        let n = window.len();
        let after_breaker = (0..n).rev().find_map(|at| {
            let found = breakers.iter().filter(|b| window[at..].starts_with(b)).map(Vec::len).max();
            found.map(|length| n - at - length)
        });
        let limit = after_breaker.unwrap_or(n);
        if n as i64 <= allowed || (limit as i64) < allowed {
            return None;
        }
        let mut longest = BTreeMap::new();
        for k in 1..n {
            let earlier = &window[..n - k];
            let mut same = 0;
            while same < earlier.len() && earlier[earlier.len() - 1 - same] == window[n - 1 - same] {
                same += 1;
            }
            let length = same.min(limit);
            if length as i64 >= allowed {
                let entry = longest.entry(window[n - k]).or_insert(length);
                *entry = length.max(*entry);
            }
        }
        longest.retain(|token, _| !breakers.contains(&vec![*token]));
        Some(longest)
    }

    proptest! {
        #[test]
        fn equals_the_naive_version(
            history in prop::collection::vec(0u32..4, 0..60),
            last_n in 1i32..70,
            allowed in -1i32..6,
            breakers in prop::collection::vec(prop::collection::vec(0u32..6, 1..4), 0..3),
        ) {
            let mut dry = Dry::new(1.0, 1.75, allowed, last_n, Breakers::new(&breakers).unwrap()).unwrap();
            history.iter().for_each(|&t| dry.accept(t));
            let window = &history[history.len().saturating_sub(last_n as usize)..];
            let looked = dry.weigh();
            match naive(window, i64::from(allowed), &breakers) {
                None => prop_assert!(!looked),
                Some(expected) => {
                    prop_assert!(looked);
                    let lengths: Vec<TokenId> = dry.table.iter().map(|t| t.0).collect();
                    prop_assert_eq!(&lengths, &expected.keys().copied().collect::<Vec<_>>());
                    for (token, penalty) in &dry.table {
                        prop_assert_eq!(*penalty, dry.penalty(expected[token]));
                    }
                }
            }
        }
    }

    #[test]
    fn the_power_never_overflows() {
        let dry = Dry::new(1.0, 1.75, 0, i32::MAX, Breakers::default()).unwrap();
        assert!(dry.penalty(1 << 20).is_finite());
        assert_eq!(dry.penalty(158), dry.penalty(1 << 20));
        assert_eq!(Dry::new(2.0, 1.5, 2, 64, Breakers::default()).unwrap().penalty(4), 4.5);
    }

    #[test]
    fn invalid_texts_are_errors() {
        for x in [f32::NAN, f32::INFINITY] {
            assert!(
                Dry::new(x, 1.75, 2, 64, Breakers::default()).is_err()
                    && Dry::new(1.0, x, 2, 64, Breakers::default()).is_err()
            );
        }
        let error = Breakers::new(&[vec![1], vec![]]).unwrap_err();
        assert_eq!((error.kind, error.place.as_str()), (ErrorKind::Sampling, "breaker 1"));
        for off in [(0.0, 1.75, 64), (1.0, 0.99, 64), (1.0, 1.75, 0), (1.0, 1.75, -1)] {
            assert!(Dry::new(off.0, off.1, 2, off.2, Breakers::default()).unwrap().is_noop());
        }
    }

    #[test]
    fn a_description_has_the_constructor_arguments() {
        let dry = |breakers: &[Vec<TokenId>]| {
            Dry::new(0.8, 1.75, 2, 64, Breakers::new(breakers).unwrap()).unwrap().describe()
        };
        assert_eq!(dry(&[]), "dry(0.8, base=1.75, allowed_length=2, last_n=64)");
        assert!(dry(&[vec![3], vec![5, 7]]).ends_with("last_n=64, breakers=[[3], [5, 7]])"));
        let many: Vec<Vec<TokenId>> = (0..9).map(|i| vec![i]).collect();
        let others: Vec<Vec<TokenId>> = (1..10).map(|i| vec![i]).collect();
        assert!(dry(&many).contains("breakers=<9, ") && dry(&many) != dry(&others));
    }
}
