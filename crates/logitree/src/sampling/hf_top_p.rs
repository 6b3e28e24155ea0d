//! hf_top_p: removes the least probable candidates as long as they sum to at most 1 - p, as transformers does.
//!
//! Source: `TopPLogitsWarper` of transformers 5.23. That is what llama.cpp's `top_p` keeps, whose sums in f32 from the
//! best one on round otherwise. Which of equal candidates goes first is left open there; here it is the later one.

use super::distribution::{as_written, decide, keep_best, Weight};
use super::hf_top_k::fraction;
use super::min_p::describe_cut;
use super::{whole, Candidates, Sampler};
use crate::Result;

/// Removes a tail of at most `1 - p`, but leaves `min_keep`, in their order.
#[derive(Debug, Clone)]
pub struct HfTopP {
    p: f32,
    /// p as it is written, for transformers computes with doubles.
    share: f64,
    min_keep: usize,
    seen: Vec<f32>,
}

impl HfTopP {
    /// `p == 1` keeps all; `p <= 0` keeps the best one. `min_keep` counts as 1 if it is 0.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `p` is NaN or above 1.
    pub fn new(p: f32, min_keep: usize) -> Result<Self> {
        Ok(HfTopP { p: fraction("hf_top_p", "p", p)?, share: as_written(p), min_keep, seen: Vec::new() })
    }
}

impl Sampler for HfTopP {
    fn name(&self) -> &'static str {
        "hf_top_p"
    }

    fn describe(&self) -> String {
        describe_cut("hf_top_p", self.p, self.min_keep)
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.is_noop() {
            return;
        }
        let weight = Weight::of(candidates);
        let target = self.share * weight.sum;
        let least = self.min_keep.max(1);
        let kept = decide(candidates, &mut self.seen, |xs, _| {
            let mut running = 0.0;
            let last = xs.iter().zip(1..).position(|(&x, kept): (_, usize)| {
                running += f64::from(x - weight.max).exp();
                running >= target && kept >= least
            });
            last.map(|at| at + 1)
        });
        keep_best(candidates, kept, self.seen[kept - 1]);
    }

    fn parameter(&self, name: &str) -> Option<f64> {
        match name {
            "top_p" => Some(f64::from(self.p)),
            "min_keep" => Some(self.min_keep as f64),
            _ => None,
        }
    }

    fn set_parameter(&mut self, name: &str, value: f64) -> Result<bool> {
        match name {
            "top_p" => {
                self.p = fraction("hf_top_p", "p", value as f32)?;
                self.share = as_written(self.p);
            }
            "min_keep" => self.min_keep = whole("hf_top_p", name, value)?.max(0) as usize,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn is_noop(&self) -> bool {
        self.p >= 1.0
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}
