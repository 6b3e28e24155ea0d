//! Pickles chains as samplers, mode and state, and builds them again.

use super::adapt::{reduce_rule, rule_of};
use super::custom::resuming;
use super::samplers::PySampler;
use super::{steering, PyChain};
use crate::errors::to_py;
use logitree::sampling::{Chain, Mode};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// What gives the chain again, in its state.
pub(super) fn chain<'py>(chain: &Bound<'py, PyChain>) -> PyResult<Bound<'py, PyAny>> {
    let py = chain.py();
    let chain = chain.try_borrow()?;
    let inner = &chain.inner;
    let samplers: Vec<PySampler> = inner.samplers().iter().map(|s| PySampler(s.clone())).collect();
    let snapshot = PyBytes::new(py, &inner.snapshot());
    let rows: Vec<_> = chain.rows.iter().map(|row| PyBytes::new(py, &row.snapshot())).collect();
    let steering = inner.steering().edits().to_vec();
    let rule = reduce_rule(py, inner.rule())?;
    let parts = (samplers, inner.mode() == Mode::Parity, snapshot, rows, steering, rule);
    Ok((py.import("logitree._core")?.getattr("unpickle_chain")?, parts).into_pyobject(py)?.into_any())
}

/// The chain of these samplers in the state that the snapshots hold.
///
/// Raises:
///     StateError: the snapshots are not of such a chain.
#[pyfunction]
fn unpickle_chain(
    samplers: Vec<PyRef<'_, PySampler>>,
    parity: bool,
    snapshot: &[u8],
    rows: Vec<Vec<u8>>,
    steering: &Bound<'_, PyAny>,
    rule: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyChain> {
    let mode = if parity { Mode::Parity } else { Mode::Fast };
    let samplers = samplers.iter().map(|sampler| sampler.0.clone()).collect();
    let mut chain = Chain::new(samplers).and_then(|chain| chain.with_mode(mode)).map_err(to_py)?;
    steering::steer(Some(steering), |edits| chain.steer(edits))?;
    chain.adapt(rule_of(rule)?).map_err(to_py)?;
    let rows = resuming(|| {
        chain.restore(snapshot)?;
        let mut states = chain.sequences(rows.len());
        states.iter_mut().zip(&rows).try_for_each(|(chain, row)| chain.restore(row))?;
        Ok(states)
    })
    .map_err(to_py)?;
    Ok(PyChain { inner: chain, rows })
}

/// Adds the function to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(unpickle_chain, m)?)
}
