//! The constructors of the samplers that draw, but for dist, and of the dynamic temperature: conversions only.

use super::samplers::{keep_of, sampler, start_of, whole, Number, PySampler};
use crate::errors::to_py;
use logitree::sampling::{AdaptiveP, Mirostat, MirostatV2, TempExt, Xtc};
use pyo3::prelude::*;

/// A temperature between `t - delta` and `t + delta`, the higher the flatter the distribution; `delta` of 0 or less
/// is `temp(t)`.
#[pyfunction]
#[pyo3(signature = (t=Number::Is(0.8), delta=Number::Is(0.0), exponent=Number::Is(1.0)),
    text_signature = "(t=0.8, delta=0.0, exponent=1.0)")]
fn temp_ext(t: Number<'_>, delta: Number<'_>, exponent: Number<'_>) -> PyResult<PySampler> {
    let t = t.real("t")?;
    let delta = delta.real("delta")?;
    let exponent = exponent.real("exponent")?;
    Ok(sampler(TempExt::new(t, delta, exponent).map_err(to_py)?))
}

/// With probability `p`, removes what is at least `t` probable, but the least probable of it. Draws a float a step;
/// `seed`, `rng` and `sequence` as `dist`.
#[pyfunction]
#[pyo3(signature = (p=Number::Is(0.0), t=Number::Is(0.1), min_keep=None, seed=None, rng="mt19937", sequence=Number::Is(0.0)),
    text_signature = "(p=0.0, t=0.1, min_keep=None, seed=None, rng=\"mt19937\", sequence=0)")]
fn xtc(
    p: Number<'_>,
    t: Number<'_>,
    min_keep: Option<&Bound<'_, PyAny>>,
    seed: Option<&Bound<'_, PyAny>>,
    rng: &str,
    sequence: Number<'_>,
) -> PyResult<PySampler> {
    let p = p.real("p")?;
    let t = t.real("t")?;
    let sequence = sequence.count("sequence")?;
    let start = start_of(seed, rng, sequence)?;
    Ok(sampler(Xtc::new(p, t, keep_of(min_keep)?, start).map_err(to_py)?))
}

/// Keeps the best candidates so that the surprisal of what is drawn stays near `tau` bits; selects.
#[pyfunction]
#[pyo3(signature = (n_vocab=None, tau=Number::Is(5.0), eta=Number::Is(0.1), m=Number::Is(100.0), seed=None, rng="mt19937", sequence=Number::Is(0.0)),
    text_signature = "(n_vocab=None, tau=5.0, eta=0.1, m=100, seed=None, rng=\"mt19937\", sequence=0)")]
fn mirostat(
    n_vocab: Option<&Bound<'_, PyAny>>,
    tau: Number<'_>,
    eta: Number<'_>,
    m: Number<'_>,
    seed: Option<&Bound<'_, PyAny>>,
    rng: &str,
    sequence: Number<'_>,
) -> PyResult<PySampler> {
    let n_vocab = n_vocab.map(|n| whole(n, "n_vocab", 1, i32::MAX)).transpose()?;
    let tau = tau.real("tau")?;
    let eta = eta.real("eta")?;
    let m = m.int("m")?;
    let sequence = sequence.count("sequence")?;
    let start = start_of(seed, rng, sequence)?;
    Ok(sampler(Mirostat::new(n_vocab, tau, eta, m, start).map_err(to_py)?))
}

/// Keeps the candidates of at most mu bits and steers mu so that what is drawn has `tau` bits; selects.
#[pyfunction]
#[pyo3(signature = (tau=Number::Is(5.0), eta=Number::Is(0.1), seed=None, rng="mt19937", sequence=Number::Is(0.0)),
    text_signature = "(tau=5.0, eta=0.1, seed=None, rng=\"mt19937\", sequence=0)")]
fn mirostat_v2(
    tau: Number<'_>,
    eta: Number<'_>,
    seed: Option<&Bound<'_, PyAny>>,
    rng: &str,
    sequence: Number<'_>,
) -> PyResult<PySampler> {
    let tau = tau.real("tau")?;
    let eta = eta.real("eta")?;
    let sequence = sequence.count("sequence")?;
    let start = start_of(seed, rng, sequence)?;
    Ok(sampler(MirostatV2::new(tau, eta, start).map_err(to_py)?))
}

/// Prefers probabilities near `target`, corrected by the running mean of what was accepted; selects.
#[pyfunction]
#[pyo3(signature = (target, decay=Number::Is(0.9), seed=None, rng="mt19937", sequence=Number::Is(0.0)),
    text_signature = "(target, decay=0.9, seed=None, rng=\"mt19937\", sequence=0)")]
fn adaptive_p(
    target: Number<'_>,
    decay: Number<'_>,
    seed: Option<&Bound<'_, PyAny>>,
    rng: &str,
    sequence: Number<'_>,
) -> PyResult<PySampler> {
    let target = target.real("target")?;
    let decay = decay.real("decay")?;
    let sequence = sequence.count("sequence")?;
    let start = start_of(seed, rng, sequence)?;
    Ok(sampler(AdaptiveP::new(target, decay, start).map_err(to_py)?))
}

/// Adds the functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(temp_ext, m)?)?;
    m.add_function(wrap_pyfunction!(xtc, m)?)?;
    m.add_function(wrap_pyfunction!(mirostat, m)?)?;
    m.add_function(wrap_pyfunction!(mirostat_v2, m)?)?;
    m.add_function(wrap_pyfunction!(adaptive_p, m)?)?;
    Ok(())
}
