//! top_k: keeps the k candidates with the highest logits, sorted.

use crate::reference::{Reference, TokenArray};
use crate::{arguments, Candidates, OnGreatest, OnRejected, Sampler, Step, MANY};

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

arguments!(TopK, s => s.k);

impl Sampler for TopK {
    fn name(&self) -> &'static str {
        "top_k"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if let Ok(k @ 1..) = usize::try_from(self.k) {
            candidates.top(k);
        }
    }

    fn on_greatest(&self) -> OnGreatest {
        OnGreatest::Keeps
    }

    fn on_rejected(&self) -> OnRejected {
        match self.k <= MANY as i32 {
            true => OnRejected::Removes,
            false => OnRejected::Ignores,
        }
    }

    fn step(&self) -> Option<Step> {
        u32::try_from(self.k).ok().map(Step::TopK)
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn is_noop(&self) -> bool {
        self.k <= 0
    }
}

impl Reference for TopK {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        array.top_k(self.k);
    }
}
