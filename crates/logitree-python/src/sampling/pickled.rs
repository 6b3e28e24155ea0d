//! Samplers and chains as pickle takes them apart: a sampler by its description, a chain by its samplers, its mode and
//! its state. `logitree._pickle` puts them together again. The file refuses to know any sampler's rule.

use super::custom::{resuming, Custom};
use super::samplers::PySampler;
use super::PyChain;
use crate::errors::to_py;
use logitree::sampling::{Mode, Sampler};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::any::Any;

/// A function of the module that puts together.
fn builder<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("logitree._pickle")?.getattr(name)
}

/// What gives the sampler again: a function and its arguments.
pub(super) fn sampler<'py>(py: Python<'py>, sampler: &dyn Sampler) -> PyResult<Bound<'py, PyAny>> {
    let any: &dyn Any = sampler;
    let parts = match any.downcast_ref::<Custom>() {
        Some(custom) => (builder(py, "custom")?, custom.parts(py).into_pyobject(py)?),
        None => (builder(py, "sampler")?, (sampler.describe(),).into_pyobject(py)?),
    };
    Ok(parts.into_pyobject(py)?.into_any())
}

/// What gives the chain again, in its state.
pub(super) fn chain<'py>(chain: &Bound<'py, PyChain>) -> PyResult<Bound<'py, PyAny>> {
    let py = chain.py();
    let chain = chain.try_borrow()?;
    let samplers: Vec<PySampler> = chain.inner.samplers().iter().map(|s| PySampler(s.clone())).collect();
    let snapshot = PyBytes::new(py, &chain.inner.snapshot());
    let rows: Vec<_> = chain.rows.iter().map(|row| PyBytes::new(py, &row.snapshot())).collect();
    let parts = (samplers, chain.inner.mode() == Mode::Parity, snapshot, rows);
    Ok((builder(py, "chain")?, parts).into_pyobject(py)?.into_any())
}

/// Gives a chain that was put together again its state.
pub(super) fn resume(chain: &mut PyChain, snapshot: &[u8], rows: &[Vec<u8>]) -> PyResult<()> {
    resuming(|| {
        chain.inner.restore(snapshot)?;
        chain.rows = chain.inner.states(rows.len());
        chain.rows.iter_mut().zip(rows).try_for_each(|(chain, row)| chain.restore(row))
    })
    .map_err(to_py)
}
