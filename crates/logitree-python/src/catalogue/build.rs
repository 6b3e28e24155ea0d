//! The builder of an index in Python.

use std::path::PathBuf;

use logitree::catalogue::{BuildOptions, Catalogue, CatalogueBuilder};
use logitree::{interrupt, Error, ErrorKind};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use super::index::PyCatalogueIndex;
use super::Items;
use crate::errors::{raised, to_py};

/// Takes items, then writes an index.
#[pyclass(name = "CatalogueIndexBuilder", module = "logitree._core")]
pub struct PyCatalogueIndexBuilder(Option<CatalogueBuilder>);

/// How to build, as Python says it.
pub fn options(
    (weighted, keyed): (bool, bool),
    memory: Option<usize>,
    folder: Option<PathBuf>,
    threads: Option<usize>,
) -> BuildOptions {
    let default = BuildOptions::default();
    BuildOptions {
        weighted,
        keyed,
        memory: memory.unwrap_or(default.memory),
        folder,
        threads: threads.unwrap_or(default.threads),
    }
}

/// Tells a callable how far the work is, and lets Ctrl-C and deadlines through.
pub fn tell(progress: Option<&Py<PyAny>>) -> impl FnMut(f64) -> logitree::Result<()> + Send + '_ {
    move |done| {
        interrupt::check()?;
        let call = |progress: &Py<PyAny>| Python::attach(|py| progress.call1(py, (done,)).map(drop));
        progress.map_or(Ok(()), |progress| call(progress).map_err(raised))
    }
}

impl PyCatalogueIndexBuilder {
    fn builder(&mut self) -> PyResult<&mut CatalogueBuilder> {
        self.0.as_mut().ok_or_else(|| to_py(Error::new(ErrorKind::State, "the index is written already")))
    }
}

#[pymethods]
impl PyCatalogueIndexBuilder {
    #[new]
    #[pyo3(signature = (*, weighted=false, keyed=false, memory=None, folder=None, threads=None))]
    fn new(
        weighted: bool,
        keyed: bool,
        memory: Option<usize>,
        folder: Option<PathBuf>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        Ok(PyCatalogueIndexBuilder(Some(
            CatalogueBuilder::new(options((weighted, keyed), memory, folder, threads)).map_err(to_py)?,
        )))
    }

    /// Takes rows of tokens, with a number or a key each, or to be numbered.
    #[pyo3(signature = (tokens, items, *, ends=None, weights=None, keys=None))]
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        items: Option<PyReadonlyArray1<'py, u64>>,
        ends: Option<PyReadonlyArray1<'py, i64>>,
        weights: Option<PyReadonlyArray1<'py, f32>>,
        keys: Option<Vec<String>>,
    ) -> PyResult<()> {
        let given = Items::new(tokens, ends, items, weights)?;
        let slices = given.slices()?;
        let builder = self.builder()?;
        if let Some(keys) = keys {
            return py
                .detach(|| {
                    let mut rows = slices.rows().zip(keys);
                    rows.try_for_each(|((tokens, weights), key)| builder.push_keyed(tokens, weights, &key))
                })
                .map_err(to_py);
        }
        py.detach(|| {
            slices.rows().enumerate().try_for_each(|(row, (tokens, weights))| {
                let item = slices.items.map_or_else(|| builder.next_item(), |items| Ok(items[row]))?;
                builder.push(tokens, weights, item)
            })
        })
        .map_err(to_py)
    }

    /// Writes the index to `path`, or keeps it in memory: the tree, and how many items were given twice.
    #[pyo3(signature = (path=None, progress=None))]
    fn finish(
        &mut self,
        py: Python<'_>,
        path: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(PyCatalogueIndex, u64)> {
        self.builder()?;
        let Some(builder) = self.0.take() else { return self.builder().map(|_| unreachable!()) };
        let mut tell = tell(progress.as_ref());
        let built = py.detach(|| builder.finish(path.as_deref(), &mut tell)).map_err(to_py)?;
        let tree = Catalogue::new(built.index);
        tree.set_path(path);
        Ok((PyCatalogueIndex::of(tree), built.repeated))
    }

    fn __len__(&self) -> usize {
        self.0.as_ref().map_or(0, |builder| builder.len() as usize)
    }
}
