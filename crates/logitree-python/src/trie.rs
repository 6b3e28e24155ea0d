//! The vocabulary trie in Python: conversions only.
#![allow(unsafe_code)] // writes into the caller's mask, the only slice at that time

use crate::buffer::{Element, Number, Rows};
use crate::errors::to_py;
use crate::mask::{mask_rows, new_array};
use logitree::mask::words_for;
use logitree::trie::{DumpOptions, StateNumber, Table, TokenTrie};
use logitree::vocabulary::Vocabulary;
use logitree::{ErrorKind, TokenId};
use pyo3::prelude::*;
use std::sync::Arc;

/// A vocabulary's text tokens as a byte trie (`vocabulary.trie`). Immutable; shared between threads.
///
/// It does not contain control, unknown, unused and empty tokens. `len` is the number of nodes, including the root.
#[pyclass(frozen, name = "TokenTrie", module = "logitree")]
pub struct PyTokenTrie(Arc<Vocabulary>);

impl PyTokenTrie {
    /// The trie of `vocabulary`, built if it is not yet.
    pub fn of(py: Python<'_>, vocabulary: &Arc<Vocabulary>) -> PyResult<Self> {
        py.detach(|| vocabulary.trie().map(|_| ())).map_err(to_py)?;
        Ok(PyTokenTrie(vocabulary.clone()))
    }

    fn trie(&self) -> PyResult<&TokenTrie> {
        self.0.trie().map_err(to_py)
    }
}

/// Calls `$body` with the automaton of `$rows` as `$table`, whatever its number type.
macro_rules! with_table {
    ($rows:expr, $start:expr, $dead:expr, |$table:ident| $body:expr) => {
        match $rows.number() {
            Number::U16 => {
                let $table = table::<u16>($rows, $start, $dead)?;
                $body
            }
            _ => {
                let $table = table::<u32>($rows, $start, $dead)?;
                $body
            }
        }
    };
}

fn table<'a, S: StateNumber + Element + TryFrom<i64>>(
    rows: &'a Rows<'_>,
    start: i64,
    dead: Option<i64>,
) -> PyResult<Table<'a, S>> {
    let state = |name: &str, value: i64| {
        S::try_from(value)
            .map_err(|_| rows.error(format!("whose {name} state is {value}"), "states are unsigned"))
    };
    let dead = dead.map_or(Ok(S::DEAD), |dead| state("dead", dead))?;
    let next = rows.whole::<S>()?;
    if rows.columns() != 256 {
        return Err(rows.error(format!("of {} columns", rows.columns()), "give it 256, one a byte"));
    }
    Table::new(next, state("start", start)?, dead).map_err(to_py)
}

fn automaton<'py>(next: &Bound<'py, PyAny>) -> PyResult<Rows<'py>> {
    Rows::of(next, "automaton table", ErrorKind::Constraint)
}

#[pymethods]
impl PyTokenTrie {
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.trie()?.node_count())
    }

    fn __repr__(&self) -> PyResult<String> {
        let trie = self.trie()?;
        Ok(format!(
            "TokenTrie({} tokens, {} nodes, max_depth={})",
            trie.token_count(),
            trie.node_count(),
            trie.max_depth()
        ))
    }

    /// Number of ids in the trie.
    #[getter]
    fn token_count(&self) -> PyResult<usize> {
        Ok(self.trie()?.token_count())
    }

    /// Length of the longest token in bytes.
    #[getter]
    fn max_depth(&self) -> PyResult<usize> {
        Ok(self.trie()?.max_depth())
    }

    /// Bytes of memory that the trie holds.
    #[getter]
    fn memory(&self) -> PyResult<usize> {
        Ok(self.trie()?.memory())
    }

    fn __contains__(&self, bytes: &[u8]) -> PyResult<bool> {
        Ok(!self.trie()?.lookup(bytes).is_empty())
    }

    /// Ids of the tokens that are exactly `bytes`, ascending.
    fn lookup(&self, bytes: &[u8]) -> PyResult<&[TokenId]> {
        Ok(self.trie()?.lookup(bytes))
    }

    /// Whether some token begins with `bytes`.
    fn has_prefix(&self, bytes: &[u8]) -> PyResult<bool> {
        Ok(self.trie()?.has_prefix(bytes))
    }

    /// Ids of the tokens that begin with `bytes`, in the order of their bytes, then ascending.
    fn with_prefix(&self, bytes: &[u8]) -> PyResult<&[TokenId]> {
        Ok(self.trie()?.with_prefix(bytes))
    }

    /// The longest token that `bytes` begin with: its lowest id and its length in bytes.
    fn longest_match(&self, bytes: &[u8]) -> PyResult<Option<(TokenId, usize)>> {
        Ok(self.trie()?.longest_match(bytes))
    }

    /// All tokens that `bytes` begin with, shortest first: (id, length in bytes).
    fn prefixes(&self, bytes: &[u8]) -> PyResult<Vec<(TokenId, usize)>> {
        let prefixes = self.trie()?.prefixes(bytes);
        Ok(prefixes.flat_map(|(ids, length)| ids.iter().map(move |id| (*id, length))).collect())
    }

    /// The part below `prefix` as an indented tree; the last line counts what is left out.
    #[pyo3(signature = (prefix=b"".as_slice(), depth=None, max_nodes=200))]
    fn dump(&self, prefix: &[u8], depth: Option<usize>, max_nodes: usize) -> PyResult<String> {
        Ok(self.trie()?.dump(&options(prefix, depth, max_nodes)))
    }

    /// The same part as a Graphviz digraph.
    #[pyo3(signature = (prefix=b"".as_slice(), depth=None, max_nodes=200))]
    fn graphviz(&self, prefix: &[u8], depth: Option<usize>, max_nodes: usize) -> PyResult<String> {
        Ok(self.trie()?.graphviz(&options(prefix, depth, max_nodes)))
    }

    /// The tokens whose bytes the automaton accepts from `start`, as a mask.
    ///
    /// `dead` is the value that refuses a byte; by default the largest uint16 or uint32. `out`, if
    /// given, is a mask of one row to write instead of a new one, and is returned.
    /// Every entry of the table is checked. Raises ConstraintError for a table of another shape or dtype, or
    /// with an entry that is not a state; MaskError for an `out` that does not fit.
    #[pyo3(signature = (table, start=0, dead=None, out=None))]
    fn allowed<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'py, PyAny>,
        start: i64,
        dead: Option<i64>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (trie, rows) = (self.trie()?, automaton(table)?);
        let mut words = vec![0; words_for(trie.vocabulary_size())];
        with_table!(&rows, start, dead, |table| trie.allowed_by(&table, &mut words)).map_err(to_py)?;
        let Some(out) = out else { return Ok(new_array(py, words)) };
        let mut to = mask_rows(&out)?;
        if to.rows() != 1 || to.columns() < words.len() {
            let message = format!("of {} rows of {} words", to.rows(), to.columns());
            return Err(to.error(message, &format!("give one row of {} words", words.len())));
        }
        // SAFETY: this is the only slice.
        let to = unsafe { to.row_mut::<u32>(0)? };
        to[..words.len()].copy_from_slice(&words);
        to[words.len()..].fill(0);
        Ok(out)
    }

    /// Number of nodes whose byte the plain walk tests: a refused node counts, its subtree does not.
    #[pyo3(signature = (table, start=0, dead=None))]
    fn count_visited(&self, table: &Bound<'_, PyAny>, start: i64, dead: Option<i64>) -> PyResult<usize> {
        let (trie, rows) = (self.trie()?, automaton(table)?);
        Ok(with_table!(&rows, start, dead, |table| trie.count_visited(&mut table.recognizer())))
    }
}

fn options(prefix: &[u8], depth: Option<usize>, max_nodes: usize) -> DumpOptions {
    DumpOptions { prefix: prefix.to_vec(), depth: depth.unwrap_or(usize::MAX), max_nodes }
}

/// Adds the class to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyTokenTrie>()
}
