//! Beam candidates as columns in Python.

use logitree::catalogue::BeamCandidate;
use numpy::{Element, PyArray1};
use pyo3::prelude::*;

/// Continuations of several rows, as columns of one length.
#[pyclass(frozen, name = "BeamCandidates", module = "logitree._core")]
pub struct PyBeamCandidates {
    /// int64: the row that continues.
    #[pyo3(get)]
    rows: Py<PyArray1<i64>>,
    /// int32: with this token.
    #[pyo3(get)]
    tokens: Py<PyArray1<i32>>,
    /// float64: with this score.
    #[pyo3(get)]
    scores: Py<PyArray1<f64>>,
    /// int64: the state after the token.
    #[pyo3(get)]
    states: Py<PyArray1<i64>>,
    len: usize,
}

impl PyBeamCandidates {
    pub fn new(py: Python<'_>, found: &[BeamCandidate]) -> PyBeamCandidates {
        PyBeamCandidates {
            rows: column(py, found, |c| i64::from(c.row)),
            tokens: column(py, found, |c| c.token as i32),
            scores: column(py, found, |c| c.score),
            states: column(py, found, |c| c.state.0),
            len: found.len(),
        }
    }
}

/// One number of each candidate, copied into memory of NumPy's own: to give a vector away costs another object.
fn column<T: Element>(
    py: Python<'_>,
    found: &[BeamCandidate],
    number: impl Fn(&BeamCandidate) -> T,
) -> Py<PyArray1<T>> {
    let numbers: Vec<T> = found.iter().map(number).collect();
    PyArray1::from_slice(py, &numbers).unbind()
}

#[pymethods]
impl PyBeamCandidates {
    fn __len__(&self) -> usize {
        self.len
    }

    fn __repr__(&self) -> String {
        format!("BeamCandidates({})", self.len)
    }
}
