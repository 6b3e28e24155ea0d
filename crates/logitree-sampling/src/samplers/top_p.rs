//! top_p (nucleus): keeps the fewest best candidates whose probabilities reach p. Output sorted.

use crate::reference::{Reference, TokenArray, TokenData};
use crate::Result;
use crate::{arguments, check, Candidates, OnGreatest, OnRejected, Sampler, Step};

/// How many candidates are sorted at first; more only if they do not reach p.
const FIRST: usize = 256;

/// Keeps the best candidates up to the one that brings the sum to `p`, and at least `min_keep`.
#[derive(Debug, Clone, Copy)]
pub struct TopP {
    p: f32,
    min_keep: usize,
}

impl TopP {
    /// `p >= 1` keeps all; `p <= 0` keeps the best one (or `min_keep`).
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `p` is not finite.
    pub fn new(p: f32, min_keep: usize) -> Result<Self> {
        check("top_p", [p.into()])?;
        Ok(TopP { p, min_keep })
    }

    /// How many of the descending `logits` to keep; `None` if all of them do not reach p.
    fn cut(&self, logits: &[f32], max: f32, sum: f32) -> Option<usize> {
        let mut cumulative = 0.0f32;
        for (&x, kept) in logits.iter().zip(1..) {
            cumulative += (x - max).exp() / sum;
            if cumulative >= self.p && kept >= self.min_keep {
                return Some(kept);
            }
        }
        None
    }
}

arguments!(TopP, s => s.p, s.min_keep);

impl Sampler for TopP {
    fn name(&self) -> &'static str {
        "top_p"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.is_noop() {
            return;
        }
        if !candidates.is_short() {
            return candidates.keep_share(f64::from(self.p), self.min_keep.max(1));
        }
        // llama.cpp sums before it sorts.
        let max = candidates.max();
        let mut sum = 0.0f32;
        candidates.for_each_logit(|x| sum += (x - max).exp());
        candidates.sort();
        if let Some(keep) = self.cut(candidates.logits(), max, sum) {
            candidates.truncate(keep);
        }
    }

    fn on_greatest(&self) -> OnGreatest {
        OnGreatest::Keeps
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn step(&self) -> Option<Step> {
        (self.min_keep <= 1).then_some(Step::TopP(self.p))
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn is_noop(&self) -> bool {
        self.p >= 1.0
    }
}

impl Reference for TopP {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        if self.is_noop() {
            return;
        }
        array.softmax(false);
        if array.sorted || array.data.len() <= 4 * FIRST {
            if !array.sorted {
                array.sort_best(array.data.len());
            }
            let kept = self.reach(&array.data);
            array.data.truncate(kept.unwrap_or(array.data.len()));
            return;
        }
        // The first 256 are sorted alone; if they do not reach p, all are sorted and the sum continues.
        let mut ranked = array.ranked(FIRST);
        let mut kept = self.reach(&ranked[..FIRST]);
        if kept.is_none() {
            let first: Vec<TokenData> = ranked[..FIRST].to_vec();
            array.recycle(ranked);
            ranked = array.ranked(array.data.len());
            let after = first.iter().chain(&ranked[FIRST..]);
            kept = self.reach(after).or(Some(ranked.len()));
        }
        ranked.truncate(kept.unwrap_or(0));
        let before = std::mem::replace(&mut array.data, ranked);
        array.recycle(before);
        array.sorted = true;
    }
}

impl TopP {
    /// How many of the candidates, in this order, reach p; `None` if all of them do not.
    fn reach<'a>(&self, candidates: impl IntoIterator<Item = &'a TokenData>) -> Option<usize> {
        let mut cumulative = 0.0f32;
        for (c, kept) in candidates.into_iter().zip(1..) {
            cumulative += c.p;
            if cumulative >= self.p && kept >= self.min_keep {
                return Some(kept);
            }
        }
        None
    }
}
