//! dist: draws one candidate by its probability, one double a step, even when only one candidate is left.
//!
//! The draw is llama.cpp's: exponentials in f32, their sum in f64, and the first candidate in order at which the
//! running sum reaches `sum * draw`.

use super::rng::Mt19937;
use super::{Candidates, Sampler};
use crate::TokenId;

/// Draws over [`Mt19937`], with a way back.
#[derive(Debug, Clone)]
pub struct Dist {
    rng: Mt19937,
    /// Draws since the last accepted token, per accepted token, as runs of (draws, how many tokens).
    steps: Vec<(u64, usize)>,
    /// Draws made when the last token was accepted.
    accepted_at: u64,
}

impl Dist {
    /// Draws as llama.cpp does from this seed. Every seed means itself, 0 and 2^32 - 1 too.
    pub fn new(seed: u32) -> Self {
        Dist { rng: Mt19937::new(seed), steps: Vec::new(), accepted_at: 0 }
    }

    /// Draws from a fresh seed, which [`Sampler::seed`] tells.
    pub fn from_entropy() -> Self {
        Dist::new(fresh_seed())
    }
}

/// A seed from the operating system's entropy (that of the standard library's hash keys).
pub fn fresh_seed() -> u32 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    hasher.write_u128(now.map_or(0, |d| d.as_nanos()));
    (hasher.finish() >> 32) as u32
}

impl Sampler for Dist {
    fn name(&self) -> &'static str {
        "dist"
    }

    fn describe(&self) -> String {
        format!("dist(seed={})", self.rng.seed())
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let draw = self.rng.uniform();
        let mut sum = 0.0f64;
        let probabilities = candidates.exponentials(|e| sum += f64::from(e));
        let target = sum * draw;
        let mut running = 0.0f64;
        let mut selected = None;
        for (p, at) in probabilities.iter_mut().zip(0..) {
            if selected.is_none() {
                running += f64::from(*p);
                // A draw of exactly 0 must not select what has no probability.
                if running >= target && *p > 0.0 {
                    selected = Some(at);
                }
            }
            *p = (f64::from(*p) / sum) as f32;
        }
        candidates.normalised();
        candidates.select(selected.unwrap_or(candidates.len() - 1));
    }

    fn accept(&mut self, _token: TokenId) {
        let drawn = self.rng.draws() - self.accepted_at;
        self.accepted_at += drawn;
        match self.steps.last_mut() {
            Some((draws, tokens)) if *draws == drawn => *tokens += 1,
            _ => self.steps.push((drawn, 1)),
        }
    }

    fn rollback(&mut self, mut n: usize) {
        while let (Some((draws, tokens)), 1..) = (self.steps.last_mut(), n) {
            let back = n.min(*tokens);
            self.accepted_at -= *draws * back as u64;
            *tokens -= back;
            n -= back;
            if *tokens == 0 {
                self.steps.pop();
            }
        }
        self.rng.seek(self.accepted_at);
    }

    fn forced(&mut self) {
        self.rng.uniform();
    }

    fn reset(&mut self) {
        self.rng.seek(0);
        self.steps.clear();
        self.accepted_at = 0;
    }

    fn selects(&self) -> bool {
        true
    }

    fn seed(&self) -> Option<u32> {
        Some(self.rng.seed())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}
