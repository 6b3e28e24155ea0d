//! Response templates in Python: plans as plain dicts in the shape that their users exchange. Conversions only.

use logitree::constraint::token_tree::template::ResponseTemplate;
use logitree::TokenId;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::errors::to_py;

fn read(template: &Bound<'_, PyAny>) -> PyResult<ResponseTemplate> {
    let py = template.py();
    let text = if template.is_instance_of::<PyDict>() {
        py.import("json")?.call_method1("dumps", (template,))?
    } else if let Ok(bytes) = template.cast::<PyBytes>() {
        bytes.call_method0("decode")?
    } else {
        template.clone()
    };
    match text.cast::<PyString>() {
        Ok(text) => ResponseTemplate::from_json(text.to_str()?).map_err(to_py),
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
    m.add_function(wrap_pyfunction!(prefill_plan, m)?)?;
    m.add_function(wrap_pyfunction!(span_sampler_plan, m)?)?;
    Ok(())
}
