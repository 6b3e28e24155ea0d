//! top_h: keeps the most probable candidates as long as their own entropy stays within a part of the whole one.
//!
//! Baghaei Potraghloo, Azizi, Kundu, Pedram: "Top-H Decoding: Adapting the Creativity and Coherence with Bounded
//! Entropy in Text Generation", NeurIPS 2025, arXiv:2509.02510. The paper's bound, `H(q) <= h * H(p)` with q the
//! kept ones renormalised; transformers' class of that name, and its authors' code, bound a running sum over p
//! instead (`hf_top_h.rs`).

use crate::distribution::{keep_best, Weight};
use crate::Result;
use crate::{arguments, check, Candidates, OnRejected, Sampler};

/// Sums of exponentials are good to 2e-7: an entropy this little above the bound, relative to it, is at the bound.
const SLACK: f64 = 1e-6;

/// Keeps the most best candidates whose entropy is at most `h` times that of all, and the best one in any case, in
/// their order.
#[derive(Debug, Clone, Copy)]
pub struct TopH {
    h: f32,
}

impl TopH {
    /// The paper uses 0.4; 0 or less, and 1 or more, keep all.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `h` is not finite.
    pub fn new(h: f32) -> Result<Self> {
        check("top_h", [h.into()])?;
        Ok(TopH { h })
    }
}

arguments!(TopH, s => s.h);

impl Sampler for TopH {
    fn name(&self) -> &'static str {
        "top_h"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.is_noop() {
            return;
        }
        let weight = Weight::of(candidates);
        let bound = f64::from(self.h) * weight.entropy() * (1.0 + SLACK);
        keep_best(candidates, |xs| {
            // The entropy only rises with each candidate added (the paper's theorem 3).
            let (mut sum, mut dot) = (0.0f64, 0.0);
            xs.iter().position(|&x| {
                let below = f64::from(x - weight.max);
                let e = below.exp();
                sum += e;
                dot += e * below;
                sum > e && sum.ln() - dot / sum > bound
            })
        });
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn is_noop(&self) -> bool {
        self.h <= 0.0 || self.h >= 1.0
    }
}
