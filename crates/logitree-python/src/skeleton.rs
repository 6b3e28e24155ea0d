//! Skeletons in Python: plans as plain dicts in the shape that their users exchange, and the native form of
//! `python/logitree/skeleton.py`. Conversions only.

use std::sync::Arc;

use logitree::constraint::skeleton::{CompiledSkeleton, MarkKind, SpanMark};
use logitree::constraint::{Skeleton, SkeletonOptions};
use logitree::TokenId;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::constraint::{PyMatcher, PyTokenTree};
use crate::errors::to_py;
use crate::grammar::PyGrammar;
use crate::vocabulary::PyVocabulary;

/// A mark: "start", "end" or "item", the span's number, the byte, and at the end of an enum the number of its value.
pub type Mark = (&'static str, u32, usize, Option<u32>);

/// Marks as plain tuples.
pub fn marks(all: Vec<SpanMark>) -> Vec<Mark> {
    let named = |mark: SpanMark| {
        let kind = match mark.kind {
            MarkKind::Start => "start",
            MarkKind::End => "end",
            MarkKind::Item => "item",
        };
        (kind, mark.span, mark.at, mark.value)
    };
    all.into_iter().map(named).collect()
}

/// A skeleton, resolved: the native form of `logitree.Skeleton`. Immutable; shared between threads.
#[pyclass(frozen, name = "SkeletonProgram", module = "logitree._core")]
pub struct PySkeletonProgram {
    skeleton: Skeleton,
    compiled: CompiledSkeleton,
}

#[pymethods]
impl PySkeletonProgram {
    #[new]
    fn new(py: Python<'_>, form: &str) -> PyResult<Self> {
        let read = || {
            let skeleton = Skeleton::from_json(form)?;
            let compiled = skeleton.compile()?;
            Ok((skeleton, compiled))
        };
        let (skeleton, compiled) = py.detach(read).map_err(to_py)?;
        Ok(PySkeletonProgram { skeleton, compiled })
    }

    /// The JSON form as text.
    fn form(&self) -> String {
        self.skeleton.to_json().to_string()
    }

    /// For each span by its number: kind, path, whether it is greedy, whether it is inside of a string, and as JSON text
    /// its values and its sampler.
    #[allow(clippy::type_complexity)] // a row of plain values
    fn spans(&self) -> Vec<(&str, &str, bool, bool, Vec<String>, Option<String>)> {
        let spans = self.compiled.spans().iter();
        spans
            .map(|span| {
                let values = span.values.iter().map(ToString::to_string).collect();
                let sampler = span.sampler.as_ref().map(ToString::to_string);
                (span.kind, span.path.as_str(), span.is_greedy, span.in_string, values, sampler)
            })
            .collect()
    }

    /// The texts of all runs of fixed text, and whether each is outside of arrays and switches.
    fn runs(&self) -> Vec<(String, bool)> {
        self.compiled.runs().to_vec()
    }

    /// The grammar of the whole text.
    fn grammar(&self) -> PyGrammar {
        PyGrammar::new(self.compiled.grammar().clone())
    }

    /// A matcher at the beginning of the text.
    #[pyo3(signature = (vocabulary, tree=None, run_tokens=None))]
    fn matcher(
        &self,
        py: Python<'_>,
        vocabulary: Py<PyVocabulary>,
        tree: Option<&PyTokenTree>,
        run_tokens: Option<Vec<Option<Vec<TokenId>>>>,
    ) -> PyResult<PyMatcher> {
        let known = Arc::clone(&vocabulary.get().0);
        let options = SkeletonOptions {
            tree: tree.map(|tree| Arc::clone(tree.tree())),
            run_tokens: run_tokens.unwrap_or_default(),
        };
        let matcher = py.detach(|| self.compiled.bind(&known, &options)?.matcher());
        Ok(PyMatcher::of(matcher.map_err(to_py)?, Some(vocabulary)))
    }

    /// The settled marks of a text, where it is cut off or complete, and which of the two.
    fn read(&self, text: &[u8]) -> PyResult<(Vec<Mark>, bool)> {
        let mut tracker = self.compiled.tracker();
        tracker.push(text).map_err(to_py)?;
        let complete = tracker.finish();
        Ok((marks(tracker.marks(0)), complete))
    }
}

fn read(template: &Bound<'_, PyAny>) -> PyResult<Skeleton> {
    let py = template.py();
    let text = if template.is_instance_of::<PyDict>() {
        py.import("json")?.call_method1("dumps", (template,))?
    } else if let Ok(bytes) = template.cast::<PyBytes>() {
        bytes.call_method0("decode")?
    } else {
        template.clone()
    };
    match text.cast::<PyString>() {
        Ok(text) => Skeleton::from_json(text.to_str()?).map_err(to_py),
        Err(_) => {
            let name = text.get_type().name()?;
            Err(PyTypeError::new_err(format!("template must be str, bytes or dict, not {name}")))
        }
    }
}

/// The parts of a response that need no sampling, as a plan; None if there are none.
///
/// `template` is `{spans: [{kind, key?, value?, enumValues?, rule?}], id?}` with the kinds literal, enum,
/// number, boolean, free-string and free-json. The plan is `{prefix, runs, free_count, id}`; a run is
/// `{after_free_span, text, token_ids}`, after_free_span -1 at the very beginning, token_ids only with
/// `tokenize`. Enum values are JSON values: with quotes, unless the text before them opened a string.
///
/// Raises PayloadError, with line and column, for any other template.
#[pyfunction]
#[pyo3(signature = (template, tokenize=None))]
fn prefill_plan<'py>(
    py: Python<'py>,
    template: &Bound<'py, PyAny>,
    tokenize: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(plan) = read(template)?.prefill_plan(None).map_err(to_py)? else { return Ok(None) };
    let mut runs = Vec::with_capacity(plan.runs.len());
    for run in &plan.runs {
        let item = PyDict::new(py);
        item.set_item("after_free_span", run.after_free_span.map_or(-1, |n| n as i64))?;
        item.set_item("text", &run.text)?;
        if let Some(tokenize) = tokenize {
            item.set_item("token_ids", tokenize.call1((&run.text,))?.extract::<Vec<TokenId>>()?)?;
        }
        runs.push(item);
    }
    let out = PyDict::new(py);
    out.set_item("prefix", plan.prefix)?;
    out.set_item("runs", runs)?;
    out.set_item("free_count", plan.free_count)?;
    out.set_item("id", plan.id)?;
    Ok(Some(out))
}

/// `{overrides: [{span_index, temperature, top_k}]}`, for the spans that take the most likely token.
///
/// These are enums of several values, numbers and booleans.
#[pyfunction]
fn span_sampler_plan<'py>(py: Python<'py>, template: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let mut overrides = Vec::new();
    for over in read(template)?.sampler_plan() {
        let item = PyDict::new(py);
        item.set_item("span_index", over.span_index)?;
        item.set_item("temperature", over.temperature)?;
        item.set_item("top_k", over.top_k)?;
        overrides.push(item);
    }
    let out = PyDict::new(py);
    out.set_item("overrides", overrides)?;
    Ok(out)
}

/// Adds these functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PySkeletonProgram>()?;
    m.add_function(wrap_pyfunction!(prefill_plan, m)?)?;
    m.add_function(wrap_pyfunction!(span_sampler_plan, m)?)?;
    Ok(())
}
