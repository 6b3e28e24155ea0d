//! `AllowedTokens` in Python: the set of token ids that a matcher allows next, as a value of its own.

use logitree::mask::{words_for, AllowedTokens, TokenSet};
use logitree::TokenId;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// The token ids that may come next: a set of ids below the vocabulary's size, fixed when it was asked for.
///
/// `len(allowed)` counts them, `token in allowed` looks one up and iteration gives them in ascending order. Attributes:
/// `is_all` (nothing is masked), `ids` (uint32 array, ascending), `vocabulary_size`. Two are equal if they hold the same
/// ids of vocabularies of the same size.
#[pyclass(frozen, name = "AllowedTokens", module = "logitree")]
pub struct PyAllowedTokens {
    size: usize,
    tokens: TokenSet,
}

impl PyAllowedTokens {
    /// A copy of `allowed`, among the ids `0..size`.
    pub fn new(allowed: AllowedTokens<'_>, size: usize) -> Self {
        PyAllowedTokens { size, tokens: TokenSet::copy(allowed, size) }
    }

    /// The core's view of the set.
    pub fn borrow(&self) -> AllowedTokens<'_> {
        // A copy has a form that can be borrowed.
        self.tokens.borrow().unwrap_or(AllowedTokens::Ids(&[]))
    }

    fn to_ids(&self) -> Vec<TokenId> {
        self.tokens.ids(self.size)
    }
}

#[pymethods]
impl PyAllowedTokens {
    /// Whether every token is allowed: the matcher masks nothing.
    #[getter]
    fn is_all(&self) -> bool {
        matches!(self.tokens, TokenSet::All)
    }

    /// The ids, ascending: a new uint32 array.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_vec(py, self.to_ids())
    }

    /// Number of ids that the mask covers.
    #[getter]
    fn vocabulary_size(&self) -> usize {
        self.size
    }

    /// The same set as a new mask: int32 words, shape [ceil(vocabulary_size / 32)], least significant bit first.
    fn mask<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        let mut words = vec![0; words_for(self.size)];
        self.tokens.write(self.size, &mut words);
        PyArray1::from_iter(py, words.into_iter().map(u32::cast_signed))
    }

    fn __len__(&self) -> usize {
        self.borrow().count(self.size)
    }

    fn __contains__(&self, token: i64) -> bool {
        TokenId::try_from(token).is_ok_and(|id| (id as usize) < self.size && self.borrow().contains(id))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyList::new(py, self.to_ids())?.try_iter()?.into_any())
    }

    fn __eq__(&self, other: &PyAllowedTokens) -> bool {
        self.size == other.size && (self.borrow() == other.borrow() || self.to_ids() == other.to_ids())
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (self.size, self.to_ids()).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        if self.is_all() {
            return format!("AllowedTokens(all {})", self.size);
        }
        let ids = self.to_ids();
        let shown: Vec<String> = ids.iter().take(8).map(TokenId::to_string).collect();
        let more = if ids.len() > 8 { ", …" } else { "" };
        format!("AllowedTokens({} of {}: {}{more})", ids.len(), self.size, shown.join(", "))
    }
}
