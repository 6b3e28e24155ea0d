//! What a step's distributions were, before the chain and after it: entropy, and the picked token's log-probability.
//!
//! Off, it costs nothing; on, the sums it needs are the ones that samplers use, taken once. It refuses to know how
//! samplers change what it measures. The plain functions over any logits are in the room `metrics`.

use super::{Candidates, Floats};
use crate::kernel::{self, BLOCK};
use crate::mask::Legal;
use crate::TokenId;

/// Both levels of one step, in nats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measures {
    /// The model's: over all finite logits as they came, illegal ones too.
    pub model: Level,
    /// The sampling distribution: over what the chain left.
    pub sampling: Level,
}

/// One distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Its entropy, at least 0.
    pub entropy: f64,
    /// log p of the picked token, at most 0.
    pub log_probability: f64,
}

/// A model's distribution, measured before the chain changes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    entropy: f64,
    log_sum: f64,
}

impl Model {
    /// Measures `logits`; where all are legal, by the sums that the candidates keep for their samplers.
    pub(super) fn measure(logits: Floats<'_>, legal: Legal<'_>, candidates: &mut Candidates<'_>) -> Model {
        if legal == Legal::All {
            return Model { entropy: candidates.entropy(), log_sum: candidates.log_sum() };
        }
        let mut buffer = [0.0; BLOCK];
        let blocks = logits.len().div_ceil(BLOCK);
        let finite = |x: &f32| x.is_finite();
        let highest = |block: &[f32]| block.iter().copied().filter(finite).fold(f32::NEG_INFINITY, f32::max);
        let max = (0..blocks).fold(f32::NEG_INFINITY, |m, at| m.max(highest(logits.block(at, &mut buffer))));
        let (mut sum, mut dot) = (0.0, 0.0);
        for at in 0..blocks {
            let (s, d) = kernel::sum_exp_dot(logits.block(at, &mut buffer), max);
            sum += s;
            dot += d;
        }
        Model { entropy: (sum.ln() - dot / sum).max(0.0), log_sum: f64::from(max) + sum.ln() }
    }

    /// Both levels, once the chain has left `candidates` and picked `token`.
    pub(super) fn with(
        self,
        logits: Floats<'_>,
        token: TokenId,
        candidates: &mut Candidates<'_>,
    ) -> Measures {
        let raw = logits.get(token as usize).unwrap_or(f32::NEG_INFINITY);
        let model =
            Level { entropy: self.entropy, log_probability: (f64::from(raw) - self.log_sum).min(0.0) };
        let entropy = candidates.entropy();
        let picked =
            candidates.selected().and_then(|at| candidates.logit_at(at)).unwrap_or(f32::NEG_INFINITY);
        let log_probability = (f64::from(picked) - candidates.log_sum()).min(0.0);
        Measures { model, sampling: Level { entropy, log_probability } }
    }
}
