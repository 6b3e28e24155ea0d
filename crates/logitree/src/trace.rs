//! The record of the steps: what was possible, what was chosen, how sure the model was. Plain values.

use std::fmt;

use crate::metrics::LogProbabilities;
use crate::sampling::Effect;
use crate::TokenId;

/// How many allowed tokens a step keeps by name; of larger sets it keeps the number.
pub const ALLOWED_KEPT: usize = 256;

/// How many of the candidates that survived the chain a step keeps.
pub const CANDIDATES_KEPT: usize = 5;

/// How many of the model's likeliest tokens are among a step's alternatives.
pub const ALTERNATIVES_KEPT: usize = 8;

/// The name of the constraint where an alternative says what cut it.
pub const CONSTRAINT: &str = "constraint";

/// One decoded token and what is known about how it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The token.
    pub token: TokenId,
    /// How it came.
    pub source: Source,
    /// Number of allowed tokens at this step.
    pub allowed: usize,
    /// The allowed tokens, ascending, where the constraint lists at most [`ALLOWED_KEPT`] of them.
    pub allowed_tokens: Option<Vec<TokenId>>,
    /// What the logits said; `None` when no logits were looked at.
    pub model: Option<Model>,
    /// Probability of the token after the chain; `None` when the chain did not run.
    pub probability: Option<f64>,
    /// The likeliest candidates after the chain, at most [`CANDIDATES_KEPT`], with their probabilities there.
    pub candidates: Vec<(TokenId, f32)>,
    /// The model's [`ALTERNATIVES_KEPT`] likeliest tokens, the `candidates` and the token itself, each once, by
    /// descending probability of the model; empty when no logits were looked at.
    pub alternatives: Vec<Alternative>,
    /// The temperature that the constraint asked for, a grammar's rule; `None`: none, or the chain did not run.
    pub temperature: Option<f32>,
    /// What each sampler did, in chain order; empty when the chain did not run.
    pub effects: Vec<Effect>,
    /// Probability of the allowed tokens together, by the model's own distribution; `None` when no logits were looked
    /// at.
    pub mass_allowed: Option<f64>,
    /// Of `micros`, what it took to find the allowed tokens.
    pub mask_micros: f64,
    /// Wall-clock time of the step in microseconds, the time spent on this record not counted.
    pub micros: f64,
}

/// A token that could have come, or the one that did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alternative {
    /// The token.
    pub token: TokenId,
    /// Its probability by the model's own distribution.
    pub model: f64,
    /// Its probability after the chain; `None` if it was cut, or the chain did not run.
    pub left: Option<f32>,
    /// What cut it: [`CONSTRAINT`], "steering" or a sampler's name.
    pub cut_by: Option<&'static str>,
}

/// How a token came to be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Picked by the chain.
    Sampled,
    /// The only allowed token: no choice was made.
    Forced,
    /// Handed in by the caller.
    External,
}

impl Source {
    /// The lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Sampled => "sampled",
            Source::Forced => "forced",
            Source::External => "external",
        }
    }
}

/// What the model's own distribution (softmax of the unchanged logits over the whole vocabulary) says of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// Probability of the token.
    pub probability: f64,
    /// `-ln probability`, in nats.
    pub surprisal: f64,
    /// Entropy of the distribution, in nats.
    pub entropy: f64,
}

/// How likely the token of a step was, and which were the likeliest.
#[derive(Debug, Clone, PartialEq)]
pub struct Likelihoods {
    /// By the model's own distribution.
    pub model: LogProbabilities,
    /// By what the constraint and the chain left, at the chain's temperature.
    pub left: LogProbabilities,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {} {} of {} allowed", self.token, self.source.name(), self.allowed)?;
        if let Some(model) = &self.model {
            write!(f, ", model p {:.4}, entropy {:.3} nats", model.probability, model.entropy)?;
        }
        if let Some(temperature) = self.temperature {
            write!(f, ", at temperature {temperature}")?;
        }
        if let Some(p) = self.probability {
            write!(f, ", p {p:.4}")?;
        }
        write!(f, ", {:.1} us", self.micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_prints_what_is_known() {
        let mut step = Step {
            token: 7,
            source: Source::Forced,
            allowed: 1,
            allowed_tokens: None,
            model: None,
            probability: None,
            candidates: Vec::new(),
            alternatives: Vec::new(),
            temperature: None,
            effects: Vec::new(),
            mass_allowed: None,
            mask_micros: 0.0,
            micros: 0.25,
        };
        assert_eq!(step.to_string(), "token 7 forced of 1 allowed, 0.2 us");
        step.source = Source::Sampled;
        step.model = Some(Model { probability: 0.5, surprisal: 0.693, entropy: 1.0 });
        step.probability = Some(1.0);
        let text = "token 7 sampled of 1 allowed, model p 0.5000, entropy 1.000 nats, p 1.0000, 0.2 us";
        assert_eq!(step.to_string(), text);
        step.temperature = Some(0.25);
        assert_eq!(step.to_string(), text.replace(", p 1", ", at temperature 0.25, p 1"));
    }
}
