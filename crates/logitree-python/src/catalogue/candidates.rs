//! Candidates as columns in Python. Conversions only.

use logitree::catalogue::BeamCandidate;
use numpy::{Element, PyArray1};
use pyo3::prelude::*;

/// Continuations of several rows, as columns of one length.
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
    pub fn new(py: Python<'_>, found: &[BeamCandidate]) -> PyCandidates {
        PyCandidates {
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
impl PyCandidates {
    fn __len__(&self) -> usize {
        self.len
    }

    fn __repr__(&self) -> String {
        format!("Candidates({})", self.len)
    }
}
