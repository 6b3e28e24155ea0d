//! The matcher in Python, whatever constraint it runs. Conversions only.

use logitree::constraint::Matcher;
use logitree::mask::{words_for, Legal};
use logitree::{Error, ErrorKind, TokenId};
use numpy::{PyArray1, PyArrayMethods, PyReadwriteArray1};
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::vocabulary::token_id;

/// A constraint running for one sequence.
#[pyclass(name = "Matcher", module = "logitree")]
pub struct PyMatcher {
    /// The core's matcher.
    pub inner: Box<dyn Matcher>,
    words: Vec<u32>,
}

impl PyMatcher {
    /// The Python face of `inner`.
    pub fn new(inner: Box<dyn Matcher>) -> Self {
        PyMatcher { inner, words: Vec::new() }
    }

    /// Writes the legal set over `words` words into the scratch buffer. Ids past the vocabulary are legal only
    /// where nothing is masked.
    fn write_words(&mut self, words: usize) -> PyResult<()> {
        self.words.resize(words, 0);
        let size = self.inner.vocabulary_size();
        match self.inner.legal().map_err(to_py)? {
            Legal::All if words > words_for(size) => self.words.fill(u32::MAX),
            legal => {
                let covered = words_for(size).min(words);
                legal.write(size, &mut self.words[..covered]);
                self.words[covered..].fill(0);
            }
        }
        Ok(())
    }
}

#[pymethods]
impl PyMatcher {
    /// The legal set as a new mask.
    fn mask<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i32>>> {
        self.write_words(words_for(self.inner.vocabulary_size()))?;
        Ok(PyArray1::from_iter(py, self.words.iter().map(|&word| word as i32)))
    }

    /// The legal set, written over `out`.
    fn fill_mask(&mut self, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let wrong = |why: String| {
            to_py(Error::new(ErrorKind::Mask, why).help("pass a writable, contiguous int32 array"))
        };
        let array = out
            .cast::<PyArray1<i32>>()
            .map_err(|_| wrong("the mask is not a one-dimensional int32 array".into()))?;
        let mut array: PyReadwriteArray1<'_, i32> =
            array.try_readwrite().map_err(|e| wrong(format!("the mask cannot be written: {e}")))?;
        let out = array.as_slice_mut().map_err(|_| wrong("the mask is not contiguous".into()))?;
        let least = words_for(self.inner.vocabulary_size());
        if out.len() < least {
            return Err(wrong(format!("the mask has {} words, and the vocabulary needs {least}", out.len())));
        }
        self.write_words(out.len())?;
        out.iter_mut().zip(&self.words).for_each(|(to, &word)| *to = word as i32);
        Ok(())
    }

    /// The legal ids, ascending; `None` where nothing is masked.
    fn legal(&mut self) -> PyResult<Option<Vec<TokenId>>> {
        let size = self.inner.vocabulary_size();
        Ok(match self.inner.legal().map_err(to_py)? {
            Legal::All => None,
            Legal::Few(ids) => Some(ids.to_vec()),
            words => Some((0..size as TokenId).filter(|&id| words.contains(id)).collect()),
        })
    }

    /// Whether `token` is legal here.
    fn is_legal(&mut self, token: i64) -> PyResult<bool> {
        let Ok(token) = TokenId::try_from(token) else { return Ok(false) };
        Ok(self.inner.legal().map_err(to_py)?.contains(token))
    }

    /// Takes one token.
    fn accept(&mut self, token: i64) -> PyResult<()> {
        self.inner.accept(token_id(token)?).map_err(to_py)
    }

    /// Forgets the last `n` tokens.
    #[pyo3(signature = (n=1))]
    fn rollback(&mut self, n: usize) -> PyResult<()> {
        self.inner.rollback(n).map_err(to_py)
    }

    /// An independent copy in the same state.
    fn fork(&self) -> PyMatcher {
        PyMatcher::new(self.inner.fork())
    }

    fn __copy__(&self) -> PyMatcher {
        self.fork()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyMatcher {
        self.fork()
    }

    /// Back to the state it was born with.
    fn reset(&mut self) {
        self.inner.reset();
    }

    /// The tokens that are the only way on from here. Changes nothing.
    fn forced_tokens(&mut self) -> PyResult<Vec<TokenId>> {
        let mut run = Vec::new();
        self.inner.forced(&mut run).map_err(to_py)?;
        Ok(run)
    }

    #[getter]
    fn is_accepting(&self) -> bool {
        self.inner.is_accepting()
    }

    #[getter]
    fn is_finished(&self) -> bool {
        self.inner.is_finished()
    }

    #[getter]
    fn accepted(&self) -> usize {
        self.inner.accepted()
    }

    /// Number of token ids that masks cover.
    #[getter]
    fn vocabulary_size(&self) -> usize {
        self.inner.vocabulary_size()
    }

    fn __repr__(&mut self) -> String {
        let size = self.inner.vocabulary_size();
        let legal = match self.inner.legal() {
            Ok(Legal::All) => "all".to_string(),
            Ok(legal) => legal.count(size).to_string(),
            Err(_) => "?".to_string(),
        };
        let state = match (self.inner.is_finished(), self.inner.is_accepting()) {
            (true, _) => ", finished",
            (_, true) => ", accepting",
            _ => "",
        };
        format!("Matcher({} accepted, {legal} of {size} tokens legal{state})", self.inner.accepted())
    }
}
