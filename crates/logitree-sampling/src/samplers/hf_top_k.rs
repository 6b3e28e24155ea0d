//! hf_top_k: keeps the k best candidates, and all that equal the last of them, as transformers does.
//!
//! Source: `TopKLogitsWarper` of transformers 5.23. llama.cpp's `top_k` keeps exactly k.

use crate::distribution::kth;
use crate::{arguments, Candidates, OnRejected, Sampler, MANY};

/// Keeps what reaches the k-th highest logit, in its order.
#[derive(Debug, Clone, Copy)]
pub struct HfTopK {
    k: i32,
    min_keep: usize,
}

impl HfTopK {
    /// `k <= 0` keeps all; a `k` below `min_keep` counts as `min_keep`.
    pub fn new(k: i32, min_keep: usize) -> Self {
        HfTopK { k, min_keep }
    }
}

arguments!(HfTopK, s => s.k, s.min_keep);

impl Sampler for HfTopK {
    fn name(&self) -> &'static str {
        "hf_top_k"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if let Ok(k @ 1..) = usize::try_from(self.k) {
            let k = k.max(self.min_keep);
            if k < candidates.len() {
                let least = kth(candidates, k);
                candidates.keep_at_least(least);
            }
        }
    }

    fn on_rejected(&self) -> OnRejected {
        match self.min_keep <= MANY && self.k <= MANY as i32 {
            true => OnRejected::Removes,
            false => OnRejected::Ignores,
        }
    }

    fn is_noop(&self) -> bool {
        self.k <= 0
    }
}
