//! typ_p (locally typical sampling): keeps the candidates whose surprisal is nearest to the entropy.
//!
//! Meister, Pimentel, Wiher, Cotterell: "Locally Typical Sampling", TACL 2023. Output in typicality order. A
//! candidate at -inf has no surprisal and comes last (llama.cpp computes NaN from it).

use crate::reference::{libstdcxx, Reference, TokenArray, TokenData};
use crate::Result;
use crate::{arguments, check, Candidates, OnRejected, Sampler};

/// Keeps the most typical candidates until their probabilities exceed `p`, and at least `min_keep`.
#[derive(Debug, Clone, Copy)]
pub struct TypP {
    p: f32,
    min_keep: usize,
}

impl TypP {
    /// `p >= 1` keeps all.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `p` is not finite.
    pub fn new(p: f32, min_keep: usize) -> Result<Self> {
        check("typ_p", [p.into()])?;
        Ok(TypP { p, min_keep })
    }
}

arguments!(TypP, s => s.p, s.min_keep);

impl Sampler for TypP {
    fn name(&self) -> &'static str {
        "typ_p"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.is_noop() {
            return;
        }
        if !candidates.is_short() {
            return candidates.keep_typical(f64::from(self.p), self.min_keep.max(1));
        }
        candidates.sort();
        let mut keys = candidates.take_scratch();
        let mut sum = 0.0f32;
        let probabilities = candidates.exponentials(|e| sum += e);
        let mut entropy = 0.0f32;
        for p in probabilities.iter_mut() {
            *p /= sum;
            if *p > 0.0 {
                entropy += -*p * p.ln();
            }
        }
        keys.extend(probabilities.iter().zip(0u64..).map(|(&p, at)| {
            let distance = if p > 0.0 { (-p.ln() - entropy).abs() } else { f32::INFINITY };
            u64::from(distance.to_bits()) << 32 | at
        }));
        // Non-negative floats sort as their bits do.
        keys.sort_unstable();
        let mut cumulative = 0.0f32;
        let last = keys.iter().zip(1..).position(|(&key, kept): (_, usize)| {
            cumulative += probabilities[key as u32 as usize];
            cumulative > self.p && kept >= self.min_keep
        });
        if let Some(last) = last {
            keys.truncate(last + 1);
        }
        candidates.rearrange(keys);
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn is_noop(&self) -> bool {
        self.p >= 1.0
    }
}

impl Reference for TypP {
    /// Where llama.cpp computes NaN, because a candidate has no probability, the candidate counts as the least
    /// typical instead.
    fn apply_reference(&mut self, array: &mut TokenArray) {
        if self.is_noop() {
            return;
        }
        array.softmax(true);
        let mut entropy = 0.0f32;
        for c in array.data.iter().filter(|c| c.p > 0.0) {
            entropy += -c.p * c.p.ln();
        }
        let mut order: Vec<(f32, TokenData)> = array
            .data
            .iter()
            .map(|c| (if c.p > 0.0 { (-c.p.ln() - entropy).abs() } else { f32::INFINITY }, *c))
            .collect();
        libstdcxx::sort(&mut order, |a, b| a.0 < b.0);
        let mut cumulative = 0.0f32;
        let last = order.iter().zip(1..).position(|((_, c), kept): (_, usize)| {
            cumulative += c.p;
            cumulative > self.p && kept >= self.min_keep
        });
        order.truncate(last.map_or(order.len(), |last| last + 1));
        array.data.clear();
        array.data.extend(order.iter().map(|o| o.1));
        array.sorted = false;
    }
}
