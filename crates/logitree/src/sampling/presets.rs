//! Whole chains in the order of their owners: llama.cpp's, tsampler's, transformers', and plain greedy.

use super::{Chain, EpsilonCutoff, EtaCutoff, Greedy, HfTopH, HfTopK, HfTopP, HfTypP, LogitBias, MinP};
use super::{NoRepeatNgram, Params, Sampler, Temp, TopK, TopNSigma, TopP, TypP};
use crate::{Error, ErrorKind, Result};

/// llama.cpp's default order: logit_bias, penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temp (or
/// temp_ext, with a range), dist. With `mirostat` 1 or 2 it is logit_bias, temp and that mirostat, as in llama.cpp's
/// programs (common/sampling.cpp). With an `adaptive_target` of 0 or more adaptive_p stands for dist; there it has to
/// be named.
///
/// # Errors
/// [`crate::ErrorKind::Sampling`] for parameters that mean nothing.
pub fn llama_cpp(params: &Params) -> Result<Chain> {
    let params = &params.settled();
    refuse("llama.cpp", &beyond_only(params))?;
    if params.mirostat != 0 {
        return mirostat(params);
    }
    let mut samplers: Vec<Box<dyn Sampler>> = vec![
        Box::new(params.penalties()?),
        Box::new(params.dry()?),
        Box::new(TopNSigma::new(params.top_n_sigma)?),
        Box::new(TopK::new(params.top_k)),
        Box::new(TypP::new(params.typ_p, params.min_keep)?),
        Box::new(TopP::new(params.top_p, params.min_keep)?),
        Box::new(MinP::new(params.min_p, params.min_keep)?),
        Box::new(params.xtc()?),
        params.temperature()?,
    ];
    let adaptive = params.adaptive_p()?;
    if params.adaptive_target >= 0.0 {
        samplers.push(Box::new(adaptive));
    }
    assemble(samplers, params)
}

/// The biases, the temperature and the mirostat that `params` ask for.
pub(super) fn mirostat(params: &Params) -> Result<Chain> {
    let last: Box<dyn Sampler> = match params.mirostat {
        1 => Box::new(params.mirostat_v1()?),
        2 => Box::new(params.mirostat_v2()?),
        other => {
            return Err(Error::new(ErrorKind::Sampling, format!("there is no mirostat {other}"))
                .help("1 is mirostat, 2 is mirostat 2.0, 0 is neither"))
        }
    };
    assemble(vec![Box::new(Temp::new(params.temp)?), last], params)
}

/// What only llama.cpp's order has: whether `params` ask for it, and its name.
fn llama_cpp_only(params: &Params) -> [(bool, &'static str); 5] {
    [
        (params.dry_multiplier != 0.0, "dry_multiplier"),
        (params.xtc_probability > 0.0, "xtc_probability"),
        (params.dynatemp_range > 0.0, "dynatemp_range"),
        (params.adaptive_target >= 0.0, "adaptive_target"),
        (params.mirostat != 0, "mirostat"),
    ]
}

/// What no order of an owner has, but for a few that transformers has.
fn beyond_only(params: &Params) -> [(bool, &'static str); 8] {
    let usual = Params::default();
    [
        (params.min_k != usual.min_k, "min_k"),
        (params.p_less_norm, "p_less_norm"),
        (params.edt_theta != usual.edt_theta, "edt_theta"),
        (params.edt_n != usual.edt_n, "edt_n"),
        (params.top_h != usual.top_h, "top_h"),
        (params.no_repeat_ngram > 0, "no_repeat_ngram"),
        (params.epsilon_cutoff > 0.0, "epsilon_cutoff"),
        (params.eta_cutoff > 0.0, "eta_cutoff"),
    ]
}

/// An error if a parameter is asked for that the chain of `owner` has no sampler for.
fn refuse(owner: &str, strange: &[(bool, &str)]) -> Result<()> {
    match strange.iter().find(|s| s.0) {
        None => Ok(()),
        Some((_, name)) => {
            Err(Error::new(ErrorKind::Sampling, format!("the chain of {owner} has no use for {name}")).help(
                "use the chain of another owner (llama_cpp, transformers), or name the samplers one by one",
            ))
        }
    }
}

/// tsampler's order: penalties, top_k, typ_p, top_p, min_p, top_n_sigma, temp, dist; use [`Params::tsampler`].
///
/// As there, a temperature below 0.001 or a top_k of 1 is greedy after the penalties, and a top_k of 0 keeps the
/// best 256 (512 before typ_p). The draws are llama.cpp's, for tsampler's are not published.
///
/// # Errors
/// [`crate::ErrorKind::Sampling`] for parameters that mean nothing, and for those that switch on a sampler that
/// tsampler has not: dry, xtc, dynamic temperature, adaptive_p, mirostat.
pub fn tsampler(params: &Params) -> Result<Chain> {
    let params = &params.settled();
    refuse("tsampler", &[&llama_cpp_only(params)[..], &beyond_only(params)[..]].concat())?;
    // Built before the choice, so that wrong parameters are wrong in any case.
    let rest: [Box<dyn Sampler>; 5] = [
        Box::new(TypP::new(params.typ_p, params.min_keep)?),
        Box::new(TopP::new(params.top_p, params.min_keep)?),
        Box::new(MinP::new(params.min_p, params.min_keep)?),
        Box::new(TopNSigma::new(params.top_n_sigma)?),
        Box::new(Temp::new(params.temp)?),
    ];
    let mut samplers = vec![Box::new(params.penalties()?) as Box<dyn Sampler>];
    if params.temp < 1e-3 || params.top_k == 1 {
        samplers.push(Box::new(Greedy));
        return assemble(samplers, params);
    }
    let k = match params.top_k {
        1.. => params.top_k,
        _ if params.typ_p < 1.0 => 512,
        _ => 256,
    };
    samplers.push(Box::new(TopK::new(k)));
    samplers.extend(rest);
    assemble(samplers, params)
}

/// transformers' order, that of `GenerationMixin._get_logits_processor` (5.23) with `do_sample`: logit_bias,
/// penalties, no_repeat_ngram, temp, hf_top_h, hf_top_k, hf_top_p, min_p, hf_typ_p, epsilon_cutoff, eta_cutoff, dist;
/// use [`Params::transformers`].
///
/// The same candidates stay as there, with the same probabilities; `min_keep` is `min_tokens_to_keep`. Accept the
/// prompt too: penalties and no_repeat_ngram look at all of it there. The draws are `dist`'s, for those of
/// `torch.multinomial` are torch's own.
///
/// # Errors
/// [`ErrorKind::Sampling`] for parameters that mean nothing, as a temperature of 0 does there.
pub fn transformers(params: &Params) -> Result<Chain> {
    let strange = (params.top_n_sigma > 0.0, "top_n_sigma");
    refuse("transformers", &[&llama_cpp_only(params)[..], &beyond_only(params)[..4], &[strange]].concat())?;
    if params.temp <= 0.0 {
        return Err(Error::new(
            ErrorKind::Sampling,
            format!("temp of transformers' order is {}", params.temp),
        )
        .help("it must be above 0 there; for the most likely token use the greedy chain"));
    }
    let params = &params.settled();
    let keep = params.min_keep;
    assemble(
        vec![
            Box::new(params.penalties()?),
            Box::new(NoRepeatNgram::new(params.no_repeat_ngram)?),
            Box::new(Temp::new(params.temp)?),
            Box::new(HfTopH::new(params.top_h)?),
            Box::new(HfTopK::new(params.top_k, keep)),
            Box::new(HfTopP::new(params.top_p, keep)?),
            Box::new(MinP::new(params.min_p, keep)?),
            Box::new(HfTypP::new(params.typ_p, keep)?),
            Box::new(EpsilonCutoff::new(params.epsilon_cutoff, keep)?),
            Box::new(EtaCutoff::new(params.eta_cutoff, keep)?),
        ],
        params,
    )
}

/// The most likely token, nothing else.
pub fn greedy() -> Chain {
    Chain::of(vec![Box::new(Greedy)])
}

/// The chain with the biases of `params` before and `dist` after it, where they are missing.
pub(super) fn assemble(mut samplers: Vec<Box<dyn Sampler>>, params: &Params) -> Result<Chain> {
    if !params.logit_bias.is_empty() && samplers.iter().all(|s| s.name() != "logit_bias") {
        samplers.insert(0, Box::new(LogitBias::new(&params.logit_bias)?));
    }
    if samplers.last().is_none_or(|s| !s.selects()) {
        samplers.push(Box::new(params.dist()?));
    }
    Chain::new(samplers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_defaults() {
        let params = Params { seed: Some(0), logit_bias: vec![(1, 2.0)], ..Params::default() };
        let described = llama_cpp(&params).unwrap().describe();
        assert_eq!(
            described,
            "logit_bias({1: 2}) -> penalties(last_n=64, repeat=1, freq=0, present=0) -> \
             dry(0, base=1.75, allowed_length=2, last_n=64) -> top_n_sigma(-1) -> top_k(40) -> typ_p(1) -> \
             top_p(0.95) -> min_p(0.05) -> xtc(0, 0.1, seed=0) -> temp(0.8) -> dist(seed=0)"
        );
        let t = tsampler(&Params { seed: Some(7), ..Params::tsampler() }).unwrap();
        let order = ["penalties", "top_k", "typ_p", "top_p", "min_p", "top_n_sigma", "temp", "dist"];
        assert_eq!(t.names(), order);
        assert!(
            t.describe().contains("repeat=1.1") && t.seed().map(|s| s.seed) == Some(7),
            "{}",
            t.describe()
        );
        let cold = tsampler(&Params { temp: 0.0, ..Params::tsampler() }).unwrap();
        assert_eq!(cold.names(), ["penalties", "greedy"]);
        let wide = tsampler(&Params { top_k: 0, ..Params::tsampler() }).unwrap();
        assert!(wide.describe().contains("top_k(256)"));
        for strange in [
            Params { dry_multiplier: 1.0, ..Params::tsampler() },
            Params { xtc_probability: 0.1, ..Params::tsampler() },
            Params { dynatemp_range: 0.1, ..Params::tsampler() },
            Params { adaptive_target: 0.5, ..Params::tsampler() },
            Params { mirostat: 2, ..Params::tsampler() },
        ] {
            assert!(tsampler(&strange).unwrap_err().help.contains("llama_cpp"));
        }
        let adaptive = llama_cpp(&Params { adaptive_target: 0.5, ..params.clone() }).unwrap();
        assert_eq!(adaptive.names().last(), Some(&"adaptive_p"));
        let drawn = llama_cpp(&Params { mirostat: 2, ..params }).unwrap();
        assert_eq!(drawn.names(), ["logit_bias", "temp", "mirostat_v2"]);
        assert!(tsampler(&Params { top_k: 1, top_p: f32::NAN, ..Params::tsampler() }).is_err());
    }

    #[test]
    fn transformers_order_and_what_no_order_has() {
        let described = transformers(&Params { seed: Some(0), ..Params::transformers() }).unwrap().describe();
        assert_eq!(
            described,
            "penalties(last_n=2147483647, repeat=1, freq=0, present=0) -> no_repeat_ngram(0) -> temp(1) -> \
             hf_top_h(0) -> hf_top_k(50) -> hf_top_p(1) -> min_p(0) -> hf_typ_p(1) -> epsilon_cutoff(0) -> \
             eta_cutoff(0) -> dist(seed=0)"
        );
        for strange in [
            Params { mirostat: 1, ..Params::transformers() },
            Params { min_k: 1.0, ..Params::transformers() },
            Params { top_n_sigma: 1.0, ..Params::transformers() },
        ] {
            assert!(transformers(&strange).unwrap_err().help.contains("llama_cpp"));
        }
        for strange in [
            Params { epsilon_cutoff: 0.1, ..Params::default() },
            Params { no_repeat_ngram: 2, ..Params::default() },
            Params { edt_theta: 1.0, ..Params::default() },
        ] {
            assert!(llama_cpp(&strange).unwrap_err().help.contains("transformers"));
            assert!(tsampler(&strange).unwrap_err().help.contains("transformers"));
        }
        for wrong in
            [Params { temp: 0.0, ..Params::transformers() }, Params { top_p: 1.1, ..Params::transformers() }]
        {
            assert_eq!(transformers(&wrong).unwrap_err().kind, ErrorKind::Sampling);
        }
    }
}
