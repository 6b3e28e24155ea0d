//! min_p: keeps the candidates at least p times as probable as the best one. Needs no softmax: it compares logits.

use crate::reference::{Reference, TokenArray};
use crate::Result;
use crate::{arguments, check, Candidates, OnGreatest, OnRejected, Sampler, Step, MANY};

/// Keeps what reaches `p` times the highest probability, and at least `min_keep`.
#[derive(Debug, Clone, Copy)]
pub struct MinP {
    p: f32,
    min_keep: usize,
}

impl MinP {
    /// `p <= 0` keeps all; above 1 the best one (or `min_keep`).
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `p` is not finite.
    pub fn new(p: f32, min_keep: usize) -> Result<Self> {
        check("min_p", [p.into()])?;
        Ok(MinP { p, min_keep })
    }
}

arguments!(MinP, s => s.p, s.min_keep);

impl Sampler for MinP {
    fn name(&self) -> &'static str {
        "min_p"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.is_noop() {
            return;
        }
        if !candidates.is_sorted() {
            let max = candidates.max();
            let threshold = max + self.p.ln();
            let enough = if self.min_keep <= 1 {
                max >= threshold
            } else {
                candidates.count_at_least(threshold) >= self.min_keep
            };
            if enough {
                return candidates.keep_at_least(threshold);
            }
            candidates.sort();
        }
        let logits = candidates.logits();
        let threshold = logits[0] + self.p.ln();
        let below = logits.iter().skip(1).zip(1..).position(|(&x, at)| x < threshold && at >= self.min_keep);
        if let Some(below) = below {
            candidates.truncate(below + 1);
        }
    }

    fn on_greatest(&self) -> OnGreatest {
        OnGreatest::Keeps
    }

    fn on_rejected(&self) -> OnRejected {
        match self.min_keep <= MANY {
            true => OnRejected::Removes,
            false => OnRejected::Ignores,
        }
    }

    fn step(&self) -> Option<Step> {
        (self.min_keep <= 1).then(|| Step::MinP(self.p.ln()))
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn is_noop(&self) -> bool {
        self.p <= 0.0
    }
}

impl Reference for MinP {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        if self.is_noop() {
            return;
        }
        if !array.sorted {
            // Its own maximum: never below the lowest finite float.
            let max = array.data.iter().fold(f32::MIN, |max, c| if max < c.logit { c.logit } else { max });
            let least = max + self.p.ln();
            let kept = array.data.iter().filter(|c| c.logit >= least).count();
            if kept > 0 && kept >= self.min_keep {
                return array.data.retain(|c| c.logit >= least);
            }
            array.sort_best(array.data.len());
        }
        let least = array.data[0].logit + self.p.ln();
        let min_keep = self.min_keep;
        let cut = (1..array.data.len()).find(|&at| array.data[at].logit < least && at >= min_keep);
        array.data.truncate(cut.unwrap_or(array.data.len()));
    }
}
