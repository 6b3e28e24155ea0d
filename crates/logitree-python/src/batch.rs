//! Batches of decoders in Python: conversions only. `python/logitree/_batch.py` adds and removes rows.
#![allow(unsafe_code)] // writes into NumPy's memory, which nothing else borrows meanwhile

use logitree::decoder::{batch, Decoder};
use logitree::{Error, ErrorKind, Result, TokenId};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::decoder::PyDecoder;
use crate::errors::{ends_program, to_py};
use crate::grammar::tokens_of;
use crate::hold::hold;
use crate::logit_rows::LogitRows;
use crate::mask::mask_rows;
use crate::sampling::whole;

const WAY_OUT: &str = "decoder.fork(), or decoder.sequences(n) for answers that differ";

/// The rows that failed, each with its exception.
type Failed = Vec<(usize, PyErr)>;

/// Calls `work` with the decoders, each held for writing, and shows their warnings.
fn with<'py, T>(
    decoders: &[Bound<'py, PyDecoder>],
    work: impl FnOnce(&mut [&mut Decoder]) -> PyResult<T>,
) -> PyResult<T> {
    let mut held = hold(decoders, "decoder", WAY_OUT)?;
    let mut all: Vec<&mut Decoder> = held.iter_mut().map(|decoder| &mut decoder.inner).collect();
    let done = work(&mut all)?;
    if let Some(first) = decoders.first() {
        held.iter_mut().try_for_each(|decoder| decoder.warn(first.py()))?;
    }
    Ok(done)
}

/// One step of each decoder with its row of logits. With `each`, a row that fails does not affect the others and gets
/// the token `end`; without it all rows step or none. `Batch` wraps it.
#[pyfunction]
#[pyo3(signature = (decoders, logits, end, *, each=false, threads=None))]
fn step_batch<'py>(
    py: Python<'py>,
    decoders: Vec<Bound<'py, PyDecoder>>,
    logits: &Bound<'py, PyAny>,
    end: TokenId,
    each: bool,
    threads: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyArray1<TokenId>>, Failed)> {
    let threads = threads.map_or(Ok(0), |threads| whole(threads, "threads", 1, 1 << 16))?;
    let given = LogitRows::new(logits)?;
    let logits = given.floats()?;
    let (tokens, failed) = with(&decoders, |all| {
        let threads = if all.iter().any(|decoder| decoder.is_foreign()) { 1 } else { threads };
        let rows = free(py, all, |all| batch::step(all, &logits, end, threads)).map_err(to_py)?;
        collect_results(py, all, rows, end, each)
    })?;
    Ok((PyArray1::from_vec(py, tokens), failed))
}

/// Works without the GIL, unless a chain calls Python: that must stay on the thread that holds it.
fn free<T: Send>(
    py: Python<'_>,
    all: &mut [&mut Decoder],
    work: impl FnOnce(&mut [&mut Decoder]) -> T + Send,
) -> T {
    if all.iter().any(|decoder| decoder.is_foreign()) {
        work(all)
    } else {
        py.detach(|| work(all))
    }
}

/// The tokens, and with `each` the rows that failed. An exception that ends the program (Ctrl-C in a callback) belongs to no row.
fn collect_results(
    py: Python<'_>,
    all: &mut [&mut Decoder],
    mut rows: batch::Rows,
    end: TokenId,
    each: bool,
) -> PyResult<(Vec<TokenId>, Failed)> {
    let is_fatal = |row: &Result<batch::Taken>| row.as_ref().is_err_and(|error| ends_program(py, error));
    let Some(at) = rows.iter().position(is_fatal) else {
        if each {
            return Ok(one_by_one(rows, end));
        }
        return Ok((batch::all_or_none(all, rows).map_err(to_py)?, Vec::new()));
    };
    // The first row's error is raised after the other rows are restored.
    let ended = Err(Error::new(ErrorKind::State, "the program was interrupted"));
    let fatal = std::mem::replace(&mut rows[at], ended);
    drop(batch::all_or_none(all, rows));
    fatal.map(|_| Default::default()).map_err(to_py)
}

fn one_by_one(rows: batch::Rows, end: TokenId) -> (Vec<TokenId>, Failed) {
    let mut failed = Vec::new();
    let token = |(at, row): (usize, Result<batch::Taken>)| match row {
        Ok(taken) => taken.token,
        Err(error) => {
            failed.push((at, to_py(error.within(&format!("row {at}")))));
            end
        }
    };
    (rows.into_iter().enumerate().map(token).collect(), failed)
}

/// Each decoder accepts its token, all or none. `Batch` wraps it.
#[pyfunction]
fn accept_batch(
    py: Python<'_>,
    decoders: Vec<Bound<'_, PyDecoder>>,
    tokens: &Bound<'_, PyAny>,
    ends: Vec<TokenId>,
) -> PyResult<()> {
    let tokens = tokens_of(tokens)?;
    with(&decoders, |all| {
        let accept = |all: &mut [&mut Decoder]| {
            let rows = batch::accept(all, &tokens, &ends)?;
            batch::all_or_none(all, rows)
        };
        free(py, all, accept).map(drop).map_err(to_py)
    })
}

/// Each decoder accepts its forced tokens, all or none. `Batch` wraps it.
#[pyfunction]
fn take_forced_batch(py: Python<'_>, decoders: Vec<Bound<'_, PyDecoder>>) -> PyResult<Vec<Vec<TokenId>>> {
    with(&decoders, |all| free(py, all, batch::take_forced).map_err(to_py))
}

/// Writes each decoder's allowed tokens over its row of `out`. `Batch` wraps it.
#[pyfunction]
fn mask_batch(
    py: Python<'_>,
    decoders: Vec<Bound<'_, PyDecoder>>,
    out: &Bound<'_, PyAny>,
    ends: Vec<TokenId>,
) -> PyResult<()> {
    with(&decoders, |all| {
        let mut rows = mask_rows(out)?;
        // SAFETY: these are the only slices.
        let rows = unsafe { rows.rows_mut::<u32>()? };
        py.detach(|| batch::masks(all, rows, &ends)).map_err(to_py)
    })
}

/// Adds the functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(step_batch, m)?)?;
    m.add_function(wrap_pyfunction!(accept_batch, m)?)?;
    m.add_function(wrap_pyfunction!(take_forced_batch, m)?)?;
    m.add_function(wrap_pyfunction!(mask_batch, m)?)
}
