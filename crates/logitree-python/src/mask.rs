//! Masks in Python: functions over int32 arrays, in place and without copies; `logitree.masks` gives them their
//! names. Conversions only.
#![allow(unsafe_code)] // writes into other libraries' memory, each after a check that nothing overlaps

use crate::buffer::{Element, Number, Rows};
use crate::errors::to_py;
use logitree::mask::{self, bit, insert_bit, remove_bit, words_for, AllowedLogits, Logit};
use logitree::{Error, ErrorKind, TokenId};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

fn fail(message: String, help: &str) -> PyErr {
    to_py(Error::new(ErrorKind::Mask, message).help(help))
}

/// The mask's memory, which must hold 32-bit words.
pub fn mask_rows<'py>(object: &Bound<'py, PyAny>) -> PyResult<Rows<'py>> {
    let rows = Rows::of(object, "mask", ErrorKind::Mask)?;
    rows.check::<u32>()?;
    Ok(rows)
}

/// The words of a mask of one row.
fn one_row<'a>(rows: &'a Rows<'_>) -> PyResult<&'a [u32]> {
    if rows.rows() != 1 {
        return Err(rows.error(format!("of {} rows", rows.rows()), "give one row: mask[i]"));
    }
    rows.row(0)
}

/// The memory of a mask of one row, to be written.
pub fn one_row_mut<'py>(mask: &Bound<'py, PyAny>) -> PyResult<Rows<'py>> {
    let rows = mask_rows(mask)?;
    if rows.rows() != 1 {
        return Err(rows.error(format!("of {} rows", rows.rows()), "give one row: mask[i]"));
    }
    Ok(rows)
}

/// A new array of these words.
pub fn new_array(py: Python<'_>, words: Vec<u32>) -> Bound<'_, PyAny> {
    PyArray1::from_vec(py, words.into_iter().map(|word| word as i32).collect()).into_any()
}

/// An empty mask of ids below `size`, or with `fill` a full one; with `rows`, a batch: int32, [words] or [rows, words].
#[pyfunction]
#[pyo3(signature = (size, rows=None, *, fill=false))]
fn mask_new(py: Python<'_>, size: usize, rows: Option<usize>, fill: bool) -> PyResult<Bound<'_, PyAny>> {
    if size > 1 << 32 || rows.unwrap_or(1).saturating_mul(words_for(size).max(1)) > 1 << 32 {
        return Err(fail(format!("{} rows of {size} ids", rows.unwrap_or(1)), "token ids have 32 bits"));
    }
    let mut words = vec![0; words_for(size)];
    if fill {
        mask::AllowedTokens::All.write(size, &mut words);
    }
    let Some(rows) = rows else { return Ok(new_array(py, words)) };
    // Through Python, so that too little memory is a MemoryError.
    let array = py.import("numpy")?.call_method1("zeros", ((rows, words.len()), "int32"))?;
    let array = array.cast_into::<PyArray2<i32>>()?;
    if fill {
        let mut view = array.readwrite();
        let mut view = view.as_array_mut();
        for mut row in view.rows_mut() {
            row.iter_mut().zip(&words).for_each(|(to, from)| *to = *from as i32);
        }
    }
    Ok(array.into_any())
}

/// Number of 32-bit words of a mask of `size` ids.
#[pyfunction]
fn mask_words(size: usize) -> usize {
    words_for(size)
}

/// The mask of `ids`, in any order. Raises MaskError for an id that is not below `size`.
#[pyfunction]
fn mask_from_ids<'py>(py: Python<'py>, size: usize, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let mut words = vec![0; words_for(size)];
    for id in ids.try_iter()? {
        let id: i64 = id?.extract()?;
        if !(0..size as i64).contains(&id) {
            return Err(fail(format!("id {id} in a mask of {size} ids"), ""));
        }
        insert_bit(&mut words, id as TokenId);
    }
    Ok(new_array(py, words))
}

/// The ids in a mask of one row, ascending.
#[pyfunction]
fn mask_ids<'py>(py: Python<'py>, mask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<i32>>> {
    let rows = mask_rows(mask)?;
    Ok(PyArray1::from_iter(py, mask::ids(one_row(&rows)?).map(|id| id as i32)))
}

/// The number of ids in the mask: an int, or for a batch an int64 array [rows].
#[pyfunction]
fn mask_count<'py>(py: Python<'py>, mask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let rows = mask_rows(mask)?;
    if rows.is_flat() {
        return Ok(mask::count(rows.row(0)?).into_pyobject(py)?.into_any());
    }
    let counts =
        (0..rows.rows()).map(|i| Ok(mask::count(rows.row(i)?) as i64)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyArray1::from_vec(py, counts).into_any())
}

/// The lowest id in a mask of one row.
#[pyfunction]
fn mask_first(mask: &Bound<'_, PyAny>) -> PyResult<Option<TokenId>> {
    let rows = mask_rows(mask)?;
    Ok(mask::ids(one_row(&rows)?).next())
}

/// Whether `id` is in a mask of one row; ids past its end are not.
#[pyfunction]
fn mask_contains(mask: &Bound<'_, PyAny>, id: i64) -> PyResult<bool> {
    let rows = mask_rows(mask)?;
    let words = one_row(&rows)?;
    Ok(TokenId::try_from(id).is_ok_and(|id| bit(words, id)))
}

/// Sets or clears one bit; says whether that changed it.
fn put(mask: &Bound<'_, PyAny>, id: i64, value: bool) -> PyResult<bool> {
    let mut rows = mask_rows(mask)?;
    let ids = one_row(&rows)?.len() as i64 * 32;
    if !(0..ids).contains(&id) {
        return Err(fail(format!("id {id} in a mask of {ids} ids"), ""));
    }
    // SAFETY: this is the only slice.
    let words = unsafe { rows.row_mut::<u32>(0)? };
    let was = bit(words, id as TokenId);
    match value {
        true => insert_bit(words, id as TokenId),
        false => remove_bit(words, id as TokenId),
    }
    Ok(was != value)
}

/// Adds `id` to a mask of one row, in place; True if it is new. MaskError past the mask's end.
#[pyfunction]
fn mask_insert(mask: &Bound<'_, PyAny>, id: i64) -> PyResult<bool> {
    put(mask, id, true)
}

/// Removes `id` from a mask of one row, in place; True if it was present. MaskError past its end.
#[pyfunction]
fn mask_remove(mask: &Bound<'_, PyAny>, id: i64) -> PyResult<bool> {
    put(mask, id, false)
}

/// Adds every id below `size`, or removes every id, in place, in every row.
#[pyfunction]
#[pyo3(signature = (mask, size, value=true))]
fn mask_fill(mask: &Bound<'_, PyAny>, size: usize, value: bool) -> PyResult<()> {
    let mut rows = mask_rows(mask)?;
    check_size(&rows, size)?;
    let from = if value { mask::AllowedTokens::All } else { mask::AllowedTokens::Ids(&[]) };
    for i in 0..rows.rows() {
        // SAFETY: this is the only slice.
        from.write(size, unsafe { rows.row_mut::<u32>(i)? });
    }
    Ok(())
}

fn check_size(rows: &Rows<'_>, size: usize) -> PyResult<()> {
    if rows.columns() == words_for(size) {
        return Ok(());
    }
    let message = format!("of {} words for {size} ids", rows.columns());
    Err(rows.error(message, &format!("{size} ids take {} words", words_for(size))))
}

/// Writes minus infinity to the logits of ids that are not in the mask, in place; other logits are not written.
///
/// `logits`: float32, float16, bfloat16, or uint16 (bfloat16 bits), [ids] or [rows, ids]; rows may be part
/// of longer ones (`logits[:, :size]`). NumPy arrays, or tensors in this machine's memory (DLPack).
/// `mask`: one row for all, or one for each. Ids past the mask's end are banned.
/// Raises LogitsError for another dtype, shape or layout, read-only memory, or a mask that allows an id in a
/// word past those that the logits reach (that row is not written then); MaskError for a mask of another dtype
/// or shape.
#[pyfunction]
fn mask_apply(logits: &Bound<'_, PyAny>, mask: &Bound<'_, PyAny>) -> PyResult<()> {
    let logits = Rows::of(logits, "logits", ErrorKind::Logits)?;
    let mask = mask_rows(mask)?;
    match logits.number() {
        Number::F16 => apply::<half::f16>(logits, &mask),
        Number::Bf16 | Number::U16 => apply::<half::bf16>(logits, &mask),
        _ => apply::<f32>(logits, &mask),
    }
}

fn apply<T: Logit + Element>(mut logits: Rows<'_>, mask: &Rows<'_>) -> PyResult<()> {
    logits.check_write::<T>()?;
    if mask.rows() != 1 && mask.rows() != logits.rows() {
        let message = format!("of {} rows for {} rows of logits", mask.rows(), logits.rows());
        return Err(mask.error(message, "give one row, or one for each"));
    }
    if logits.overlaps(mask) {
        return Err(mask.error("that shares memory with the logits", "give it memory of its own"));
    }
    let flat = logits.is_flat();
    for i in 0..logits.rows() {
        let words = mask.row(if mask.rows() == 1 { 0 } else { i })?;
        // SAFETY: nothing else looks at the logits: the mask is elsewhere.
        let row = unsafe { logits.row_mut::<T>(i)? };
        mask::apply(words, row)
            .map_err(|error| to_py(if flat { error } else { error.at(format!("row {i}")) }))?;
    }
    Ok(())
}

/// Copies float32 logits [R, V] to `out`, with -inf where a mask has no bit. `rows`: of the logits, ascending, one for
/// each mask; the others are copied as they are. Those of them that have a NaN (True) or no score above -inf (False).
#[pyfunction]
fn _mask_copy(
    logits: &Bound<'_, PyAny>,
    mask: &Bound<'_, PyAny>,
    rows: Vec<usize>,
    out: &Bound<'_, PyAny>,
) -> PyResult<Vec<(usize, bool)>> {
    let logits = Rows::of(logits, "logits", ErrorKind::Logits)?;
    let mask = mask_rows(mask)?;
    let mut out = Rows::of(out, "out", ErrorKind::Logits)?;
    logits.check::<f32>()?;
    out.check_write::<f32>()?;
    if mask.rows() != rows.len() {
        return Err(mask.error(format!("of {} rows for {} of the logits", mask.rows(), rows.len()), ""));
    }
    let shape = |of: &Rows<'_>| (of.rows(), of.columns());
    if shape(&out) != shape(&logits) {
        return Err(out.error(format!("of shape {:?} for logits of {:?}", shape(&out), shape(&logits)), ""));
    }
    if out.overlaps(&mask) || out.overlaps(&logits) {
        return Err(out.error("that shares memory with what is read", "give it memory of its own"));
    }
    let (mut failed, mut masked) = (Vec::new(), rows.into_iter().enumerate().peekable());
    for row in 0..logits.rows() {
        let from = logits.row::<f32>(row)?;
        // SAFETY: nothing else looks at `out`: what is read is elsewhere.
        let to = unsafe { out.row_mut::<f32>(row)? };
        let Some((at, _)) = masked.next_if(|(_, next)| *next == row) else {
            to.copy_from_slice(from);
            continue;
        };
        match mask::apply_to_copy(mask.row(at)?, from, to) {
            Ok(AllowedLogits::Usable) => {}
            Ok(found) => failed.push((row, found == AllowedLogits::Nan)),
            Err(error) => return Err(to_py(error.at(format!("row {row}")))),
        }
    }
    match masked.next() {
        None => Ok(failed),
        Some((_, row)) => {
            Err(logits.error(format!("have no row {row} after that"), "give rows in their order"))
        }
    }
}

/// Adds the functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(mask_new, m)?)?;
    m.add_function(wrap_pyfunction!(mask_words, m)?)?;
    m.add_function(wrap_pyfunction!(mask_from_ids, m)?)?;
    m.add_function(wrap_pyfunction!(mask_ids, m)?)?;
    m.add_function(wrap_pyfunction!(mask_count, m)?)?;
    m.add_function(wrap_pyfunction!(mask_first, m)?)?;
    m.add_function(wrap_pyfunction!(mask_contains, m)?)?;
    m.add_function(wrap_pyfunction!(mask_insert, m)?)?;
    m.add_function(wrap_pyfunction!(mask_remove, m)?)?;
    m.add_function(wrap_pyfunction!(mask_fill, m)?)?;
    m.add_function(wrap_pyfunction!(mask_apply, m)?)?;
    m.add_function(wrap_pyfunction!(_mask_copy, m)?)
}
