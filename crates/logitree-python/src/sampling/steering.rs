//! Steering in Python: conversions only.

use super::values::biases_of;
use crate::errors::to_py;
use crate::vocabulary::token_id;
use logitree::sampling::Steering;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Edits of single logits, made before the first sampler of a chain (`Chain.steer`). Calls can be chained.
///
/// `edits`: numbers to add by token id. Build one and keep it, or clear and fill the same at each token.
#[pyclass(name = "Steering", module = "logitree.steering")]
#[derive(Clone, Default)]
pub struct PySteering(pub Steering);

#[pymethods]
impl PySteering {
    #[new]
    #[pyo3(signature = (edits=None))]
    fn new(edits: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        edits.map_or(Ok(PySteering::default()), steering_of)
    }

    /// Bans the tokens; later additions do not allow them again.
    fn veto<'py>(mut this: PyRefMut<'py, Self>, ids: &Bound<'py, PyAny>) -> PyResult<PyRefMut<'py, Self>> {
        for id in ids_of(ids)? {
            this.0.veto(id);
        }
        Ok(this)
    }

    /// Adds `by` to the tokens' logits, on top of earlier edits.
    ///
    /// Raises SamplingError for NaN and +inf; then nothing has changed.
    fn boost<'py>(
        mut this: PyRefMut<'py, Self>,
        ids: &Bound<'py, PyAny>,
        by: f32,
    ) -> PyResult<PyRefMut<'py, Self>> {
        let mut changed = this.0.clone();
        for id in ids_of(ids)? {
            changed.add(id, by).map_err(to_py)?;
        }
        this.0 = changed;
        Ok(this)
    }

    /// Adds to each token's logit its own number; -inf vetoes. Errors as `boost`.
    fn add<'py>(mut this: PyRefMut<'py, Self>, edits: &Bound<'py, PyAny>) -> PyResult<PyRefMut<'py, Self>> {
        let mut changed = this.0.clone();
        for (id, by) in biases_of(edits, "steering")? {
            changed.add(id, by).map_err(to_py)?;
        }
        this.0 = changed;
        Ok(this)
    }

    /// Takes all edits away.
    fn clear(mut this: PyRefMut<'_, Self>) -> PyRefMut<'_, Self> {
        this.0.clear();
        this
    }

    /// The additions by token id, ascending; -inf is a veto.
    #[getter]
    fn edits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let edits = PyDict::new(py);
        for (id, by) in self.0.edits() {
            edits.set_item(id, by)?;
        }
        Ok(edits)
    }

    fn __len__(&self) -> usize {
        self.0.edits().len()
    }

    fn __bool__(&self) -> bool {
        !self.0.is_empty()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let same = |other: PyRef<'_, PySteering>| other.0 == self.0;
        other.cast::<PySteering>().is_ok_and(|other| other.try_borrow().is_ok_and(same))
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }

    fn __repr__(&self) -> String {
        let each: Vec<String> = self.0.edits().iter().map(|(id, by)| format!("{id}: {by}")).collect();
        format!("Steering({{{}}})", each.join(", "))
    }
}

/// One id or a sequence of ids.
fn ids_of(ids: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    if let Ok(id) = ids.extract::<i64>() {
        return Ok(vec![token_id(id)?]);
    }
    ids.try_iter()?.map(|id| token_id(id?.extract()?)).collect()
}

/// A `Steering`, a dict of id to number, or pairs.
fn steering_of(edits: &Bound<'_, PyAny>) -> PyResult<PySteering> {
    if let Ok(steering) = edits.cast::<PySteering>() {
        return Ok(steering.try_borrow()?.clone());
    }
    let mut steering = Steering::new();
    for (id, by) in biases_of(edits, "steering")? {
        steering.add(id, by).map_err(to_py)?;
    }
    Ok(PySteering(steering))
}

/// Calls `steer` with Python's edits (None: none), with a `Steering` without a copy.
pub fn steer(edits: Option<&Bound<'_, PyAny>>, steer: impl FnOnce(&Steering)) -> PyResult<()> {
    match edits {
        None => steer(&Steering::new()),
        Some(edits) => match edits.cast::<PySteering>() {
            Ok(steering) => steer(&steering.try_borrow()?.0),
            Err(_) => steer(&steering_of(edits)?.0),
        },
    }
    Ok(())
}
