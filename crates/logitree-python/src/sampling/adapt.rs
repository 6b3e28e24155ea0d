//! Rules that pick parameters for each token, in Python: conversions only, and the call of a callable.

use std::sync::Arc;

use super::values::whole;
use crate::errors::{is_borrowed, raised, to_py};
use logitree::sampling::{checked_settings, Adapt, Burst, Distribution, EntropyRule, Setting};
use logitree::{Error, ErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyMapping};
use std::any::Any;

/// Parameters by bands of entropy, for `Chain.adapt`.
///
/// `bands`: pairs of a bound in nats and settings, ascending; the first band whose bound is above the entropy
/// applies, and the last bound is None. An empty mapping leaves the chain's own parameters. Raises SamplingError for
/// anything else.
#[pyclass(frozen, name = "EntropyRule", module = "logitree.steering")]
#[derive(Clone)]
pub struct PyEntropyRule(EntropyRule);

#[pymethods]
impl PyEntropyRule {
    #[new]
    fn new(bands: &Bound<'_, PyAny>) -> PyResult<Self> {
        let band = |band: Bound<'_, PyAny>| -> PyResult<(f64, Vec<Setting>)> {
            let (bound, settings): (Option<f64>, Bound<'_, PyAny>) = band.extract().map_err(|_| {
                to_py(
                    Error::new(ErrorKind::Sampling, "a band is not a pair of a bound and settings")
                        .help("write [(2.0, {\"temp\": 1.5}), (None, {\"temp\": 0.8})]"),
                )
            })?;
            Ok((bound.unwrap_or(f64::INFINITY), settings_of(&settings)?))
        };
        let bands = bands.try_iter()?.map(|b| band(b?)).collect::<PyResult<_>>()?;
        Ok(PyEntropyRule(EntropyRule::new(bands).map_err(to_py)?))
    }

    fn __repr__(&self) -> String {
        self.0.describe()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let finite = |bound: f64| (bound < f64::INFINITY).then_some(bound);
        let bands: Vec<_> = self
            .0
            .bands()
            .iter()
            .map(|(bound, s)| Ok((finite(*bound), dict(py, s)?)))
            .collect::<PyResult<_>>()?;
        Ok((py.get_type::<PyEntropyRule>(), (bands,)).into_pyobject(py)?.into_any())
    }
}

/// Other parameters for some tokens where the model is unsure, for `Chain.adapt`.
///
/// `settings` apply to `tokens` (1) accepted tokens, starting with the step in which the top probability is below
/// `top_p_below` or the entropy, in nats, is above `entropy_above`; meanwhile neither is checked. Its state follows
/// accept, rollback, fork, reset and snapshot. Raises SamplingError without a trigger, or for an invalid number.
#[pyclass(frozen, name = "Burst", module = "logitree.steering")]
#[derive(Clone)]
pub struct PyBurst(Burst);

#[pymethods]
impl PyBurst {
    #[new]
    #[pyo3(signature = (settings, *, top_p_below=None, entropy_above=None, tokens=None))]
    fn new(
        settings: &Bound<'_, PyAny>,
        top_p_below: Option<f64>,
        entropy_above: Option<f64>,
        tokens: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let tokens = tokens.map_or(Ok(1), |t| whole(t, "tokens", 0, i32::MAX))? as usize;
        let (top, entropy) = (top_p_below.unwrap_or(0.0), entropy_above.unwrap_or(f64::INFINITY));
        Ok(PyBurst(Burst::new(top, entropy, tokens, settings_of(settings)?).map_err(to_py)?))
    }

    fn __repr__(&self) -> String {
        self.0.describe()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let keywords = PyDict::new(py);
        keywords.set_item("top_p_below", self.0.top_p_below())?;
        keywords.set_item("entropy_above", self.0.entropy_above())?;
        keywords.set_item("tokens", self.0.tokens())?;
        let build = partial(py, py.get_type::<PyBurst>().as_any(), &keywords)?;
        Ok((build, (dict(py, self.0.settings())?,)).into_pyobject(py)?.into_any())
    }
}

/// Settings as a dict.
fn dict<'py>(py: Python<'py>, settings: &[Setting]) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    settings.iter().try_for_each(|(name, value)| all.set_item(&**name, value))?;
    Ok(all)
}

/// `functools.partial` of a callable with these keywords: a call that pickles.
pub(super) fn partial<'py>(
    py: Python<'py>,
    callable: &Bound<'py, PyAny>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("functools")?.getattr("partial")?.call((callable,), Some(keywords))
}

/// A chain's rule as `Chain.adapt` takes it; None for none.
pub(super) fn reduce_rule<'py>(py: Python<'py>, rule: Option<&dyn Adapt>) -> PyResult<Bound<'py, PyAny>> {
    let Some(rule) = rule else { return Ok(py.None().into_bound(py)) };
    let any: &dyn Any = rule;
    if let Some(called) = any.downcast_ref::<Called>() {
        return Ok(called.callable.clone_ref(py).into_bound(py));
    }
    if let Some(rule) = any.downcast_ref::<EntropyRule>() {
        return Ok(PyEntropyRule(rule.clone()).into_pyobject(py)?.into_any());
    }
    match any.downcast_ref::<Burst>() {
        Some(rule) => Ok(PyBurst(rule.clone()).into_pyobject(py)?.into_any()),
        None => Err(PyTypeError::new_err("the rule does not pickle")),
    }
}

/// Settings from a mapping of parameter names to numbers.
fn settings_of(settings: &Bound<'_, PyAny>) -> PyResult<Vec<Setting>> {
    let wrong = |got: &Bound<'_, PyAny>| {
        let shown = got.repr().map_or_else(|_| "?".into(), |r| r.to_string());
        to_py(
            Error::new(ErrorKind::Sampling, format!("{shown} is no mapping of parameters to numbers"))
                .help("write {\"temp\": 1.2, \"top_k\": 20}, with the names of Chain.llama_cpp"),
        )
    };
    let mapping = settings.cast::<PyMapping>().map_err(|_| wrong(settings))?;
    let mut all = Vec::new();
    for item in mapping.items()? {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract().map_err(|_| wrong(settings))?;
        if value.is_instance_of::<PyBool>() {
            return Err(wrong(settings));
        }
        all.push((Arc::from(name), value.extract().map_err(|_| wrong(settings))?));
    }
    checked_settings(all).map_err(to_py)
}

/// A callable of (entropy in nats, top probability) that gives a mapping or None.
pub struct Called {
    callable: Py<PyAny>,
    settings: Vec<Setting>,
}

impl Called {
    /// The core's error for the callable's exception, which it carries unchanged.
    fn raised(error: PyErr) -> Error {
        if Python::attach(|py| is_borrowed(py, &error)) {
            return Error::new(ErrorKind::State, "the rule used the chain or decoder that is calling it")
                .help("give it what it needs to know beforehand; it returns what is to be changed");
        }
        raised(error)
    }

    fn call(&mut self, seen: Distribution) -> PyResult<()> {
        Python::attach(|py| {
            self.settings.clear();
            let given = self.callable.bind(py).call1((seen.entropy, seen.top_p))?;
            if !given.is_none() {
                self.settings = settings_of(&given)?;
            }
            Ok(())
        })
    }
}

impl Adapt for Called {
    /// Without the callable's name or address: the caller vouches that a snapshot is of the same callable.
    fn describe(&self) -> String {
        "a callable".into()
    }

    fn settings(&mut self, seen: Distribution) -> logitree::Result<&[Setting]> {
        self.call(seen).map_err(Self::raised)?;
        Ok(&self.settings)
    }

    fn is_foreign(&self) -> bool {
        true
    }

    fn clone_box(&self) -> Box<dyn Adapt> {
        let callable = Python::attach(|py| self.callable.clone_ref(py));
        Box::new(Called { callable, settings: Vec::new() })
    }
}

/// The rule that Python passes; `None` for None.
pub fn rule_of(rule: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Box<dyn Adapt>>> {
    let Some(rule) = rule else { return Ok(None) };
    if let Ok(rule) = rule.cast::<PyEntropyRule>() {
        return Ok(Some(rule.get().0.clone_box()));
    }
    if let Ok(rule) = rule.cast::<PyBurst>() {
        return Ok(Some(rule.get().0.clone_box()));
    }
    if !rule.is_callable() {
        let kind = rule.get_type().name()?.to_string();
        return Err(PyTypeError::new_err(format!(
            "a rule is an EntropyRule, a Burst, a callable of (entropy, top_p), or None, not {kind}"
        )));
    }
    Ok(Some(Box::new(Called { callable: rule.clone().unbind(), settings: Vec::new() })))
}
