//! The effect of each sampler of a chain in one step, found by comparing the candidates before and after it.

use crate::TokenId;
use crate::{Candidates, TokenArray};
use logitree_tokens::simd;

/// What one sampler did in one step. A candidate counts while its logit is above -inf.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The sampler's name.
    pub sampler: &'static str,
    /// Candidates before it.
    pub before: usize,
    /// Candidates after it.
    pub after: usize,
    /// Logits it changed, of those that stayed.
    pub changed: usize,
    /// Probability of the candidates it cut, under the logits before it: 0 to 1.
    pub mass_cut: f64,
    /// Of the tokens that are watched ([`Chain::apply_watching`](super::Chain::apply_watching)), those it cut.
    pub cut: Vec<TokenId>,
}

/// Candidates of any form, for reading one by one.
pub(super) trait EachCandidate {
    /// Calls `f` with the id and the logit of each.
    fn each(&self, f: &mut dyn FnMut(TokenId, f32));
}

impl EachCandidate for Candidates<'_> {
    fn each(&self, f: &mut dyn FnMut(TokenId, f32)) {
        self.for_each(f);
    }
}

impl EachCandidate for TokenArray {
    fn each(&self, f: &mut dyn FnMut(TokenId, f32)) {
        self.data.iter().for_each(|c| f(c.id, c.logit));
    }
}

/// The candidates above -inf before a sampler, by ascending id, to compare with those after it.
#[derive(Debug, Clone, Default)]
pub(super) struct EffectRecorder {
    before: Vec<(TokenId, f32)>,
    after: Vec<(TokenId, f32)>,
    scratch: Vec<f32>,
    /// Highest logit before, and the sum of exp(logit - highest).
    max: f32,
    sum: f64,
    watched: Vec<TokenId>,
}

impl EffectRecorder {
    /// Names in each effect which of these tokens it cut.
    pub(super) fn watch(&mut self, tokens: &[TokenId]) {
        self.watched.clear();
        self.watched.extend_from_slice(tokens);
    }

    /// Before the first sampler.
    pub(super) fn open(&mut self, c: &impl EachCandidate) {
        self.before.clear();
        c.each(&mut |id, x| {
            if x > f32::NEG_INFINITY {
                self.before.push((id, x));
            }
        });
        self.weigh();
    }

    fn weigh(&mut self) {
        self.before.sort_unstable_by_key(|b| b.0);
        self.scratch.clear();
        self.scratch.extend(self.before.iter().map(|b| b.1));
        self.max = simd::max(&self.scratch);
        self.sum = simd::sum_exp(&self.scratch, self.max);
    }

    /// The effect of a sampler that left the candidates as `c` (`None`: untouched).
    pub(super) fn effect(&mut self, sampler: &'static str, c: Option<&impl EachCandidate>) -> Effect {
        let before = self.before.len();
        let Some(c) = c else {
            return Effect { sampler, before, after: before, changed: 0, mass_cut: 0.0, cut: Vec::new() };
        };
        self.after.clear();
        self.scratch.clear();
        let (mut changed, mut next) = (0, 0);
        c.each(&mut |id, x| {
            if x == f32::NEG_INFINITY {
                return;
            }
            self.after.push((id, x));
            // Candidates usually come in the order they had.
            let at = if self.before.get(next).is_some_and(|b| b.0 == id) {
                Ok(next)
            } else {
                self.before.binary_search_by_key(&id, |b| b.0)
            };
            if let Ok(at) = at {
                next = at + 1;
                changed += usize::from(self.before[at].1 != x);
                self.scratch.push(self.before[at].1);
            }
        });
        let after = self.after.len();
        let mass_cut = if after == before {
            0.0
        } else {
            (1.0 - simd::sum_exp(&self.scratch, self.max) / self.sum).clamp(0.0, 1.0)
        };
        std::mem::swap(&mut self.before, &mut self.after);
        self.weigh();
        let has = |list: &[(TokenId, f32)], id| list.binary_search_by_key(&id, |b| b.0).is_ok();
        let cut = self.watched.iter().copied();
        let cut = cut.filter(|&id| has(&self.after, id) && !has(&self.before, id)).collect();
        Effect { sampler, before, after, changed, mass_cut, cut }
    }
}
