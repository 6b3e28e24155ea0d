//! Candidates as columns in Python. Conversions only.

use logitree::beam::Candidate;
use numpy::PyArray1;
use pyo3::prelude::*;

/// Ways on of several rows, as columns.
#[pyclass(frozen, name = "Candidates", module = "logitree._core")]
pub struct PyCandidates {
    /// int64: the row that goes on.
    #[pyo3(get)]
    rows: Py<PyArray1<i64>>,
    /// int32: by this token.
    #[pyo3(get)]
    tokens: Py<PyArray1<i32>>,
    /// float64: with this score.
    #[pyo3(get)]
    scores: Py<PyArray1<f64>>,
    /// int64: to this state.
    #[pyo3(get)]
    states: Py<PyArray1<i64>>,
    len: usize,
}

impl PyCandidates {
    pub fn new(py: Python<'_>, found: &[Candidate]) -> PyCandidates {
        PyCandidates {
            rows: PyArray1::from_iter(py, found.iter().map(|c| i64::from(c.row))).unbind(),
            tokens: PyArray1::from_iter(py, found.iter().map(|c| c.token as i32)).unbind(),
            scores: PyArray1::from_iter(py, found.iter().map(|c| c.score)).unbind(),
            states: PyArray1::from_iter(py, found.iter().map(|c| c.state.0)).unbind(),
            len: found.len(),
        }
    }
}

#[pymethods]
impl PyCandidates {
    fn __len__(&self) -> usize {
        self.len
    }

    fn __repr__(&self) -> String {
        format!("Candidates({})", self.len)
    }
}
