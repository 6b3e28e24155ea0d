//! ts_top_n_sigma: llama.cpp's top_n_sigma, which leaves one of equal logits, as tsampler does.
//!
//! Source: "All logits identical -> std = 0 -> collapse to single max token" of tsampler 0.2. llama.cpp keeps them all.

use crate::reference::{Reference, TokenArray};
use crate::Result;
use crate::{arguments, Candidates, OnRejected, Sampler, TopNSigma};

/// Rejects below `max - n * standard deviation`; all but the first where all logits above -inf are equal.
#[derive(Debug, Clone, Copy)]
pub struct TsTopNSigma(TopNSigma);

impl TsTopNSigma {
    /// `n <= 0` rejects nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `n` is not finite.
    pub fn new(n: f32) -> Result<Self> {
        TopNSigma::new(n).map(TsTopNSigma)
    }
}

/// Whether all of these that are above -inf are equal.
fn are_equal(mut logits: impl Iterator<Item = f32>) -> bool {
    let first = logits.find(|&logit| logit != f32::NEG_INFINITY);
    first.is_some_and(|first| logits.all(|logit| logit == first || logit == f32::NEG_INFINITY))
}

arguments!(TsTopNSigma, s => s.0.n);

impl Sampler for TsTopNSigma {
    fn name(&self) -> &'static str {
        "ts_top_n_sigma"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.is_noop() || candidates.len() <= 1 {
            return;
        }
        let max = candidates.max();
        let mut are_equal = true;
        candidates.for_each_logit(|logit| are_equal &= logit == max || logit == f32::NEG_INFINITY);
        if are_equal {
            candidates.keep_only_best();
        } else {
            self.0.apply(candidates);
        }
    }

    fn on_rejected(&self) -> OnRejected {
        self.0.on_rejected()
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn is_noop(&self) -> bool {
        self.0.is_noop()
    }
}

impl Reference for TsTopNSigma {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        if self.is_noop() || array.data.len() <= 1 {
            return;
        }
        if !are_equal(array.data.iter().map(|candidate| candidate.logit)) {
            return self.0.apply_reference(array);
        }
        let alive = |logit: f32| logit != f32::NEG_INFINITY;
        let best = array.data.iter().position(|candidate| alive(candidate.logit)).unwrap_or(0);
        for (at, candidate) in array.data.iter_mut().enumerate() {
            if at != best {
                candidate.logit = f32::NEG_INFINITY;
            }
        }
    }
}
