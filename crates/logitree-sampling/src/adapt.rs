//! Rules that choose a chain's parameters for each step from the distribution before its first sampler.
//!
//! The slow version that a rule must equal: build, for each token, a chain of these parameters in the same state.

mod burst;
mod entropy_rule;

pub use burst::Burst;
pub use entropy_rule::EntropyRule;

use std::sync::Arc;

use super::distribution::Weight;
use super::{registry, Candidates, StateReader, StateWriter};
use crate::{Error, ErrorKind, Result};

/// What a rule receives: figures of the allowed logits before the first sampler, steering included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    /// Its entropy in nats.
    pub entropy: f64,
    /// The probability of the most likely token.
    pub top_p: f64,
}

impl Distribution {
    /// At least one candidate must be above -inf.
    pub fn of(candidates: &Candidates<'_>) -> Distribution {
        let weight = Weight::of(candidates);
        Distribution { entropy: weight.entropy(), top_p: 1.0 / weight.sum }
    }
}

/// A parameter by its name in [`super::Params`], and its value.
pub type Setting = (Arc<str>, f64);

/// Picks parameters for each step.
///
/// `settings` must depend only on the distribution and on the accepted tokens, and `rollback` must undo `accept`;
/// otherwise a chain that is rolled back picks other tokens. The rule is not called where one token alone is a
/// candidate.
pub trait Adapt: std::any::Any + Send + Sync {
    /// The rule with its numbers.
    fn describe(&self) -> String;

    /// The settings for the coming step. It may be asked again before a token is accepted.
    ///
    /// # Errors
    /// Its own; the step fails with them.
    fn settings(&mut self, seen: Distribution) -> Result<&[Setting]>;

    /// The settings that it may return, where they are known in advance; the chain checks them when it gets the rule.
    fn declared(&self) -> Vec<&[Setting]> {
        Vec::new()
    }

    /// Whether it calls code of the host program, which must stay on the caller's thread.
    fn is_foreign(&self) -> bool {
        false
    }

    /// This step has one candidate: the rule is not called, and the result of an earlier call for this step is void.
    fn forced(&mut self) {}

    /// Records that a token was accepted.
    fn accept(&mut self) {}

    /// Forgets the last `n` accepted tokens.
    fn rollback(&mut self, _n: usize) {}

    /// Returns to the initial state.
    fn reset(&mut self) {}

    /// An independent copy in the same state.
    fn clone_box(&self) -> Box<dyn Adapt>;

    /// Writes its state: all that [`Adapt::load`] needs beside its numbers.
    fn save(&self, _state: &mut StateWriter) {}

    /// Takes the state that a rule of the same numbers saved.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if the words were not saved by such a rule.
    fn load(&mut self, _state: &mut StateReader<'_>) -> Result<()> {
        Ok(())
    }
}

impl Clone for Box<dyn Adapt> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

impl std::fmt::Debug for dyn Adapt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Settings that name each parameter once, by its keyword, with a finite value.
///
/// # Errors
/// [`ErrorKind::Sampling`], naming the parameter.
pub fn checked_settings(settings: Vec<Setting>) -> Result<Vec<Setting>> {
    if let Some((name, value)) = settings.iter().find(|(_, value)| !value.is_finite()) {
        return Err(wrong(format!("the setting of {name} is {value}"), "a setting is a finite number"));
    }
    by_keyword(settings)
}

/// Settings that name each parameter once, by its keyword.
///
/// # Errors
/// [`ErrorKind::Sampling`] if one is named twice, as by its keyword and an alias.
pub(super) fn by_keyword(mut settings: Vec<Setting>) -> Result<Vec<Setting>> {
    for at in 0..settings.len() {
        let (former, rest) = settings.split_at_mut(at);
        let name = &mut rest[0].0;
        let keyword = registry::keyword(name);
        if keyword != &**name {
            *name = keyword.into();
        }
        if former.iter().any(|setting| setting.0 == *name) {
            return Err(wrong(format!("{name} is set twice"), "name each parameter once"));
        }
    }
    Ok(settings)
}

fn wrong(message: String, help: &str) -> Error {
    Error::new(ErrorKind::Sampling, message).help(help)
}

/// `{top_k: 40, temp: 0.8}`.
pub(super) fn show(settings: &[Setting]) -> String {
    let each: Vec<String> = settings.iter().map(|(name, value)| format!("{name:?}: {value}")).collect();
    format!("{{{}}}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{self, Base};
    use logitree_tokens::mask::AllowedTokens;

    #[test]
    fn the_distribution_is_what_the_metrics_say() {
        for n in [1usize, 2, 255, 256, 257, 1000] {
            let logits: Vec<f32> = (0..n)
                .map(|i| if i % 7 == 3 { f32::NEG_INFINITY } else { (i * 37 % 101) as f32 / 9.0 })
                .collect();
            let seen = Distribution::of(
                &Candidates::begin(Candidates::default(), &logits, AllowedTokens::All).unwrap(),
            );
            assert!((seen.entropy - metrics::entropy(&logits, Base::Nats)).abs() < 1e-6, "{n}: {seen:?}");
            let top = metrics::top_candidates(&logits, 1)[0].probability;
            assert!((seen.top_p - top).abs() < 1e-6, "{n}: {seen:?} {top}");
        }
    }
}
