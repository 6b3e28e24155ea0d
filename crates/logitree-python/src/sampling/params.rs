//! The keywords of whole chains in Python: conversions only.

use super::history::{breakers_of, pieces_of};
use super::samplers::{biases_of, keep_of, number, seed_of, whole};
use crate::errors::to_py;
use crate::vocabulary::PyVocabulary;
use logitree::sampling::{Generator, Params, SharedPieces};
use logitree::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;

const KNOWN: &str =
    "seed, rng, sequence, min_keep, top_k, top_p, min_p, typ_p, top_n_sigma, xtc_probability, \
    xtc_threshold, temp, dynatemp_range, dynatemp_exponent, penalty_last_n, penalty_repeat, penalty_freq, \
    penalty_present, dry_multiplier, dry_base, dry_allowed_length, dry_penalty_last_n, dry_breakers, \
    adaptive_target, adaptive_decay, mirostat, mirostat_tau, mirostat_eta, no_repeat_ngram, epsilon_cutoff, \
    eta_cutoff, top_h, min_k, p_less_norm, edt_theta, edt_n, n_vocab, vocabulary, logit_bias";

fn int(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i32> {
    whole(value, name, i32::MIN, i32::MAX)
}

fn pieces(value: &Bound<'_, PyAny>) -> PyResult<Option<SharedPieces>> {
    let vocabulary: Option<PyRef<'_, PyVocabulary>> = value.extract()?;
    vocabulary.map(|v| pieces_of(&v, None)).transpose()
}

/// Keyword parameters over `start`, with llama.cpp's names.
pub(super) fn params_of(start: Params, given: Option<&Bound<'_, PyDict>>) -> PyResult<Params> {
    let mut params = start;
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        match name.as_str() {
            "seed" => params.seed = seed_of(Some(&value))?,
            "rng" => params.rng = Generator::parse(&value.extract::<String>()?).map_err(to_py)?,
            "sequence" => params.sequence = whole(&value, "sequence", 0, u32::MAX)?,
            "min_keep" => params.min_keep = keep_of(Some(&value))?,
            "top_k" => params.top_k = int(&value, &name)?,
            "top_p" => params.top_p = number(&value, &name)?,
            "min_p" => params.min_p = number(&value, &name)?,
            "typ_p" => params.typ_p = number(&value, &name)?,
            "top_n_sigma" => params.top_n_sigma = number(&value, &name)?,
            "temp" => params.temp = number(&value, &name)?,
            "penalty_last_n" => params.penalty_last_n = int(&value, &name)?,
            "penalty_repeat" => params.penalty_repeat = number(&value, &name)?,
            "penalty_freq" => params.penalty_freq = number(&value, &name)?,
            "penalty_present" => params.penalty_present = number(&value, &name)?,
            "xtc_probability" => params.xtc_probability = number(&value, &name)?,
            "xtc_threshold" => params.xtc_threshold = number(&value, &name)?,
            "dynatemp_range" => params.dynatemp_range = number(&value, &name)?,
            "dynatemp_exponent" => params.dynatemp_exponent = number(&value, &name)?,
            "dry_multiplier" => params.dry_multiplier = number(&value, &name)?,
            "dry_base" => params.dry_base = number(&value, &name)?,
            "dry_allowed_length" => params.dry_allowed_length = int(&value, &name)?,
            "dry_penalty_last_n" => params.dry_penalty_last_n = int(&value, &name)?,
            "dry_breakers" => params.dry_breakers = breakers_of(&value)?,
            "adaptive_target" => params.adaptive_target = number(&value, &name)?,
            "adaptive_decay" => params.adaptive_decay = number(&value, &name)?,
            "mirostat" => params.mirostat = int(&value, &name)?,
            "mirostat_tau" => params.mirostat_tau = number(&value, &name)?,
            "mirostat_eta" => params.mirostat_eta = number(&value, &name)?,
            "no_repeat_ngram" => params.no_repeat_ngram = int(&value, &name)?,
            "epsilon_cutoff" => params.epsilon_cutoff = number(&value, &name)?,
            "eta_cutoff" => params.eta_cutoff = number(&value, &name)?,
            "top_h" => params.top_h = number(&value, &name)?,
            "min_k" => params.min_k = number(&value, &name)?,
            "p_less_norm" => params.p_less_norm = value.extract()?,
            "edt_theta" => params.edt_theta = number(&value, &name)?,
            "edt_n" => params.edt_n = number(&value, &name)?,
            "n_vocab" if value.is_none() => params.n_vocab = None,
            "n_vocab" => params.n_vocab = Some(int(&value, &name)?),
            "vocabulary" => params.pieces = pieces(&value)?,
            "logit_bias" => params.logit_bias = biases_of(&value, &name)?,
            _ => {
                return Err(to_py(
                    Error::new(ErrorKind::Sampling, format!("there is no parameter {name}"))
                        .help(format!("known: {KNOWN}")),
                ));
            }
        }
    }
    Ok(params)
}

/// Keywords of samplers that neither llama.cpp nor tsampler has.
const BEYOND: [&str; 8] = [
    "no_repeat_ngram",
    "epsilon_cutoff",
    "eta_cutoff",
    "top_h",
    "min_k",
    "p_less_norm",
    "edt_theta",
    "edt_n",
];

/// A SamplingError for a keyword that the chain of `owner` has no sampler for, whatever its value.
pub(super) fn refuse_beyond(owner: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    for name in given.into_iter().flat_map(|given| given.keys()) {
        if BEYOND.contains(&name.extract::<String>()?.as_str()) {
            let message = format!("the chain of {owner} has no use for {name}");
            return Err(to_py(Error::new(ErrorKind::Sampling, message).help(
                "use the chain of another owner (transformers), or name the samplers one by one (Chain.parse)",
            )));
        }
    }
    Ok(())
}
