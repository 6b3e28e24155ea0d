//! Python objects held for writing, one for each row of a batch.

use logitree::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::False;
use pyo3::PyClass;

use crate::errors::to_py;

/// The objects, each held for writing; `way_out` says how each row gets one of its own.
///
/// # Errors
/// `StateError` with the row in its place, for an object that occurs twice or is in use elsewhere.
pub fn hold<'py, T: PyClass<Frozen = False>>(
    objects: &[Bound<'py, T>],
    what: &str,
    way_out: &str,
) -> PyResult<Vec<PyRefMut<'py, T>>> {
    let one = |(at, object): (usize, &Bound<'py, T>)| {
        object.try_borrow_mut().map_err(|_| {
            let first = objects[..at].iter().position(|other| other.as_any().is(object.as_any()));
            let user = first.map_or("in use elsewhere".into(), |first| format!("that of row {first}"));
            let error = Error::new(ErrorKind::State, format!("the {what} is {user}")).at(format!("row {at}"));
            to_py(error.help(format!("give each row a {what} of its own: {way_out}")))
        })
    };
    objects.iter().enumerate().map(one).collect()
}
