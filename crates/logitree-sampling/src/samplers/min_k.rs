//! min_k: cuts at the steepest step between neighbours of the sorted logits, steps further down counting less. It reads
//! no probability, so that a temperature before it only changes how many are kept where all are nearly equal.
//!
//! Ding, Li, Garces Arias, Aßenmacher, Heumann, Zhang: "Min-k Sampling: Decoupling Truncation from Temperature Scaling
//! via Relative Logit Dynamics", ACL 2026, arXiv:2604.11012. With the logits descending and R the range between the
//! first and the last, the cut is after the first k at which `(l[k] - l[k+1]) / R / k` is greatest, or after
//! `floor(tau / R)`, whichever is later.

use crate::distribution::decide;
use crate::Result;
use crate::{arguments, check, Candidates, Sampler};

/// Keeps the range of equal logits above 0, as the paper's algorithm does.
const EPSILON: f64 = 1e-8;

/// Keeps the candidates above the steepest step, sorted.
#[derive(Debug, Clone, Copy)]
pub struct MinK {
    tau: f32,
}

impl MinK {
    /// `tau` is how many candidates are kept at least, times the range of the logits; the paper uses 3. With 0 the step
    /// alone decides.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `tau` is not finite or below 0.
    pub fn new(tau: f32) -> Result<Self> {
        check("min_k", [tau.into()])?;
        Ok(MinK { tau })
    }
}

arguments!(MinK, s => s.tau);

impl Sampler for MinK {
    fn name(&self) -> &'static str {
        "min_k"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let mut min = f32::INFINITY;
        candidates.for_each_logit(|x| min = if x > f32::NEG_INFINITY && x < min { x } else { min });
        let least = f64::from(min);
        let (step, _) = decide(candidates, |xs, all| {
            let (mut steepest, mut cut) = (f64::NEG_INFINITY, 1);
            for (pair, k) in xs.windows(2).zip(1..) {
                let step = (f64::from(pair[0]) - f64::from(pair[1])) / k as f64;
                if step > steepest {
                    (steepest, cut) = (step, k);
                }
            }
            // No later step is longer than what is left of the range.
            let left = xs.last().map_or(0.0, |&x| (f64::from(x) - least) / xs.len() as f64);
            (all || steepest >= left).then_some(cut)
        });
        let range = f64::from(candidates.max()) - least + EPSILON;
        // A float beyond usize saturates; `top` keeps no more than there are.
        let fallback = (f64::from(self.tau) / range).floor() as usize;
        candidates.require_order();
        candidates.top(step.max(fallback));
    }
}
