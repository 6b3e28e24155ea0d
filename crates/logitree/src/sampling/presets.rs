//! Whole chains in the order of their owners: llama.cpp's, tsampler's, transformers', and plain greedy.

use super::{Chain, EpsilonCutoff, EtaCutoff, Greedy, HfTopH, HfTopK, HfTopP, HfTypP, LogitBias, MinP};
use super::{NoRepeatNgram, Params, Penalties, Sampler, Temp, TopK, TopNSigma, TopP, TypP};
use crate::{Error, ErrorKind, Result};

/// llama.cpp's default order: logit_bias, penalties, top_n_sigma, top_k, typ_p, top_p, min_p, temp, dist.
///
/// # Errors
/// [`crate::ErrorKind::Sampling`] for parameters that mean nothing.
pub fn llama_cpp(params: &Params) -> Result<Chain> {
    let params = &params.settled();
    assemble(
        vec![
            penalties(params)?,
            Box::new(TopNSigma::new(params.top_n_sigma)?),
            Box::new(TopK::new(params.top_k)),
            Box::new(TypP::new(params.typ_p, params.min_keep)?),
            Box::new(TopP::new(params.top_p, params.min_keep)?),
            Box::new(MinP::new(params.min_p, params.min_keep)?),
            Box::new(Temp::new(params.temp)?),
        ],
        params,
    )
}

/// tsampler's order: penalties, top_k, typ_p, top_p, min_p, top_n_sigma, temp, dist; use [`Params::tsampler`].
///
/// As there, a temperature below 0.001 or a top_k of 1 is greedy after the penalties, and a top_k of 0 keeps the
/// best 256 (512 before typ_p). The draws are llama.cpp's, for tsampler's are not published.
///
/// # Errors
/// [`crate::ErrorKind::Sampling`] for parameters that mean nothing.
pub fn tsampler(params: &Params) -> Result<Chain> {
    let params = &params.settled();
    // Built before the choice, so that wrong parameters are wrong in any case.
    let rest: [Box<dyn Sampler>; 5] = [
        Box::new(TypP::new(params.typ_p, params.min_keep)?),
        Box::new(TopP::new(params.top_p, params.min_keep)?),
        Box::new(MinP::new(params.min_p, params.min_keep)?),
        Box::new(TopNSigma::new(params.top_n_sigma)?),
        Box::new(Temp::new(params.temp)?),
    ];
    let mut samplers = vec![penalties(params)?];
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
            penalties(params)?,
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

fn penalties(params: &Params) -> Result<Box<dyn Sampler>> {
    let (repeat, freq, present) = (params.penalty_repeat, params.penalty_freq, params.penalty_present);
    Ok(Box::new(Penalties::new(params.penalty_last_n, repeat, freq, present)?))
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
            "logit_bias({1: 2}) -> penalties(last_n=64, repeat=1, freq=0, present=0) -> top_n_sigma(-1) -> \
             top_k(40) -> typ_p(1) -> top_p(0.95) -> min_p(0.05) -> temp(0.8) -> dist(seed=0)"
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
        assert!(tsampler(&Params { top_k: 1, top_p: f32::NAN, ..Params::tsampler() }).is_err());
        let described = transformers(&Params { seed: Some(0), ..Params::transformers() }).unwrap().describe();
        assert_eq!(
            described,
            "penalties(last_n=2147483647, repeat=1, freq=0, present=0) -> no_repeat_ngram(0) -> temp(1) -> \
             hf_top_h(0) -> hf_top_k(50) -> hf_top_p(1) -> min_p(0) -> hf_typ_p(1) -> epsilon_cutoff(0) -> \
             eta_cutoff(0) -> dist(seed=0)"
        );
        for wrong in
            [Params { temp: 0.0, ..Params::transformers() }, Params { top_p: 1.1, ..Params::transformers() }]
        {
            assert_eq!(transformers(&wrong).unwrap_err().kind, ErrorKind::Sampling);
        }
    }
}
