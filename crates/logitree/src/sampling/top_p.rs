//! top_p (nucleus): keeps the fewest best candidates whose probabilities reach p. Output sorted.

use super::{finite, Candidates, Sampler};
use crate::Result;

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
        Ok(TopP { p: finite("top_p", "p", p)?, min_keep })
    }

    /// How many of the descending `logits` to keep; `None` if all of them do not reach p.
    fn cut(&self, logits: impl Iterator<Item = f32>, max: f32, sum: f32) -> Option<usize> {
        let mut cumulative = 0.0f32;
        for (x, kept) in logits.zip(1..) {
            cumulative += (x - max).exp() / sum;
            if cumulative >= self.p && kept >= self.min_keep {
                return Some(kept);
            }
        }
        None
    }
}

impl Sampler for TopP {
    fn name(&self) -> &'static str {
        "top_p"
    }

    fn describe(&self) -> String {
        super::min_p::describe_cut("top_p", self.p, self.min_keep)
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let max = candidates.max();
        let mut sum = 0.0f32;
        candidates.for_each_logit(|x| sum += (x - max).exp());
        let all = candidates.len();
        if candidates.is_sorted() {
            if let Some(keep) = self.cut(candidates.logits().iter().copied(), max, sum) {
                candidates.truncate(keep);
            }
            return;
        }
        let mut ranked = if all > 4 * FIRST { FIRST } else { all };
        loop {
            candidates.rank(ranked);
            match self.cut(candidates.ranked(), max, sum) {
                Some(keep) => return candidates.keep_ranked(keep),
                None if ranked == all => return candidates.keep_ranked(all),
                None => ranked = (ranked * 16).min(all),
            }
        }
    }

    fn is_noop(&self) -> bool {
        self.p >= 1.0
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}
