//! hf_top_p: removes the least probable candidates as long as they sum to at most 1 - p, as transformers does.
//!
//! Source: `TopPLogitsWarper` of transformers 5.23. That is what llama.cpp's `top_p` keeps, whose sums in f32 from the
//! best one on round otherwise. Which of equal candidates goes first is left open there; here it is the later one.

use crate::distribution::{as_written, keep_best, Weight};
use crate::Result;
use crate::{arguments, check, Candidates, OnRejected, Sampler};

/// Removes a tail of at most `1 - p`, but leaves `min_keep`, in their order.
#[derive(Debug, Clone, Copy)]
pub struct HfTopP {
    p: f32,
    /// p as it is written, for transformers computes with doubles.
    share: f64,
    min_keep: usize,
}

impl HfTopP {
    /// `p == 1` keeps all; `p <= 0` keeps the best one. `min_keep` counts as 1 if it is 0.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `p` is NaN or above 1.
    pub fn new(p: f32, min_keep: usize) -> Result<Self> {
        check("hf_top_p", [p.into()])?;
        Ok(HfTopP { p, share: as_written(p), min_keep })
    }
}

arguments!(HfTopP, s => s.p, s.min_keep);

impl Sampler for HfTopP {
    fn name(&self) -> &'static str {
        "hf_top_p"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.is_noop() {
            return;
        }
        let weight = Weight::of(candidates);
        let target = self.share * weight.sum;
        let least = self.min_keep.max(1);
        keep_best(candidates, |xs| {
            let mut running = 0.0;
            let last = xs.iter().zip(1..).position(|(&x, kept): (_, usize)| {
                running += f64::from(x - weight.max).exp();
                running >= target && kept >= least
            });
            last.map(|at| at + 1)
        });
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn is_noop(&self) -> bool {
        self.p >= 1.0
    }
}
