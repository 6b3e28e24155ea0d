//! Measures of a distribution in Python: conversions only.

use crate::errors::to_py;
use crate::logits::with_logits;
use crate::sampling::whole;
use logitree::metrics::{self, Base};
use logitree::{Error, ErrorKind, TokenId};
use numpy::PyArray1;
use pyo3::prelude::*;

/// The unit that a name stands for, or a SamplingError.
pub fn base_of(name: &str) -> PyResult<Base> {
    match name {
        "nats" => Ok(Base::Nats),
        "bits" => Ok(Base::Bits),
        _ => Err(to_py(
            Error::new(ErrorKind::Sampling, format!("there is no base {name:?}"))
                .help("base is \"nats\" or \"bits\""),
        )),
    }
}

/// -log p of a token under logits of the dtypes that a chain reads; +inf for an id out of range or a masked token.
///
/// `base` is "nats" or "bits".
///
/// With `ids`, the logits are those of the candidates that `Chain.apply` left: the surprisal of the sampling
/// distribution; `entropy` of the same logits is its entropy. Raises LogitsError if their lengths differ.
#[pyfunction]
#[pyo3(signature = (logits, id, base="nats", *, ids=None))]
fn surprisal(logits: &Bound<'_, PyAny>, id: i64, base: &str, ids: Option<Vec<TokenId>>) -> PyResult<f64> {
    let base = base_of(base)?;
    with_logits(logits, |logits| match (TokenId::try_from(id), &ids) {
        (Err(_), _) => Ok(f64::INFINITY),
        (Ok(id), None) => Ok(metrics::surprisal(logits, id, base)),
        (Ok(id), Some(ids)) if ids.len() == logits.len() => {
            Ok(metrics::surprisal_among(ids, logits, id, base))
        }
        (Ok(_), Some(ids)) => {
            let message = format!("{} ids for {} logits", ids.len(), logits.len());
            Err(Error::new(ErrorKind::Logits, message).help("pass the ids and logits of one apply()"))
        }
    })
}

/// The entropy of logits; `base` is "nats" or "bits". +inf if no logit is finite.
#[pyfunction]
#[pyo3(signature = (logits, base="nats"))]
fn entropy(logits: &Bound<'_, PyAny>, base: &str) -> PyResult<f64> {
    let base = base_of(base)?;
    with_logits(logits, |logits| Ok(metrics::entropy(logits, base)))
}

/// log(sum(exp(logits))) over the finite logits, in nats; never overflows.
#[pyfunction]
fn log_sum_exp(logits: &Bound<'_, PyAny>) -> PyResult<f64> {
    with_logits(logits, |logits| Ok(metrics::log_sum_exp(logits)))
}

/// log p, in nats, of each of the ids; -inf for an id out of range or a logit that is not finite.
#[pyfunction]
fn log_softmax<'py>(logits: &Bound<'py, PyAny>, ids: Vec<i64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
    // No row of logits reaches the largest id, so it replaces every number that cannot be an id.
    let ids: Vec<_> = ids.into_iter().map(|id| TokenId::try_from(id).unwrap_or(TokenId::MAX)).collect();
    let mut out = Vec::new();
    with_logits(logits, |logits| {
        metrics::log_softmax_of(logits, &ids, &mut out);
        Ok(())
    })?;
    Ok(PyArray1::from_vec(logits.py(), out))
}

/// The n most likely tokens as (id, probability), descending, ties by id.
#[pyfunction]
#[pyo3(signature = (logits, n=10))]
fn top_candidates(logits: &Bound<'_, PyAny>, n: usize) -> PyResult<Vec<(TokenId, f64)>> {
    with_logits(logits, |logits| {
        Ok(metrics::top_candidates(logits, n).iter().map(|t| (t.id, t.probability)).collect())
    })
}

/// Perplexity of a growing text or of its last `window` tokens: exp of the mean surprisal.
///
/// Raises SamplingError for a window below 1.
#[pyclass(name = "RollingPerplexity", module = "logitree.metrics")]
struct PyRollingPerplexity(metrics::RollingPerplexity);

#[pymethods]
impl PyRollingPerplexity {
    #[new]
    #[pyo3(signature = (window=None))]
    fn new(window: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(PyRollingPerplexity(rolling(window)?))
    }

    /// Adds a surprisal in nats; a value that is not finite is ignored.
    fn add(&mut self, surprisal: f64) {
        self.0.add(surprisal);
    }

    /// exp(sum / count); +inf before the first.
    #[getter]
    fn value(&self) -> f64 {
        self.0.value()
    }

    /// Number of surprisals in the mean.
    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    /// Number of surprisals in the window; None: all.
    #[getter]
    fn window(&self) -> Option<usize> {
        self.0.window()
    }

    /// Forgets all surprisals.
    fn reset(&mut self) {
        self.0.reset();
    }

    fn __repr__(&self) -> String {
        format!("RollingPerplexity(value={}, count={})", self.0.value(), self.0.count())
    }
}

fn rolling(window: Option<&Bound<'_, PyAny>>) -> PyResult<metrics::RollingPerplexity> {
    window.map_or(Ok(metrics::RollingPerplexity::default()), |n| {
        metrics::RollingPerplexity::windowed(whole::<i32>(n, "window", 1, i32::MAX)? as usize).map_err(to_py)
    })
}

/// Opens while the perplexity has been above `limit` after `patience + 1` surprisals in a row.
///
/// `window`: number of surprisals in the perplexity; None: all. Raises SamplingError for a limit that
/// is not a finite number of at least 1, a window below 1, a patience below 0.
#[pyclass(name = "PerplexityGate", module = "logitree.steering")]
struct PyPerplexityGate(metrics::PerplexityGate);

#[pymethods]
impl PyPerplexityGate {
    #[new]
    #[pyo3(signature = (limit, window=None, patience=None))]
    fn new(
        limit: f64,
        window: Option<&Bound<'_, PyAny>>,
        patience: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let patience = patience.map_or(Ok(0), |n| whole(n, "patience", 0, u64::MAX))?;
        Ok(PyPerplexityGate(metrics::PerplexityGate::new(rolling(window)?, limit, patience).map_err(to_py)?))
    }

    /// Adds a surprisal in nats and returns whether the gate is open. A value that is not finite is ignored.
    fn add(&mut self, surprisal: f64) -> bool {
        self.0.add(surprisal)
    }

    /// Whether it is open.
    #[getter]
    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// The current perplexity; +inf before the first surprisal.
    #[getter]
    fn value(&self) -> f64 {
        self.0.perplexity().value()
    }

    /// The limit.
    #[getter]
    fn limit(&self) -> f64 {
        self.0.limit()
    }

    /// Returns to the initial state, closed.
    fn reset(&mut self) {
        self.0.reset();
    }

    fn __repr__(&self) -> String {
        let state = if self.0.is_open() { "open" } else { "closed" };
        format!("<PerplexityGate: {} of at most {}, {state}>", self.value(), self.limit())
    }
}

/// Adds the classes and functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyRollingPerplexity>()?;
    m.add_class::<PyPerplexityGate>()?;
    m.add_function(wrap_pyfunction!(surprisal, m)?)?;
    m.add_function(wrap_pyfunction!(entropy, m)?)?;
    m.add_function(wrap_pyfunction!(log_sum_exp, m)?)?;
    m.add_function(wrap_pyfunction!(log_softmax, m)?)?;
    m.add_function(wrap_pyfunction!(top_candidates, m)?)?;
    Ok(())
}
