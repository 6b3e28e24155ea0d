//! Whole chains in the order of their owners: llama.cpp's, tsampler's, and plain greedy.

use super::{Chain, Greedy, LogitBias, MinP, Params, Sampler, Temp, TopK, TopNSigma, TopP, TypP};
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
    let strange = [
        (params.dry_multiplier != 0.0, "dry_multiplier"),
        (params.xtc_probability > 0.0, "xtc_probability"),
        (params.dynatemp_range > 0.0, "dynatemp_range"),
        (params.adaptive_target >= 0.0, "adaptive_target"),
        (params.mirostat != 0, "mirostat"),
    ];
    if let Some((_, name)) = strange.iter().find(|s| s.0) {
        return Err(Error::new(ErrorKind::Sampling, format!("tsampler's chain has no use for {name}"))
            .help("use the llama_cpp chain, or name the samplers one by one"));
    }
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
}
