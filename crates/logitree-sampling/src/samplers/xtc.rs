//! xtc (exclude top choices): with a probability, removes all but the least likely of the candidates above a threshold.
//!
//! One float is drawn a step, but none for a sole candidate. The output is sorted wherever the draw allows a removal.
//! Source: llama.cpp, src/llama-sampler.cpp (p-e-w's sampler, text-generation-webui #6335).

use crate::reference::{Reference, TokenArray};
use crate::rng::{Draws, Seed};
use crate::Result;
use crate::{arguments, check, state, Arguments, Candidates, Sampler};

/// With probability `p`, removes what is at least `threshold` probable, but the least probable of them.
#[derive(Debug, Clone)]
pub struct Xtc {
    p: f32,
    threshold: f32,
    min_keep: usize,
    draws: Draws,
}

impl Xtc {
    /// Which of a seed's counter-based streams is xtc's.
    const STREAM: u32 = 1;

    /// `p <= 0` or `threshold > 0.5` changes nothing and draws nothing; nothing is removed that would leave fewer
    /// than `min_keep`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if a number is not finite, or for a seed that the generator does not take.
    pub fn new(p: f32, threshold: f32, min_keep: usize, seed: Seed) -> Result<Self> {
        check("xtc", [p.into(), threshold.into()])?;
        Ok(Xtc { p, threshold, min_keep, draws: Draws::new(seed.checked()?, Self::STREAM) })
    }

    /// Whether this step may remove candidates. Draws.
    fn draws_removal(&mut self, candidates: usize) -> bool {
        !self.is_noop() && candidates >= 2 && self.draws.float() <= self.p
    }

    /// How many of the best of `n` candidates to remove, given their probabilities and logits, the best first. The one
    /// that stays is never at -inf (llama.cpp computes NaN then).
    fn excess(&self, n: usize, best: impl Iterator<Item = (f32, f32)>) -> usize {
        let above = best.take_while(|&(p, x)| p >= self.threshold && x > f32::NEG_INFINITY).count();
        let excess = above.saturating_sub(1);
        if n - excess >= self.min_keep {
            excess
        } else {
            0
        }
    }
}

arguments! {
    Xtc, s => s.p, s.threshold, s.min_keep, s.draws.seed();

    fn reconfigure(&mut self, a: &Arguments) -> Result<()> {
        (self.p, self.threshold, self.min_keep) = (a.read(0)?, a.read(1)?, a.read(2)?);
        Ok(())
    }
}

impl Sampler for Xtc {
    fn name(&self) -> &'static str {
        "xtc"
    }

    state!(draws);

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let n = candidates.len();
        if !self.draws_removal(n) {
            return;
        }
        candidates.sort_later();
        let excess = if candidates.is_short() || self.threshold <= 0.0 {
            candidates.sort();
            let mut sum = 0.0f32;
            candidates.exponentials(|e| sum += e);
            let max = candidates.max();
            self.excess(n, candidates.logits().iter().map(|&x| ((x - max).exp() / sum, x)))
        } else {
            let log_sum = candidates.log_sum();
            let most = ((1.0 / self.threshold) as usize).saturating_add(1);
            let p = |x: f32| (f64::from(x) - log_sum).exp() as f32;
            self.excess(n, candidates.best(most.min(n)).iter().map(|&x| (p(x), x)))
        };
        candidates.remove_best(excess);
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn is_noop(&self) -> bool {
        self.p <= 0.0 || self.threshold > 0.5
    }
}

impl Reference for Xtc {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        let n = array.data.len();
        if !self.draws_removal(n) {
            return;
        }
        array.softmax(true);
        if array.fault.is_none() {
            let excess = self.excess(n, array.data.iter().map(|c| (c.p, c.logit)));
            array.data.drain(..excess);
        }
    }
}
