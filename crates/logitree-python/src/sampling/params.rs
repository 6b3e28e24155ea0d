//! The keywords of whole chains in Python: conversions only.

use super::samplers::{biases_of, keep_of, seed_of, whole};
use crate::errors::to_py;
use logitree::sampling::{Generator, Params};
use logitree::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;

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
            "top_k" => params.top_k = whole(&value, "top_k", i32::MIN, i32::MAX)?,
            "top_p" => params.top_p = value.extract()?,
            "min_p" => params.min_p = value.extract()?,
            "typ_p" => params.typ_p = value.extract()?,
            "top_n_sigma" => params.top_n_sigma = value.extract()?,
            "temp" => params.temp = value.extract()?,
            "penalty_last_n" => params.penalty_last_n = whole(&value, "penalty_last_n", i32::MIN, i32::MAX)?,
            "penalty_repeat" => params.penalty_repeat = value.extract()?,
            "penalty_freq" => params.penalty_freq = value.extract()?,
            "penalty_present" => params.penalty_present = value.extract()?,
            "no_repeat_ngram" => {
                params.no_repeat_ngram = whole(&value, "no_repeat_ngram", i32::MIN, i32::MAX)?
            }
            "epsilon_cutoff" => params.epsilon_cutoff = value.extract()?,
            "eta_cutoff" => params.eta_cutoff = value.extract()?,
            "top_h" => params.top_h = value.extract()?,
            "min_k" => params.min_k = value.extract()?,
            "p_less_norm" => params.p_less_norm = value.extract()?,
            "edt_theta" => params.edt_theta = value.extract()?,
            "edt_n" => params.edt_n = value.extract()?,
            "logit_bias" => params.logit_bias = biases_of(&value)?,
            _ => {
                let known = "seed, rng, sequence, min_keep, top_k, top_p, min_p, typ_p, top_n_sigma, temp, penalty_last_n, \
                             penalty_repeat, penalty_freq, penalty_present, no_repeat_ngram, epsilon_cutoff, eta_cutoff, \
                             top_h, min_k, p_less_norm, edt_theta, edt_n, logit_bias";
                return Err(to_py(
                    Error::new(ErrorKind::Sampling, format!("there is no parameter {name}"))
                        .help(format!("known: {known}")),
                ));
            }
        }
    }
    Ok(params)
}
