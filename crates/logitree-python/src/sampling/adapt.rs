//! Rules that pick parameters for each token, in Python: conversions only, and the call of a callable.

use std::sync::Arc;

use super::pickled;
use super::samplers::whole;
use crate::errors::{is_borrowed, raised, to_py};
use logitree::sampling::{adapt, Adapt, Burst, Distribution, EntropyRule, Setting};
use logitree::{Error, ErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyMapping};

/// Parameters by bands of entropy, for `Chain.adapt`.
#[pyclass(frozen, name = "EntropyRule", module = "logitree")]
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
        pickled::described(py, "rule", &self.0.describe())
    }
}

/// Other parameters for some tokens where the model is unsure, for `Chain.adapt`.
#[pyclass(frozen, name = "Burst", module = "logitree")]
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
        pickled::described(py, "rule", &self.0.describe())
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
    adapt::checked(all).map_err(to_py)
}

/// A callable of (entropy in nats, top probability) that gives a mapping or None.
pub struct Called {
    callable: Py<PyAny>,
    settings: Vec<Setting>,
}

impl Called {
    /// What is called.
    pub(super) fn callable(&self, py: Python<'_>) -> Py<PyAny> {
        self.callable.clone_ref(py)
    }

    /// The core's error for what the callable raised, which is carried along unchanged.
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
    /// Without the callable's name or address: a snapshot is held to be of the same one.
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

/// The rule that Python hands in; `None` for None.
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
