//! Compositions of constraints in Python. Conversions only; what users call is in `python/logitree/compose.py`.

use std::sync::Arc;

use logitree::constraint::compose::MAX_NESTED;
use logitree::constraint::{Composition, Constraint, Matcher};
use logitree::vocabulary::Vocabulary;
use logitree::{Result, TokenId};
use pyo3::prelude::*;

use crate::errors::to_py;
use crate::grammar::PyGrammar;
use crate::matcher::PyMatcher;
use crate::vocabulary::PyVocabulary;

/// What `logitree.compose` makes of constraints whose context is known.
#[pyclass(frozen, name = "Composition", module = "logitree._core")]
pub struct PyComposition(Composition);

/// A matcher as a constraint: what it allows from its state on.
struct Given(Box<dyn Matcher>);

impl Constraint for Given {
    fn matcher(&self, _vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        Ok(self.0.fork())
    }
}

fn inner(parts: &[PyRef<'_, PyComposition>]) -> Vec<Composition> {
    parts.iter().map(|part| part.0.clone()).collect()
}

fn made(composition: Result<Composition>) -> PyResult<PyComposition> {
    composition.map(PyComposition).map_err(to_py)
}

#[pymethods]
impl PyComposition {
    /// Maximum nesting.
    #[classattr]
    const MAX_NESTED: usize = MAX_NESTED;

    /// What a matcher allows from its state on.
    #[staticmethod]
    fn of(matcher: PyRef<'_, PyMatcher>) -> PyComposition {
        PyComposition(Composition::of(Arc::new(Given(matcher.inner.fork()))))
    }

    /// A grammar.
    #[staticmethod]
    fn grammar(grammar: &Bound<'_, PyGrammar>) -> PyComposition {
        PyComposition(Composition::grammar(grammar.get().node().clone()))
    }

    /// One after the other.
    #[staticmethod]
    fn then(parts: Vec<PyRef<'_, PyComposition>>) -> PyResult<PyComposition> {
        made(Composition::then(inner(&parts)))
    }

    /// Any of them.
    #[staticmethod]
    fn either(parts: Vec<PyRef<'_, PyComposition>>) -> PyResult<PyComposition> {
        made(Composition::either(inner(&parts)))
    }

    /// What both allow.
    #[staticmethod]
    fn both(first: PyRef<'_, PyComposition>, second: PyRef<'_, PyComposition>) -> PyResult<PyComposition> {
        made(first.0.both(&second.0))
    }

    /// At least `min` and at most `max` times.
    #[staticmethod]
    fn repeat(part: PyRef<'_, PyComposition>, min: u32, max: Option<u32>) -> PyResult<PyComposition> {
        made(part.0.repeat(min, max))
    }

    /// A text, then `stop`, which occurs nowhere before.
    #[staticmethod]
    fn until(text: PyRef<'_, PyComposition>, stop: PyRef<'_, PyComposition>) -> PyResult<PyComposition> {
        made(Composition::until(&text.0, &stop.0))
    }

    /// The part without these words and sequences of tokens.
    #[staticmethod]
    fn without(
        part: PyRef<'_, PyComposition>,
        words: Vec<String>,
        tokens: Vec<Vec<TokenId>>,
    ) -> PyResult<PyComposition> {
        made(part.0.without(words, tokens))
    }

    /// The outputs of at least `n` tokens.
    #[staticmethod]
    fn at_least(part: PyRef<'_, PyComposition>, n: usize) -> PyResult<PyComposition> {
        made(part.0.at_least(n))
    }

    /// The outputs of at most `n` tokens.
    #[staticmethod]
    fn at_most(part: PyRef<'_, PyComposition>, n: usize) -> PyResult<PyComposition> {
        made(part.0.at_most(n))
    }

    /// A matcher at the beginning of the output.
    fn matcher(&self, py: Python<'_>, vocabulary: &Bound<'_, PyVocabulary>) -> PyResult<PyMatcher> {
        let known = Arc::clone(&vocabulary.get().0);
        let matcher = py.detach(|| self.0.matcher(&known)).map_err(to_py)?;
        Ok(PyMatcher::of(matcher, Some(vocabulary.clone().unbind())))
    }
}

/// Adds the class to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyComposition>()
}
