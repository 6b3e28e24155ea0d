//! The constructors of the samplers that llama.cpp lacks: conversions only.

use super::samplers::{keep_of, sampler, whole, Number, PySampler};
use crate::errors::to_py;
use logitree::sampling::{
    Edt, EpsilonCutoff, EtaCutoff, HfTopH, HfTopK, HfTopP, HfTypP, MinK, NoRepeatNgram, PLess, TopH,
};
use pyo3::prelude::*;

/// Keeps the most probable candidates while their entropy is at most h times that of all (top-H decoding).
#[pyfunction]
#[pyo3(signature = (h=Number::Is(0.4)),
    text_signature = "(h=0.4)")]
fn top_h(h: Number<'_>) -> PyResult<PySampler> {
    let h = h.real("h")?;
    Ok(sampler(TopH::new(h).map_err(to_py)?))
}

/// Keeps the candidates at least as probable as two draws are to agree (p-less sampling); `norm`: p-less-norm.
#[pyfunction]
#[pyo3(signature = (norm=false))]
fn p_less(norm: bool) -> PySampler {
    sampler(PLess::new(norm))
}

/// Cuts at the steepest step of the sorted logits, or after tau over their range (min-k sampling).
#[pyfunction]
#[pyo3(signature = (tau=Number::Is(3.0)),
    text_signature = "(tau=3.0)")]
fn min_k(tau: Number<'_>) -> PyResult<PySampler> {
    let tau = tau.real("tau")?;
    Ok(sampler(MinK::new(tau).map_err(to_py)?))
}

/// Keeps the candidates of probability epsilon or more; 0 keeps all.
#[pyfunction]
#[pyo3(signature = (epsilon, min_keep=None))]
fn epsilon_cutoff(epsilon: Number<'_>, min_keep: Option<&Bound<'_, PyAny>>) -> PyResult<PySampler> {
    let epsilon = epsilon.real("epsilon")?;
    Ok(sampler(EpsilonCutoff::new(epsilon, keep_of(min_keep)?).map_err(to_py)?))
}

/// Keeps the candidates of probability min(epsilon, sqrt(epsilon) * exp(-entropy)) or more; 0 keeps all.
#[pyfunction]
#[pyo3(signature = (epsilon, min_keep=None))]
fn eta_cutoff(epsilon: Number<'_>, min_keep: Option<&Bound<'_, PyAny>>) -> PyResult<PySampler> {
    let epsilon = epsilon.real("epsilon")?;
    Ok(sampler(EtaCutoff::new(epsilon, keep_of(min_keep)?).map_err(to_py)?))
}

/// Bans the tokens that would complete an n-gram which the accepted tokens hold already; 0 bans nothing.
#[pyfunction]
fn no_repeat_ngram(n: &Bound<'_, PyAny>) -> PyResult<PySampler> {
    let n = whole(n, "n", i32::MIN, i32::MAX)?;
    Ok(sampler(NoRepeatNgram::new(n).map_err(to_py)?))
}

/// Divides the logits by t0 * n ** (theta / entropy) (entropy-based dynamic temperature).
#[pyfunction]
#[pyo3(signature = (t0, theta, n=Number::Is(0.8)),
    text_signature = "(t0, theta, n=0.8)")]
fn edt(t0: Number<'_>, theta: Number<'_>, n: Number<'_>) -> PyResult<PySampler> {
    let t0 = t0.real("t0")?;
    let theta = theta.real("theta")?;
    let n = n.real("n")?;
    Ok(sampler(Edt::new(t0, theta, n).map_err(to_py)?))
}

/// transformers' top-H: of the best hundred those up to which the entropy's terms sum to h of it; 0 keeps all.
#[pyfunction]
#[pyo3(signature = (h=Number::Is(0.4)),
    text_signature = "(h=0.4)")]
fn hf_top_h(h: Number<'_>) -> PyResult<PySampler> {
    let h = h.real("h")?;
    Ok(sampler(HfTopH::new(h).map_err(to_py)?))
}

/// transformers' top-k: the k best and all that equal the last of them; 0 or less keeps all.
#[pyfunction]
#[pyo3(signature = (k=Number::Is(50.0), min_keep=None),
    text_signature = "(k=50, min_keep=None)")]
fn hf_top_k(k: Number<'_>, min_keep: Option<&Bound<'_, PyAny>>) -> PyResult<PySampler> {
    let k = k.int("k")?;
    Ok(sampler(HfTopK::new(k, keep_of(min_keep)?)))
}

/// transformers' top-p: removes the least probable that sum to at most 1 - p; 1 keeps all.
#[pyfunction]
#[pyo3(signature = (p, min_keep=None))]
fn hf_top_p(p: Number<'_>, min_keep: Option<&Bound<'_, PyAny>>) -> PyResult<PySampler> {
    let p = p.real("p")?;
    Ok(sampler(HfTopP::new(p, keep_of(min_keep)?).map_err(to_py)?))
}

/// transformers' typical decoding: as near to the entropy as the last that is needed to reach p; 1 keeps all.
#[pyfunction]
#[pyo3(signature = (p, min_keep=None))]
fn hf_typ_p(p: Number<'_>, min_keep: Option<&Bound<'_, PyAny>>) -> PyResult<PySampler> {
    let p = p.real("p")?;
    Ok(sampler(HfTypP::new(p, keep_of(min_keep)?).map_err(to_py)?))
}

/// Adds the functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(top_h, m)?)?;
    m.add_function(wrap_pyfunction!(p_less, m)?)?;
    m.add_function(wrap_pyfunction!(min_k, m)?)?;
    m.add_function(wrap_pyfunction!(epsilon_cutoff, m)?)?;
    m.add_function(wrap_pyfunction!(eta_cutoff, m)?)?;
    m.add_function(wrap_pyfunction!(no_repeat_ngram, m)?)?;
    m.add_function(wrap_pyfunction!(edt, m)?)?;
    m.add_function(wrap_pyfunction!(hf_top_h, m)?)?;
    m.add_function(wrap_pyfunction!(hf_top_k, m)?)?;
    m.add_function(wrap_pyfunction!(hf_top_p, m)?)?;
    m.add_function(wrap_pyfunction!(hf_typ_p, m)?)?;
    Ok(())
}
