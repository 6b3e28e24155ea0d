//! Constraints in Python: token trees, choices, the matcher, the cache of token trees. Conversions only.

use std::sync::Arc;

use logitree::constraint::token_tree::cache::{token_trees, Key};
use logitree::constraint::{
    Constraint as _, DescriptorTree, OnMismatch, OneOf, PayloadCheck, TokenTree, TreeSpan, ROOT,
};
use logitree::{Error, ErrorKind, TokenId};
use pyo3::exceptions::{PyTypeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyString};

use crate::allowed::PyAllowedTokens;
use crate::base::PyConstraint;
use crate::errors::to_py;
pub use crate::matcher::PyMatcher;
use crate::payload::JsonText;
use crate::vocabulary::PyVocabulary;

/// A text of the caller's: `str` as UTF-8, `bytes` as they are.
pub fn text_bytes(text: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<u8>> {
    if let Ok(text) = text.cast::<PyString>() {
        return text.to_str().map(|s| s.as_bytes().to_vec()).map_err(|_| {
            to_py(Error::new(
                ErrorKind::Constraint,
                format!("{what} holds half a surrogate pair: it is no text"),
            ))
        });
    }
    match text.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes().to_vec()),
        Err(_) => {
            Err(PyTypeError::new_err(format!("{what} must be str or bytes, not {}", text.get_type().name()?)))
        }
    }
}

/// A compiled token-tree payload: the values' token lists, by path. Immutable; shared between threads.
#[pyclass(frozen, extends = PyConstraint, name = "TokenTree", module = "logitree")]
pub struct PyTokenTree {
    tree: Arc<TokenTree>,
    vocabulary: Option<Py<PyVocabulary>>,
}

impl PyTokenTree {
    /// The core's tree.
    pub fn tree(&self) -> &Arc<TokenTree> {
        &self.tree
    }

    fn descriptor(&self, path: Option<&str>) -> PyResult<&Arc<DescriptorTree>> {
        match (path, self.tree.descriptors()) {
            (None, [only]) => Ok(only),
            (None, descriptors) => {
                let message = format!("the token tree has {} paths: say which", descriptors.len());
                Err(to_py(Error::new(ErrorKind::Constraint, message)))
            }
            (Some(path), _) => self.tree.descriptor(path).map_err(to_py),
        }
    }
}

/// Compiles a token-tree payload `{modelId, descriptors: [{path, leaves: [{name, tokens}]}]}`.
///
/// With a `vocabulary`, ids must be in range and each leaf's tokens must spell its name (with or without
/// one leading space, bare or as a JSON string). With a `model_id`, the payload's model id must equal it, if there is one.
/// A descriptor without leaves and a leaf without tokens are mismatches in any case: nothing of them could be generated.
/// `on_mismatch="warn"` turns mismatches into warnings; leaves without tokens or with ids out of range are then left out.
/// Compiled trees are cached in `token_tree_cache`.
///
/// Raises PayloadError with JSON pointer, line and column; LimitError above 2^28 tokens.
#[pyfunction]
#[pyo3(signature = (payload, vocabulary=None, *, on_mismatch="error", model_id=None))]
fn token_tree(
    py: Python<'_>,
    payload: &Bound<'_, PyAny>,
    vocabulary: Option<Py<PyVocabulary>>,
    on_mismatch: &str,
    model_id: Option<&str>,
) -> PyResult<PyTokenTree> {
    let on_mismatch = match on_mismatch {
        "error" => OnMismatch::Error,
        "warn" => OnMismatch::Warn,
        other => {
            let message = format!("on_mismatch is {other:?}");
            return Err(to_py(Error::new(ErrorKind::Constraint, message).help("\"error\" or \"warn\"")));
        }
    };
    let known = vocabulary.as_ref().map(|v| &*v.get().0);
    let check = PayloadCheck { vocabulary: known, model_id, on_mismatch };
    let mut context = Vec::with_capacity(64);
    context.push(u8::from(on_mismatch == OnMismatch::Warn));
    context.push(u8::from(known.is_some()));
    context.extend_from_slice(&known.map_or(0, |v| v.fingerprint()).to_le_bytes());
    context.extend(model_id.iter().flat_map(|id| [b"m", id.as_bytes()].concat()));
    let cached = |content: &[u8], build: &dyn Fn() -> logitree::Result<TokenTree>| {
        token_trees().get_or_build(Key { content, context: &context }, build)
    };
    let json = |text: &[u8]| cached(text, &|| TokenTree::from_json(text, &check));
    let tree = if let Ok(text) = payload.cast::<PyString>() {
        let no_text = |_| {
            to_py(Error::new(ErrorKind::Payload, "the payload holds half a surrogate pair: it is no text"))
        };
        json(text.to_str().map_err(no_text)?.as_bytes()).map_err(to_py)?
    } else if let Ok(bytes) = payload.cast::<PyBytes>() {
        json(bytes.as_bytes()).map_err(to_py)?
    } else if let Ok(bytes) = payload.cast::<PyByteArray>() {
        json(&bytes.to_vec()).map_err(to_py)?
    } else if let Ok(dict) = payload.cast::<PyDict>() {
        let written = JsonText::of(dict)?;
        json(written.text.as_bytes()).map_err(|error| to_py(written.error(error)))?
    } else {
        let name = payload.get_type().name()?;
        return Err(PyTypeError::new_err(format!("payload must be str, bytes or dict, not {name}")));
    };
    for warning in tree.warnings() {
        let text = std::ffi::CString::new(warning.to_string().replace('\0', "\\0"))?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(PyTokenTree { tree, vocabulary })
}

#[pymethods]
impl PyTokenTree {
    /// Reads the binary form of one descriptor; leaf names are not part of it.
    ///
    /// Raises PayloadError with the byte offset for malformed input.
    #[staticmethod]
    #[pyo3(signature = (data, vocabulary=None))]
    fn from_binary(data: &[u8], vocabulary: Option<Py<PyVocabulary>>) -> PyResult<Self> {
        let build = || {
            DescriptorTree::from_binary(data)
                .map(|descriptor| TokenTree::from_descriptor(Arc::new(descriptor)))
        };
        let tree =
            token_trees().get_or_build(Key { content: data, context: b"binary" }, build).map_err(to_py)?;
        if let Some(vocabulary) = &vocabulary {
            tree.check_range(vocabulary.get().0.len()).map_err(to_py)?;
        }
        Ok(PyTokenTree { tree, vocabulary })
    }

    /// The binary form of the descriptor at `path` (optional if there is only one).
    #[pyo3(signature = (path=None))]
    fn to_binary<'py>(&self, py: Python<'py>, path: Option<&str>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.descriptor(path)?.to_binary()))
    }

    /// The paths of the descriptors, in the payload's order.
    #[getter]
    fn paths(&self) -> Vec<&str> {
        self.tree.descriptors().iter().map(|descriptor| descriptor.path()).collect()
    }

    /// The payload's model id.
    #[getter]
    fn model_id(&self) -> Option<&str> {
        self.tree.model_id()
    }

    /// The vocabulary that the payload was checked with.
    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Option<Py<PyVocabulary>> {
        self.vocabulary.as_ref().map(|v| v.clone_ref(py))
    }

    /// What did not fit the vocabulary, with the option to warn.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.tree.warnings().iter().map(Error::to_string).collect()
    }

    /// The constraint that the output is a leaf of the span at `path`, which may be left out where there is one.
    ///
    /// Args:
    ///     path: a path of the payload's descriptors, such as "action".
    ///     following: text that comes after the leaf and is generated too; it marks the end of a leaf that is a
    ///         prefix of another.
    ///     end_tokens: ids that end a leaf; None: the vocabulary's end-of-generation ids.
    ///
    /// Raises:
    ///     ConstraintError: there is no such path, or there are several and none is given.
    #[pyo3(signature = (path=None, *, following=None, end_tokens=None))]
    fn at(
        &self,
        py: Python<'_>,
        path: Option<&str>,
        following: Option<&Bound<'_, PyAny>>,
        end_tokens: Option<Vec<TokenId>>,
    ) -> PyResult<PySpan> {
        let path = self.descriptor(path)?.path().to_string();
        let following = following.map(|text| text_bytes(text, "following")).transpose()?;
        let checked = self.vocabulary.as_ref().map(|known| known.clone_ref(py));
        Ok(PySpan { span: TreeSpan { tree: Arc::clone(&self.tree), path, following, end_tokens }, checked })
    }

    /// As `at().matcher(vocabulary)`: the constraint of a payload with one path.
    ///
    /// Raises:
    ///     ConstraintError: the payload has several paths, or does not fit the vocabulary.
    fn matcher(&self, py: Python<'_>, vocabulary: &Bound<'_, PyVocabulary>) -> PyResult<PyMatcher> {
        self.at(py, None, None, None)?.matcher(py, Some(vocabulary))
    }

    /// As `Constraint.form`: the constraint of a payload with one path.
    fn form(&self, py: Python<'_>) -> PyResult<String> {
        self.at(py, None, None, None)?.form()
    }

    /// Each leaf's name (None where the binary form lost it) and token list, in the order of the lists.
    #[pyo3(signature = (path=None))]
    fn leaves(&self, path: Option<&str>) -> PyResult<Vec<(Option<String>, Vec<TokenId>)>> {
        let descriptor = self.descriptor(path)?;
        let mut leaves = Vec::with_capacity(descriptor.leaf_count());
        descriptor.for_each_leaf(|node, tokens| {
            leaves.push((descriptor.leaf_name(node).map(str::to_string), tokens.to_vec()));
        });
        Ok(leaves)
    }

    /// The node after `tokens` as a dict, or None if there is no such node.
    ///
    /// children (ids, ascending), terminal (a value is complete), leaf_end (and no longer value exists), name.
    fn look<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        tokens: Vec<i64>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let descriptor = self.descriptor(Some(path))?;
        let step = |node, &token: &i64| descriptor.step(node, TokenId::try_from(token).ok()?);
        let Some(node) = tokens.iter().try_fold(ROOT, step) else {
            return Ok(None);
        };
        let found = PyDict::new(py);
        found.set_item("children", descriptor.children(node).to_vec())?;
        found.set_item("terminal", descriptor.is_terminal(node))?;
        found.set_item("leaf_end", descriptor.is_leaf_end(node))?;
        found.set_item("name", descriptor.leaf_name(node))?;
        Ok(Some(found))
    }

    /// path, leaves, nodes, depth, inner_leaves (leaves with longer leaves below them), widest (children), bytes.
    #[pyo3(signature = (path=None))]
    fn info<'py>(&self, py: Python<'py>, path: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        let descriptor = self.descriptor(path)?;
        let info = PyDict::new(py);
        info.set_item("path", descriptor.path())?;
        info.set_item("leaves", descriptor.leaf_count())?;
        info.set_item("nodes", descriptor.node_count())?;
        info.set_item("depth", descriptor.depth())?;
        info.set_item("inner_leaves", descriptor.inner_leaf_count())?;
        info.set_item("widest", descriptor.widest())?;
        info.set_item("bytes", descriptor.bytes())?;
        Ok(info)
    }

    /// The tree drawn in text, with the tokens' bytes where the vocabulary is known.
    #[pyo3(signature = (path=None, *, max_lines=200))]
    fn dump(&self, path: Option<&str>, max_lines: usize) -> PyResult<String> {
        let show = |id: TokenId| match &self.vocabulary {
            Some(v) if (id as usize) < v.get().0.len() => {
                format!("{:?}", String::from_utf8_lossy(v.get().0.token_bytes(id)))
            }
            _ => id.to_string(),
        };
        Ok(self.descriptor(path)?.dump(max_lines, &show))
    }

    fn __contains__(&self, path: &str) -> bool {
        self.tree.descriptor(path).is_ok()
    }

    fn __repr__(&self) -> String {
        let descriptors = self.tree.descriptors();
        let mut parts: Vec<String> = descriptors
            .iter()
            .take(4)
            .map(|s| format!("{:?}: {} leaves", s.path(), s.leaf_count()))
            .collect();
        if descriptors.len() > 4 {
            parts.push(format!("and {} more", descriptors.len() - 4));
        }
        let model = self.tree.model_id().map_or(String::new(), |id| format!(", model_id={id:?}"));
        format!("TokenTree({}{model})", parts.join(", "))
    }
}

/// A span of a token tree as a constraint: the output is one of its leaves. Immutable; shared between threads.
#[pyclass(frozen, extends = PyConstraint, name = "TokenTreePath", module = "logitree.elizaos")]
pub struct PySpan {
    span: TreeSpan,
    /// The vocabulary that the payload was checked with.
    checked: Option<Py<PyVocabulary>>,
}

#[pymethods]
impl PySpan {
    /// A matcher at the beginning of a leaf.
    ///
    /// Args:
    ///     vocabulary: the model's vocabulary; None: the one that the payload was checked with, or none. Without one,
    ///         a leaf that is a prefix of another needs `end_tokens`, and there is no `following`.
    ///
    /// Raises:
    ///     ConstraintError: a token of the payload is outside the vocabulary, or nothing ends a leaf.
    #[pyo3(signature = (vocabulary=None))]
    fn matcher(&self, py: Python<'_>, vocabulary: Option<&Bound<'_, PyVocabulary>>) -> PyResult<PyMatcher> {
        let checked = || self.checked.as_ref().map(|known| known.clone_ref(py));
        let vocabulary = vocabulary.map(|given| given.clone().unbind()).or_else(checked);
        let matcher = match &vocabulary {
            Some(known) => self.span.matcher(&known.get().0),
            None => self.span.bind(None),
        };
        Ok(PyMatcher::of(matcher.map_err(to_py)?, vocabulary))
    }

    /// The name of the leaf that the output is; its text where the leaf has no name.
    fn value(&self, text: &str, tokens: Vec<TokenId>) -> PyResult<String> {
        let span = self.span.tree.descriptor(&self.span.path).map_err(to_py)?;
        let following = self.span.following.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let (mut node, mut name) = (ROOT, None);
        for &token in &tokens {
            let Some(next) = span.step(node, token) else { break };
            node = next;
            if let Some(found) = span.leaf_name(node) {
                name = Some(found);
            }
        }
        Ok(name.map_or_else(|| text.strip_suffix(&*following).unwrap_or(text).to_string(), str::to_string))
    }

    /// As `Constraint.form`.
    fn form(&self) -> PyResult<String> {
        self.span.form().map(|form| form.to_string()).map_err(to_py)
    }

    /// The path in the payload.
    #[getter]
    fn path(&self) -> &str {
        &self.span.path
    }

    fn __repr__(&self) -> String {
        let leaves = self.span.tree.descriptor(&self.span.path).map_or(0, |span| span.leaf_count());
        format!("TokenTreePath({:?}, {leaves} leaves)", self.span.path)
    }
}

/// One of several texts, the native form of `logitree.OneOf`. Immutable; shared between threads.
///
/// `following` is text that comes after every choice: one token may span the end of a choice and the beginning of what
/// follows, but not extend past its end. `tokens`: the only spelling of each text with what follows; None: any tokens.
/// Repeated texts count once.
#[pyclass(frozen, name = "OneOf", module = "logitree._core")]
pub struct PyOneOf(OneOf);

#[pymethods]
impl PyOneOf {
    #[new]
    #[pyo3(signature = (texts, *, following=None, tokens=None))]
    fn new(
        texts: &Bound<'_, PyAny>,
        following: Option<&Bound<'_, PyAny>>,
        tokens: Option<Vec<Vec<TokenId>>>,
    ) -> PyResult<PyOneOf> {
        let given = texts.try_iter()?.map(|text| text_bytes(&text?, "a choice"));
        let mut made = OneOf::new(given.collect::<PyResult<Vec<_>>>()?);
        if let Some(following) = following {
            made = made.followed_by(text_bytes(following, "following")?);
        }
        Ok(PyOneOf(match tokens {
            None => made,
            Some(tokens) => made.spelled(tokens),
        }))
    }

    /// A matcher at the beginning of a choice.
    ///
    /// `end_tokens` end a choice that is a prefix of another; the default is the vocabulary's end-of-generation ids.
    ///
    /// Raises ConstraintError if there are no choices, one cannot be spelled, or nothing ends one that is a prefix of
    /// another; LimitError above 16 MiB of text.
    #[pyo3(signature = (vocabulary, *, end_tokens=None))]
    fn matcher(
        &self,
        py: Python<'_>,
        vocabulary: Py<PyVocabulary>,
        end_tokens: Option<Vec<TokenId>>,
    ) -> PyResult<PyMatcher> {
        let known = Arc::clone(&vocabulary.get().0);
        let matcher = py.detach(|| match end_tokens {
            None => self.0.matcher(&known),
            Some(tokens) => self.0.clone().ended_by(tokens).matcher(&known),
        });
        Ok(PyMatcher::of(matcher.map_err(to_py)?, Some(vocabulary)))
    }

    /// As `Constraint.form`.
    fn form(&self) -> PyResult<String> {
        self.0.form().map(|form| form.to_string()).map_err(to_py)
    }

    /// Number of texts.
    fn __len__(&self) -> usize {
        self.0.texts().len()
    }

    fn __repr__(&self) -> String {
        format!("OneOf({} texts)", self.0.texts().len())
    }
}

/// The process-wide cache of compiled token trees: 128 entries, least recently used evicted first.
///
/// Entries whose tree is in use are not evicted. With all 128 in use, a new tree is built and returned but not cached.
#[pyclass(frozen, name = "TokenTreeCache", module = "logitree")]
pub struct PyTokenTreeCache;

#[pymethods]
impl PyTokenTreeCache {
    /// capacity, entries, hits, misses, bypassed (built, not cached), evicted.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = token_trees().counts();
        let info = PyDict::new(py);
        info.set_item("capacity", counts.capacity)?;
        info.set_item("entries", counts.len)?;
        info.set_item("hits", counts.hits)?;
        info.set_item("misses", counts.misses)?;
        info.set_item("bypassed", counts.bypassed)?;
        info.set_item("evicted", counts.evicted)?;
        Ok(info)
    }

    /// One dict per entry, most recently used first: digest, model_id, paths, nodes, bytes, hits, in_use.
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let row = |entry: logitree::constraint::token_tree::cache::EntryInfo<TokenTree>| {
            let info = PyDict::new(py);
            info.set_item("digest", format!("{:032x}", entry.digest))?;
            info.set_item("model_id", entry.value.model_id())?;
            info.set_item("paths", entry.value.descriptors().iter().map(|s| s.path()).collect::<Vec<_>>())?;
            info.set_item("nodes", entry.value.descriptors().iter().map(|s| s.node_count()).sum::<usize>())?;
            info.set_item("bytes", entry.value.bytes() + entry.content_bytes)?;
            info.set_item("hits", entry.hits)?;
            info.set_item("in_use", entry.in_use)?;
            Ok(info)
        };
        token_trees().entries().into_iter().map(row).collect()
    }

    /// Forgets every entry; trees in use live on with their holders.
    fn clear(&self) {
        token_trees().clear();
    }

    fn __len__(&self) -> usize {
        token_trees().counts().len
    }

    fn __repr__(&self) -> String {
        let c = token_trees().counts();
        format!("TokenTreeCache({} of {} entries, {} hits, {} misses)", c.len, c.capacity, c.hits, c.misses)
    }
}

/// Adds this room to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyMatcher>()?;
    m.add_class::<PyAllowedTokens>()?;
    m.add_class::<PyTokenTree>()?;
    m.add_class::<PySpan>()?;
    m.add_class::<PyOneOf>()?;
    m.add_class::<PyTokenTreeCache>()?;
    m.add("token_tree_cache", PyTokenTreeCache)?;
    m.add_function(wrap_pyfunction!(token_tree, m)?)?;
    Ok(())
}
