//! The parameters of a whole chain, with llama.cpp's names and defaults. Plain values, checked where a sampler is
//! built from them.

use super::infill::SharedPieces;
use super::rng::{fresh_seed, Generator, Seed};
use super::{
    AdaptiveP, Dist, Dry, Edt, Infill, Mirostat, MirostatV2, Penalties, Sampler, Temp, TempExt, Xtc,
};
use crate::{Error, ErrorKind, Result, TokenId};

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
    /// Probability with which xtc strikes; 0: off.
    pub xtc_probability: f32,
    /// Probability from which on xtc removes candidates; above 0.5: off.
    pub xtc_threshold: f32,
    /// Temperature; 0 or less: greedy.
    pub temp: f32,
    /// How far the temperature may go from there with the entropy; 0: not at all.
    pub dynatemp_range: f32,
    /// How the entropy is bent before it sets the temperature.
    pub dynatemp_exponent: f32,
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
    /// What DRY takes from a token that goes on with a repetition of the allowed length; 0: off.
    pub dry_multiplier: f32,
    /// By how much more with each token of a longer one; below 1: off.
    pub dry_base: f32,
    /// Length of repetition from which on DRY penalises.
    pub dry_allowed_length: i32,
    /// Accepted tokens that DRY looks back at; 0 or less: off.
    pub dry_penalty_last_n: i32,
    /// Token sequences that no repetition goes back over.
    pub dry_breakers: Vec<Vec<TokenId>>,
    /// The probability that adaptive_p aims at; below 0: it only draws.
    pub adaptive_target: f32,
    /// How much of adaptive_p's running mean stays with each token.
    pub adaptive_decay: f32,
    /// 1 or 2: that mirostat instead of the samplers and dist; 0: neither.
    pub mirostat: i32,
    /// The surprisal, in bits, that mirostat aims at.
    pub mirostat_tau: f32,
    /// How much of the error mirostat corrects with a token.
    pub mirostat_eta: f32,
    /// Size of the vocabulary, a number of mirostat 1's formula; `None`: the number of candidates.
    pub n_vocab: Option<i32>,
    /// What infill asks about tokens.
    pub pieces: Option<SharedPieces>,
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
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            temp: 0.8,
            dynatemp_range: 0.0,
            dynatemp_exponent: 1.0,
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
            dry_multiplier: 0.0,
            dry_base: 1.75,
            dry_allowed_length: 2,
            dry_penalty_last_n: 64,
            dry_breakers: Vec::new(),
            adaptive_target: -1.0,
            adaptive_decay: 0.9,
            mirostat: 0,
            mirostat_tau: 5.0,
            mirostat_eta: 0.1,
            n_vocab: None,
            pieces: None,
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
    /// [`ErrorKind::Sampling`] for a seed that the generator does not take. The others: for what their own
    /// constructors refuse.
    pub(super) fn dist(&self) -> Result<Dist> {
        Dist::new(self.seed())
    }

    pub(super) fn penalties(&self) -> Result<Penalties> {
        Penalties::new(self.penalty_last_n, self.penalty_repeat, self.penalty_freq, self.penalty_present)
    }

    pub(super) fn dry(&self) -> Result<Dry> {
        let (multiplier, base, allowed) = (self.dry_multiplier, self.dry_base, self.dry_allowed_length);
        Dry::new(multiplier, base, allowed, self.dry_penalty_last_n, &self.dry_breakers)
    }

    pub(super) fn xtc(&self) -> Result<Xtc> {
        Xtc::new(self.xtc_probability, self.xtc_threshold, self.min_keep, self.seed())
    }

    /// What llama.cpp calls temperature: the dynamic one if it has a range.
    pub(super) fn temperature(&self) -> Result<Box<dyn Sampler>> {
        // Built in any case, so that wrong parameters are wrong in any case.
        let dynamic = TempExt::new(self.temp, self.dynatemp_range, self.dynatemp_exponent)?;
        if self.dynatemp_range > 0.0 {
            return Ok(Box::new(dynamic));
        }
        Ok(Box::new(Temp::new(self.temp)?))
    }

    pub(super) fn infill(&self) -> Result<Infill> {
        let pieces = self.pieces.clone().ok_or_else(|| {
            Error::new(ErrorKind::Sampling, "infill needs to know the tokens").help("pass vocabulary=...")
        })?;
        Ok(Infill::new(pieces))
    }

    pub(super) fn adaptive_p(&self) -> Result<AdaptiveP> {
        AdaptiveP::new(self.adaptive_target, self.adaptive_decay, self.seed())
    }

    /// Mirostat 1 as llama.cpp's programs build it, with 100 candidates for the exponent.
    pub(super) fn mirostat_v1(&self) -> Result<Mirostat> {
        Mirostat::new(self.n_vocab, self.mirostat_tau, self.mirostat_eta, 100, self.seed())
    }

    pub(super) fn mirostat_v2(&self) -> Result<MirostatV2> {
        MirostatV2::new(self.mirostat_tau, self.mirostat_eta, self.seed())
    }
}
