//! What a step records beside its token: the model's view of it, the likeliest alternatives, and what removed each.

use std::time::Instant;

use crate::mask::AllowedTokens;
use crate::metrics::LogProbabilities;
use crate::sampling::{Candidates, Chain, Effect, Floats};
use crate::trace::{Alternative, Likelihoods, Model, Source, Step};
use crate::trace::{ALLOWED_KEPT, CANDIDATES_KEPT, CONSTRAINT};
use crate::{metrics, TokenId};

/// How likely the token was that a chain has picked, or that was the only one allowed.
pub(super) fn likelihoods(logits: Floats<'_>, chain: &Chain, token: TokenId, n: usize) -> Likelihoods {
    let left = match chain.likeliest() {
        Some((own, top)) => LogProbabilities { token: own, top: top.to_vec() },
        None => LogProbabilities { token: 0.0, top: [(token, 0.0)].into_iter().take(n).collect() },
    };
    Likelihoods { model: metrics::log_probabilities(logits, token, n), left }
}

impl Step {
    /// A step without logits.
    pub(super) fn plain(
        token: TokenId,
        source: Source,
        allowed: usize,
        allowed_tokens: Option<Vec<TokenId>>,
        started: Instant,
    ) -> Self {
        Step {
            token,
            source,
            allowed,
            allowed_tokens,
            model: None,
            probability: None,
            candidates: Vec::new(),
            alternatives: Vec::new(),
            temperature: None,
            effects: Vec::new(),
            mass_allowed: None,
            mask_micros: 0.0,
            micros: micros(started),
        }
    }
}

/// Microseconds since then.
pub(super) fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

/// Probability of the allowed tokens together under the logits; `None` if these have no finite sum.
pub(super) fn mass(logits: Floats<'_>, allowed: AllowedTokens<'_>) -> Option<f64> {
    let all = metrics::log_sum_exp(logits);
    let of = |ids: &mut dyn Iterator<Item = TokenId>| {
        let kept: Vec<f32> = ids.filter_map(|id| logits.get(id as usize)).collect();
        (metrics::log_sum_exp(&kept[..]) - all).exp().min(1.0)
    };
    all.is_finite().then(|| match allowed {
        AllowedTokens::All => 1.0,
        AllowedTokens::Ids(ids) => of(&mut ids.iter().copied()),
        AllowedTokens::Mask(words) => of(&mut crate::mask::ids(words)),
    })
}

/// These tokens, each once, by descending probability under the logits: what is `left` of them after the chain (`None`:
/// it did not run), and what cut the others. Tokens that only the samplers know have survived them.
pub(super) fn alternatives(
    logits: Floats<'_>,
    mut tokens: Vec<TokenId>,
    banned: &[TokenId],
    effects: &[Effect],
    left: Option<&Candidates<'_>>,
) -> Vec<Alternative> {
    tokens.sort_unstable();
    tokens.dedup();
    let mut logs = Vec::with_capacity(tokens.len());
    metrics::log_softmax_of(logits, &tokens, &mut logs);
    let mut after = vec![None; tokens.len()];
    if let Some(left) = left {
        for (&id, &p) in left.ids().iter().zip(left.probabilities()) {
            if let Ok(at) = tokens.binary_search(&id) {
                after[at] = Some(p);
            }
        }
    }
    let cut_by = |token: TokenId| match effects.iter().rev().find(|e| e.cut.contains(&token)) {
        Some(effect) => Some(effect.sampler),
        None => banned.contains(&token).then_some(CONSTRAINT),
    };
    let mut made: Vec<Alternative> = (tokens.iter().zip(logs).zip(after))
        .map(|((&token, log), left)| {
            let cut_by = if left.is_some() { None } else { cut_by(token) };
            Alternative { token, model: log.exp(), left, cut_by }
        })
        .collect();
    made.sort_by(|a, b| b.model.total_cmp(&a.model));
    made
}

/// The ids of a small allowed tokens, for the record.
pub(super) fn few(allowed: AllowedTokens<'_>) -> Option<Vec<TokenId>> {
    match allowed {
        AllowedTokens::Ids(ids) if ids.len() <= ALLOWED_KEPT => Some(ids.to_vec()),
        _ => None,
    }
}

/// What the chain left: the token's probability and the likeliest candidates (equal ones in the chain's order).
pub(super) fn chain_view(left: &Candidates<'_>, token: TokenId) -> (Option<f64>, Vec<(TokenId, f32)>) {
    let mut pairs: Vec<(TokenId, f32)> =
        left.ids().iter().copied().zip(left.probabilities().iter().copied()).collect();
    let own = pairs.iter().find(|&&(id, _)| id == token).map(|&(_, p)| f64::from(p));
    pairs.sort_by(|a, b| b.1.total_cmp(&a.1));
    pairs.truncate(CANDIDATES_KEPT);
    (own, pairs)
}

/// The model's own view of a step; `None` if the logits have no finite sum (a step by force looks at no logits).
pub(super) fn model_view(logits: Floats<'_>, token: TokenId) -> Option<Model> {
    let surprisal = metrics::surprisal(logits, token, metrics::Base::Nats);
    let entropy = metrics::entropy(logits, metrics::Base::Nats);
    entropy.is_finite().then(|| Model { probability: (-surprisal).exp(), surprisal, entropy })
}
