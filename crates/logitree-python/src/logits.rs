//! Logits and masks as Python holds them, read in place: the one door through which arrays come in.
//!
//! NumPy arrays are read directly; anything else that NumPy can look at without copying (ctypes arrays,
//! memoryview, array.array, CPU torch tensors) goes through NumPy, and what it cannot (bfloat16 tensors) through
//! DLPack. It refuses to convert: a float64 array would be copied at every token, so it is an error that says what
//! to do.
#![allow(unsafe_code)]

use crate::allowed::PyAllowedTokens;
use crate::buffer::Rows;
use crate::errors;
use logitree::mask::AllowedTokens;
use logitree::sampling::Floats;
use logitree::{Error, ErrorKind, Result, TokenId};
use numpy::{PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Calls `f` with the logits of `obj`: one dimension, float32, float16 or bfloat16, without gaps; never written, never
/// copied.
///
/// # Errors
/// `LogitsError` saying what was got and what to do; else what `f` returns.
pub fn with_logits<R>(obj: &Bound<'_, PyAny>, f: impl FnOnce(Floats<'_>) -> Result<R>) -> PyResult<R> {
    if let Ok(array) = obj.cast::<PyArray1<f32>>() {
        // SAFETY: float32, checked to be contiguous and aligned, kept alive by `array`. No Python code runs before `f`
        // returns but a chain's own callables; writing the logits there, or from another thread during the call, is
        // the caller's race, as it is with every NumPy function.
        if let Ok(logits) = unsafe { array.as_slice() } {
            return f(Floats::F32(logits)).map_err(errors::to_py);
        }
    }
    let rows = rows_of(obj)?;
    if !rows.is_flat() {
        let got = format!("of shape [{}, {}]", rows.rows(), rows.columns());
        return Err(rows.error(got, "pass one row: the logits of one position of one sequence"));
    }
    f(rows.floats(0)?).map_err(errors::to_py)
}

/// The name of the object's class, for messages. A class made at run time may have no module (ctypes arrays).
fn kind_of(obj: &Bound<'_, PyAny>) -> String {
    let class = obj.get_type();
    class
        .fully_qualified_name()
        .or_else(|_| class.name())
        .map_or_else(|_| "?".into(), |name| name.to_string())
}

/// The memory of `obj` as rows of logits: a NumPy array, what NumPy can view, or what DLPack hands out.
pub fn rows_of<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Rows<'py>> {
    let what = "logits";
    if obj.is_instance_of::<PyUntypedArray>() {
        return Rows::of(obj, what, ErrorKind::Logits);
    }
    let wrong = |help: &str| {
        let message =
            format!("logits must be an array of float32, float16 or bfloat16, got a {}", kind_of(obj));
        errors::to_py(Error::new(ErrorKind::Logits, message).help(help))
    };
    if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        return Err(wrong("pass numpy.asarray(logits, dtype=numpy.float32)"));
    }
    // NumPy cannot view bfloat16 tensors; DLPack hands them out.
    let view = obj.py().import("numpy")?.call_method1("asarray", (obj,));
    // Objects, texts and bytes become arrays that view nothing of theirs.
    let is_view = |array: &Bound<'py, PyAny>| {
        array.cast::<PyUntypedArray>().is_ok_and(|array| !b"OSU".contains(&array.dtype().kind()))
    };
    match view.ok().filter(is_view) {
        Some(array) => Rows::of(&array, what, ErrorKind::Logits),
        _ if obj.hasattr("__dlpack__").unwrap_or(false) => Rows::of(obj, what, ErrorKind::Logits),
        _ => Err(wrong(
            "pass a NumPy array or anything NumPy can view: for a tensor on a device logits.float().cpu(), for a \
             ctypes pointer numpy.ctypeslib.as_array(pointer, (n,))",
        )),
    }
}

/// What may be picked, as Python says it.
pub enum Mask<'py> {
    /// No mask.
    All,
    /// What a matcher allows.
    Value(Bound<'py, PyAllowedTokens>),
    /// Ids, sorted and without repeats.
    Few(Vec<TokenId>),
    /// int32 words.
    Signed(Bound<'py, PyArray1<i32>>),
    /// uint32 words.
    Unsigned(Bound<'py, PyArray1<u32>>),
}

impl<'py> Mask<'py> {
    /// Reads `mask` (int32 or uint32 NumPy words, one dimension, contiguous) or `allowed` (token ids); not both.
    ///
    /// # Errors
    /// `MaskError` for both, and for anything else.
    pub fn new(mask: Option<&Bound<'py, PyAny>>, allowed: Option<&Bound<'py, PyAny>>) -> PyResult<Self> {
        let wrong =
            |message: String, help: &str| errors::to_py(Error::new(ErrorKind::Mask, message).help(help));
        match (mask, allowed) {
            (None, None) => Ok(Mask::All),
            (Some(_), Some(_)) => Err(wrong("both mask and allowed are given".into(), "give one of them")),
            (Some(mask), None) => {
                let words = if let Ok(words) = mask.cast::<PyArray1<i32>>() {
                    Some((Mask::Signed(words.clone()), is_plain(words)))
                } else if let Ok(words) = mask.cast::<PyArray1<u32>>() {
                    Some((Mask::Unsigned(words.clone()), is_plain(words)))
                } else {
                    None
                };
                match words {
                    Some((words, true)) => Ok(words),
                    Some(_) => Err(wrong("the mask is not contiguous".into(), "pass one row of it")),
                    None => {
                        let kind = match mask.cast::<PyUntypedArray>() {
                            Ok(array) => {
                                format!("an array of {} of shape {:?}", array.dtype(), array.shape())
                            }
                            Err(_) => kind_of(mask),
                        };
                        Err(wrong(
                            format!("a mask is one row of int32 words of a NumPy array, got {kind}"),
                            "bit id % 32 of word id / 32 stands for an id; for a list of ids use allowed=",
                        ))
                    }
                }
            }
            (None, Some(ids)) => {
                if let Ok(value) = ids.cast::<PyAllowedTokens>() {
                    return Ok(Mask::Value(value.clone()));
                }
                let mut ids: Vec<TokenId> = ids.extract().map_err(|_| {
                    wrong("allowed is not a sequence of token ids".into(), "pass ids from 0 to 2**32 - 1")
                })?;
                if !ids.is_sorted_by(|a, b| a < b) {
                    ids.sort_unstable();
                    ids.dedup();
                }
                Ok(Mask::Few(ids))
            }
        }
    }

    /// The allowed tokens, for as long as `self` lives.
    pub fn allowed(&self) -> AllowedTokens<'_> {
        match self {
            Mask::All => AllowedTokens::All,
            Mask::Value(value) => value.get().borrow(),
            Mask::Few(ids) => AllowedTokens::Ids(ids),
            Mask::Signed(words) => {
                let words = words_of(words);
                // SAFETY: the same memory, for the same time; every i32 is a u32 of the same size and alignment.
                AllowedTokens::Mask(unsafe {
                    std::slice::from_raw_parts(words.as_ptr().cast::<u32>(), words.len())
                })
            }
            Mask::Unsigned(words) => AllowedTokens::Mask(words_of(words)),
        }
    }
}

/// The words of an array that [`Mask::new`] found contiguous and aligned.
fn words_of<'a, T: numpy::Element>(words: &'a Bound<'_, PyArray1<T>>) -> &'a [T] {
    // SAFETY: kept alive by the array. Writing it during the call, from another thread or from a chain's own
    // callable, is the caller's race, as it is with every NumPy function.
    unsafe { words.as_slice() }.unwrap_or(&[])
}

/// Whether the array is contiguous and aligned.
fn is_plain<T: numpy::Element>(words: &Bound<'_, PyArray1<T>>) -> bool {
    // SAFETY: the slice is not read, and dropped at once.
    unsafe { words.as_slice() }.is_ok()
}
