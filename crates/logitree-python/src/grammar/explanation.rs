//! What may come and why not, in Python. Conversions only.

use logitree::constraint::{Explanation, Verdict};
use logitree::TokenId;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// What a matcher allows in its current state, and why a token or a text is refused; `str` gives it in words.
#[pyclass(frozen, name = "Explanation", module = "logitree")]
pub struct PyExplanation(pub Explanation);

impl PyExplanation {
    fn verdict(&self) -> Option<&Verdict> {
        self.0.verdict.as_ref()
    }
}

#[pymethods]
impl PyExplanation {
    /// What is expected, in words; empty if unknown.
    #[getter]
    fn expected(&self) -> Vec<String> {
        self.0.expected.clone()
    }

    /// Whether what was accepted is complete.
    #[getter]
    fn is_accepting(&self) -> bool {
        self.0.accepting
    }

    /// Number of allowed tokens; None where nothing is masked.
    #[getter]
    fn allowed(&self) -> Option<usize> {
        self.0.allowed
    }

    /// The first allowed tokens by id, at most 12: (id, bytes).
    #[getter]
    fn first<'py>(&self, py: Python<'py>) -> Vec<(TokenId, Bound<'py, PyBytes>)> {
        self.0.first.iter().map(|(id, bytes)| (*id, PyBytes::new(py, bytes))).collect()
    }

    /// The token that was asked about, or None.
    #[getter]
    fn token(&self) -> Option<TokenId> {
        self.verdict().and_then(|verdict| verdict.token)
    }

    /// The bytes that were asked about, or None.
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.verdict().map(|verdict| PyBytes::new(py, &verdict.bytes))
    }

    /// Whether the token or the text that was asked about may come; None if nothing was asked.
    #[getter]
    fn is_allowed(&self) -> Option<bool> {
        self.verdict().map(|verdict| verdict.allowed)
    }

    /// How many of the bytes that were asked about may come; None if nothing was asked.
    #[getter]
    fn taken(&self) -> Option<usize> {
        self.verdict().map(|verdict| verdict.taken)
    }

    /// What is expected after those bytes; empty if unknown.
    #[getter]
    fn expected_there(&self) -> Vec<String> {
        self.verdict().map_or_else(Vec::new, |verdict| verdict.expected.clone())
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let first = self.0.to_string();
        format!("<Explanation: {}>", first.lines().next().unwrap_or_default())
    }
}
