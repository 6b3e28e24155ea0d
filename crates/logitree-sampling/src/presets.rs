//! Whole chains in the order of other programs: llama.cpp's, tsampler's, transformers', and plain greedy.
//!
//! ```
//! use logitree_sampling::{presets, Params};
//!
//! let chain = presets::llama_cpp(&Params::default().seed(1).with("temp", 0.7).with("top_p", 0.9))?;
//! assert!(chain.describe().ends_with("temp(0.7) -> dist(seed=1)"));
//! assert_eq!(presets::greedy().names(), ["greedy"]);
//! // What a preset has no use for is an error.
//! assert!(presets::llama_cpp(&Params::default().with("top_h", 0.4)).is_err());
//! # Ok::<(), logitree_sampling::Error>(())
//! ```

use super::parameter::Value;
use super::registry::{self, SamplerRow};
use super::{Chain, Greedy, Params, Sampler, TsTopK};
use crate::{Error, ErrorKind, Result};

const LLAMA_CPP: &[&str] = &["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc"];
const TSAMPLER: &[&str] = &["typ_p", "top_p", "min_p", "ts_top_n_sigma", "temp"];
const TRANSFORMERS: &[&str] = &[
    "penalties",
    "no_repeat_ngram",
    "temp",
    "hf_top_h",
    "hf_top_k",
    "hf_top_p",
    "min_p",
    "hf_typ_p",
    "epsilon_cutoff",
    "eta_cutoff",
];

/// llama.cpp's default order: logit_bias, penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temp (or
/// temp_ext, with a range), dist. With `mirostat` 1 or 2 it is logit_bias, temp and that mirostat, as in llama.cpp's
/// programs (common/sampling.cpp). With an `adaptive_target` of 0 or more adaptive_p replaces dist; in llama.cpp it has
/// to be named.
///
/// # Errors
/// [`crate::ErrorKind::Sampling`] for invalid parameters.
pub fn llama_cpp(params: &Params) -> Result<Chain> {
    let params = &params.with_seed()?;
    refuse("llama.cpp", params, |row| row.letter.is_some() || OF_LLAMA_CPP.contains(&row.name))?;
    if params.mirostat() != 0 {
        return mirostat(params);
    }
    let mut samplers = samplers(LLAMA_CPP, params)?;
    samplers.push(params.temperature()?);
    let adaptive = params.sampler("adaptive_p")?;
    if params.number("adaptive_target") >= 0.0 {
        samplers.push(adaptive);
    }
    assemble(samplers, params)
}

/// The samplers of these names, in this order.
fn samplers(names: &[&str], params: &Params) -> Result<Vec<Box<dyn Sampler>>> {
    names.iter().map(|name| params.sampler(name)).collect()
}

/// The biases, the temperature and the mirostat that `params` ask for.
pub(super) fn mirostat(params: &Params) -> Result<Chain> {
    let last = match params.mirostat() {
        1 => params.sampler("mirostat")?,
        2 => params.sampler("mirostat_v2")?,
        other => {
            return Err(Error::new(ErrorKind::Sampling, format!("there is no mirostat {other}"))
                .help("1 is mirostat, 2 is mirostat 2.0, 0 is neither"))
        }
    };
    assemble(vec![params.sampler("temp")?, last], params)
}

/// llama.cpp's samplers without a letter.
const OF_LLAMA_CPP: &[&str] = &["logit_bias", "temp_ext", "mirostat", "mirostat_v2", "dist"];

/// The keywords that switch on a sampler which llama.cpp's order alone has, and whether `params` do.
fn switches(params: &Params) -> [(bool, &'static str); 5] {
    [
        (params.number("dry_multiplier") != 0.0, "dry_multiplier"),
        (params.number("xtc_probability") > 0.0, "xtc_probability"),
        (params.number("dynatemp_range") > 0.0, "dynatemp_range"),
        (params.number("adaptive_target") >= 0.0, "adaptive_target"),
        (params.mirostat() != 0, super::params::MIROSTAT),
    ]
}

/// An error if a keyword was given that only samplers have which are not `known` to the chain of `preset`.
fn refuse(preset: &str, params: &Params, known: impl Fn(&SamplerRow) -> bool) -> Result<()> {
    let has = |keyword: &str| {
        let mut rows = registry::SAMPLERS.iter().filter(|row| known(row));
        rows.any(|row| row.parameters.iter().any(|parameter| parameter.keyword == keyword))
    };
    params
        .keywords()
        .find(|keyword| !has(keyword))
        .map_or(Ok(()), |keyword| Err(unused_keyword(preset, keyword)))
}

/// An error if a keyword switches on a sampler that the chain of `preset` lacks.
fn refuse_switched(preset: &str, switches: &[(bool, &'static str)]) -> Result<()> {
    let on = switches.iter().find(|(on, _)| *on);
    on.map_or(Ok(()), |(_, keyword)| Err(unused_keyword(preset, keyword)))
}

fn unused_keyword(preset: &str, keyword: &str) -> Error {
    Error::new(ErrorKind::Sampling, format!("the chain of {preset} has no use for {keyword}"))
        .help("use another preset (llama_cpp, transformers), or name the samplers one by one")
}

/// tsampler's order: penalties, ts_top_k, typ_p, top_p, min_p, ts_top_n_sigma, temp, dist; use [`Params::tsampler`].
///
/// As there, a temperature below 0.001 or a top_k of 1 is greedy after the penalties, a top_k of 0 keeps the best 256 (512
/// before typ_p), a top_k of all candidates leaves them in the order of their ids, and ts_top_n_sigma leaves one of equal
/// logits. The generator is xoroshiro128plus; how tsampler makes it from a seed is not published.
///
/// # Errors
/// [`crate::ErrorKind::Sampling`] for invalid parameters, and for those that switch on a sampler that tsampler lacks:
/// dry, xtc, dynamic temperature, adaptive_p, mirostat.
pub fn tsampler(params: &Params) -> Result<Chain> {
    let params = &params.with_seed()?;
    refuse("tsampler", params, |row| row.letter.is_some() || OF_LLAMA_CPP.contains(&row.name))?;
    refuse_switched("tsampler", &switches(params))?;
    // Built before the choice, so that wrong parameters are wrong in any case.
    let rest = samplers(TSAMPLER, params)?;
    let mut samplers = vec![params.sampler("penalties")?];
    let top_k = params.number("top_k") as i32;
    if params.number("temp") < 1e-3 || top_k == 1 {
        samplers.push(Box::new(Greedy));
        return assemble(samplers, params);
    }
    let k = match top_k {
        1.. => top_k,
        _ if params.number("typ_p") < 1.0 => 512,
        _ => 256,
    };
    samplers.push(Box::new(TsTopK::new(k)));
    samplers.extend(rest);
    assemble(samplers, params)
}

/// transformers' order, that of `GenerationMixin._get_logits_processor` (5.23) with `do_sample`: logit_bias,
/// penalties, no_repeat_ngram, temp, hf_top_h, hf_top_k, hf_top_p, min_p, hf_typ_p, epsilon_cutoff, eta_cutoff, dist;
/// use [`Params::transformers`].
///
/// The same candidates stay as there, with the same probabilities; `min_keep` is `min_tokens_to_keep`. Accept the
/// prompt too: penalties and no_repeat_ngram read all of it there. The draws are `dist`'s; those of
/// `torch.multinomial` are not reproduced.
///
/// # Errors
/// [`ErrorKind::Sampling`] for invalid parameters, as a temperature of 0 is there.
pub fn transformers(params: &Params) -> Result<Chain> {
    let params = &params.with_seed()?;
    let known = |row: &SamplerRow| {
        row.letter.is_some() || OF_LLAMA_CPP.contains(&row.name) || TRANSFORMERS.contains(&row.name)
    };
    refuse("transformers", params, known)?;
    refuse_switched("transformers", &switches(params))?;
    refuse_switched("transformers", &[(params.number("top_n_sigma") > 0.0, "top_n_sigma")])?;
    let temp = params.number("temp") as f32;
    if temp <= 0.0 {
        return Err(Error::new(ErrorKind::Sampling, format!("temp of transformers' order is {temp}"))
            .help("it must be above 0 there; for the most likely token use the greedy chain"));
    }
    assemble(samplers(TRANSFORMERS, params)?, params)
}

/// The most likely token, nothing else.
pub fn greedy() -> Chain {
    Chain::of(vec![Box::new(Greedy)])
}

/// The chain with the biases of `params` before and `dist` after it, where they are missing.
pub(super) fn assemble(mut samplers: Vec<Box<dyn Sampler>>, params: &Params) -> Result<Chain> {
    let biased = matches!(params.given("logit_bias"), Some(Value::Biases(biases)) if !biases.is_empty());
    if biased && samplers.iter().all(|s| s.name() != "logit_bias") {
        samplers.insert(0, params.sampler("logit_bias")?);
    }
    if samplers.last().is_none_or(|s| !s.selects()) {
        samplers.push(params.sampler("dist")?);
    }
    Chain::new(samplers)
}

#[cfg(test)]
mod tests {
    use super::super::Generator;
    use super::*;

    #[test]
    fn orders_and_defaults() {
        let params = Params::default().seed(0).with("logit_bias", vec![(1, 2.0)]);
        let described = llama_cpp(&params).unwrap().describe();
        assert_eq!(
            described,
            "logit_bias({1: 2}) -> penalties(last_n=64, repeat=1, freq=0, present=0) -> \
             dry(0, base=1.75, allowed_length=2, last_n=64) -> top_n_sigma(-1) -> top_k(40) -> typ_p(1) -> \
             top_p(0.95) -> min_p(0.05) -> xtc(0, 0.1, seed=0) -> temp(0.8) -> dist(seed=0)"
        );
        let t = tsampler(&Params::tsampler().seed(7)).unwrap();
        let order = ["penalties", "ts_top_k", "typ_p", "top_p", "min_p", "ts_top_n_sigma", "temp", "dist"];
        assert_eq!(t.names(), order);
        assert!(
            t.describe().contains("repeat=1.1") && t.seed().map(|s| s.seed) == Some(7),
            "{}",
            t.describe()
        );
        let cold = tsampler(&Params::tsampler().with("temp", 0.0)).unwrap();
        assert_eq!(cold.names(), ["penalties", "greedy"]);
        let wide = tsampler(&Params::tsampler().with("top_k", 0)).unwrap();
        assert!(wide.describe().contains("ts_top_k(256)"));
        let milliseconds = tsampler(&Params::tsampler().seed(1_790_000_000_000)).unwrap();
        assert_eq!(milliseconds.seed().map(|s| s.seed), Some(1_790_000_000_000));
        assert!(tsampler(&Params::tsampler().rng(Generator::Mt19937).seed(1 << 32)).is_err());
        for strange in [
            Params::tsampler().with("dry_multiplier", 1.0),
            Params::tsampler().with("xtc_probability", 0.1),
            Params::tsampler().with("dynatemp_range", 0.1),
            Params::tsampler().with("adaptive_target", 0.5),
            Params::tsampler().with("mirostat", 2),
        ] {
            assert!(tsampler(&strange).unwrap_err().help.contains("llama_cpp"));
        }
        let adaptive = llama_cpp(&params.clone().with("adaptive_target", 0.5)).unwrap();
        assert_eq!(adaptive.names().last(), Some(&"adaptive_p"));
        let drawn = llama_cpp(&params.with("mirostat", 2)).unwrap();
        assert_eq!(drawn.names(), ["logit_bias", "temp", "mirostat_v2"]);
        assert!(tsampler(&Params::tsampler().with("top_k", 1).with("top_p", f32::NAN)).is_err());
    }

    #[test]
    fn transformers_order_and_refused_keywords() {
        let described = transformers(&Params::transformers().seed(0)).unwrap().describe();
        assert_eq!(
            described,
            "penalties(last_n=2147483647, repeat=1, freq=0, present=0) -> no_repeat_ngram(0) -> temp(1) -> \
             hf_top_h(0) -> hf_top_k(50) -> hf_top_p(1) -> min_p(0) -> hf_typ_p(1) -> epsilon_cutoff(0) -> \
             eta_cutoff(0) -> dist(seed=0)"
        );
        for strange in [
            Params::transformers().with("mirostat", 1),
            Params::transformers().with("min_k", 1.0),
            Params::transformers().with("top_n_sigma", 1.0),
        ] {
            assert!(transformers(&strange).unwrap_err().help.contains("llama_cpp"));
        }
        for strange in [
            Params::default().with("epsilon_cutoff", 0.1),
            Params::default().with("no_repeat_ngram", 2),
            Params::default().with("edt_theta", 1.0),
        ] {
            assert!(llama_cpp(&strange).unwrap_err().help.contains("transformers"));
            assert!(tsampler(&strange).unwrap_err().help.contains("transformers"));
        }
        for wrong in [Params::transformers().with("temp", 0.0), Params::transformers().with("top_p", 1.1)] {
            assert_eq!(transformers(&wrong).unwrap_err().kind, ErrorKind::Sampling);
        }
    }
}
