//! The tokenizer in Python: conversions only.

use std::path::PathBuf;
use std::sync::Arc;

use logitree::constraint::Canonical;
use logitree::{Result, TokenId, Tokenizer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::to_py;
use crate::matcher::PyMatcher;
use crate::vocabulary::{token_id, PyVocabulary};

/// The tokenizer of a vocabulary: a text to the tokens that the model was trained on.
///
/// It reads byte-pair encodings and SentencePiece models with scores, from a GGUF unigram models and WordPiece too; another kind is
/// a VocabularyError when it is loaded. Immutable; shared between threads.
#[pyclass(frozen, name = "Tokenizer", module = "logitree")]
pub struct PyTokenizer(pub Arc<Tokenizer>);

impl PyTokenizer {
    fn load(py: Python<'_>, read: impl FnOnce() -> Result<Tokenizer> + Send) -> PyResult<Self> {
        py.detach(read).map(|tokenizer| PyTokenizer(Arc::new(tokenizer))).map_err(to_py)
    }
}

#[pymethods]
impl PyTokenizer {
    /// The tokenizer of a GGUF file, a whole model or vocabulary-only.
    ///
    /// Raises FileError if it cannot be read; VocabularyError, naming field and byte offset, if it is malformed or its
    /// tokenizer or pre-tokenizer is of a kind that is not read.
    #[staticmethod]
    fn from_gguf(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::load(py, || Tokenizer::from_gguf(&path))
    }

    /// The tokenizer of a Hugging Face tokenizer.json: its path, or its text as bytes or a str in braces.
    ///
    /// Byte-pair encodings of bytes, or of characters with byte fallback, with what is compiled from the file's own normalizer,
    /// pre-tokenizer and added tokens (docs/tokenizer.md lists the steps); any other kind is a VocabularyError.
    #[staticmethod]
    fn from_tokenizer_json(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(content) = source.cast::<PyBytes>() {
            let content = content.as_bytes();
            return Self::load(py, || Tokenizer::from_tokenizer_json_bytes(content));
        }
        match source.extract::<String>() {
            Ok(text) if text.trim_start().starts_with('{') => {
                Self::load(py, || Tokenizer::from_tokenizer_json_bytes(text.as_bytes()))
            }
            _ => {
                let path: PathBuf = source.extract()?;
                Self::load(py, || Tokenizer::from_tokenizer_json(&path))
            }
        }
    }

    /// The token ids of `text`, without tokens that begin or end a sequence.
    ///
    /// The texts of control tokens are ordinary text; those of user-defined tokens are these tokens. Raises TokenError if
    /// the vocabulary has no token for a byte of the text.
    fn encode(&self, py: Python<'_>, text: &str) -> PyResult<Vec<TokenId>> {
        py.detach(|| self.0.encode(text)).map_err(to_py)
    }

    /// Whether `tokens` are what the tokenizer gives for their bytes, without a space in front.
    ///
    /// Each run of text between control, end and user-defined tokens is taken by itself. Bytes that are no UTF-8 have no
    /// canonical spelling, nor has any text where the tokenizer changes texts (see `canonical`).
    fn is_canonical(&self, py: Python<'_>, tokens: Vec<i64>) -> PyResult<bool> {
        let tokens: Vec<TokenId> = tokens.into_iter().map(token_id).collect::<PyResult<_>>()?;
        Ok(py.detach(|| self.0.is_canonical(&tokens)))
    }

    /// A matcher that allows, of the tokens that `matcher` allows, those that the tokenizer itself would give for the text so
    /// far and some text that `matcher` allows after it.
    ///
    /// It begins in the present state of `matcher`, which it copies. `before` are the tokens before the text, such as
    /// the prompt's: a first token that continues their last piece must be what the tokenizer gives there. Without them,
    /// the text begins at the boundary of a token. `fuel` limits the work of one call, that of `matcher` included, in steps
    /// of at most about a tenth of a microsecond (10,000,000). Raises ConstraintError if the two have different vocabularies,
    /// the tokenizer makes different texts the same (unigram, WordPiece, a normalizer other than NFC and NFD), or no text
    /// has such a spelling; LimitError if it takes more than the fuel, here and in the matcher's calls.
    #[pyo3(signature = (matcher, before=None, *, fuel=None))]
    fn canonical(
        &self,
        py: Python<'_>,
        matcher: &Bound<'_, PyMatcher>,
        before: Option<Vec<i64>>,
        fuel: Option<u64>,
    ) -> PyResult<PyMatcher> {
        let before = before.unwrap_or_default().into_iter().map(token_id).collect::<PyResult<Vec<_>>>()?;
        let inner = matcher.try_borrow()?.inner.fork();
        let fuel = fuel.unwrap_or(Canonical::FUEL);
        let made = py.detach(|| Canonical::with_fuel(&*inner, &self.0, &before, fuel)).map_err(to_py)?;
        let vocabulary = Py::new(py, self.vocabulary())?;
        Ok(PyMatcher::of(Box::new(made), Some(vocabulary)))
    }

    /// The vocabulary that it was loaded with.
    #[getter]
    fn vocabulary(&self) -> PyVocabulary {
        PyVocabulary(Arc::clone(self.0.vocabulary()))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Adds the class to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyTokenizer>()
}
