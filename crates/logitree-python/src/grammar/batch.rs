//! Masks of many matchers, and of drafted tokens, in one call. Conversions only.
#![allow(unsafe_code)] // writes into the memory of other libraries: rows that nothing else borrows meanwhile

use logitree::constraint::{draft_masks, fill_batch, Matcher};
use logitree::{Error, ErrorKind, TokenId};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::to_py;
use crate::hold::hold;
use crate::mask::mask_rows;
use crate::matcher::PyMatcher;
use crate::vocabulary::token_id;

/// Writes each matcher's allowed tokens over its row of `out`, int32 or uint32, [B, words], in place.
///
/// `matchers`: a list, one matcher with one row, or a `Batch`. A finished row of a batch allows the end tokens alone. A
/// row is at least as long as `allowed().mask()`; words past the vocabulary are 0, or all ones where nothing is masked.
/// The GIL is released, and up to `threads` threads (None: one per core; a batch takes one) run where the work is large
/// enough. A row depends on its matcher alone. Raises MaskError for an `out` that does not fit, StateError for a matcher
/// given twice, or the first error of a row, with its number: after all other rows of a list are written, and with an
/// `out` of a batch that allows nothing.
#[pyfunction]
#[pyo3(signature = (matchers, out, threads=None))]
fn fill_masks(
    py: Python<'_>,
    matchers: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    threads: Option<usize>,
) -> PyResult<()> {
    if threads == Some(0) {
        let error = Error::new(ErrorKind::Mask, "0 threads").help("give 1 or more, or None for one a core");
        return Err(to_py(error));
    }
    if let Ok(one) = matchers.cast::<PyMatcher>() {
        return one.try_borrow_mut()?.fill(py, out);
    }
    let matchers: Vec<Bound<'_, PyMatcher>> = match matchers.extract() {
        Ok(matchers) => matchers,
        Err(_) if matchers.is_instance(&py.import("logitree._batch")?.getattr("Batch")?)? => {
            return matchers.call_method1("_fill", (out,)).map(drop);
        }
        Err(error) => return Err(error),
    };
    let mut held = hold(&matchers, "matcher", "matcher.fork()")?;
    let mut all: Vec<&mut Box<dyn Matcher>> = held.iter_mut().map(|matcher| &mut matcher.inner).collect();
    let mut rows = mask_rows(out)?;
    // SAFETY: these are the only slices.
    let rows = unsafe { rows.rows_mut::<u32>()? };
    let filled = py.detach(|| fill_batch(&mut all, rows, threads.unwrap_or(0)));
    filled.map_err(to_py)
}

/// Masks of drafted tokens: a list, or a tree as `(parents, tokens)`.
pub fn drafts<'py>(
    py: Python<'py>,
    matcher: &mut dyn Matcher,
    draft: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let (parents, tokens) = match draft.cast::<PyTuple>() {
        Ok(tree) if tree.len() == 2 && tree.get_item(1)?.try_iter().is_ok() => {
            let parents: Vec<i64> = tree.get_item(0)?.extract()?;
            // A parent of -1 or less is the matcher's current state.
            (parents.into_iter().map(|parent| usize::try_from(parent).ok()).collect(), tree.get_item(1)?)
        }
        _ => (chain(draft.len()?), draft.clone()),
    };
    let tokens = tokens_of(&tokens)?;
    let mut rows = mask_rows(out)?;
    // SAFETY: these are the only slices.
    let rows = unsafe { rows.rows_mut::<u32>()? };
    let allowed = py.detach(|| draft_masks(matcher, &parents, &tokens, rows)).map_err(to_py)?;
    Ok(PyArray1::from_vec(py, allowed))
}

/// The parents of a list: each token comes after the one before it.
fn chain(tokens: usize) -> Vec<Option<usize>> {
    (0..tokens).map(|token| token.checked_sub(1)).collect()
}

/// Token ids.
pub fn tokens_of(tokens: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
    tokens.try_iter()?.map(|token| token_id(token?.extract()?)).collect()
}

/// Adds the function to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(fill_masks, m)?)
}
