//! The logits of a batch as Python holds them: one block of rows, or a list of rows of any lengths; read in place.

use logitree::sampling::Floats;
use logitree::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::buffer::Rows;
use crate::errors::to_py;
use crate::logits::rows_of;

/// Rows of logits, borrowed from Python.
pub struct LogitRows<'py>(Vec<Rows<'py>>);

impl<'py> LogitRows<'py> {
    /// Reads an array [B, V], or a list of rows.
    ///
    /// # Errors
    /// `LogitsError` for anything else, with the row in its place.
    pub fn new(logits: &Bound<'py, PyAny>) -> PyResult<Self> {
        if is_sequence(logits) {
            let rows = logits.try_iter()?.zip(0..).map(|(row, at)| one_row(&row?, at));
            return rows.collect::<PyResult<_>>().map(LogitRows);
        }
        let block = rows_of(logits)?;
        if block.is_flat() {
            let help = "give rows, shape [B, V] or a list; for one row use sample(logits)";
            return Err(block.error("of one dimension", help));
        }
        Ok(LogitRows(vec![block]))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.0.iter().map(Rows::rows).sum()
    }

    /// Every row, for as long as `self` lives.
    ///
    /// # Errors
    /// `LogitsError` for a row that cannot be read in place.
    pub fn floats(&self) -> PyResult<Vec<Floats<'_>>> {
        let mut rows = Vec::with_capacity(self.len());
        for block in &self.0 {
            rows.append(&mut block.all_floats()?);
        }
        Ok(rows)
    }
}

/// Whether it is a list or a tuple.
pub fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()
}

/// One row of a list, of any length.
fn one_row<'py>(row: &Bound<'py, PyAny>, at: usize) -> PyResult<Rows<'py>> {
    let found = rows_of(row).map_err(|error| in_row(row.py(), error, at))?;
    if found.is_flat() {
        return Ok(found);
    }
    let error = found.error("of two dimensions", "a list holds rows of one dimension");
    Err(in_row(row.py(), error, at))
}

/// An error of ours about one row, with the row as its place; any other as it is.
pub fn in_row(py: Python<'_>, error: PyErr, at: usize) -> PyErr {
    let value = error.value(py);
    let help = value.getattr("help").and_then(|help| help.extract::<String>());
    let (Ok(help), kind) = (help, kind_of(py, &error)) else { return error };
    let text = value.to_string();
    let message = text.strip_suffix(&format!("; {help}")).unwrap_or(&text);
    to_py(Error::new(kind, message).at(format!("row {at}")).help(help))
}

fn kind_of(py: Python<'_>, error: &PyErr) -> ErrorKind {
    let name = error.get_type(py).name().map_or_else(|_| String::new(), |name| name.to_string());
    if name == "MaskError" {
        return ErrorKind::Mask;
    }
    ErrorKind::Logits
}
