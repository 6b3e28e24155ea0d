//! The exception tree and the one mapping from the core's error kinds to it.
//!
//! ```text
//! LogitreeError(Exception)
//! ├── VocabularyError(ValueError)   a vocabulary file or object that cannot be read
//! ├── PayloadError(ValueError)      a token-tree payload that is malformed or does not fit
//! ├── ConstraintError(ValueError)   a constraint that cannot be honoured
//! ├── MaskError(ValueError)         a mask of the wrong length, dtype or shape
//! ├── LogitsError(ValueError)       NaN, wrong length or dtype, nothing to choose from
//! ├── SamplingError(ValueError)     sampler parameters or a chain that mean nothing
//! ├── TokenError(ValueError)        a token that is not allowed here, or not in the vocabulary
//! ├── StateError(RuntimeError)      a call at a time when it means nothing
//! ├── LimitError(ValueError)        a limit of size, depth or time was reached
//! └── FileError(OSError)            the operating system refused
//!     └── MissingFileError(FileNotFoundError)   there is no file of this name
//! ```

use logitree::{Error, ErrorKind};
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// Python class name and the built-in it also derives from, per kind.
fn class_of(kind: ErrorKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        ErrorKind::Vocabulary => {
            ("VocabularyError", "ValueError", "A vocabulary file or object that cannot be read.")
        }
        ErrorKind::Payload => {
            ("PayloadError", "ValueError", "A token-tree payload that is malformed or does not fit.")
        }
        ErrorKind::Constraint => ("ConstraintError", "ValueError", "A constraint that cannot be honoured."),
        ErrorKind::Mask => ("MaskError", "ValueError", "A mask of the wrong length, dtype or shape."),
        ErrorKind::Logits => (
            "LogitsError",
            "ValueError",
            "Logits with NaN, of the wrong length or dtype, or with nothing to choose.",
        ),
        ErrorKind::Sampling => {
            ("SamplingError", "ValueError", "Sampler parameters or a chain that mean nothing.")
        }
        ErrorKind::Token => {
            ("TokenError", "ValueError", "A token that is not allowed here, or not in the vocabulary.")
        }
        ErrorKind::State => ("StateError", "RuntimeError", "A call at a time when it means nothing."),
        ErrorKind::Limit => ("LimitError", "ValueError", "A limit of size, depth or time was reached."),
        ErrorKind::Io => ("FileError", "OSError", "The operating system refused."),
    }
}

static CLASSES: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&'static Vec<Py<PyType>>> {
    CLASSES.get_or_try_init(py, || {
        let base =
            new_class(py, "LogitreeError", vec![py.get_type::<PyException>()], "Any error of logitree.")?;
        // Errors that Python code raises have no place and no help of their own.
        base.setattr("place", "")?;
        base.setattr("help", "")?;
        let builtins = py.import("builtins")?;
        let mut all = vec![base.clone().unbind()];
        for kind in ErrorKind::ALL {
            let (name, builtin, doc) = class_of(kind);
            let also = builtins.getattr(builtin)?.cast_into::<PyType>()?;
            all.push(new_class(py, name, vec![base.clone(), also], doc)?.unbind());
        }
        let file = class_in(&all, ErrorKind::Io).bind(py).clone();
        let missing = builtins.getattr("FileNotFoundError")?.cast_into::<PyType>()?;
        all.push(
            new_class(py, "MissingFileError", vec![file, missing], "There is no file of this name.")?
                .unbind(),
        );
        Ok(all)
    })
}

/// The class of a kind: the kinds' classes follow their base.
fn class_in(all: &[Py<PyType>], kind: ErrorKind) -> &Py<PyType> {
    &all[1 + ErrorKind::ALL.iter().position(|known| *known == kind).unwrap_or(0)]
}

/// Whether the operating system said that there is no file of this name.
fn is_missing(error: &Error) -> bool {
    let cause = error.cause.as_ref().and_then(|cause| cause.0.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::NotFound)
}

fn new_class<'py>(
    py: Python<'py>,
    name: &str,
    bases: Vec<Bound<'py, PyType>>,
    doc: &str,
) -> PyResult<Bound<'py, PyType>> {
    let body = PyDict::new(py);
    body.set_item("__module__", "logitree")?;
    body.set_item("__doc__", doc)?;
    let class = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, body))?;
    Ok(class.cast_into::<PyType>()?)
}

/// Whether a callable failed because it used the object whose call it is part of, which PyO3 refuses.
pub fn is_borrowed(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyRuntimeError>(py)
        && ["Already borrowed", "Already mutably borrowed"].contains(&error.value(py).to_string().as_str())
}

/// The core's error for an exception that a Python callable raised: [`to_py`] gives the exception itself back.
pub fn raised(exception: PyErr) -> Error {
    Error::new(ErrorKind::Sampling, "a Python callable raised an exception").because(exception)
}

/// Whether a callback raised what ends a program and is no `Exception`: KeyboardInterrupt, SystemExit.
pub fn ends_program(py: Python<'_>, error: &Error) -> bool {
    let raised = error.cause.as_ref().and_then(|cause| cause.0.downcast_ref::<PyErr>());
    raised.is_some_and(|raised| !raised.is_instance_of::<PyException>(py))
}

/// The exception that a callback raised, as it is; where the error has a place, a note says it (Python 3.11).
fn exception_of(py: Python<'_>, error: &Error) -> Option<PyErr> {
    let raised = error.cause.as_ref()?.0.downcast_ref::<PyErr>()?.clone_ref(py);
    if !error.place.is_empty() {
        if let Ok(add_note) = raised.value(py).getattr("add_note") {
            // A note that cannot be added must not hide the exception.
            drop(add_note.call1((format!("at {}", error.place),)));
        }
    }
    Some(raised)
}

/// The Python exception for a core error: its text is the error's, and `place` and `help` are attributes. What a
/// callback raised stays what it is.
pub fn to_py(error: Error) -> PyErr {
    Python::attach(|py| {
        if let Some(raised) = exception_of(py, &error) {
            return raised;
        }
        let build = || -> PyResult<PyErr> {
            let all = classes(py)?;
            let class = if is_missing(&error) { &all[all.len() - 1] } else { class_in(all, error.kind) };
            let class = class.bind(py);
            let value = class.call1((error.to_string(),))?;
            value.setattr("place", &error.place)?;
            value.setattr("help", &error.help)?;
            Ok(PyErr::from_value(value))
        };
        build().unwrap_or_else(|failed| failed)
    })
}

/// Adds the classes to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    for class in classes(m.py())? {
        let class = class.bind(m.py());
        m.add(class.name()?.to_str()?, class)?;
    }
    Ok(())
}
