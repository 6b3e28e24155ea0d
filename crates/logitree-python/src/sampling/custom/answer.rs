//! Reads and checks what a custom sampler's callable returned: nothing, a bool array, an index array, or a position.

use numpy::{PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// What to keep.
pub(super) enum Keep {
    /// All of it.
    All,
    /// Where a byte is not 0, one byte a candidate.
    Where(Vec<u8>),
    /// The candidates at these positions, in this order: at least one, each once, each there.
    At(Vec<usize>),
    /// All of it, and the candidate at this position is selected.
    Select(usize),
}

/// Why there is no answer.
pub(super) enum Fault {
    /// Python raised while it was read.
    Raised(PyErr),
    /// It is not valid: what it is, and what to return instead.
    Wrong(String, &'static str),
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Fault::Raised(error)
    }
}

const SHAPING: &str =
    "return None, a bool array with one entry a candidate, or an integer array of positions";
const SELECTING: &str = "a selecting sampler returns the position of one candidate, an int";

/// What is expected.
pub(super) struct Answer {
    /// How many candidates there were.
    pub n: usize,
    /// Whether one of them is to be selected.
    pub selects: bool,
}

impl Answer {
    /// Reads what was returned and releases it.
    pub fn read(&self, returned: Bound<'_, PyAny>) -> Result<Keep, Fault> {
        if self.selects {
            let at = returned.extract::<i64>().ok().ok_or_else(|| wrong(&returned, SELECTING))?;
            return self.position(at).map(Keep::Select);
        }
        if returned.is_none() {
            return Ok(Keep::All);
        }
        let array = returned.cast::<PyUntypedArray>().map_err(|_| wrong(&returned, SHAPING))?;
        let one = array.ndim() == 1;
        match array.dtype().kind() {
            // As bytes of a new array, for any byte value of a bool and any strides.
            b'b' if one && array.len() == self.n => Ok(Keep::Where(fresh(&returned, "uint8")?)),
            b'i' | b'u' if one && array.len() <= self.n => self.order(fresh(&returned, "int64")?),
            _ => {
                let got =
                    format!("returned an array of dtype {} and shape {:?}", array.dtype(), array.shape());
                Err(Fault::Wrong(format!("{got} for {} candidates", self.n), SHAPING))
            }
        }
    }

    fn order(&self, positions: Vec<i64>) -> Result<Keep, Fault> {
        let mut seen = vec![false; self.n];
        let mut order = Vec::with_capacity(positions.len());
        for at in positions {
            let at = self.position(at)?;
            if std::mem::replace(&mut seen[at], true) {
                return Err(Fault::Wrong(
                    format!("returned position {at} twice"),
                    "keep each candidate once",
                ));
            }
            order.push(at);
        }
        Ok(Keep::At(order))
    }

    fn position(&self, at: i64) -> Result<usize, Fault> {
        usize::try_from(at).ok().filter(|&at| at < self.n).ok_or_else(|| {
            let message = format!("returned position {at} of {} candidates", self.n);
            Fault::Wrong(
                message,
                "positions count from 0 in the arrays that were given; they are not token ids",
            )
        })
    }
}

fn wrong(returned: &Bound<'_, PyAny>, help: &'static str) -> Fault {
    Fault::Wrong(format!("returned a {}", returned.get_type()), help)
}

/// The elements of a one-dimensional array, converted by NumPy.
fn fresh<T: numpy::Element + Copy>(array: &Bound<'_, PyAny>, dtype: &str) -> Result<Vec<T>, Fault> {
    let converted = array.call_method1("astype", (dtype,))?;
    let converted = converted.cast::<PyArray1<T>>().map_err(|_| wrong(array, SHAPING))?;
    Ok(converted.to_vec().map_err(PyErr::from)?)
}
