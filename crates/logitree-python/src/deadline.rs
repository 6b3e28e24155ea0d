//! Deadlines for native calls, Ctrl-C while they run, and how they wait for each other.
#![allow(unsafe_code)] // what waits for a lock crosses `detach`

use std::sync::Arc;
use std::time::Duration;

use logitree::interrupt::{self, Interrupt};
use logitree::{Error, ErrorKind};
use pyo3::prelude::*;

use crate::errors::{raised, to_py};

/// Ends native calls early: a time limit, and a flag that another thread may set.
///
/// It applies to the calls that a thread makes in its `with` block: compiling, masks, accepting, forced tokens,
/// explanations, batches. A call that it ends raises LimitError within some ten milliseconds; matchers, grammars and
/// their caches stay usable. Deadlines nest: the first one that applies ends the call. A block belongs to its thread, so
/// do not `await` in it.
///
/// Ctrl-C ends a native call in the same way, with or without a deadline.
#[pyclass(module = "logitree", name = "Deadline", frozen)]
pub struct PyDeadline(Arc<Interrupt>);

#[pymethods]
impl PyDeadline {
    /// `seconds` from now on; without, calls end only when `cancel` is called. Raises LimitError for a negative number or
    /// NaN.
    #[new]
    #[pyo3(signature = (seconds=None))]
    fn new(seconds: Option<f64>) -> PyResult<Self> {
        let timeout = match seconds {
            None => None,
            // A time that no clock can show never comes.
            Some(seconds) if seconds >= 0.0 => {
                Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
            }
            Some(seconds) => {
                let error = Error::new(ErrorKind::Limit, format!("a deadline of {seconds} seconds"));
                return Err(to_py(error.help("give a number from 0 on, or None for no time limit")));
            }
        };
        Ok(PyDeadline(Arc::new(Interrupt::new(timeout))))
    }

    /// Ends the calls under it, those that run and those to come. Any thread may call it.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether `cancel` was called.
    #[getter]
    fn cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Whether the time has passed.
    #[getter]
    fn expired(&self) -> bool {
        self.0.is_expired()
    }

    /// Seconds until the time has passed, from 0 on; None without a time limit.
    #[getter]
    fn left(&self) -> Option<f64> {
        self.0.left().map(|left| left.as_secs_f64())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        interrupt::enter(&slf.get().0);
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        if interrupt::leave(&self.0) {
            return Ok(());
        }
        let error = Error::new(ErrorKind::State, "the block of this Deadline did not begin in this thread");
        Err(to_py(error.help("end the block in the thread in which it began")))
    }

    fn __repr__(&self) -> String {
        let state = match (self.0.is_cancelled(), self.0.left()) {
            (true, _) => "cancelled".to_owned(),
            (false, None) => "no time limit".to_owned(),
            (false, Some(left)) => format!("{:.3} s left", left.as_secs_f64()),
        };
        format!("<Deadline: {state}>")
    }
}

/// Whether Python has a signal for its main thread, such as Ctrl-C: what its handler raises ends the call.
fn signals() -> logitree::Result<()> {
    Python::attach(|py| py.check_signals()).map_err(raised)
}

/// Work that waits in the thread that calls it.
struct Waiting<'a>(&'a mut dyn FnMut());

// SAFETY: `detach` runs its closure in the calling thread, and what waits for a lock of the core asks nothing of Python's.
unsafe impl Send for Waiting<'_> {}

impl Waiting<'_> {
    fn run(self) {
        (self.0)();
    }
}

/// Waits without the GIL: the thread that is waited for may need it.
fn wait(work: &mut dyn FnMut()) {
    let waiting = Waiting(work);
    // While Python ends there is no GIL to let go of, and the core waits by itself.
    let _waited = Python::try_attach(|py| py.detach(move || waiting.run()));
}

/// Adds the class to the module, and to the core what Python has to say where calls are long.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    interrupt::install(signals, wait);
    m.add_class::<PyDeadline>()
}
