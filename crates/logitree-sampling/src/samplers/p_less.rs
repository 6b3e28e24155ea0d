//! p_less: keeps the candidates at least as probable as two draws are to agree. It has no parameter to tune.
//!
//! Tan, Wu, Howard: "p-less Sampling: A Robust Hyperparameter-Free Approach for LLM Decoding", 2025,
//! arXiv:2509.23234. The threshold is `c = sum(p^2)`; for p-less-norm `(v * c - 1) / (v - 1)`, which is lower. `v`,
//! the paper's vocabulary, is the number of candidates above -inf, so that what a mask hides does not count.

use crate::distribution::{collision, keep_from};
use crate::{arguments, Candidates, OnRejected, Sampler};

/// Keeps what is at least as probable as the threshold, in its order. The best candidate always is.
#[derive(Debug, Clone, Copy, Default)]
pub struct PLess {
    norm: bool,
}

impl PLess {
    /// p-less, or p-less-norm.
    pub fn new(norm: bool) -> Self {
        PLess { norm }
    }
}

arguments!(PLess, s => s.norm);

impl Sampler for PLess {
    fn name(&self) -> &'static str {
        "p_less"
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let (agree, alive, log_sum) = collision(candidates);
        let v = alive as f64;
        let threshold = if self.norm && alive > 1 { (v * agree - 1.0) / (v - 1.0) } else { agree };
        if threshold > 0.0 {
            keep_from(candidates, log_sum + threshold.ln());
        }
    }
}
