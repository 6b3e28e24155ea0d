//! top_k: keeps the k candidates with the highest logits, sorted. Knows no probability.

use super::{Candidates, Sampler};

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

    fn is_noop(&self) -> bool {
        self.k <= 0
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}
