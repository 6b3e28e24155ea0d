//! The base class of constraints in Python, with the defaults of what a constraint may override, and the constraint that
//! a caller gave. Conversions only.

use std::sync::Arc;

use logitree::constraint::{Constraint as _, Matcher};
use logitree::grammar::ast::Grammar;
use logitree::vocabulary::Vocabulary;
use logitree::{form, Error, ErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::PyClass;

use crate::constraint::text_bytes;
use crate::errors::to_py;
use crate::grammar::PyGrammar;
use crate::matcher::PyMatcher;
use crate::vocabulary::PyVocabulary;

/// What may be generated: a value that knows no vocabulary, no model and no prompt. The base class of all constraints.
///
/// A class defines `matcher`. The other methods are abilities with a default: a class overrides those that it has.
/// `a + b` is first a, then b; `a | b` either; `a & b` what both allow.
#[pyclass(frozen, subclass, name = "Constraint", module = "logitree")]
pub struct PyConstraint;

#[pymethods]
impl PyConstraint {
    #[new]
    #[classmethod]
    #[pyo3(signature = (*_args, **_options))]
    fn new(
        cls: &Bound<'_, PyType>,
        _args: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let own = cls.py().get_type::<PyConstraint>();
        if cls.getattr("matcher")?.is(&own.getattr("matcher")?) {
            let name = cls.name()?;
            return Err(PyTypeError::new_err(format!(
                "{name} does not define matcher(vocabulary) -> Matcher"
            )));
        }
        Ok(PyConstraint)
    }

    /// A matcher at the beginning of the output.
    ///
    /// Raises:
    ///     ConstraintError, LimitError: the constraint cannot be honoured with this vocabulary.
    #[pyo3(signature = (vocabulary, /))]
    fn matcher(slf: &Bound<'_, Self>, vocabulary: &Bound<'_, PyVocabulary>) -> PyResult<PyMatcher> {
        let _ = vocabulary;
        let name = slf.get_type().name()?;
        Err(PyTypeError::new_err(format!("{name} does not define matcher(vocabulary) -> Matcher")))
    }

    /// A matcher where an engine runs the model. By default `matcher(context.vocabulary)`.
    ///
    /// Args:
    ///     context: `vocabulary`; `tokenize`, the model's own tokenisation of a text, or None; `prompt`, its token ids.
    #[pyo3(signature = (context, /))]
    fn bind<'py>(slf: &Bound<'py, Self>, context: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.call_method1("matcher", (context.getattr("vocabulary")?,))
    }

    /// How many of the output's first tokens precede the answer. By default 0.
    #[pyo3(signature = (tokens, context, /))]
    fn answer_start(&self, tokens: &Bound<'_, PyAny>, context: &Bound<'_, PyAny>) -> usize {
        let _ = (tokens, context);
        0
    }

    /// What a complete answer means. By default its text.
    ///
    /// Args:
    ///     text: the answer's text.
    ///     tokens: the answer's tokens.
    #[pyo3(signature = (text, tokens, /))]
    fn value<'py>(&self, text: Bound<'py, PyAny>, tokens: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
        let _ = tokens;
        text
    }

    /// What a complete output means, from all of its tokens: `Generation.value`. By default NotImplemented: `value` of its
    /// answer. A constraint overrides it whose markers are control tokens, which no text has.
    ///
    /// Args:
    ///     tokens: all tokens of the output.
    ///     context: as of `bind`.
    #[pyo3(signature = (tokens, context, /))]
    fn read(&self, tokens: &Bound<'_, PyAny>, context: &Bound<'_, PyAny>) -> Py<PyAny> {
        let _ = context;
        tokens.py().NotImplemented()
    }

    /// The chains of spans that have their own, by the span's number, for a generation with `chain`. By default none.
    #[pyo3(signature = (chain, /))]
    fn span_chains<'py>(&self, chain: &Bound<'py, PyAny>) -> Bound<'py, PyDict> {
        PyDict::new(chain.py())
    }

    /// What turns the tokens of one output into the events of its spans. By default None: there are no spans.
    fn span_stream(&self, py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    /// The constraint as JSON, in the core's form (docs/c.md), which C, TypeScript, the command line and `from_form` read.
    ///
    /// Raises:
    ///     ConstraintError: it has none: it counts on Python code, on a vocabulary, or on bytes that are not UTF-8.
    ///     LimitError: it is nested too deep.
    fn form(slf: &Bound<'_, Self>) -> PyResult<String> {
        let message = format!("a {} has no JSON form", slf.get_type().name()?);
        Err(to_py(
            Error::new(ErrorKind::Constraint, message).help("pickle it, or make it again where it is needed"),
        ))
    }

    /// The constraint of the core's JSON form (docs/c.md). A grammar comes back as a `Grammar`; of others `value` is the text.
    ///
    /// Args:
    ///     text: the JSON. Paths in it, of catalogues and tokenizers, are opened.
    ///     vocabulary: what the ids and names of token trees must fit; None: they are not checked.
    ///
    /// Raises:
    ///     ConstraintError: with a JSON pointer.
    ///     FileError: a file that it names cannot be read.
    #[staticmethod]
    #[pyo3(signature = (text, *, vocabulary=None))]
    fn from_form<'py>(
        text: &Bound<'py, PyAny>,
        vocabulary: Option<&Bound<'py, PyVocabulary>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = text.py();
        let text = text_bytes(text, "text")?;
        let known = vocabulary.map(|known| Arc::clone(&known.get().0));
        let read = || {
            let constraint = form::read_for(&text, known.as_deref())?;
            let form = constraint.form()?;
            let parts =
                (form["type"] == "grammar").then(|| Grammar::from_written(&form["parts"].to_string()));
            Ok((constraint, form.to_string(), parts.transpose()?))
        };
        let (constraint, form, grammar) = py.detach(read).map_err(to_py)?;
        Ok(match grammar {
            Some(node) => PyGrammar::new(node).into_pyobject(py)?.into_any(),
            None => PyReadConstraint { constraint, form }.into_pyobject(py)?.into_any(),
        })
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        operator("then", slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        operator("then", other, slf.as_any())
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        operator("either", slf.as_any(), other)
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        operator("either", other, slf.as_any())
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        operator("both", slf.as_any(), other)
    }

    fn __rand__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        operator("both", other, slf.as_any())
    }
}

/// What `Constraint.from_form` read, where it is no grammar. Immutable; shared between threads, compared and pickled by its
/// form.
#[pyclass(frozen, extends = PyConstraint, name = "ReadConstraint", module = "logitree._core")]
pub struct PyReadConstraint {
    constraint: Arc<dyn logitree::Constraint>,
    form: String,
}

#[pymethods]
impl PyReadConstraint {
    /// A matcher at the beginning of the output.
    #[pyo3(signature = (vocabulary, /))]
    fn matcher(&self, py: Python<'_>, vocabulary: &Bound<'_, PyVocabulary>) -> PyResult<PyMatcher> {
        let known = Arc::clone(&vocabulary.get().0);
        let matcher = py.detach(|| self.constraint.matcher(&known)).map_err(to_py)?;
        Ok(PyMatcher::of(matcher, Some(vocabulary.clone().unbind())))
    }

    /// The form that was read, without what is left to defaults.
    fn form(&self) -> &str {
        &self.form
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&str,))> {
        Ok((py.get_type::<PyConstraint>().getattr("from_form")?, (&self.form,)))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.form == other.get().form)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.form.as_str().into_pyobject(py)?.hash()
    }

    fn __repr__(&self) -> String {
        let shown: String = self.form.chars().take(60).collect();
        let rest = if shown.len() < self.form.len() { "..." } else { "" };
        format!("Constraint.from_form({shown:?}{rest})")
    }
}

/// `left + right` ("then"), `left | right` ("either") or `left & right` ("both") of any constraints; `NotImplemented`
/// where one means no constraint.
pub fn operator<'py>(
    kind: &str,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    left.py().import("logitree.compose")?.getattr("_operator")?.call1((kind, left, right))
}

/// A value of a class that derives from `Constraint`.
pub fn derived<T: PyClass<BaseType = PyConstraint>>(value: T) -> PyClassInitializer<T> {
    PyClassInitializer::from(PyConstraint).add_subclass(value)
}

/// Classes that derive from `Constraint`, as results of functions.
macro_rules! derived {
    ($($class:ty),*) => {$(
        impl<'py> IntoPyObject<'py> for $class {
            type Target = Self;
            type Output = Bound<'py, Self>;
            type Error = PyErr;

            fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, Self>> {
                Bound::new(py, derived(self))
            }
        }
    )*};
}

derived!(PyGrammar, PyMatcher, PyReadConstraint, crate::recogniser::PyRecogniser);
derived!(crate::constraint::PyTokenTree, crate::constraint::PySpan);

/// A constraint that a caller gave: a matcher, a grammar, or anything that `logitree._constraint.bind` takes.
pub enum Constraint<'py> {
    Matcher(Bound<'py, PyMatcher>),
    Grammar(Bound<'py, PyGrammar>),
    Other(Bound<'py, PyAny>),
}

impl<'py> Constraint<'py> {
    /// Reads what a caller gave as a constraint.
    pub fn read(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(matcher) = object.cast::<PyMatcher>() {
            return Ok(Constraint::Matcher(matcher.clone()));
        }
        Ok(match object.cast::<PyGrammar>() {
            Ok(grammar) => Constraint::Grammar(grammar.clone()),
            Err(_) => Constraint::Other(object.clone()),
        })
    }

    /// The matcher over `vocabulary`, a copy of the caller's where the constraint is a matcher.
    pub fn fork(&self, vocabulary: &Arc<Vocabulary>) -> PyResult<Box<dyn Matcher>> {
        match self {
            Constraint::Matcher(matcher) => Ok(matcher.try_borrow()?.inner.fork()),
            Constraint::Grammar(grammar) => grammar.get().node().matcher(vocabulary).map_err(to_py),
            Constraint::Other(other) => {
                let bind = other.py().import("logitree._constraint")?.getattr("bind")?;
                let matcher = bind.call1((other, PyVocabulary(Arc::clone(vocabulary))))?;
                Ok(matcher.cast::<PyMatcher>()?.try_borrow()?.inner.fork())
            }
        }
    }

    /// The chains of its spans, for a generation with `chain`; `None`: it has no spans.
    pub fn span_chains(&self, chain: impl IntoPyObject<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        match self {
            Constraint::Other(other) if other.is_instance_of::<PyConstraint>() => {
                Ok(Some(other.call_method1("span_chains", (chain,))?.cast_into()?))
            }
            _ => Ok(None),
        }
    }
}

/// Adds the classes to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyConstraint>()?;
    m.add_class::<PyReadConstraint>()
}
