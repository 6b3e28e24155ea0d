//! p_less: keeps the candidates at least as probable as two draws are to agree. It has no parameter to tune.
//!
//! Tan, Wu, Howard: "p-less Sampling: A Robust Hyperparameter-Free Approach for LLM Decoding", 2025,
//! arXiv:2509.23234. The threshold is `c = sum(p^2)`; for p-less-norm `(v * c - 1) / (v - 1)`, which is lower. `v`,
//! the paper's vocabulary, is the number of candidates above -inf, so that what a mask hides does not count.

use super::distribution::{collision, keep_from};
use super::{whole, Candidates, Sampler};
use crate::Result;

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

impl Sampler for PLess {
    fn name(&self) -> &'static str {
        "p_less"
    }

    fn describe(&self) -> String {
        if self.norm { "p_less(norm=True)" } else { "p_less()" }.to_string()
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let (agree, alive, log_sum) = collision(candidates);
        let v = alive as f64;
        let threshold = if self.norm && alive > 1 { (v * agree - 1.0) / (v - 1.0) } else { agree };
        if threshold > 0.0 {
            keep_from(candidates, log_sum + threshold.ln());
        }
    }

    fn parameter(&self, name: &str) -> Option<f64> {
        (name == "p_less_norm").then_some(f64::from(u8::from(self.norm)))
    }

    fn set_parameter(&mut self, name: &str, value: f64) -> Result<bool> {
        if name != "p_less_norm" {
            return Ok(false);
        }
        self.norm = whole("p_less", "norm", value)? != 0;
        Ok(true)
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}
