//! The catalogue index in Python.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use logitree::catalogue::{intersect, Catalogue, CatalogueSnapshot, CatalogueTurn, ItemWalk};
use logitree::{Error, ErrorKind, TokenId};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArray};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::build::{options, tell};
use super::walk::PyItemWalk;
use super::{longs, tokens, Items};
use crate::errors::to_py;
use crate::matcher::forks_of;
use crate::vocabulary::PyVocabulary;

/// A large set of items, each a sequence of tokens.
#[pyclass(frozen, name = "CatalogueIndex", module = "logitree._core")]
pub struct PyCatalogueIndex {
    tree: Arc<Catalogue>,
}

impl PyCatalogueIndex {
    pub fn of(tree: Catalogue) -> Self {
        PyCatalogueIndex { tree: Arc::new(tree) }
    }

    /// A change in a turn of its own. A quick one keeps the interpreter's lock, which threads that are busy give back only
    /// after milliseconds, unless it would have to wait for its turn: the thread that has it may need the lock.
    fn change(
        &self,
        py: Python<'_>,
        is_quick: bool,
        change: impl FnOnce(&mut CatalogueTurn<'_>) -> logitree::Result<u64> + Send,
    ) -> PyResult<u64> {
        if is_quick {
            // A durable change waits for the disk.
            if let Some(mut turn) = self.tree.try_turn().map_err(to_py)?.filter(|turn| !turn.is_durable()) {
                return change(&mut turn).map_err(to_py);
            }
        }
        py.detach(|| change(&mut self.tree.turn()?)).map_err(to_py)
    }
}

/// Which item numbers are meant.
pub enum Numbers {
    /// Those whose place here says so.
    Flags(Vec<bool>),
    /// These, ascending.
    List(Vec<u64>),
}

impl Numbers {
    fn of(object: &Bound<'_, PyAny>, snapshot: &CatalogueSnapshot) -> PyResult<Numbers> {
        if snapshot.is_keyed() {
            let found = items_of(snapshot, &strings(object)?)?;
            let mut list: Vec<u64> = found.into_iter().flatten().collect();
            list.sort_unstable();
            return Ok(Numbers::List(list));
        }
        if let Ok(flags) = object.extract::<PyReadonlyArray1<'_, bool>>() {
            return Ok(Numbers::Flags(flags.as_array().to_vec()));
        }
        let mut list = match object.extract::<PyReadonlyArray1<'_, u64>>() {
            Ok(list) => list.as_array().to_vec(),
            // Lists may hold flags, or what fits no signed number.
            Err(_) if object.cast::<PyUntypedArray>().is_err() => match object.extract::<Vec<bool>>() {
                Ok(flags) => return Ok(Numbers::Flags(flags)),
                Err(_) => object.extract()?,
            },
            Err(_) => {
                let negative = |n: i64| to_py(Error::new(ErrorKind::Constraint, format!("item number {n}")));
                let list = longs(object, "item numbers")?;
                list.into_iter()
                    .map(|n| u64::try_from(n).map_err(|_| negative(n)))
                    .collect::<PyResult<_>>()?
            }
        };
        list.sort_unstable();
        Ok(Numbers::List(list))
    }

    fn contains(&self, item: u64) -> bool {
        match self {
            Numbers::Flags(flags) => flags.get(item as usize).is_some_and(|&there| there),
            Numbers::List(list) => list.binary_search(&item).is_ok(),
        }
    }
}

/// Item numbers as Python shows them: an array of uint64, or a list of keys.
pub fn named<'py>(
    py: Python<'py>,
    snapshot: &CatalogueSnapshot,
    items: Vec<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    if !snapshot.is_keyed() {
        return Ok(PyArray1::from_vec(py, items).into_any());
    }
    let keys = items.into_iter().map(|item| Ok(snapshot.key(item)?.unwrap_or_default()));
    let keys = keys.collect::<logitree::Result<Vec<&str>>>().map_err(to_py)?;
    Ok(PyList::new(py, keys)?.into_any())
}

/// Keys of items, a list of texts.
fn strings(object: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    object.extract().map_err(|_| {
        let error = Error::new(ErrorKind::Constraint, "numbers in a catalogue whose items have keys");
        to_py(error.help("give a list of keys"))
    })
}

/// The item number of each key.
fn items_of(snapshot: &CatalogueSnapshot, keys: &[String]) -> PyResult<Vec<Option<u64>>> {
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    snapshot.items_of_keys(&keys).map_err(to_py)
}

#[pymethods]
impl PyCatalogueIndex {
    /// Opens an index file with the changes that it records, and records later ones there if it is durable.
    #[staticmethod]
    #[pyo3(signature = (path, *, durable=false))]
    fn open(py: Python<'_>, path: PathBuf, durable: bool) -> PyResult<Self> {
        py.detach(|| Catalogue::open(&path, durable)).map(Self::of).map_err(to_py)
    }

    /// The index with these bytes.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Catalogue::from_bytes(data.to_vec()).map(Self::of).map_err(to_py)
    }

    /// The bytes of the index as it was made, without later changes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.tree.snapshot().index().bytes())
    }

    /// The file that it was opened from or written to.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.tree.path()
    }

    /// The tree as it is now, to be walked.
    #[pyo3(signature = (*, end_token=None, allowed=None, intersect=None, vocabulary_size=None, vocabulary=None))]
    fn walk(
        &self,
        py: Python<'_>,
        end_token: Option<TokenId>,
        allowed: Option<&Bound<'_, PyAny>>,
        intersect: Option<&Bound<'_, PyAny>>,
        vocabulary_size: Option<usize>,
        vocabulary: Option<Py<PyVocabulary>>,
    ) -> PyResult<PyItemWalk> {
        let mut snapshot = self.tree.snapshot();
        if let Some(allowed) = allowed {
            let numbers = Numbers::of(allowed, &snapshot)?;
            snapshot = py.detach(|| snapshot.only(|item| numbers.contains(item))).map_err(to_py)?;
        }
        if let Some(others) = intersect {
            let (others, _) = forks_of(others)?;
            let mut tell = tell(None);
            let kept = py.detach(|| self::intersect(&snapshot, others, end_token, &mut || tell(0.0)));
            snapshot = kept.map_err(to_py)?;
        }
        PyItemWalk::new(ItemWalk { snapshot, end: end_token }, vocabulary_size, vocabulary)
    }

    /// Adds items, with a number each, or to be numbered.
    #[pyo3(signature = (tokens, items, *, ends=None, weights=None, keys=None))]
    fn add_rows<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        items: Option<PyReadonlyArray1<'py, u64>>,
        ends: Option<PyReadonlyArray1<'py, i64>>,
        weights: Option<PyReadonlyArray1<'py, f32>>,
        keys: Option<Vec<String>>,
    ) -> PyResult<u64> {
        let given = Items::new(tokens, ends, items, weights)?;
        let slices = given.slices()?;
        if let Some(keys) = keys {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            return py.detach(|| self.tree.add_keyed(slices.rows(), &keys)).map_err(to_py);
        }
        // Without numbers, an index of an old version is read for the largest.
        let is_quick =
            slices.is_few() && (slices.items.is_some() || self.tree.snapshot().knows_largest_item());
        self.change(py, is_quick, |turn| match slices.items {
            Some(items) => turn.add(slices.rows().zip(items).map(|((t, w), &item)| (t, w, item))),
            None => turn.add_numbered(slices.rows()),
        })
    }

    /// Removes items: rows of tokens, with one number each or whatever their number.
    #[pyo3(signature = (tokens, items, *, ends=None, keys=None))]
    fn remove_rows<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        items: Option<PyReadonlyArray1<'py, u64>>,
        ends: Option<PyReadonlyArray1<'py, i64>>,
        keys: Option<Vec<String>>,
    ) -> PyResult<u64> {
        let given = Items::new(tokens, ends, items, None)?;
        let slices = given.slices()?;
        if let Some(keys) = keys {
            let numbers = items_of(&self.tree.snapshot(), &keys)?;
            // An unknown key has no item to remove.
            let rows = slices.rows().zip(numbers).filter_map(|((t, _), item)| Some((t, Some(item?))));
            return py.detach(|| self.tree.remove(rows)).map_err(to_py);
        }
        let rows = slices.rows().enumerate().map(|(row, (t, _))| (t, slices.items.map(|items| items[row])));
        self.change(py, slices.is_few(), |turn| turn.remove(rows))
    }

    /// Removes the items with these numbers.
    fn remove_items(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<u64> {
        let numbers = Numbers::of(items, &self.tree.snapshot())?;
        py.detach(|| self.tree.remove_items(|item| numbers.contains(item))).map_err(to_py)
    }

    /// Puts the index of a file in the place of all that is here.
    fn reload(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.tree.reload(&path)).map_err(to_py)
    }

    /// Makes one index of all items that are there.
    #[pyo3(signature = (path=None, *, memory=None, progress=None))]
    fn merge(
        &self,
        py: Python<'_>,
        path: Option<PathBuf>,
        memory: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let weighted = self.tree.snapshot().index().header().weighted;
        let folder = path.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        let options = options((weighted, false), memory, folder, None);
        let mut tell = tell(progress.as_ref());
        py.detach(|| self.tree.merge(path.as_deref(), &options, &mut tell)).map_err(to_py)
    }

    /// Compares the whole index with its checksums.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let snapshot = self.tree.snapshot();
        py.detach(|| snapshot.index().check()).map_err(to_py)
    }

    /// Numbers of the items that are exactly these tokens, ascending.
    fn items<'py>(&self, py: Python<'py>, tokens: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (snapshot, mut found) = (self.tree.snapshot(), Vec::new());
        if let Some(state) = snapshot.find(&self::tokens(tokens)?).map_err(to_py)? {
            snapshot.items(state, &mut found).map_err(to_py)?;
        }
        named(py, &snapshot, found)
    }

    fn __contains__(&self, tokens: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (snapshot, mut found) = (self.tree.snapshot(), Vec::new());
        let Some(state) = snapshot.find(&self::tokens(tokens)?).map_err(to_py)? else { return Ok(false) };
        snapshot.items(state, &mut found).map_err(to_py)?;
        Ok(!found.is_empty())
    }

    /// Counts and sizes.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let snapshot = self.tree.snapshot();
        let head = snapshot.index().header();
        let info = PyDict::new(py);
        info.set_item("items", snapshot.len())?;
        info.set_item("rows", head.rows)?;
        info.set_item("tokens", head.tokens)?;
        info.set_item("longest", head.longest)?;
        info.set_item("largest_token", head.largest)?;
        info.set_item("fixed_length", !head.ragged)?;
        info.set_item("nested", head.nested)?;
        info.set_item("weighted", head.weighted)?;
        info.set_item("keyed", head.keyed)?;
        info.set_item("wide_nodes", head.wide)?;
        info.set_item("added_nodes", snapshot.added_nodes())?;
        info.set_item("bytes", head.file)?;
        Ok(info)
    }

    fn __len__(&self) -> usize {
        self.tree.snapshot().len() as usize
    }

    fn __repr__(&self) -> String {
        let path = self.path().as_ref().map_or(String::new(), |path| format!(", {}", path.display()));
        format!("CatalogueIndex({} items{path})", self.tree.snapshot().len())
    }
}
