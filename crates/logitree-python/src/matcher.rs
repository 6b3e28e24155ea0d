//! The matcher in Python, whatever constraint it runs. Conversions only.
#![allow(unsafe_code)] // writes into NumPy's memory, which nothing else borrows meanwhile

use std::sync::Arc;

use logitree::constraint::{
    accept_all, certain, count_allowed, count_closed, explain, fill, shortest_ending, ExplainQuery, Matcher,
};
use logitree::mask::{words_for, AllowedTokens};
use logitree::vocabulary::Vocabulary;
use logitree::{Error, ErrorKind, TokenId};
use numpy::PyArray1;
use pyo3::exceptions::{PyDeprecationWarning, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::allowed::PyAllowedTokens;
use crate::base::PyConstraint;
use crate::constraint::text_bytes;
use crate::errors::to_py;
use crate::grammar::{drafts, tokens_of, PyExplanation};
use crate::mask::one_row_mut;
use crate::vocabulary::{token_id, PyVocabulary};

/// A constraint bound to a vocabulary, with the state of one sequence: which tokens are allowed after those accepted.
///
/// Not for two threads at once; `fork` gives each its own.
#[pyclass(extends = PyConstraint, name = "Matcher", module = "logitree")]
pub struct PyMatcher {
    /// The core's matcher.
    pub inner: Box<dyn Matcher>,
    /// What its tokens are, where it is known.
    vocabulary: Option<Py<PyVocabulary>>,
}

impl PyMatcher {
    /// The Python face of `inner`, over a vocabulary.
    pub fn of(inner: Box<dyn Matcher>, vocabulary: Option<Py<PyVocabulary>>) -> Self {
        PyMatcher { inner, vocabulary }
    }

    /// The matcher's vocabulary; for one release also the one that a call was given.
    fn known(&self, given: Option<&Bound<'_, PyVocabulary>>) -> PyResult<Arc<Vocabulary>> {
        if let Some(given) = given {
            let message =
                c"vocabulary= is not needed: a matcher has the vocabulary of matcher(vocabulary) now";
            PyErr::warn(given.py(), &given.py().get_type::<PyDeprecationWarning>(), message, 1)?;
        }
        if let Some(known) = self.vocabulary.as_ref().map(|own| own.get()).or(given.map(Bound::get)) {
            return Ok(Arc::clone(&known.0));
        }
        let error = Error::new(ErrorKind::Constraint, "the matcher does not know its vocabulary");
        Err(to_py(error.help("make it with one: constraint.matcher(vocabulary)")))
    }

    /// Writes the allowed tokens over `out`, one row.
    pub fn fill(&mut self, py: Python<'_>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut rows = one_row_mut(out)?;
        // SAFETY: this is the only slice.
        let words = unsafe { rows.row_mut::<u32>(0)? };
        self.work(py, |matcher| fill(matcher, words)).map_err(to_py)
    }

    /// Works on the matcher: with the interpreter where it is quick, without where something must be found out first.
    fn work<T: Send>(&mut self, py: Python<'_>, call: impl FnOnce(&mut dyn Matcher) -> T + Send) -> T {
        if self.inner.is_ready() {
            call(&mut *self.inner)
        } else {
            py.detach(|| call(&mut *self.inner))
        }
    }
}

/// Matchers, and the vocabulary of the first that knows its own.
type Forks = (Vec<Box<dyn Matcher>>, Option<Py<PyVocabulary>>);

/// Forks of one matcher, or of each of several.
pub fn forks_of(object: &Bound<'_, PyAny>) -> PyResult<Forks> {
    let (mut forks, mut vocabulary) = (Vec::new(), None);
    let mut push = |object: &Bound<'_, PyAny>| -> PyResult<()> {
        let Ok(matcher) = object.cast::<PyMatcher>() else {
            let message = format!("intersect takes matchers, not {}", object.get_type().name()?);
            return Err(PyTypeError::new_err(message));
        };
        let Ok(matcher) = matcher.try_borrow() else {
            let error = Error::new(ErrorKind::State, "a matcher of intersect is in use elsewhere");
            return Err(to_py(error.help("give a fork of it")));
        };
        forks.push(matcher.inner.fork());
        let Some(known) = &matcher.vocabulary else { return Ok(()) };
        let first = vocabulary.get_or_insert_with(|| known.clone_ref(object.py()));
        if first.get().0.fingerprint() != known.get().0.fingerprint() {
            let error = Error::new(ErrorKind::Constraint, "matchers of different vocabularies");
            return Err(to_py(error.help("make all that is intersected with the same vocabulary")));
        }
        Ok(())
    };
    match object.try_iter() {
        Ok(several) if !object.is_instance_of::<PyMatcher>() => {
            several.into_iter().try_for_each(|one| push(&one?))?;
        }
        _ => push(object)?,
    }
    Ok((forks, vocabulary))
}

#[pymethods]
impl PyMatcher {
    /// Deprecated: `allowed().mask()`. The allowed tokens as a new int32 array of `ceil(vocabulary_size / 32)` words.
    ///
    /// Bit `id % 32` of word `id // 32`, least significant first. Raises StateError as `allowed`.
    fn mask<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let words = PyArray1::<i32>::zeros(py, words_for(self.inner.vocabulary_size()), false);
        self.fill_mask(py, words.as_any())?;
        Ok(words)
    }

    /// Deprecated: `masks.fill_batch(matcher, out)`. Writes the allowed tokens over `out`.
    fn fill_mask(&mut self, py: Python<'_>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        self.fill(py, out)
    }

    /// The tokens that may come next. Raises StateError at the end of a constraint that no token ends.
    fn allowed(&mut self, py: Python<'_>) -> PyResult<PyAllowedTokens> {
        let size = self.inner.vocabulary_size();
        let copy = |matcher: &mut dyn Matcher| Ok(PyAllowedTokens::new(matcher.allowed()?, size));
        self.work(py, copy).map_err(to_py)
    }

    /// The tokens of the shortest ending, in bytes: after them `is_accepting` holds. Changes nothing. `vocabulary` is
    /// deprecated: the matcher has its own.
    #[pyo3(signature = (vocabulary=None, *, max_states=20_000))]
    fn shortest_ending(
        &mut self,
        py: Python<'_>,
        vocabulary: Option<&Bound<'_, PyVocabulary>>,
        max_states: usize,
    ) -> PyResult<Vec<TokenId>> {
        let vocabulary = self.known(vocabulary)?;
        py.detach(|| shortest_ending(&*self.inner, &vocabulary, max_states)).map_err(to_py)
    }

    /// The text that is certain: the bytes that every legal continuation begins with, however it is cut into tokens, and
    /// whether the text may end after them.
    ///
    /// At most `max_bytes`; fewer where finding them takes long. Empty where the text may end here, or where a special
    /// token may come. Changes nothing. `vocabulary` is deprecated: the matcher has its own.
    #[pyo3(signature = (vocabulary=None, *, max_bytes=256))]
    fn certain_bytes<'py>(
        &mut self,
        py: Python<'py>,
        vocabulary: Option<&Bound<'py, PyVocabulary>>,
        max_bytes: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, bool)> {
        let known = self.known(vocabulary)?;
        let found = self.work(py, |matcher| certain(matcher, &known, max_bytes)).map_err(to_py)?;
        Ok((PyBytes::new(py, &found.bytes), found.complete))
    }

    /// How many of `tokens`, from the first, are allowed and closed: no allowed token begins with the bytes of the last few
    /// of them and reaches past their end. At most four at the end are open. Changes nothing. `vocabulary` is deprecated: the matcher
    /// has its own.
    #[pyo3(signature = (tokens, vocabulary=None))]
    fn count_closed(
        &mut self,
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        vocabulary: Option<&Bound<'_, PyVocabulary>>,
    ) -> PyResult<usize> {
        let (tokens, known) = (tokens_of(tokens)?, self.known(vocabulary)?);
        py.detach(|| count_closed(&mut *self.inner, &known, &tokens)).map_err(to_py)
    }

    /// Whether `token` is allowed here.
    fn is_allowed(&mut self, py: Python<'_>, token: i64) -> PyResult<bool> {
        let Ok(token) = TokenId::try_from(token) else { return Ok(false) };
        self.work(py, |matcher| matcher.is_allowed(token)).map_err(to_py)
    }

    /// Accepts one token. Raises TokenError, and changes nothing, if it is not allowed here.
    fn accept(&mut self, py: Python<'_>, token: i64) -> PyResult<()> {
        let token = token_id(token)?;
        self.work(py, |matcher| matcher.accept(token)).map_err(to_py)
    }

    /// Accepts all of `tokens` or none. Raises TokenError, with its place in the list, for the first that is not allowed.
    fn accept_many(&mut self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<()> {
        let tokens = tokens_of(tokens)?;
        py.detach(|| accept_all(&mut *self.inner, &tokens)).map_err(to_py)
    }

    /// How many of `tokens` are allowed, one after the other. Changes nothing.
    fn validate(&mut self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<usize> {
        let tokens = tokens_of(tokens)?;
        py.detach(|| count_allowed(&mut *self.inner, &tokens)).map_err(to_py)
    }

    /// The masks of drafted tokens in one call, for speculative decoding. Changes nothing.
    ///
    /// `draft` is a list of n tokens, each after the previous one, or a tree `(parents, tokens)`: `parents[i]` is the
    /// index of the node before node i (less than i), or -1 for the matcher's current state. `out` has n + 1 rows (int32
    /// or uint32): row 0 is the mask of the current state, row i + 1 the mask after node i. Returns which nodes are
    /// allowed, each after its parents: bool, shape [n]. Rows of the others are 0.
    ///
    /// Raises MaskError for an `out` that does not fit, TokenError for parents that are not a tree.
    fn draft_masks<'py>(
        &mut self,
        py: Python<'py>,
        draft: &Bound<'py, PyAny>,
        out: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        drafts(py, &mut *self.inner, draft, out)
    }

    /// What is allowed here, and whether `token` or `text` is, with the byte at which it is refused.
    ///
    /// Raises TokenError for an id that is not in the vocabulary. `vocabulary` is deprecated: the matcher has its own.
    #[pyo3(signature = (token=None, *, text=None, vocabulary=None))]
    fn explain(
        &mut self,
        py: Python<'_>,
        token: Option<i64>,
        text: Option<&Bound<'_, PyAny>>,
        vocabulary: Option<&Bound<'_, PyVocabulary>>,
    ) -> PyResult<PyExplanation> {
        let misused =
            |message: &str, help: &str| Err(to_py(Error::new(ErrorKind::Constraint, message).help(help)));
        let known = self.known(vocabulary)?;
        let text = text.map(|text| text_bytes(text, "text")).transpose()?;
        let ask = match (token, &text) {
            (Some(_), Some(_)) => return misused("both a token and a text", "ask about one of them"),
            (Some(token), None) => ExplainQuery::Token(token_id(token)?),
            (None, Some(text)) => ExplainQuery::Text(text),
            (None, None) => ExplainQuery::Anything,
        };
        let explanation = py.detach(|| explain(&mut *self.inner, &known, ask));
        explanation.map(PyExplanation).map_err(to_py)
    }

    /// Forgets the last `n` tokens. Raises StateError, and changes nothing, if fewer were accepted.
    #[pyo3(signature = (n=1))]
    fn rollback(&mut self, n: usize) -> PyResult<()> {
        self.inner.rollback(n).map_err(to_py)
    }

    /// A copy in the same state: as a constraint, a matcher is what may follow.
    #[pyo3(name = "matcher", signature = (vocabulary, /))]
    fn of_constraint(&self, py: Python<'_>, vocabulary: &Bound<'_, PyVocabulary>) -> PyMatcher {
        let _ = vocabulary;
        self.fork(py)
    }

    /// An independent copy in the same state.
    fn fork(&self, py: Python<'_>) -> PyMatcher {
        PyMatcher::of(self.inner.fork(), self.vocabulary.as_ref().map(|v| v.clone_ref(py)))
    }

    /// The same as `fork`, by llama.cpp's name.
    #[pyo3(name = "clone")]
    fn copied(&self, py: Python<'_>) -> PyMatcher {
        self.fork(py)
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let message = format!(
            "a {} cannot be pickled: it belongs to a vocabulary in this process; pickle the constraint and the tokens \
             accepted so far, and give them to constraint.matcher(vocabulary) and accept_many(tokens)",
            slf.get_type().name()?
        );
        Err(PyTypeError::new_err(message))
    }

    fn __copy__(&self, py: Python<'_>) -> PyMatcher {
        self.fork(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyMatcher {
        self.fork(py)
    }

    /// Returns to the state in which it was made.
    fn reset(&mut self) {
        self.inner.reset();
    }

    /// The forced tokens: the run of tokens from here that are each the only one allowed. Changes nothing.
    fn forced_tokens(&mut self, py: Python<'_>) -> PyResult<Vec<TokenId>> {
        let mut run = Vec::new();
        self.work(py, |matcher| matcher.forced(&mut run)).map_err(to_py)?;
        Ok(run)
    }

    /// Whether what was accepted is complete (more may still be allowed).
    #[getter]
    fn is_accepting(&self) -> bool {
        self.inner.is_accepting()
    }

    /// The temperature at which the next token is to be sampled, where a rule of the grammar has one (`temperature=`): that of
    /// the innermost rule, the highest where the text may be in several. None: the sampler's own. Decoders, `generate` and the
    /// server sample at it; what only masks does not.
    #[getter]
    fn temperature(&self) -> Option<f32> {
        self.inner.temperature()
    }

    /// Whether the constraint has ended: complete, with no continuation. Then the end tokens alone are allowed (its own, or
    /// the vocabulary's), and after them too, unless `is_open_ended`.
    ///
    /// Without end tokens nothing may follow: `allowed` and the masks raise StateError.
    #[getter]
    fn is_finished(&self) -> bool {
        self.inner.is_finished()
    }

    /// Whether anything may follow the end of the constraint: nothing is masked there. So it is with token trees, which pin
    /// one span of a text; the caller says what comes after it.
    #[getter]
    fn is_open_ended(&self) -> bool {
        self.inner.after_end().is_free()
    }

    /// Number of tokens accepted.
    #[getter]
    fn accepted(&self) -> usize {
        self.inner.accepted()
    }

    /// An allowed token and the number that the constraint adds to its logit here, or None.
    ///
    /// `Decoder` adds it. Without a decoder, add it before the chain: `chain.steer([matcher.bias()])`.
    fn bias(&mut self, py: Python<'_>) -> PyResult<Option<(TokenId, f32)>> {
        self.work(py, |matcher| matcher.bias()).map_err(to_py)
    }

    /// The vocabulary that its tokens are of; None where it was made without one.
    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Option<Py<PyVocabulary>> {
        self.vocabulary.as_ref().map(|own| own.clone_ref(py))
    }

    /// Number of token ids that masks cover.
    #[getter]
    fn vocabulary_size(&self) -> usize {
        self.inner.vocabulary_size()
    }

    fn __repr__(&mut self) -> String {
        let size = self.inner.vocabulary_size();
        let allowed = match self.inner.allowed() {
            Ok(AllowedTokens::All) => "all".to_string(),
            Ok(allowed) => allowed.count(size).to_string(),
            Err(_) => "?".to_string(),
        };
        let state = match (self.inner.is_finished(), self.inner.is_accepting()) {
            (true, _) => ", finished",
            (_, true) => ", accepting",
            _ => "",
        };
        format!("Matcher({} accepted, {allowed} of {size} tokens allowed{state})", self.inner.accepted())
    }
}
