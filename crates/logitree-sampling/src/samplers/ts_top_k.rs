//! ts_top_k: llama.cpp's top_k, which leaves the candidates as they are where it keeps all of them, as tsampler does.
//!
//! Source: "topK >= vocab_size means NO truncation (preserves token ID order)" of tsampler 0.2. llama.cpp's `top_k` sorts.

use crate::reference::{Reference, TokenArray};
use crate::{arguments, Candidates, OnGreatest, OnRejected, Sampler, MANY};

/// Keeps the `k` best, sorted; all in their order where there are no more than `k`, and for `k <= 0`.
#[derive(Debug, Clone, Copy)]
pub struct TsTopK {
    k: i32,
}

impl TsTopK {
    /// The `k` best of more than `k`.
    pub fn new(k: i32) -> Self {
        TsTopK { k }
    }
}

arguments!(TsTopK, s => s.k);

impl Sampler for TsTopK {
    fn name(&self) -> &'static str {
        "ts_top_k"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if let Some(k) = usize::try_from(self.k).ok().filter(|&k| k > 0 && k < candidates.len()) {
            candidates.top(k);
        }
    }

    fn on_greatest(&self) -> OnGreatest {
        OnGreatest::Keeps
    }

    fn on_rejected(&self) -> OnRejected {
        // The number of candidates decides whether they are sorted, and those at -inf are counted.
        match self.k <= MANY as i32 {
            true => OnRejected::RemovesFromMany,
            false => OnRejected::Counts,
        }
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn is_noop(&self) -> bool {
        self.k <= 0
    }
}

impl Reference for TsTopK {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        if usize::try_from(self.k).is_ok_and(|k| k < array.data.len()) {
            array.top_k(self.k);
        }
    }
}
