//! The vocabulary in Python: conversions only. `python/logitree/_vocabulary.py` reads other libraries' tokenizer objects
//! and calls the constructors here.

use crate::errors::to_py;
use crate::trie::PyTokenTrie;
use logitree::constraint::{binding_count, clear_bindings, BoundGrammar};
use logitree::vocabulary::{Builder, TokenKind, Vocabulary, VocabularyOptions};
use logitree::{Error, ErrorKind, TokenId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;

/// The bytes and the kind of every token, and the tokens that end a generation. Immutable; shared between threads.
///
/// Compared and hashed by fingerprint. Pickled by value.
///
/// The leading space: if `adds_prefix_space`, the tokenizer puts one space in front of a text, and its
/// detokeniser takes one leading space off a whole text. The tokens' bytes keep that space.
///
/// Padding: logits may be longer than the vocabulary; ids past its end have no token and are never allowed.
#[pyclass(frozen, name = "Vocabulary", module = "logitree")]
pub struct PyVocabulary(pub Arc<Vocabulary>);

impl PyVocabulary {
    fn load(py: Python<'_>, read: impl FnOnce() -> logitree::Result<Vocabulary> + Send) -> PyResult<Self> {
        py.detach(read).map(|v| PyVocabulary(Arc::new(v))).map_err(to_py)
    }

    fn check(&self, id: i64) -> PyResult<TokenId> {
        let Ok(known) = TokenId::try_from(id) else {
            let last = self.0.len() - 1;
            let error = Error::new(ErrorKind::Token, format!("token id {id} is not in the vocabulary"));
            return Err(to_py(error.help(format!("ids run from 0 to {last}"))));
        };
        self.0.check(known).map_err(to_py)
    }
}

/// A Python number as a token id.
///
/// # Errors
/// `TokenError` for a number that cannot be a token id.
pub fn token_id(id: i64) -> PyResult<TokenId> {
    TokenId::try_from(id).map_err(|_| {
        to_py(
            Error::new(ErrorKind::Token, format!("{id} is no token id")).help("ids run from 0 to 2**32 - 1"),
        )
    })
}

fn python_side(
    name: &str,
    object: &Bound<'_, PyAny>,
    more: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let function = object.py().import("logitree._vocabulary")?.getattr(name)?;
    Ok(match more {
        Some(more) => function.call1((object, more))?,
        None => function.call1((object,))?,
    }
    .unbind())
}

fn ids(values: Vec<i64>, count: usize) -> PyResult<Vec<TokenId>> {
    let one = |id: i64| {
        u32::try_from(id).ok().filter(|&id| (id as usize) < count).ok_or_else(|| {
            let message = format!("special id {id} is out of range: the vocabulary has {count} tokens");
            to_py(Error::new(ErrorKind::Vocabulary, message))
        })
    };
    values.into_iter().map(one).collect()
}

fn kind_named(name: &str) -> PyResult<TokenKind> {
    TokenKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let names: Vec<_> = TokenKind::ALL.iter().map(|kind| kind.name()).collect();
        to_py(
            Error::new(ErrorKind::Vocabulary, format!("{name:?} is no kind of token"))
                .help(format!("kinds: {}", names.join(", "))),
        )
    })
}

#[pymethods]
impl PyVocabulary {
    /// The vocabulary of a GGUF file, a whole model or vocabulary-only.
    ///
    /// Raises FileError if it cannot be read; VocabularyError, naming field and byte offset, if it is
    /// malformed.
    #[staticmethod]
    fn from_gguf(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::load(py, || Vocabulary::from_gguf(&path))
    }

    /// The vocabulary of a Hugging Face tokenizer.json: its path, or its text as bytes or a str in braces.
    ///
    /// BPE and Unigram models, byte-level or SentencePiece style; a decoder whose output for one piece
    /// depends on its neighbours (WordPiece) is a VocabularyError. Ends of generation are the added tokens
    /// with well-known texts, because the file does not name them: see `replace`.
    #[staticmethod]
    fn from_tokenizer_json(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(content) = source.cast::<PyBytes>() {
            let content = content.as_bytes();
            return Self::load(py, || Vocabulary::from_tokenizer_json_bytes(content));
        }
        match source.extract::<String>() {
            Ok(text) if text.trim_start().starts_with('{') => {
                Self::load(py, || Vocabulary::from_tokenizer_json_bytes(text.as_bytes()))
            }
            _ => {
                let path: PathBuf = source.extract()?;
                Self::load(py, || Vocabulary::from_tokenizer_json(&path))
            }
        }
    }

    /// The vocabulary of a Mistral tekken JSON file: its path, or its content as bytes.
    #[staticmethod]
    fn from_tekken(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(content) = source.cast::<PyBytes>() {
            let content = content.as_bytes();
            return Self::load(py, || Vocabulary::from_tekken_bytes(content));
        }
        let path: PathBuf = source.extract()?;
        Self::load(py, || Vocabulary::from_tekken(&path))
    }

    /// The vocabulary of a SentencePiece model: its path, its content, or a SentencePieceProcessor.
    #[staticmethod]
    fn from_sentencepiece(source: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = source.py();
        let loaded = if let Ok(content) = source.cast::<PyBytes>() {
            let content = content.as_bytes();
            Self::load(py, || Vocabulary::from_sentencepiece_bytes(content))?
        } else if let Ok(path) = source.extract::<PathBuf>() {
            Self::load(py, || Vocabulary::from_sentencepiece(&path))?
        } else {
            return python_side("from_sentencepiece", source, None);
        };
        Ok(Py::new(py, loaded)?.into_any())
    }

    /// The vocabulary of a transformers tokenizer, fast or slow.
    ///
    /// End-of-generation ids: the tokenizer's eos, the generation config's where one is given, and the
    /// well-known markers. Raises VocabularyError for a tokenizer that cannot be read.
    #[staticmethod]
    #[pyo3(signature = (tokenizer, generation_config=None))]
    fn from_transformers(
        tokenizer: &Bound<'_, PyAny>,
        generation_config: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        python_side("from_transformers", tokenizer, generation_config)
    }

    /// The vocabulary of a tiktoken Encoding; ids that it leaves out are unused.
    #[staticmethod]
    fn from_tiktoken(encoding: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        python_side("from_tiktoken", encoding, None)
    }

    /// The vocabulary of a llama_cpp.Llama.
    #[staticmethod]
    fn from_llama(llm: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        python_side("from_llama", llm, None)
    }

    /// A vocabulary of `tokens`, whose ids are their positions; `source` is "tokens" unless given.
    ///
    /// `special_ids` are control tokens. `kinds` gives every token's kind (see `kind`); without it
    /// tokens are "normal", and the `end_tokens` control tokens. `find_markers` gives control and
    /// user-defined tokens with well-known texts ("<|im_end|>", "<s>", ...) the roles that they have in a
    /// GGUF file. Raises VocabularyError for ids out of range.
    #[staticmethod]
    #[pyo3(signature = (tokens, special_ids=vec![], end_tokens=vec![], bos_id=None, name=String::new(), *,
                        kinds=None, adds_prefix_space=false, source="tokens".to_string(), find_markers=false))]
    #[allow(clippy::too_many_arguments)] // they are keywords in Python
    fn from_tokens(
        tokens: &Bound<'_, PyAny>,
        special_ids: Vec<i64>,
        end_tokens: Vec<i64>,
        bos_id: Option<i64>,
        name: String,
        kinds: Option<Vec<String>>,
        adds_prefix_space: bool,
        source: String,
        find_markers: bool,
    ) -> PyResult<Self> {
        let mut builder = Builder::new();
        for token in tokens.try_iter()? {
            let token = token?;
            builder.push(TokenKind::Normal, token.cast::<PyBytes>()?.as_bytes()).map_err(to_py)?;
        }
        let count = builder.len();
        let mut ends = ids(end_tokens, count)?;
        match kinds {
            Some(kinds) if kinds.len() != count => {
                let message = format!("{} kinds for {count} tokens", kinds.len());
                return Err(to_py(Error::new(ErrorKind::Vocabulary, message)));
            }
            Some(kinds) => {
                for (id, kind) in kinds.iter().enumerate() {
                    builder.set_kind(id as TokenId, kind_named(kind)?);
                }
            }
            None => ends.iter().for_each(|&id| builder.set_kind(id, TokenKind::Control)),
        }
        for id in ids(special_ids, count)? {
            builder.set_kind(id, TokenKind::Control);
        }
        let mut bos = ids(bos_id.into_iter().collect(), count)?.first().copied();
        if find_markers {
            let begin;
            (begin, ends) = builder.find_markers(ends);
            bos = bos.or(begin);
        }
        let about = VocabularyOptions { name, source, bos, end_tokens: ends, adds_prefix_space };
        builder.build(about).map(|v| PyVocabulary(Arc::new(v))).map_err(to_py)
    }

    #[staticmethod]
    fn _from_parts(
        bytes: &[u8],
        lengths: &[u8],
        kinds: &[u8],
        about: (String, String, Option<u32>, Vec<u32>, bool),
    ) -> PyResult<Self> {
        let broken = || PyValueError::new_err("broken vocabulary state");
        let mut builder = Builder::with_capacity(kinds.len(), bytes.len());
        let mut rest = bytes;
        for (length, kind) in lengths.chunks_exact(4).zip(kinds) {
            let length = u32::from_le_bytes(length.try_into()?) as usize;
            let (token, after) = rest.split_at_checked(length).ok_or_else(broken)?;
            let kind = TokenKind::ALL.get(*kind as usize).ok_or_else(broken)?;
            builder.push(*kind, token).map_err(to_py)?;
            rest = after;
        }
        let (name, source, bos, end_tokens, adds_prefix_space) = about;
        let about = VocabularyOptions { name, source, bos, end_tokens, adds_prefix_space };
        builder.build(about).map(|v| PyVocabulary(Arc::new(v))).map_err(to_py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, v) = (slf.py(), &slf.get().0);
        let (mut bytes, mut lengths, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for id in v.ids() {
            bytes.extend_from_slice(v.token_bytes(id));
            lengths.extend_from_slice(&(v.token_bytes(id).len() as u32).to_le_bytes());
            kinds.push(v.kind(id) as u8);
        }
        let about = v.about().clone();
        let about = (about.name, about.source, about.bos, about.end_tokens, about.adds_prefix_space);
        let parts = (PyBytes::new(py, &bytes), PyBytes::new(py, &lengths), PyBytes::new(py, &kinds), about);
        (slf.get_type().getattr("_from_parts")?, parts).into_pyobject(py)
    }

    /// The same tokens with other end-of-generation ids, bos id or name; `None` keeps what there is.
    #[pyo3(signature = (*, end_tokens=None, bos_id=None, name=None))]
    fn replace(
        &self,
        end_tokens: Option<Vec<i64>>,
        bos_id: Option<i64>,
        name: Option<String>,
    ) -> PyResult<Self> {
        let mut about = self.0.about().clone();
        if let Some(ends) = end_tokens {
            about.end_tokens = ids(ends, self.0.len())?;
        }
        if let Some(bos) = bos_id {
            about.bos = ids(vec![bos], self.0.len())?.first().copied();
        }
        about.name = name.unwrap_or(about.name);
        self.0.with_about(about).map(|v| PyVocabulary(Arc::new(v))).map_err(to_py)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, id: i64) -> PyResult<Bound<'py, PyBytes>> {
        self.token_bytes(py, id)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.0.ids().map(|id| PyBytes::new(py, self.0.token_bytes(id))))?.try_iter()
    }

    fn __contains__(&self, bytes: &[u8]) -> bool {
        !self.0.find(bytes).is_empty()
    }

    /// The bytes of token `id`; for a token that is not text, its name.
    ///
    /// Raises TokenError for an id that is not in the vocabulary.
    fn token_bytes<'py>(&self, py: Python<'py>, id: i64) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.0.token_bytes(self.check(id)?)))
    }

    /// The kind of token `id`: "normal", "byte", "user_defined" (text), "control", "unknown", "unused".
    ///
    /// Raises TokenError for an id that is not in the vocabulary.
    fn kind(&self, id: i64) -> PyResult<&'static str> {
        Ok(self.0.kind(self.check(id)?).name())
    }

    /// Ids of the tokens of any kind whose bytes are exactly `bytes`, ascending.
    fn find(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.0.find(bytes)
    }

    /// Ids of the tokens of any kind whose bytes contain `part`, ascending, at most `limit`.
    #[pyo3(signature = (part, limit=None))]
    fn search(
        &self,
        py: Python<'_>,
        part: &Bound<'_, PyAny>,
        limit: Option<usize>,
    ) -> PyResult<Vec<TokenId>> {
        let part: Vec<u8> = match part.extract::<String>() {
            Ok(text) => text.into_bytes(),
            Err(_) => part.cast::<PyBytes>()?.as_bytes().to_vec(),
        };
        Ok(py.detach(|| self.0.search(&part, limit.unwrap_or(usize::MAX))))
    }

    /// The concatenated bytes of `ids`; with `skip_special` those of text tokens only.
    ///
    /// No space is added or removed (see the class on the leading space). Raises TokenError for unknown ids.
    #[pyo3(signature = (ids, skip_special=true))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: Vec<i64>,
        skip_special: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let ids = ids.into_iter().map(|id| self.check(id)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyBytes::new(py, &self.0.decode(&ids, skip_special).map_err(to_py)?))
    }

    /// The text tokens as a byte trie, built when a file is loaded, otherwise on first use (about 50 ns per
    /// token).
    ///
    /// Raises LimitError if a token is longer than 1,023 bytes or the trie needs more than 4,194,303 nodes.
    #[getter]
    fn trie(&self, py: Python<'_>) -> PyResult<PyTokenTrie> {
        PyTokenTrie::of(py, &self.0)
    }

    /// Finds ahead what grammars need of this vocabulary: its trie, the tables of JSON's strings, keys, numbers and
    /// date-times, and the languages of the usual formats (some 20 to 60 ms). Without it the first grammars, and their first
    /// masks, take that time.
    ///
    /// A server calls it when it loads a model, or lets a thread do it: `threading.Thread(target=vocabulary.prepare)`. The
    /// GIL is released. Raises LimitError where `trie` does.
    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| BoundGrammar::prepare(&self.0)).map_err(to_py)
    }

    /// Ids of the tokens that are not text (control, unknown, unused), ascending.
    #[getter]
    fn special_ids(&self) -> Vec<TokenId> {
        self.0.special()
    }

    /// End-of-generation ids, ascending.
    #[getter]
    fn end_tokens(&self) -> &[TokenId] {
        self.0.end_tokens()
    }

    /// Beginning-of-sequence id, if there is one.
    #[getter]
    fn bos_id(&self) -> Option<TokenId> {
        self.0.bos()
    }

    /// 32 hex digits, equal for equal tokens, kinds and end ids, whatever they were read from.
    #[getter]
    fn fingerprint(&self) -> String {
        format!("{:032x}", self.0.fingerprint())
    }

    /// The model's or tokenizer's own name; empty where the source has none.
    #[getter]
    fn name(&self) -> &str {
        &self.0.about().name
    }

    /// What it was read from: "gguf", "tokenizer.json", "tekken", "sentencepiece", "tokens", ... .
    #[getter]
    fn source(&self) -> &str {
        &self.0.about().source
    }

    /// Whether the tokenizer puts one space in front of a text, which its detokeniser takes off again.
    #[getter]
    fn adds_prefix_space(&self) -> bool {
        self.0.about().adds_prefix_space
    }

    /// Forgets what it keeps of constraints, so that equal ones share their masks: the 256 last used at most. Matchers live
    /// on. Returns how many there were.
    fn clear_bindings(&self) -> usize {
        let count = binding_count(&self.0);
        clear_bindings(&self.0);
        count
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0.fingerprint() == self.0.fingerprint())
    }

    fn __hash__(&self) -> u64 {
        self.0.fingerprint() as u64
    }

    fn __repr__(&self) -> String {
        let about = self.0.about();
        let name = if about.name.is_empty() { String::new() } else { format!("{:?}, ", about.name) };
        format!(
            "Vocabulary({name}{} tokens, source={:?}, end_tokens={:?}, fingerprint={:.8})",
            self.0.len(),
            about.source,
            self.0.end_tokens(),
            self.fingerprint()
        )
    }
}

/// Adds the class to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyVocabulary>()
}
