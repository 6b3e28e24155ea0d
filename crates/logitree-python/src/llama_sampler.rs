//! A sampler of llama.cpp's own chains in Python. Conversions only; addresses of libllama's functions come from ctypes.
#![allow(unsafe_code)] // calls functions at addresses that Python gives

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use logitree::constraint::Matcher;
use logitree::decoder::Then;
use logitree::interrupt;
use logitree_llama::{LlamaLibrary, SamplerOptions, SamplerRecord, SamplerState, Selection};
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::matcher::PyMatcher;
use crate::sampling::PyChain;
use crate::vocabulary::PyVocabulary;

/// What makes native samplers for llama.cpp's chains: `logitree.engines.llama_sampler` calls it.
///
/// Takes copies of matcher and chain. `functions`: the addresses of `functions_needed()`, all of one library that
/// stays loaded; `sizes`: of its `llama_token_data` and `llama_token_data_array`.
///
/// Raises ConstraintError for a library that does not fit, or without a matcher and a chain; VocabularyError if no
/// token ends the generation; SamplingError for a chain that does not select.
#[pyclass(frozen, name = "LlamaSamplerMaker", module = "logitree._core")]
pub struct PyLlamaSamplerMaker {
    library: LlamaLibrary,
    /// The state that every sampler begins in.
    state: Mutex<SamplerState>,
    record: Arc<SamplerRecord>,
}

#[pymethods]
impl PyLlamaSamplerMaker {
    #[new]
    #[pyo3(signature = (vocabulary, matcher, chain, *, greedy, stop, counts_first, functions, sizes))]
    #[allow(clippy::too_many_arguments)] // keywords
    fn new(
        vocabulary: &PyVocabulary,
        matcher: Option<&PyMatcher>,
        chain: Option<&PyChain>,
        greedy: bool,
        stop: bool,
        counts_first: bool,
        functions: [usize; 7],
        sizes: (usize, usize),
    ) -> PyResult<Self> {
        let functions = functions.map(|address| address as *const c_void);
        // SAFETY: the addresses of those functions: the promise of the only caller, which reads them from the library.
        let library = unsafe { LlamaLibrary::new(functions, sizes.0, sizes.1) }.map_err(to_py)?;
        let matcher: Option<Box<dyn Matcher>> = matcher.map(|matcher| matcher.inner.fork());
        let selection = match chain {
            Some(chain) => Selection::Chain(Box::new(chain.inner.clone())),
            None if greedy => Selection::Greedy,
            None => Selection::Leave,
        };
        let then = if stop { Then::Stop } else { Then::Continue };
        let options = SamplerOptions { then, counts_first, ..SamplerOptions::default() };
        let state = SamplerState::new(&vocabulary.0, matcher, selection, options).map_err(to_py)?;
        let record = Arc::clone(state.record());
        Ok(PyLlamaSamplerMaker { library, state: Mutex::new(state), record })
    }

    /// The names of the functions of libllama whose addresses the constructor takes.
    #[staticmethod]
    fn functions_needed() -> [&'static str; 7] {
        LlamaLibrary::FUNCTIONS
    }

    /// The address of a new `llama_sampler`, which belongs to the caller until a chain owns it.
    fn make(&self) -> PyResult<usize> {
        let state = interrupt::lock(&self.state).fork();
        Ok(self.library.create(state).map_err(to_py)? as usize)
    }

    /// Raises the first error of the samplers since the last call, if there is one.
    fn check(&self) -> PyResult<()> {
        self.record.take_error().map_or(Ok(()), |error| Err(to_py(error)))
    }

    /// Sums over the steps of all samplers: steps, steps with one allowed candidate, candidates, allowed candidates, skip
    /// ratios, their squares.
    fn counts(&self) -> (u64, u64, u64, u64, f64, f64) {
        let sums = self.record.counts();
        (sums.steps, sums.sole, sums.candidates, sums.kept, sums.skip_ratio, sums.skip_ratio_squared)
    }
}

/// Adds the class to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyLlamaSamplerMaker>()
}
