//! Plain measures of a distribution: log-sum-exp, surprisal, entropy, perplexity, top candidates.
//!
//! Two levels: over the model's logits (the whole vocabulary) and over what a chain left (ids and logits). Only finite
//! logits count. Without an answer (no finite logit, an id out of range, a picked logit that is not finite) the result
//! is +inf, never an error and never NaN.
//!
//! ```
//! use logitree_sampling::metrics::{entropy, surprisal, Base};
//!
//! let logits = [2.0, 2.0, f32::NEG_INFINITY];
//! assert_eq!(entropy(&logits, Base::Bits), 1.0);
//! assert!((surprisal(&logits, 1, Base::Nats) - 2f64.ln()).abs() < 1e-12);
//! assert_eq!(surprisal(&logits, 2, Base::Nats), f64::INFINITY);
//! ```

mod perplexity;

use logitree_tokens::simd::{self, Best, Floats, BLOCK};
use logitree_tokens::TokenId;
pub use perplexity::{PerplexityGate, RollingPerplexity};

/// The unit of surprisal and entropy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Base {
    /// Natural logarithm.
    #[default]
    Nats,
    /// Logarithm to base 2.
    Bits,
}

impl Base {
    fn of_nats(self, nats: f64) -> f64 {
        match self {
            Base::Nats => nats,
            Base::Bits => nats / std::f64::consts::LN_2,
        }
    }
}

/// log(sum(exp(logits))) over the finite logits, in nats; -inf if there are none. Never overflows.
pub fn log_sum_exp<'l>(logits: impl Into<Floats<'l>>) -> f64 {
    simd::log_sum_exp(logits.into())
}

/// How surprising `id` is under `logits`: -log p, at least 0.
pub fn surprisal<'l>(logits: impl Into<Floats<'l>>, id: TokenId, base: Base) -> f64 {
    let logits = logits.into();
    surprisal_at(logits, logits.get(id as usize), base)
}

/// How surprising `id` is among the candidates that a chain left; 0 if it is the only one, +inf if it is not
/// among them. `ids` and `logits` are of one length.
pub fn surprisal_among<'l>(ids: &[TokenId], logits: impl Into<Floats<'l>>, id: TokenId, base: Base) -> f64 {
    let logits = logits.into();
    let Some(at) = ids.iter().position(|&x| x == id) else { return f64::INFINITY };
    if ids.len() == 1 {
        return 0.0;
    }
    surprisal_at(logits, logits.get(at), base)
}

fn surprisal_at(logits: Floats<'_>, picked: Option<f32>, base: Base) -> f64 {
    match picked.filter(|z| z.is_finite()) {
        Some(z) => base.of_nats((simd::log_sum_exp(logits) - f64::from(z)).max(0.0)),
        None => f64::INFINITY,
    }
}

/// The entropy of `logits`, at least 0; +inf if none is finite.
pub fn entropy<'l>(logits: impl Into<Floats<'l>>, base: Base) -> f64 {
    // log Z - sum p z, both shifted by the maximum.
    let sums = simd::finite_sums(logits.into());
    sums.map_or(f64::INFINITY, |(_, sum, dot)| base.of_nats((sum.ln() - dot / sum).max(0.0)))
}

/// Appends log p under `logits`, in nats, of each of `ids`; -inf for an id out of range or a logit that is not
/// finite.
pub fn log_softmax_of<'l>(logits: impl Into<Floats<'l>>, ids: &[TokenId], out: &mut Vec<f64>) {
    let logits = logits.into();
    let log_sum = log_sum_exp(logits);
    out.extend(ids.iter().map(|&id| {
        let z = logits.get(id as usize).filter(|z| z.is_finite());
        z.map_or(f64::NEG_INFINITY, |z| (f64::from(z) - log_sum).min(0.0))
    }));
}

/// One of the best candidates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Top {
    /// The token.
    pub id: TokenId,
    /// Its logit.
    pub logit: f32,
    /// Its probability under all logits.
    pub probability: f64,
}

/// The `n` best finite logits, descending, equal ones by id, with their probabilities. Takes one pass and a heap
/// of `n`.
pub fn top_candidates<'l>(logits: impl Into<Floats<'l>>, n: usize) -> Vec<Top> {
    let logits = logits.into();
    let log_sum = log_sum_exp(logits);
    let top = |(logit, id)| Top { id, logit, probability: (f64::from(logit) - log_sum).exp() };
    best(logits, n).map(top).collect()
}

/// What a distribution says of one token, and its likeliest tokens. In nats.
#[derive(Debug, Clone, PartialEq)]
pub struct LogProbabilities {
    /// log p of the token, at most 0; -inf if it cannot come.
    pub token: f64,
    /// The likeliest tokens with their log p, descending, equal ones by id.
    pub top: Vec<(TokenId, f64)>,
}

/// log p of `id` and of the `n` likeliest tokens under `logits`: [`log_softmax_of`] and [`top_candidates`] with one sum.
pub fn log_probabilities<'l>(logits: impl Into<Floats<'l>>, id: TokenId, n: usize) -> LogProbabilities {
    let logits = logits.into();
    let log_sum = log_sum_exp(logits);
    let log = |x: f32| (f64::from(x) - log_sum).min(0.0);
    let own = logits.get(id as usize).filter(|x| x.is_finite());
    LogProbabilities {
        token: own.map_or(f64::NEG_INFINITY, log),
        top: best(logits, n).map(|(x, id)| (id, log(x))).collect(),
    }
}

/// The `n` best finite logits with their ids, descending, equal ones by id.
fn best(logits: Floats<'_>, n: usize) -> impl Iterator<Item = (f32, TokenId)> {
    let mut best = Best::new(n.min(logits.len()));
    if n > 0 {
        let mut maxima = vec![0.0; logits.len().div_ceil(BLOCK)];
        simd::block_maxima(logits, &mut maxima);
        let mut buffer = [0.0; BLOCK];
        for (block, &max) in maxima.iter().enumerate() {
            if max > best.bar() {
                let ids = (block * BLOCK) as TokenId..;
                for (&x, id) in logits.block(block, &mut buffer).iter().zip(ids) {
                    best.add(x, id);
                }
            }
        }
    }
    best.sorted()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_has_no_answer_is_infinite() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        for logits in [&[][..], &[-inf, -inf], &[nan], &[inf]] {
            assert_eq!(surprisal(logits, 0, Base::Nats), f64::INFINITY, "{logits:?}");
            assert_eq!(entropy(logits, Base::Nats), f64::INFINITY, "{logits:?}");
            assert!(top_candidates(logits, 3).is_empty());
        }
        assert_eq!(surprisal(&[1.0, 2.0], 2, Base::Nats), f64::INFINITY);
        assert_eq!(surprisal_among(&[4, 9], &[1.0, 2.0], 5, Base::Nats), f64::INFINITY);
        assert_eq!(surprisal_among(&[4], &[1.0], 4, Base::Nats), 0.0);
        // Beside NaN and +inf the finite ones count alone.
        assert_eq!(log_sum_exp(&[nan, inf, 3.0, -inf]), 3.0);
    }

    proptest! {
        #[test]
        fn equal_to_the_plain_formulas(
            logits in prop::collection::vec(prop_oneof![9 => -40f32..40f32, 1 => Just(f32::NEG_INFINITY)], 1..600),
            pick in 0usize..600,
            n in 0usize..20,
        ) {
            prop_assume!(logits.iter().any(|x| x.is_finite()));
            let finite: Vec<f64> = logits.iter().filter(|x| x.is_finite()).map(|&x| f64::from(x)).collect();
            let max = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let log_sum = max + finite.iter().map(|z| (z - max).exp()).sum::<f64>().ln();
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-5 * (1.0 + b.abs()) || a == b;
            prop_assert!(near(log_sum_exp(&logits), log_sum));
            let h: f64 = finite.iter().map(|z| (z - log_sum).exp() * (log_sum - z)).sum();
            prop_assert!(near(entropy(&logits, Base::Nats), h), "{} {}", entropy(&logits, Base::Nats), h);
            let pick = pick % logits.len();
            let z = f64::from(logits[pick]);
            let s = if z.is_finite() { log_sum - z } else { f64::INFINITY };
            prop_assert!(near(surprisal(&logits, pick as u32, Base::Nats), s));
            let mut order: Vec<usize> = (0..logits.len()).filter(|&i| logits[i].is_finite()).collect();
            order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
            let top: Vec<usize> = top_candidates(&logits, n).iter().map(|t| t.id as usize).collect();
            order.truncate(n);
            let LogProbabilities { token, top: logs } = log_probabilities(&logits, pick as u32, n);
            prop_assert!(near(token, -s));
            prop_assert!(logs.iter().all(|&(id, log)| near(log, f64::from(logits[id as usize]) - log_sum)));
            prop_assert_eq!(&logs.iter().map(|&(id, _)| id as usize).collect::<Vec<_>>(), &top);
            prop_assert_eq!(top, order);
        }
    }
}
