//! The parameters of a whole chain, with llama.cpp's names and defaults. Plain values, checked where a sampler is
//! built from them.

use super::dist::Dist;
use super::edt::Edt;
use super::rng::{fresh_seed, Generator, Seed};
use crate::{Result, TokenId};

/// What the presets and [`super::Chain::parse`] build their samplers from.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Seed of what draws; `None` takes fresh entropy, which [`super::Chain::seed`] tells.
    pub seed: Option<u64>,
    /// Generator of what draws.
    pub rng: Generator,
    /// Which of many sequences of one seed; only philox tells them apart.
    pub sequence: u32,
    /// At least this many candidates survive top_p, min_p and typ_p each.
    pub min_keep: usize,
    /// Best candidates kept; 0 or less: all.
    pub top_k: i32,
    /// Probability that top_p keeps; 1: all.
    pub top_p: f32,
    /// Part of the highest probability that min_p asks for; 0: nothing.
    pub min_p: f32,
    /// Probability that typ_p keeps; 1: all.
    pub typ_p: f32,
    /// Standard deviations below the best logit; 0 or less: off.
    pub top_n_sigma: f32,
    /// Temperature; 0 or less: greedy.
    pub temp: f32,
    /// Accepted tokens that the penalties look back at; 0 or less: off.
    pub penalty_last_n: i32,
    /// Repeat penalty; 1: off.
    pub penalty_repeat: f32,
    /// Frequency penalty; 0: off.
    pub penalty_freq: f32,
    /// Presence penalty; 0: off.
    pub penalty_present: f32,
    /// Tokens in a row that no_repeat_ngram lets come once; 0 or less: off.
    pub no_repeat_ngram: i32,
    /// Probability that epsilon_cutoff asks for; 0 or less: off.
    pub epsilon_cutoff: f32,
    /// The epsilon of eta_cutoff; 0 or less: off.
    pub eta_cutoff: f32,
    /// Part of the entropy that top_h keeps; 0 or less: off.
    pub top_h: f32,
    /// The tau of min_k.
    pub min_k: f32,
    /// Whether p_less is p-less-norm.
    pub p_less_norm: bool,
    /// How soon the temperature of edt falls with the entropy; 0: it stays at `temp`.
    pub edt_theta: f32,
    /// The n of edt.
    pub edt_n: f32,
    /// Additions to the logits of single tokens.
    pub logit_bias: Vec<(TokenId, f32)>,
}

impl Default for Params {
    /// llama.cpp's defaults; for samplers that it lacks those of their papers, or off.
    fn default() -> Self {
        Params {
            seed: None,
            rng: Generator::Mt19937,
            sequence: 0,
            min_keep: 0,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            typ_p: 1.0,
            top_n_sigma: -1.0,
            temp: 0.8,
            penalty_last_n: 64,
            penalty_repeat: 1.0,
            penalty_freq: 0.0,
            penalty_present: 0.0,
            no_repeat_ngram: 0,
            epsilon_cutoff: 0.0,
            eta_cutoff: 0.0,
            top_h: 0.4,
            min_k: 3.0,
            p_less_norm: false,
            edt_theta: 0.0,
            edt_n: Edt::N,
            logit_bias: Vec::new(),
        }
    }
}

impl Params {
    /// tsampler's defaults: llama.cpp's with a repeat penalty of 1.1.
    pub fn tsampler() -> Self {
        Params { penalty_repeat: 1.1, ..Params::default() }
    }

    /// transformers' defaults: top_k 50, temperature 1, penalties over all accepted tokens, everything else off.
    pub fn transformers() -> Self {
        Params {
            top_k: 50,
            top_p: 1.0,
            min_p: 0.0,
            top_h: 0.0,
            temp: 1.0,
            penalty_last_n: i32::MAX,
            ..Params::default()
        }
    }

    /// The same with a seed in any case, so that all that draws in a chain starts from one.
    pub(super) fn settled(&self) -> Params {
        Params { seed: self.seed.or_else(|| Some(u64::from(fresh_seed()))), ..self.clone() }
    }

    /// What drawing samplers start from.
    pub(super) fn seed(&self) -> Seed {
        let seed = self.seed.unwrap_or_else(|| u64::from(fresh_seed()));
        Seed { generator: self.rng, seed, sequence: self.sequence }
    }

    /// The `dist` that `seed` asks for.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] for a seed that the generator does not take.
    pub(super) fn dist(&self) -> Result<Dist> {
        Dist::new(self.seed())
    }
}
