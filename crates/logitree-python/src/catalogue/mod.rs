//! Catalogues in Python: the index, its builder, and the arrays that both take.

mod build;
mod candidates;
mod index;
mod walk;

use logitree::{Error, ErrorKind, TokenId};
use numpy::{
    Element, PyArray1, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use crate::errors::to_py;

/// The numbers of an array of this type that has one dimension; `None` for everything else.
fn copied<T: Element + Copy>(object: &Bound<'_, PyAny>) -> Option<Vec<T>> {
    let array = object.cast::<PyArray1<T>>().ok()?;
    let gaps = |_| array.try_readonly().ok().map(|array| array.as_array().to_vec());
    array.to_vec().map_or_else(gaps, Some)
}

/// Whole numbers from any sequence or array of one dimension.
fn longs(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<i64>> {
    if let Some(numbers) = copied(object) {
        return Ok(numbers);
    }
    if let Some(numbers) = copied::<i32>(object) {
        return Ok(numbers.into_iter().map(i64::from).collect());
    }
    if let Ok(array) = object.cast::<PyUntypedArray>() {
        if array.ndim() != 1 || !matches!(array.dtype().kind(), b'i' | b'u') {
            let message = format!("{what} of dtype {} and {} dimensions", array.dtype(), array.ndim());
            return Err(to_py(
                Error::new(ErrorKind::Constraint, message).help("give whole numbers, one dimension"),
            ));
        }
    }
    object.extract()
}

/// Tokens from any sequence or array of one dimension.
fn tokens(object: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
    longs(object, "tokens")?.into_iter().map(crate::vocabulary::token_id).collect()
}

/// BeamRows of tokens, each with what belongs to it, as the package hands them over.
struct Items<'py> {
    tokens: Tokens<'py>,
    items: Option<PyReadonlyArray1<'py, u64>>,
    weights: Option<PyReadonlyArray1<'py, f32>>,
}

enum Tokens<'py> {
    /// One row after the other, all of one length.
    Even(PyReadonlyArray2<'py, u32>),
    /// One row after the other, and where each ends.
    Ragged(PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, i64>),
}

/// BeamRows as slices, for use without the interpreter.
struct Slices<'a> {
    tokens: &'a [u32],
    /// Where each row ends; empty where all have this length.
    ends: &'a [i64],
    length: usize,
    rows: usize,
    items: Option<&'a [u64]>,
    weights: Option<&'a [f32]>,
}

impl<'py> Items<'py> {
    fn new(
        tokens: &Bound<'py, PyAny>,
        ends: Option<PyReadonlyArray1<'py, i64>>,
        items: Option<PyReadonlyArray1<'py, u64>>,
        weights: Option<PyReadonlyArray1<'py, f32>>,
    ) -> PyResult<Self> {
        let tokens = match ends {
            None => Tokens::Even(tokens.extract()?),
            Some(ends) => Tokens::Ragged(tokens.extract()?, ends),
        };
        Ok(Items { tokens, items, weights })
    }

    /// The rows, checked against each other.
    fn slices(&self) -> PyResult<Slices<'_>> {
        let wrong = |what: &str| to_py(Error::new(ErrorKind::Constraint, what.to_string()));
        let gaps = |_| wrong("arrays with gaps: numpy.ascontiguousarray makes a copy");
        let items = self.items.as_ref().map(|items| items.as_slice().map_err(gaps)).transpose()?;
        let weights = self.weights.as_ref().map(|weights| weights.as_slice().map_err(gaps)).transpose()?;
        let (tokens, ends, length) = match &self.tokens {
            Tokens::Even(rows) => (rows.as_slice().map_err(gaps)?, &[][..], rows.shape()[1]),
            Tokens::Ragged(tokens, ends) => {
                (tokens.as_slice().map_err(gaps)?, ends.as_slice().map_err(gaps)?, 0)
            }
        };
        let rows = match &self.tokens {
            Tokens::Even(rows) => rows.shape()[0],
            Tokens::Ragged(..) => ends.len(),
        };
        let rising =
            ends.iter().scan(0, |before, &end| Some(std::mem::replace(before, end) <= end)).all(|up| up);
        if !rising || ends.last().is_some_and(|&last| last as usize != tokens.len()) {
            return Err(wrong("the ends of the rows do not rise to the number of tokens"));
        }
        if let Some(items) = items.filter(|items| items.len() != rows) {
            return Err(wrong(&format!("{} item numbers for {rows} rows", items.len())));
        }
        if weights.is_some_and(|weights| weights.len() != tokens.len()) {
            return Err(wrong("there must be one weight a token"));
        }
        Ok(Slices { tokens, ends, length, rows, items, weights })
    }
}

impl Slices<'_> {
    /// Whether a change of these rows takes no longer than a millisecond or two.
    fn is_few(&self) -> bool {
        const FEW: usize = 1 << 11;
        self.tokens.len() <= FEW
    }

    /// Tokens and weights of each.
    fn rows(&self) -> impl Iterator<Item = (&[u32], &[f32])> + '_ {
        (0..self.rows).map(|row| {
            let span = if self.ends.is_empty() {
                row * self.length..(row + 1) * self.length
            } else {
                let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
                start..self.ends[row] as usize
            };
            (&self.tokens[span.clone()], self.weights.map_or(&[][..], |weights| &weights[span]))
        })
    }
}

/// Adds the classes to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<index::PyCatalogueIndex>()?;
    m.add_class::<build::PyCatalogueIndexBuilder>()?;
    m.add_class::<walk::PyItemWalk>()?;
    m.add_class::<candidates::PyBeamCandidates>()
}
