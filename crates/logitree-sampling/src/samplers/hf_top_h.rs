//! hf_top_h: top-H as transformers computes it: of the best hundred, renormalised, those up to which the terms of the
//! entropy sum to at most a part of it.
//!
//! Source: `TopHLogitsWarper` of transformers 5.23. The paper's own bound is in `top_h.rs`.

use crate::distribution::as_written;
use crate::Result;
use crate::{arguments, check, Candidates, OnRejected, Sampler};

/// How many candidates are looked at.
const LOOKED_AT: usize = 100;
/// A running sum this little above the bound, relative to it, equals it in transformers' f32.
const SLACK: f64 = 6e-8;

/// Keeps the best while the running sum of `-p * log p` is at most `h` times the entropy; the best one in any case.
#[derive(Debug, Clone, Copy)]
pub struct HfTopH {
    h: f32,
    /// h as it is written, for transformers computes with doubles.
    share: f64,
}

impl HfTopH {
    /// 0 or less keeps all; 1 keeps the best hundred.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `h` is NaN or above 1.
    pub fn new(h: f32) -> Result<Self> {
        check("hf_top_h", [h.into()])?;
        Ok(HfTopH { h, share: as_written(h) })
    }
}

arguments!(HfTopH, s => s.h);

impl Sampler for HfTopH {
    fn name(&self) -> &'static str {
        "hf_top_h"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.is_noop() {
            return;
        }
        candidates.require_order();
        candidates.top(LOOKED_AT);
        let logits = candidates.logits();
        let alive = logits.iter().take_while(|&&x| x > f32::NEG_INFINITY).count();
        let below = |x: f32| f64::from(x) - f64::from(logits[0]);
        let sum: f64 = logits[..alive].iter().map(|&x| below(x).exp()).sum();
        let term = |x: f32| below(x).exp() / sum * (sum.ln() - below(x));
        let entropy = logits[..alive].iter().fold(0.0, |h, &x| h + term(x));
        let bound = self.share * entropy * (1.0 + SLACK);
        let mut running = 0.0;
        let kept = logits[..alive].iter().position(|&x| {
            running += term(x);
            running > bound
        });
        candidates.truncate(kept.unwrap_or(alive).max(1));
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn is_noop(&self) -> bool {
        self.h <= 0.0
    }
}
