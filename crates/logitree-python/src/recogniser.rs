//! `Recogniser` in Python: a recogniser of bytes written in Python, as a constraint.

use std::sync::Arc;

use logitree::constraint::{ByteRecogniser, Constraint, Recogniser};
use logitree::{Error, ErrorKind, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::base::{derived, PyConstraint};
use crate::errors::to_py;
use crate::matcher::PyMatcher;
use crate::vocabulary::PyVocabulary;

/// The texts that an object of your own accepts, byte by byte.
///
/// `make` is called without arguments, for example a class. What it returns has taken no byte yet and has the methods
///
/// - `push(byte: int) -> bool`: takes one more byte, or returns False and changes nothing. It must take a byte only if
///   a text continues so;
/// - `pop(n: int)`: takes back the last n bytes;
/// - `is_end() -> bool`: whether the bytes taken are a complete text.
///
/// Each matcher has an object of its own. A fork makes a new one when it is used and pushes the accepted bytes again,
/// so objects must depend on the bytes alone. An exception comes through as it is and leaves the matcher unchanged.
#[pyclass(frozen, extends = PyConstraint, name = "Recogniser", module = "logitree")]
pub struct PyRecogniser {
    make: Arc<Py<PyAny>>,
    inner: Recogniser,
}

/// How many pushes may pass between two checks for signals such as Ctrl-C.
const PUSHES_PER_CHECK: u32 = 1 << 10;

/// The three methods of one object.
struct Methods {
    push: Py<PyAny>,
    pop: Py<PyAny>,
    is_end: Py<PyAny>,
    pushes: u32,
}

fn raised(error: PyErr) -> Error {
    Error::new(ErrorKind::Constraint, "the recogniser raised an exception").because(error)
}

fn made(make: &Py<PyAny>) -> Result<Box<dyn ByteRecogniser>> {
    Python::attach(|py| {
        let object = make.bind(py).call0()?;
        let method = |name| Ok::<_, PyErr>(object.getattr(name)?.unbind());
        Ok(Methods { push: method("push")?, pop: method("pop")?, is_end: method("is_end")?, pushes: 0 })
    })
    .map(|methods| Box::new(methods) as Box<dyn ByteRecogniser>)
    .map_err(raised)
}

/// The answer of a method, which must be a bool.
fn answer(object: &Bound<'_, PyAny>, method: &str) -> PyResult<bool> {
    object.extract().map_err(|_| {
        let kind = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("{method} must return bool, not {kind}"))
    })
}

impl ByteRecogniser for Methods {
    fn push(&mut self, byte: u8) -> Result<bool> {
        self.pushes = self.pushes.wrapping_add(1);
        Python::attach(|py| {
            if self.pushes.is_multiple_of(PUSHES_PER_CHECK) {
                py.check_signals()?;
            }
            answer(self.push.bind(py).call1((byte,))?.as_any(), "push")
        })
        .map_err(raised)
    }

    fn pop(&mut self, n: usize) -> Result<()> {
        Python::attach(|py| self.pop.bind(py).call1((n,)).map(drop)).map_err(raised)
    }

    fn is_end(&mut self) -> Result<bool> {
        Python::attach(|py| answer(self.is_end.bind(py).call0()?.as_any(), "is_end")).map_err(raised)
    }
}

#[pymethods]
impl PyRecogniser {
    #[new]
    fn new(make: Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        if !make.is_callable() {
            let kind = make.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "make must be callable without arguments, such as a class, not {kind}"
            )));
        }
        let make = Arc::new(make.unbind());
        let shared = Arc::clone(&make);
        Ok(derived(PyRecogniser { make, inner: Recogniser::new(move || made(&shared)) }))
    }

    /// What makes the objects.
    #[getter]
    fn make(&self, py: Python<'_>) -> Py<PyAny> {
        self.make.clone_ref(py)
    }

    /// A matcher at the beginning of a text. An end-of-generation token ends a text that could continue.
    ///
    /// Raises ConstraintError if the object takes no byte and accepts no empty text, and what the object raises.
    fn matcher(&self, vocabulary: &Bound<'_, PyVocabulary>) -> PyResult<PyMatcher> {
        let matcher = self.inner.matcher(&vocabulary.get().0).map_err(to_py)?;
        Ok(PyMatcher::of(matcher, Some(vocabulary.clone().unbind())))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let make = self.make.bind(py);
        let name = make.getattr("__qualname__").or_else(|_| make.repr().map(pyo3::Bound::into_any))?;
        Ok(format!("Recogniser({name})"))
    }
}

impl PyRecogniser {
    /// The core's constraint.
    pub fn constraint(&self) -> &Recogniser {
        &self.inner
    }
}

/// Adds the class to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyRecogniser>()
}
