//! Samplers and chains as pickle takes them apart: a sampler by its description, a chain by its samplers, its mode and
//! its state. `logitree._pickle` puts them together again. The file refuses to know any sampler's rule.

use super::adapt::Called;
use super::custom::{resuming, Custom};
use super::samplers::PySampler;
use super::PyChain;
use crate::errors::to_py;
use logitree::sampling::{Adapt, Dry, Mode, Sampler};
use logitree::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::any::Any;

/// A function of the module that puts together.
fn builder<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("logitree._pickle")?.getattr(name)
}

/// A builder and the description that it reads.
///
/// # Errors
/// `SamplingError` if it does not read it: the description is too long to be told, or holds an object.
pub(super) fn described<'py>(py: Python<'py>, name: &str, description: &str) -> PyResult<Bound<'py, PyAny>> {
    let builder = builder(py, name)?;
    builder.call1((description,)).map_err(|_| {
        let error = Error::new(ErrorKind::Sampling, format!("{description} does not pickle"));
        to_py(error.help("build it where it is needed, and move Chain.snapshot() instead"))
    })?;
    Ok((builder, (description,)).into_pyobject(py)?.into_any())
}

/// What gives the sampler again: a function and its arguments.
pub(super) fn sampler<'py>(py: Python<'py>, sampler: &dyn Sampler) -> PyResult<Bound<'py, PyAny>> {
    let any: &dyn Any = sampler;
    if let Some(custom) = any.downcast_ref::<Custom>() {
        return Ok((builder(py, "custom")?, custom.parts(py)).into_pyobject(py)?.into_any());
    }
    if let Some(dry) = any.downcast_ref::<Dry>() {
        // Its description does not list many breakers.
        let number = |name| dry.parameter(name).unwrap_or_default();
        let (multiplier, base) = (number("dry_multiplier"), number("dry_base"));
        let (allowed, last_n) = (number("dry_allowed_length") as i64, number("dry_penalty_last_n") as i64);
        let arguments = (multiplier, base, allowed, last_n, dry.breakers());
        return Ok((builder(py, "dry")?, arguments).into_pyobject(py)?.into_any());
    }
    described(py, "sampler", &sampler.describe())
}

/// The rule that picks a chain's parameters, as `Chain.adapt` takes it; None for none.
fn rule<'py>(py: Python<'py>, rule: Option<&dyn Adapt>) -> PyResult<Bound<'py, PyAny>> {
    let Some(rule) = rule else { return Ok(py.None().into_bound(py)) };
    let any: &dyn Any = rule;
    match any.downcast_ref::<Called>() {
        Some(called) => Ok(called.callable(py).into_bound(py)),
        None => builder(py, "rule")?.call1((rule.describe(),)),
    }
}

/// What gives the chain again, in its state.
pub(super) fn chain<'py>(chain: &Bound<'py, PyChain>) -> PyResult<Bound<'py, PyAny>> {
    let py = chain.py();
    let chain = chain.try_borrow()?;
    let inner = &chain.inner;
    let samplers: Vec<PySampler> = inner.samplers().iter().map(|s| PySampler(s.clone())).collect();
    let snapshot = PyBytes::new(py, &inner.snapshot());
    let rows: Vec<_> = chain.rows.iter().map(|row| PyBytes::new(py, &row.snapshot())).collect();
    let steering = inner.steering().edits().to_vec();
    let rule = rule(py, inner.rule())?;
    let parts = (samplers, inner.mode() == Mode::Parity, snapshot, rows, steering, rule);
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
