//! top_k: keeps the k candidates with the highest logits, sorted. Knows no probability.

use super::reference::{Reference, TokenArray};
use super::{whole, Candidates, Sampler};
use crate::Result;

/// Keeps the `k` best; `k <= 0` keeps all, as they are.
#[derive(Debug, Clone, Copy)]
pub struct TopK {
    k: i32,
}

impl TopK {
    /// The `k` best, descending; all of them and unsorted for `k <= 0`.
    pub fn new(k: i32) -> Self {
        TopK { k }
    }
}

impl Sampler for TopK {
    fn name(&self) -> &'static str {
        "top_k"
    }

    fn describe(&self) -> String {
        format!("top_k({})", self.k)
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if let Ok(k @ 1..) = usize::try_from(self.k) {
            candidates.top(k);
        }
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn parameter(&self, name: &str) -> Option<f64> {
        (name == "top_k").then_some(f64::from(self.k))
    }

    fn set_parameter(&mut self, name: &str, value: f64) -> Result<bool> {
        if name != "top_k" {
            return Ok(false);
        }
        self.k = whole("top_k", "k", value)?;
        Ok(true)
    }

    fn is_noop(&self) -> bool {
        self.k <= 0
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}

impl Reference for TopK {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        array.top_k(self.k);
    }
}
