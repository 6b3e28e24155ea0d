//! top_n_sigma: sets to -inf what lies more than n standard deviations of the logits below the best.
//!
//! Tang et al.: "Top-nσ: Not All Logits Are You Need", 2024. The number of candidates stays.

use crate::reference::{Reference, TokenArray, TokenData};
use crate::Result;
use crate::{arguments, check, Candidates, OnRejected, Sampler};

/// Rejects below `max - n * standard deviation`, over the candidates above -inf.
#[derive(Debug, Clone, Copy)]
pub struct TopNSigma {
    pub(super) n: f32,
}

impl TopNSigma {
    /// `n <= 0` rejects nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `n` is not finite.
    pub fn new(n: f32) -> Result<Self> {
        check("top_n_sigma", [n.into()])?;
        Ok(TopNSigma { n })
    }
}

arguments!(TopNSigma, s => s.n);

impl Sampler for TopNSigma {
    fn name(&self) -> &'static str {
        "top_n_sigma"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.is_noop() || candidates.len() <= 1 {
            return;
        }
        let deviation = if candidates.is_short() {
            let mut sum = (0.0f32, 0usize);
            candidates.for_each_logit(|x| {
                if x != f32::NEG_INFINITY {
                    sum = (sum.0 + x, sum.1 + 1);
                }
            });
            let mean = sum.0 / sum.1 as f32;
            let mut squares = 0.0f32;
            candidates.for_each_logit(|x| {
                if x != f32::NEG_INFINITY {
                    // llama.cpp squares and adds in double, and stores the sum as float.
                    squares = (f64::from(squares) + f64::from(x - mean).powi(2)) as f32;
                }
            });
            (squares / sum.1 as f32).sqrt()
        } else {
            candidates.deviation() as f32
        };
        candidates.reject_below(candidates.max() - self.n * deviation);
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Adds
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn is_noop(&self) -> bool {
        self.n <= 0.0
    }
}

impl Reference for TopNSigma {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        if self.is_noop() || array.data.len() <= 1 {
            return;
        }
        let alive = |c: &&TokenData| c.logit != f32::NEG_INFINITY;
        let (mut max, mut sum, mut count) = (array.data[0].logit, 0.0f32, 0usize);
        for c in array.data.iter().filter(alive) {
            max = if max < c.logit { c.logit } else { max };
            sum += c.logit;
            count += 1;
        }
        let mean = if count > 0 { sum / count as f32 } else { 0.0 };
        let mut squares = 0.0f32;
        for c in array.data.iter().filter(alive) {
            // Squared and added in double, stored as float.
            squares = (f64::from(squares) + f64::from(c.logit - mean).powi(2)) as f32;
        }
        let deviation = if count > 0 { (squares / count as f32).sqrt() } else { 0.0 };
        let least = max - self.n * deviation;
        for c in array.data.iter_mut().filter(|c| c.logit < least) {
            c.logit = f32::NEG_INFINITY;
        }
    }
}
