//! A sampler written in Python: a callable that shapes the candidates through NumPy views of their own memory.
//!
//! The memory is lent: it moves into a Python object that the two arrays keep alive. After the call it moves back, or
//! is copied if Python code still holds an array. So a call copies nothing, and no array ever dangles.
#![allow(unsafe_code)] // arrays over the lent memory

mod answer;

use super::adapt::partial;
use crate::errors::{is_borrowed, to_py};
use answer::{Answer, Keep};
use logitree::sampling::{Candidates, Sampler, StateReader, StateWriter};
use logitree::{Error, ErrorKind, Result, TokenId};
use numpy::ndarray::ArrayView1;
use numpy::npyffi::flags::NPY_ARRAY_WRITEABLE;
use numpy::{PyArray1, PyUntypedArrayMethods};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The callable's name among the samplers, never freed: names are static in the core.
fn interned(name: &str) -> Result<&'static str> {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    const MAX_NAMES: usize = 1 << 12;
    const LONGEST: usize = 64;
    let wrong = |message: String, help: String| Error::new(ErrorKind::Sampling, message).help(help);
    if name.is_empty() || name.len() > LONGEST {
        let message = format!("the name of a custom sampler has {} bytes", name.len());
        return Err(wrong(message, format!("give it 1 to {LONGEST}")));
    }
    let mut names = locked(&NAMES);
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(name) {
        return Ok(known);
    }
    if names.len() >= MAX_NAMES {
        let message = format!("{MAX_NAMES} custom samplers have different names");
        return Err(wrong(message, "name them by what they do, not one by one".into()));
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    Ok(name)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Whether a chain is being unpickled, so that the callables came with their state.
    static RESUMING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`, within which a snapshot need not hold the state of callables.
pub(super) fn resuming<R>(f: impl FnOnce() -> R) -> R {
    RESUMING.set(true);
    let result = f();
    RESUMING.set(false);
    result
}

/// The object's optional methods beside `apply`.
struct Hooks {
    accept: Option<Py<PyAny>>,
    rollback: Option<Py<PyAny>>,
    reset: Option<Py<PyAny>>,
    forced: Option<Py<PyAny>>,
    fork: Option<Py<PyAny>>,
    save: Option<Py<PyAny>>,
    load: Option<Py<PyAny>>,
}

impl Hooks {
    fn of(object: &Bound<'_, PyAny>) -> Self {
        let get = |name| object.getattr(name).ok().filter(|hook| hook.is_callable()).map(Bound::unbind);
        Hooks {
            accept: get("accept"),
            rollback: get("rollback"),
            reset: get("reset"),
            forced: get("forced"),
            fork: get("fork"),
            save: get("save"),
            load: get("load"),
        }
    }
}

/// The sampler. It has the callable's state, so each chain forks it.
pub struct Custom {
    name: &'static str,
    selects: bool,
    /// The object as given.
    object: Py<PyAny>,
    /// What is called at each step: the object, or its `apply`.
    shape: Py<PyAny>,
    hooks: Hooks,
    /// The constructor call as text, without an address, so that it is the same in every process.
    shown: String,
    /// An exception of a hook; the next step raises it.
    pending: Mutex<Option<Error>>,
}

impl Custom {
    /// The sampler that calls `object`, or its `apply`.
    pub fn new(object: &Bound<'_, PyAny>, name: &str, selects: bool) -> Result<Self> {
        let shape = object.getattr("apply").ok().filter(|apply| apply.is_callable());
        let Some(shape) = shape.or_else(|| object.is_callable().then(|| object.clone())) else {
            let message = format!("{} is not callable and has no apply", object.get_type());
            return Err(Error::new(ErrorKind::Sampling, message)
                .help("give fn(ids, logits), or an object with apply(ids, logits)"));
        };
        let named =
            object.getattr("__qualname__").or_else(|_| object.get_type().qualname().map(|n| n.into_any()));
        let named = named.map_or_else(|_| "?".into(), |n| n.to_string());
        let quoted = name.into_pyobject(object.py()).map(|n| n.repr());
        let quoted =
            quoted.ok().and_then(PyResult::ok).map_or_else(|| format!("{name:?}"), |r| r.to_string());
        let selecting = if selects { ", selects=True" } else { "" };
        Ok(Custom {
            name: interned(name)?,
            selects,
            object: object.clone().unbind(),
            shape: shape.unbind(),
            hooks: Hooks::of(object),
            shown: format!("custom({named}, name={quoted}{selecting})"),
            pending: Mutex::new(None),
        })
    }

    /// The call of `custom` that builds it again, with the object in its present state.
    pub(super) fn reduce<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let keywords = PyDict::new(py);
        keywords.set_item("selects", self.selects)?;
        let build = partial(py, &py.import("logitree._core")?.getattr("custom")?, &keywords)?;
        Ok((build, (self.object.clone_ref(py), self.name)).into_pyobject(py)?.into_any())
    }

    /// The core's error for a Python exception, which it carries unchanged.
    fn raised(&self, py: Python<'_>, error: PyErr) -> Error {
        if is_borrowed(py, &error) {
            let message =
                format!("the custom sampler {} used the chain or decoder that is calling it", self.name);
            return Error::new(ErrorKind::State, message)
                .help("give it what it needs to know beforehand, or by accept(token)");
        }
        Error::new(ErrorKind::Sampling, format!("the custom sampler {} raised", self.name)).because(error)
    }

    fn wrong(&self, message: impl std::fmt::Display, help: &str) -> Error {
        Error::new(ErrorKind::Sampling, format!("the custom sampler {} {message}", self.name)).help(help)
    }

    /// Calls a hook with `args` and returns whether there is one; its exception is kept for the next step.
    fn call(&self, hook: Option<&Py<PyAny>>, args: impl for<'py> PyCallArgs<'py>) -> bool {
        let Some(hook) = hook else { return false };
        Python::attach(|py| {
            if let Err(error) = hook.call1(py, args) {
                locked(&self.pending).get_or_insert(self.raised(py, error));
            }
        });
        true
    }

    /// Records an error: the object has `accept` but lacks the hook that is needed now.
    fn lacks(&self, hook: &str) {
        if self.hooks.accept.is_some() {
            let error = Error::new(
                ErrorKind::State,
                format!("the custom sampler {} has accept(token) but no {hook}", self.name),
            );
            locked(&self.pending).get_or_insert(
                error.help(format!("give it {hook}, so that its state goes with the chain's")),
            );
        }
    }

    fn shape(&self, py: Python<'_>, candidates: &mut Candidates<'_>) -> Result<()> {
        let (ids, logits) = candidates.lend();
        let n = ids.len();
        let lent = Lent::new(py, ids, logits).map_err(|error| self.raised(py, error))?;
        let answer = self.shape.call1(py, Lent::arrays(&lent)).map_err(|error| self.raised(py, error))?;
        let answer =
            Answer { n, selects: self.selects }.read(answer.into_bound(py)).map_err(|error| match error {
                answer::Fault::Raised(error) => self.raised(py, error),
                answer::Fault::Wrong(message, help) => self.wrong(message, help),
            })?;
        let (mut ids, mut logits) = Lent::back(lent);
        let mut selected = None;
        let mut in_order = true;
        match answer {
            Keep::All => {}
            Keep::Where(mask) => {
                let mut kept = 0;
                for at in (0..n).filter(|&at| mask[at] != 0) {
                    (ids[kept], logits[kept]) = (ids[at], logits[at]);
                    kept += 1;
                }
                ids.truncate(kept);
                logits.truncate(kept);
            }
            Keep::At(order) => {
                in_order = false;
                (ids, logits) = order.into_iter().map(|at| (ids[at], logits[at])).unzip();
            }
            Keep::Select(at) => selected = Some(at),
        }
        if ids.is_empty() {
            return Err(self.wrong("kept no candidate", "keep at least one"));
        }
        candidates.take_back(ids, logits, in_order).map_err(|error| {
            let message = format!("{}, from the custom sampler {}", error.message, self.name);
            Error { message, ..error }
        })?;
        if let Some(at) = selected {
            candidates.select(at);
        }
        Ok(())
    }

    fn forked(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match (&self.hooks.fork, &self.hooks.accept) {
            (Some(fork), _) => fork.call0(py),
            (None, Some(_)) => Ok(py.import("copy")?.call_method1("deepcopy", (&self.object,))?.unbind()),
            (None, None) => Ok(self.object.clone_ref(py)),
        }
    }
}

impl Clone for Custom {
    fn clone(&self) -> Self {
        Python::attach(|py| {
            let (object, mut pending) = match self.forked(py) {
                Ok(object) => (object, None),
                Err(error) => (self.object.clone_ref(py), Some(self.raised(py, error))),
            };
            let copy = Custom::new(object.bind(py), self.name, self.selects).unwrap_or_else(|error| {
                pending.get_or_insert(error);
                self.shared(py)
            });
            *locked(&copy.pending) = locked(&self.pending).clone().or(pending);
            copy
        })
    }
}

impl Sampler for Custom {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> String {
        self.shown.clone()
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let pending = locked(&self.pending).take();
        let result = match pending {
            Some(error) => Err(error),
            None => Python::attach(|py| self.shape(py, candidates)),
        };
        if let Err(error) = result {
            candidates.fail(error);
        }
    }

    fn accept(&mut self, token: TokenId) {
        self.call(self.hooks.accept.as_ref(), (token,));
    }

    fn rollback(&mut self, n: usize) {
        if !self.call(self.hooks.rollback.as_ref(), (n,)) {
            self.lacks("rollback(n)");
        }
    }

    fn forced(&mut self) {
        self.call(self.hooks.forced.as_ref(), ());
    }

    fn reset(&mut self) {
        *locked(&self.pending) = None;
        if !self.call(self.hooks.reset.as_ref(), ()) {
            self.lacks("reset()");
        }
    }

    fn selects(&self) -> bool {
        self.selects
    }

    fn is_foreign(&self) -> bool {
        true
    }

    fn save(&self, state: &mut StateWriter) {
        let Some(save) = &self.hooks.save else {
            if self.hooks.accept.is_some() {
                state.word(NOT_SAVED);
            }
            return;
        };
        let saved = Python::attach(|py| {
            let saved = save.call0(py).and_then(|s| Ok(s.bind(py).cast::<PyBytes>()?.as_bytes().to_vec()));
            saved.map_err(|error| self.raised(py, error))
        });
        match saved {
            Ok(bytes) => {
                state.word(bytes.len() as u64);
                let word = |part: &[u8]| part.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b));
                bytes.chunks(8).for_each(|part| state.word(word(part)));
            }
            Err(error) => {
                locked(&self.pending).get_or_insert(error);
                state.word(NOT_SAVED);
            }
        }
    }

    fn load(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        if self.hooks.save.is_none() && self.hooks.accept.is_none() {
            return Ok(());
        }
        let missing = || {
            let message = format!("the snapshot holds no state of the custom sampler {}", self.name);
            Error::new(ErrorKind::State, message)
                .help("give it save() -> bytes and load(bytes), or pickle the chain")
        };
        let length = state.word()?;
        if length == NOT_SAVED {
            return if RESUMING.get() { Ok(()) } else { Err(missing()) };
        }
        let load = self.hooks.load.as_ref().ok_or_else(missing)?;
        let length = usize::try_from(length).map_err(|_| missing())?;
        let words = state.take(length.div_ceil(8))?;
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.truncate(length);
        Python::attach(|py| {
            let result = load.call1(py, (PyBytes::new(py, &bytes),));
            result.map(drop).map_err(|error| self.raised(py, error))
        })
    }
}

/// In a snapshot, in place of a length: the object keeps state that is not there.
const NOT_SAVED: u64 = u64::MAX;

impl Custom {
    /// The same sampler over the same object, where it cannot be copied.
    fn shared(&self, py: Python<'_>) -> Custom {
        Custom {
            name: self.name,
            selects: self.selects,
            object: self.object.clone_ref(py),
            shape: self.shape.clone_ref(py),
            hooks: Hooks::of(self.object.bind(py)),
            shown: self.shown.clone(),
            pending: Mutex::new(None),
        }
    }
}

/// Candidates while Python has them. The vectors are neither read nor resized before they are taken back.
#[pyclass(frozen, name = "Lent", module = "logitree._core")]
struct Lent(Mutex<(Vec<TokenId>, Vec<f32>)>);

type Arrays<'py> = (Bound<'py, PyArray1<TokenId>>, Bound<'py, PyArray1<f32>>);

impl Lent {
    fn new(py: Python<'_>, ids: Vec<TokenId>, logits: Vec<f32>) -> PyResult<Bound<'_, Lent>> {
        Bound::new(py, Lent(Mutex::new((ids, logits))))
    }

    /// The arrays over its memory; the ids cannot be written.
    fn arrays<'py>(lent: &Bound<'py, Lent>) -> Arrays<'py> {
        let mut held = locked(&lent.get().0);
        let (n, ids, logits) = (held.0.len(), held.0.as_mut_ptr(), held.1.as_mut_ptr());
        // SAFETY: both vectors have `n` elements, which do not move for as long as the object lives (`back` moves them
        // out only when it has the only reference), and the arrays hold the object.
        unsafe {
            let view = ArrayView1::from_shape_ptr(n, ids.cast_const());
            let ids = PyArray1::borrow_from_array(&view, lent.clone().into_any());
            (*ids.as_array_ptr()).fields.flags &= !NPY_ARRAY_WRITEABLE;
            let view = ArrayView1::from_shape_ptr(n, logits.cast_const());
            (ids, PyArray1::borrow_from_array(&view, lent.clone().into_any()))
        }
    }

    /// The vectors, moved out of the object if this is its only reference, else copied. An array's views hold the
    /// array.
    fn back(lent: Bound<'_, Lent>) -> (Vec<TokenId>, Vec<f32>) {
        let mut held = locked(&lent.get().0);
        if references(&lent) == 1 {
            return std::mem::take(&mut *held);
        }
        held.clone()
    }
}

/// How many references there are to an object.
fn references(object: &Bound<'_, Lent>) -> isize {
    // SAFETY: the object is alive, and the interpreter attached.
    unsafe { pyo3::ffi::Py_REFCNT(object.as_ptr()) }
}

/// A sampler that calls `fn(ids, logits)`, anywhere in a chain.
///
/// `ids`: uint32 [n], read only; `logits`: float32 [n], to be written in place; the candidates in their order,
/// views of the chain's own memory. Returns None (all stay), a bool array [n] (which stay), or an integer array of
/// positions (which stay, in that order). With `selects` it returns the position of one candidate, which is picked, and
/// must be the last sampler. An array that outlives the call stays valid, at the cost of a copy.
///
/// `fn` may be an object with `apply(ids, logits)`. Optional, for one that keeps state, on object or function:
/// `accept(token)`, `rollback(n)`, `reset()`, `forced()` (a step with one candidate was skipped), `fork()`
/// (returns a copy; without it `copy.deepcopy` if there is `accept`, else all chains share the object), `save()
/// -> bytes` and `load(bytes)` for snapshots. Each chain forks it when it is built. `name` has 1 to 64 bytes.
///
/// Errors: what `fn` raises comes out of the step unchanged; what a hook raises, out of the next step. NaN or +inf
/// written, nothing left above -inf: LogitsError. An answer of another kind, dtype or shape, a position twice or out
/// of range, nothing kept: SamplingError. Using the chain that is calling, or lacking the `rollback` or `reset`
/// that goes with an `accept`: StateError. Parity mode refuses it.
///
/// Cost: a call that does nothing takes 0.3 us with 40 candidates, an operation of NumPy in it 0.7 us or more. All
/// 128,256 candidates of a vocabulary take 60 us more, because they must be listed, and each operation over them 70 us
/// or more: put it after `top_k` where its rule allows.
#[pyfunction]
#[pyo3(signature = (r#fn, name="custom", *, selects=false))]
fn custom(r#fn: &Bound<'_, PyAny>, name: &str, selects: bool) -> PyResult<super::samplers::PySampler> {
    Ok(super::samplers::PySampler(Box::new(Custom::new(r#fn, name, selects).map_err(to_py)?)))
}

/// Adds the function to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(custom, m)?)
}
