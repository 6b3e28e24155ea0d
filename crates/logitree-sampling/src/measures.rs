//! Measures of a step's distributions before and after the chain: entropy, and the picked token's log-probability.
//!
//! Off, it costs nothing. On, it computes sums of its own, so that measuring never changes what is drawn. The plain
//! functions over any logits are in `metrics`.

use super::distribution::Weight;
use super::{Candidates, Floats};
use logitree_tokens::mask::AllowedTokens;
use logitree_tokens::simd::{self, Best};
use logitree_tokens::TokenId;

/// Both levels of one step, in nats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measures {
    /// The model's: over all finite logits before the chain, including tokens that are not allowed.
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
    /// Measures `logits`, which the candidates are where all are allowed.
    pub(super) fn measure(
        logits: Floats<'_>,
        allowed: AllowedTokens<'_>,
        candidates: &Candidates<'_>,
    ) -> Model {
        if allowed == AllowedTokens::All {
            let weight = Weight::of(candidates);
            return Model { entropy: weight.entropy(), log_sum: weight.log_sum() };
        }
        // Where any is allowed, one of them is finite.
        let (max, sum, dot) = simd::finite_sums(logits).unwrap_or((f64::NEG_INFINITY, 1.0, 0.0));
        Model { entropy: (sum.ln() - dot / sum).max(0.0), log_sum: max + sum.ln() }
    }

    /// Both levels, once the chain has left `candidates` and picked `token`.
    pub(super) fn with(self, logits: Floats<'_>, token: TokenId, candidates: &Candidates<'_>) -> Measures {
        let raw = logits.get(token as usize).unwrap_or(f32::NEG_INFINITY);
        let model =
            Level { entropy: self.entropy, log_probability: (f64::from(raw) - self.log_sum).min(0.0) };
        let weight = Weight::of(candidates);
        let picked =
            candidates.selected().and_then(|at| candidates.logit_at(at)).unwrap_or(f32::NEG_INFINITY);
        let log_probability = (f64::from(picked) - weight.log_sum()).min(0.0);
        Measures { model, sampling: Level { entropy: weight.entropy(), log_probability } }
    }
}

/// log p, in nats, of the selected candidate, and of the `n` likeliest with their ids, descending, equal ones in the order
/// of the candidates.
pub(super) fn likeliest(candidates: &Candidates<'_>, n: usize) -> (f64, Vec<(TokenId, f64)>) {
    let log_sum = Weight::of(candidates).log_sum();
    let log = |x: f32| (f64::from(x) - log_sum).min(0.0);
    let picked = candidates.selected().and_then(|at| candidates.logit_at(at)).unwrap_or(f32::NEG_INFINITY);
    let mut best = Best::new(n.min(candidates.len()));
    candidates.for_each_block(|first, block| {
        if simd::max(block) > best.bar() {
            for (&x, at) in block.iter().zip((first * simd::BLOCK) as u32..) {
                best.add(x, at);
            }
        }
    });
    let top = best.sorted().filter_map(|(x, at)| Some((candidates.id_at(at as usize)?, log(x))));
    (log(picked), top.collect())
}
