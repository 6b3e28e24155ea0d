//! The table of samplers: one row each. Notations, presets, descriptions, parameters between two tokens, pickles, the
//! Python constructors, `ChainParams` and docs/samplers.md all come from it. tidy: long because a row is its sampler's text.
//!
//! ```
//! use logitree_sampling::registry;
//!
//! let row = registry::find("top_p").expect("a sampler of this name");
//! let mut sampler = row.build_with(&[("p", 0.9.into())])?;
//! assert_eq!(sampler.describe(), "top_p(0.9)");
//! assert!(sampler.set_parameter("top_p", 0.5)?);
//! assert_eq!(sampler.parameter("top_p"), Some(0.5));
//! # Ok::<(), logitree_sampling::Error>(())
//! ```
//!
//! A new sampler is a file in `samplers` and a row here.

use super::parameter::{Arguments, Value};
pub use super::parameter::{DefaultValue, Kind, ParameterRow};
pub use super::params::{keywords, unknown, MIROSTAT};
use super::{
    AdaptiveP, Dist, Dry, Edt, EpsilonCutoff, EtaCutoff, Greedy, HfTopH, HfTopK, HfTopP, HfTypP, Infill,
    LogitBias, MinK, MinP, Mirostat, MirostatV2, NoRepeatNgram, PLess, Penalties, Sampler, Temp, TempExt,
    TopH, TopK, TopNSigma, TopP, TsTopK, TsTopNSigma, TypP, Xtc,
};
use crate::{Error, ErrorKind, Result};
use std::any::Any;
use std::ops::Bound::{Excluded, Included, Unbounded};

/// A sampler that the table can build, describe and change.
pub(crate) trait FromArguments: Sampler + Sized {
    /// The sampler with these values, in the order of its row.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for values that its constructor refuses.
    fn from_arguments(arguments: &Arguments) -> Result<Self>;

    /// Its values, in the order of its row.
    fn arguments(&self) -> Arguments;

    /// Takes other values, whose numbers are within their ranges, and keeps its state. A sampler with state, or with
    /// buffers to keep, has its own.
    ///
    /// # Errors
    /// Those of [`FromArguments::from_arguments`]; nothing is changed then.
    fn reconfigure(&mut self, arguments: &Arguments) -> Result<()> {
        *self = Self::from_arguments(arguments)?;
        Ok(())
    }
}

/// What a constructor returns.
pub(crate) trait Made<S> {
    fn made(self) -> Result<S>;
}

impl<S: Sampler> Made<S> for S {
    fn made(self) -> Result<S> {
        Ok(self)
    }
}

impl<S: Sampler> Made<S> for Result<S> {
    fn made(self) -> Result<S> {
        self
    }
}

/// One sampler.
#[derive(Debug)]
pub struct SamplerRow {
    /// Its name, as [`Sampler::name`] gives it.
    pub name: &'static str,
    /// Other names in the notations. A `-` there is a `_`, and case does not matter.
    pub aliases: &'static [&'static str],
    /// Its letter in llama.cpp's short notation.
    pub letter: Option<char>,
    /// What it does, in one line.
    pub doc: &'static str,
    /// Formula, bounds and source, in sentences; "" for nothing.
    pub details: &'static str,
    /// Its parameters, in the order of the constructor.
    pub parameters: &'static [ParameterRow],
    build: fn(&Arguments) -> Result<Box<dyn Sampler>>,
    arguments: fn(&dyn Sampler) -> Option<Arguments>,
    reconfigure: fn(&mut dyn Sampler, &Arguments) -> Result<()>,
}

/// Every sampler, llama.cpp's first.
pub static SAMPLERS: &[SamplerRow] = &[
    row::<LogitBias>("logit_bias", "Adds a number to the logits of single tokens; -inf bans a token.")
        .aliases(&["logitbias"])
        .parameters(&[ParameterRow::other(
            "biases",
            "logit_bias",
            Kind::Biases,
            "Numbers added to the logits of single tokens.",
        )
        .required()]),
    row::<Penalties>(
        "penalties",
        "Penalises the last last_n accepted tokens: a logit above 0 is divided by \
             repeat, others multiplied; then count * freq + present is subtracted.",
    )
    .letter('e')
    .parameters(&[
        ParameterRow::int(
            "last_n",
            "penalty_last_n",
            64,
            "Accepted tokens that the penalties look at; 0 or less: off.",
        )
        .named(),
        ParameterRow::float("repeat", "penalty_repeat", 1.0, "Repeat penalty; 1: off.")
            .named()
            .aliases(&["repeat_penalty", "repetition_penalty"])
            .range(Excluded(0.0), Unbounded),
        ParameterRow::float("freq", "penalty_freq", 0.0, "Frequency penalty; 0: off.")
            .named()
            .aliases(&["frequency_penalty"]),
        ParameterRow::float("present", "penalty_present", 0.0, "Presence penalty; 0: off.")
            .named()
            .aliases(&["presence_penalty"]),
    ]),
    row::<Dry>(
        "dry",
        "Penalises tokens that continue a repetition of allowed_length accepted tokens \
             or more (DRY).",
    )
    .details(
        "A token that continues a repetition of length accepted tokens loses \
             multiplier * base ** (length - allowed_length). Breakers are sequences of \
             token ids or, with a vocabulary, texts, which go through dry_breakers; None \
             with a vocabulary takes llama.cpp's newline, colon, double quote and asterisk. \
             Source: llama.cpp, src/llama-sampler.cpp.",
    )
    .letter('d')
    .parameters(&[
        ParameterRow::float(
            "multiplier",
            "dry_multiplier",
            0.0,
            "Penalty for continuing a repetition of the allowed length; 0: off.",
        ),
        ParameterRow::float(
            "base",
            "dry_base",
            1.75,
            "Factor by which the penalty grows with each further token; below 1: off.",
        )
        .named(),
        ParameterRow::int(
            "allowed_length",
            "dry_allowed_length",
            2,
            "Shortest repetition, in tokens, that is penalised.",
        )
        .named(),
        ParameterRow::int(
            "last_n",
            "dry_penalty_last_n",
            64,
            "Accepted tokens searched for repetitions; 0 or less: off.",
        )
        .named(),
        ParameterRow::other(
            "breakers",
            "dry_breakers",
            Kind::Breakers,
            "Token sequences that no repetition extends across, as dry_breakers makes \
             them.",
        )
        .changed(),
    ]),
    row::<TopNSigma>(
        "top_n_sigma",
        "Sets to -inf what lies more than n standard deviations below the best logit.",
    )
    .aliases(&["topnsigma"])
    .letter('s')
    .parameters(&[ParameterRow::float(
        "n",
        "top_n_sigma",
        -1.0,
        "Standard deviations below the best logit; 0 or less: off.",
    )
    .required()]),
    row::<TopK>("top_k", "Keeps the k best candidates, sorted.")
        .aliases(&["topk"])
        .letter('k')
        .parameters(&[ParameterRow::int("k", "top_k", 40, "Best candidates kept; 0 or less: all.")]),
    row::<TypP>("typ_p", "Keeps the candidates of locally typical surprisal up to probability p.")
        .aliases(&["typp", "typ"])
        .letter('y')
        .parameters(&[
            ParameterRow::float("p", "typ_p", 1.0, "Probability kept; 1: all."),
            ParameterRow::min_keep(0),
        ]),
    row::<TopP>("top_p", "Keeps the fewest best candidates whose probabilities reach p.")
        .aliases(&["topp", "nucleus"])
        .letter('p')
        .parameters(&[
            ParameterRow::float("p", "top_p", 0.95, "Probability kept; 1: all."),
            ParameterRow::min_keep(0),
        ]),
    row::<MinP>("min_p", "Keeps the candidates at least p times as probable as the best.")
        .aliases(&["minp"])
        .letter('m')
        .parameters(&[
            ParameterRow::float(
                "p",
                "min_p",
                0.05,
                "Part of the highest probability that a candidate needs; 0: all stay.",
            ),
            ParameterRow::min_keep(0),
        ]),
    row::<Xtc>(
        "xtc",
        "With probability p, removes the candidates of at least probability t except \
             the least probable of them. Draws one float per step.",
    )
    .details(
        "Nothing is removed where fewer than min_keep candidates would stay. A single \
             candidate draws nothing. Source: llama.cpp, src/llama-sampler.cpp.",
    )
    .letter('x')
    .parameters(&[
        ParameterRow::float(
            "p",
            "xtc_probability",
            0.0,
            "Probability that a step removes candidates; 0: off.",
        ),
        ParameterRow::float(
            "t",
            "xtc_threshold",
            0.1,
            "Least probability of a removed candidate; above 0.5: off.",
        ),
        ParameterRow::min_keep(0),
        ParameterRow::seed(),
    ]),
    row::<Temp>("temp", "Divides the logits by t; 0 or less leaves only the best.")
        .aliases(&["temperature"])
        .letter('t')
        .parameters(&[ParameterRow::float(
            "t",
            "temp",
            0.8,
            "Temperature; 0 or less leaves only the best above -inf.",
        )
        .aliases(&["temperature"])]),
    row::<TempExt>(
        "temp_ext",
        "A temperature between t - delta and t + delta that rises with the entropy; \
             delta of 0 or less is temp(t).",
    )
    .details(
        "The temperature is t - delta + 2 * delta * (entropy / ln n) ** exponent for n \
             candidates. Source: llama.cpp, src/llama-sampler.cpp.",
    )
    .parameters(&[
        ParameterRow::float("t", "temp", 0.8, "Temperature in the middle of the range.")
            .aliases(&["temperature"]),
        ParameterRow::float(
            "delta",
            "dynatemp_range",
            0.0,
            "How far the temperature may move from t with the entropy; 0: it is fixed.",
        )
        .named(),
        ParameterRow::float("exponent", "dynatemp_exponent", 1.0, "Exponent of the normalised entropy.")
            .named()
            .range(Included(0.0), Unbounded),
    ]),
    row::<Infill>(
        "infill",
        "Ends the text if that is likely, merges candidates with a common beginning, \
             and keeps what is then likely.",
    )
    .details(
        "For use after top_k and top_p. It keeps only end-of-generation tokens if they \
             are likely; else it merges candidates where one's text begins with the \
             other's, and keeps those of probability 0.2 and then 1 / (n + 1) or more. If \
             no text is left, the end-of-text token eot is the only candidate; where it is \
             not allowed, that is a MaskError. eot of None is found by the texts that \
             llama.cpp knows.",
    )
    .letter('i')
    .parameters(&[ParameterRow::other(
        "vocabulary",
        "vocabulary",
        Kind::Pieces,
        "The vocabulary, whose token texts infill reads.",
    )
    .required()]),
    row::<AdaptiveP>(
        "adaptive_p",
        "Prefers probabilities near target, corrected by the running mean of what was \
             accepted; selects.",
    )
    .details(
        "The mean, which forgets by decay with each token, is of the probabilities \
             that accepted tokens had. It must be the last sampler of a chain; put min_p \
             before it. llama.cpp #17927.",
    )
    .aliases(&["adaptivep"])
    .letter('a')
    .parameters(&[
        ParameterRow::float(
            "target",
            "adaptive_target",
            -1.0,
            "Probability aimed at; below 0 it only draws.",
        )
        .required(),
        ParameterRow::float(
            "decay",
            "adaptive_decay",
            0.9,
            "Part of the running mean that each token keeps, clamped to 0 to 0.99.",
        )
        .named(),
        ParameterRow::seed(),
    ]),
    row::<Mirostat>(
        "mirostat",
        "Keeps as many of the best candidates as hold the surprisal of the drawn token \
             near tau bits; selects.",
    )
    .details("It must be the last sampler of a chain. Basu et al., ICLR 2021.")
    .parameters(&[
        ParameterRow::other(
            "n_vocab",
            "n_vocab",
            Kind::OptionalInt,
            "Size of the vocabulary in mirostat's formula; None: the number of \
             candidates.",
        )
        .range(Included(1.0), Unbounded),
        ParameterRow::float("tau", "mirostat_tau", 5.0, "Surprisal aimed at, in bits.").named(),
        ParameterRow::float("eta", "mirostat_eta", 0.1, "Part of the error corrected with each token.")
            .named(),
        ParameterRow::int(
            "m",
            "mirostat_m",
            100,
            "Best candidates that estimate the exponent of Zipf's law.",
        )
        .named()
        .range(Included(1.0), Unbounded),
        ParameterRow::seed(),
    ]),
    row::<MirostatV2>(
        "mirostat_v2",
        "Keeps the candidates of at most mu bits and moves mu so that what is drawn \
             has tau bits; selects.",
    )
    .details(
        "mu begins at 2 * tau and moves by eta of the error. It must be the last \
             sampler of a chain. Basu et al., ICLR 2021.",
    )
    .parameters(&[
        ParameterRow::float("tau", "mirostat_tau", 5.0, "Surprisal aimed at, in bits.").named(),
        ParameterRow::float("eta", "mirostat_eta", 0.1, "Part of the error corrected with each token.")
            .named(),
        ParameterRow::seed(),
    ]),
    row::<NoRepeatNgram>(
        "no_repeat_ngram",
        "Bans the tokens that would complete an n-gram of the accepted tokens.",
    )
    .details(
        "A prompt counts if it was accepted. Where every candidate would be banned, \
             none is.\n\nPaulus, Xiong, Socher: A Deep Reinforced Model for Abstractive \
             Summarization, 2017, arXiv:1705.04304; as transformers has it.",
    )
    .aliases(&["no_repeat_ngram_size"])
    .parameters(&[ParameterRow::int(
        "n",
        "no_repeat_ngram",
        0,
        "Length of the n-grams that may not repeat; 0 or less: off.",
    )
    .required()
    .range(Unbounded, Included(1024.0))]),
    row::<EpsilonCutoff>("epsilon_cutoff", "Keeps the candidates of probability epsilon or more.")
        .details(
            "The best min_keep candidates and their equals always stay.\n\nHewitt, \
             Manning, Liang: Truncation Sampling as Language Model Desmoothing, 2022, \
             arXiv:2210.15191; as transformers has it.",
        )
        .aliases(&["epsilon"])
        .parameters(&[
            ParameterRow::float(
                "epsilon",
                "epsilon_cutoff",
                0.0,
                "Least probability of a candidate; 0 or less: off.",
            )
            .required()
            .range(Unbounded, Excluded(1.0)),
            ParameterRow::min_keep(1),
        ]),
    row::<EtaCutoff>(
        "eta_cutoff",
        "Keeps the candidates of probability min(epsilon, sqrt(epsilon) * \
             exp(-entropy)) or more.",
    )
    .details(
        "The entropy is in nats. The best min_keep candidates and their equals always \
             stay.\n\nHewitt, Manning, Liang: Truncation Sampling as Language Model \
             Desmoothing, 2022, arXiv:2210.15191; as transformers has it.",
    )
    .aliases(&["eta"])
    .parameters(&[
        ParameterRow::float("epsilon", "eta_cutoff", 0.0, "The formula's epsilon; 0 or less: off.")
            .required()
            .range(Unbounded, Excluded(1.0)),
        ParameterRow::min_keep(1),
    ]),
    row::<TopH>(
        "top_h",
        "Keeps the most probable candidates while their entropy is at most h times \
             that of all (top-H decoding).",
    )
    .details(
        "The best candidate always stays, and the order does too; 1 or more keeps \
             all.\n\nBaghaei Potraghloo et al.: Top-H Decoding, NeurIPS 2025, \
             arXiv:2509.02510, the paper's own bound; that of transformers is hf_top_h.",
    )
    .aliases(&["toph"])
    .parameters(&[ParameterRow::float("h", "top_h", 0.4, "Part of the entropy kept; 0 or less: off.")]),
    row::<MinK>(
        "min_k",
        "Cuts at the steepest step of the sorted logits, or after tau over their range \
             (min-k sampling).",
    )
    .details(
        "The cut is after the first k at which (l[k] - l[k+1]) / R / k is greatest, l \
             being the sorted logits and R their range, or after floor(tau / R), whichever \
             is later.\n\nDing et al.: Min-k Sampling, ACL 2026, arXiv:2604.11012.",
    )
    .aliases(&["mink"])
    .parameters(&[ParameterRow::float(
        "tau",
        "min_k",
        3.0,
        "Candidates kept at least, times the range of the logits.",
    )
    .range(Included(0.0), Unbounded)]),
    row::<PLess>(
        "p_less",
        "Keeps the candidates at least as probable as two draws are to agree (p-less \
             sampling).",
    )
    .details(
        "The threshold is c = sum(p**2); with norm it is (v * c - 1) / (v - 1) for v \
             candidates above -inf.\n\nTan, Wu, Howard: p-less Sampling, 2025, \
             arXiv:2509.23234.",
    )
    .aliases(&["pless"])
    .parameters(&[ParameterRow::truth(
        "norm",
        "p_less_norm",
        "Whether the threshold is that of p-less-norm.",
    )]),
    row::<Edt>(
        "edt",
        "Divides the logits by t0 * n ** (theta / entropy) (entropy-based dynamic \
             temperature).",
    )
    .details("The entropy is in nats.\n\nZhang, Bao, Huang: EDT, 2024, arXiv:2403.14541.")
    .parameters(&[
        ParameterRow::float("t0", "temp", 0.8, "Temperature of boundless entropy; 0 or less is greedy.")
            .required()
            .aliases(&["temperature"]),
        ParameterRow::float(
            "theta",
            "edt_theta",
            0.0,
            "How soon the temperature falls with the entropy; 0: never.",
        )
        .required()
        .range(Included(0.0), Unbounded),
        ParameterRow::float("n", "edt_n", Edt::N, "Base of the exponential.")
            .changed()
            .range(Excluded(0.0), Included(1.0)),
    ]),
    row::<HfTopH>(
        "hf_top_h",
        "transformers' top-H: of the best hundred those up to which the entropy's \
             terms sum to h of it.",
    )
    .details(
        "TopHLogitsWarper: the entropy is that of the best hundred, renormalised; the \
             output is sorted.",
    )
    .parameters(&[ParameterRow::float("h", "top_h", 0.4, "Part of the entropy kept; 0: off.")
        .range(Unbounded, Included(1.0))]),
    row::<HfTopK>("hf_top_k", "transformers' top-k: the k best and all that equal the last of them.")
        .details("TopKLogitsWarper: the candidates keep their order.")
        .parameters(&[
            ParameterRow::int("k", "top_k", 50, "Best candidates kept; 0 or less: all."),
            ParameterRow::min_keep(0),
        ]),
    row::<HfTopP>(
        "hf_top_p",
        "transformers' top-p: removes the least probable candidates that sum to at \
             most 1 - p.",
    )
    .details("TopPLogitsWarper: the candidates keep their order.")
    .parameters(&[
        ParameterRow::float("p", "top_p", 0.95, "Probability kept; 1: all.")
            .required()
            .range(Unbounded, Included(1.0)),
        ParameterRow::min_keep(0),
    ]),
    row::<HfTypP>(
        "hf_typ_p",
        "transformers' typical decoding: as near to the entropy as the last candidate \
             needed to reach p.",
    )
    .details("TypicalLogitsWarper: the candidates keep their order.")
    .parameters(&[
        ParameterRow::float("p", "typ_p", 1.0, "Probability kept; 1: all.")
            .required()
            .range(Unbounded, Included(1.0)),
        ParameterRow::min_keep(0),
    ]),
    row::<TsTopK>(
        "ts_top_k",
        "tsampler's top-k: the k best candidates, sorted; all in their order where k are all.",
    )
    .parameters(&[ParameterRow::int("k", "top_k", 40, "Best candidates kept; 0 or less: all.")]),
    row::<TsTopNSigma>(
        "ts_top_n_sigma",
        "tsampler's top_n_sigma: of equal logits it leaves the first alone.",
    )
    .parameters(&[ParameterRow::float(
        "n",
        "top_n_sigma",
        -1.0,
        "Standard deviations below the best logit; 0 or less: off.",
    )]),
    row::<Greedy>("greedy", "Selects the first best candidate."),
    row::<Dist>("dist", "Draws by probability, with llama.cpp's draws for the same seed; selects.")
        .details(
            "The generators are mt19937 (llama.cpp's, 32-bit seeds), xoroshiro128plus and \
             philox (64-bit seeds). With philox a draw depends on seed, sequence and \
             position (the number of accepted tokens) alone.",
        )
        .parameters(&[ParameterRow::seed()]),
    #[cfg(test)]
    row::<tests::Shift>("shift", "Adds a number to every logit.")
        .aliases(&["offset"])
        .parameters(&[ParameterRow::float("by", "shift_by", 0.5, "The number.").aliases(&["shift_amount"])]),
];

const fn row<S: FromArguments>(name: &'static str, doc: &'static str) -> SamplerRow {
    SamplerRow {
        name,
        aliases: &[],
        letter: None,
        doc,
        details: "",
        parameters: &[],
        build: build::<S>,
        arguments: arguments::<S>,
        reconfigure: reconfigure::<S>,
    }
}

fn build<S: FromArguments>(arguments: &Arguments) -> Result<Box<dyn Sampler>> {
    Ok(Box::new(S::from_arguments(arguments)?))
}

fn arguments<S: FromArguments>(sampler: &dyn Sampler) -> Option<Arguments> {
    let sampler: &dyn Any = sampler;
    Some(sampler.downcast_ref::<S>()?.arguments())
}

fn reconfigure<S: FromArguments>(sampler: &mut dyn Sampler, arguments: &Arguments) -> Result<()> {
    let sampler: &mut dyn Any = sampler;
    sampler.downcast_mut::<S>().map_or(Ok(()), |sampler| sampler.reconfigure(arguments))
}

impl SamplerRow {
    const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn letter(mut self, letter: char) -> Self {
        self.letter = Some(letter);
        self
    }

    const fn details(mut self, details: &'static str) -> Self {
        self.details = details;
        self
    }

    const fn parameters(mut self, parameters: &'static [ParameterRow]) -> Self {
        self.parameters = parameters;
        self
    }

    /// The sampler with these values.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for values that it refuses.
    pub fn build(&self, arguments: &Arguments) -> Result<Box<dyn Sampler>> {
        (self.build)(arguments)
    }

    /// The sampler with these values, by the names of its parameters, and the defaults of the others.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a name that it has no parameter of, for a missing value, and for values that it
    /// refuses.
    pub fn build_with(&self, given: &[(&str, Value)]) -> Result<Box<dyn Sampler>> {
        let mut arguments = Arguments::default();
        for (parameter, at) in self.parameters.iter().zip(0..) {
            let value = match given.iter().find(|(name, _)| *name == parameter.name) {
                Some((_, value)) => parameter.fit(value.clone())?,
                None if parameter.required => {
                    return Err(self.wrong(format!("{} needs {}", self.name, parameter.name)));
                }
                None => parameter.default.into(),
            };
            arguments.set(at, value);
        }
        let known = |name: &str| self.parameters.iter().any(|parameter| parameter.name == name);
        if let Some((name, _)) = given.iter().find(|(name, _)| !known(name)) {
            return Err(self.wrong(format!("{} has no parameter {name}", self.name)));
        }
        self.build(&arguments)
    }

    fn wrong(&self, message: String) -> Error {
        let names: Vec<&str> = self.parameters.iter().map(|parameter| parameter.name).collect();
        Error::new(ErrorKind::Sampling, message).help(format!("its parameters: {}", names.join(", ")))
    }

    /// The values of a sampler of this row.
    pub fn arguments(&self, sampler: &dyn Sampler) -> Arguments {
        (self.arguments)(sampler).unwrap_or_default()
    }

    /// The value of a number among its parameters, by its keyword; `None` if it has no such.
    pub(super) fn parameter(&self, sampler: &dyn Sampler, keyword: &str) -> Option<f64> {
        self.arguments(sampler).get(self.place(keyword)?).number()
    }

    /// Changes a number among its parameters, by its keyword; `false` if it has no such.
    pub(super) fn set(&self, sampler: &mut dyn Sampler, keyword: &str, value: f64) -> Result<bool> {
        let Some(at) = self.place(keyword) else { return Ok(false) };
        let mut arguments = self.arguments(sampler);
        let value = self.parameters[at].number(self.name, value)?;
        self.parameters[at].check(self.name, &value)?;
        arguments.set(at, value);
        (self.reconfigure)(sampler, &arguments)?;
        Ok(true)
    }

    /// Which of its parameters is the number of this keyword.
    fn place(&self, keyword: &str) -> Option<usize> {
        self.parameters
            .iter()
            .position(|parameter| parameter.kind.is_number() && parameter.keyword == keyword)
    }

    /// `name(values)`, as the constructor is called.
    fn describe(&self, sampler: &dyn Sampler) -> String {
        let arguments = self.arguments(sampler);
        let shown = self.parameters.iter().zip(0..).filter_map(|(p, at)| p.describe(arguments.get(at)));
        format!("{}({})", self.name, shown.collect::<Vec<_>>().join(", "))
    }
}

/// The row of the sampler of this name.
pub fn find(name: &str) -> Option<&'static SamplerRow> {
    SAMPLERS.iter().find(|row| row.name == name)
}

/// The row that a notation means by a name or an alias, in any case, with `-` for `_`.
pub(super) fn find_by_notation(name: &str) -> Option<&'static SamplerRow> {
    let name = name.trim().to_ascii_lowercase().replace('-', "_");
    SAMPLERS.iter().find(|row| row.name == name || row.aliases.contains(&name.as_str()))
}

/// The first parameter of the keyword, or of one with this alias: its default is that of whole chains.
pub fn keyword_row(name: &str) -> Option<&'static ParameterRow> {
    SAMPLERS.iter().flat_map(|row| row.parameters).find(|parameter| parameter.answers(name))
}

/// The keyword that `name` is or is an alias of; an unknown name as it is.
pub fn keyword(name: &str) -> &str {
    keyword_row(name).map_or(name, |parameter| parameter.keyword)
}

/// Checks the first values of a sampler, in the order of its row, against the ranges there.
///
/// # Errors
/// [`ErrorKind::Sampling`] for a number that is not finite or out of range.
pub(super) fn check<const N: usize>(sampler: &str, values: [Value; N]) -> Result<()> {
    let parameters = find(sampler).map_or(&[][..], |row| row.parameters);
    parameters.iter().zip(&values).try_for_each(|(parameter, value)| parameter.check(sampler, value))
}

/// `name(values)`; a sampler that is not in the table has no values that it knows.
pub(super) fn describe(sampler: &dyn Sampler) -> String {
    find(sampler.name()).map_or_else(|| format!("{}()", sampler.name()), |row| row.describe(sampler))
}

#[cfg(test)]
mod tests;
