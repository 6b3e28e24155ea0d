//! The measures of a distribution in Python: conversions only.

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

/// -log p of a token under logits, or among the candidates that a chain left; +inf where there is no answer.
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

/// The entropy of logits; +inf if none is finite.
#[pyfunction]
#[pyo3(signature = (logits, base="nats"))]
fn entropy(logits: &Bound<'_, PyAny>, base: &str) -> PyResult<f64> {
    let base = base_of(base)?;
    with_logits(logits, |logits| Ok(metrics::entropy(logits, base)))
}

/// log(sum(exp(logits))) in nats.
#[pyfunction]
fn log_sum_exp(logits: &Bound<'_, PyAny>) -> PyResult<f64> {
    with_logits(logits, |logits| Ok(metrics::log_sum_exp(logits)))
}

/// log p, in nats, of each of the ids (float64); -inf where there is none.
#[pyfunction]
fn log_softmax<'py>(logits: &Bound<'py, PyAny>, ids: Vec<i64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
    // No row of logits reaches the largest id, so it answers for every number that is no id.
    let ids: Vec<_> = ids.into_iter().map(|id| TokenId::try_from(id).unwrap_or(TokenId::MAX)).collect();
    let mut out = Vec::new();
    with_logits(logits, |logits| {
        metrics::log_softmax_of(logits, &ids, &mut out);
        Ok(())
    })?;
    Ok(PyArray1::from_vec(logits.py(), out))
}

/// The n best (id, probability), descending.
#[pyfunction]
#[pyo3(signature = (logits, n=10))]
fn top_candidates(logits: &Bound<'_, PyAny>, n: usize) -> PyResult<Vec<(TokenId, f64)>> {
    with_logits(logits, |logits| {
        Ok(metrics::top_candidates(logits, n).iter().map(|t| (t.id, t.probability)).collect())
    })
}

/// Perplexity over a growing text, or its last `window` surprisals: exp of their mean (in nats); +inf before the first.
#[pyclass(name = "RollingPerplexity", module = "logitree")]
struct PyRollingPerplexity(metrics::RollingPerplexity);

#[pymethods]
impl PyRollingPerplexity {
    #[new]
    #[pyo3(signature = (window=None))]
    fn new(window: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(PyRollingPerplexity(rolling(window)?))
    }

    /// Adds a surprisal in nats; what is not finite is passed over.
    fn add(&mut self, surprisal: f64) {
        self.0.add(surprisal);
    }

    /// exp(sum / count).
    #[getter]
    fn value(&self) -> f64 {
        self.0.value()
    }

    /// How many surprisals it is the mean of.
    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    /// How many surprisals it looks back at; None: all.
    #[getter]
    fn window(&self) -> Option<usize> {
        self.0.window()
    }

    /// Back to none.
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
#[pyclass(name = "PerplexityGate", module = "logitree")]
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

    /// Adds a surprisal in nats; whether the gate is open then. What is not finite is passed over.
    fn add(&mut self, surprisal: f64) -> bool {
        self.0.add(surprisal)
    }

    /// Whether it is open.
    #[getter]
    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// The perplexity as it stands; +inf before the first surprisal.
    #[getter]
    fn value(&self) -> f64 {
        self.0.perplexity().value()
    }

    /// The limit.
    #[getter]
    fn limit(&self) -> f64 {
        self.0.limit()
    }

    /// Back to the beginning, closed.
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
