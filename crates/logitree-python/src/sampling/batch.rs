//! Batches and beams in Python: conversions only.

use super::values::whole;
use super::PyChain;
use crate::buffer::Rows;
use crate::errors::to_py;
use crate::hold::hold;
use crate::logit_rows::{in_row, is_sequence, LogitRows};
use crate::logits::Mask;
use crate::mask::mask_rows;
use logitree::catalogue::beam_top as best_beams;
use logitree::sampling::{self, batch, BatchOptions, Chain, Picked, Row};
use logitree::{Error, ErrorKind, TokenId};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

/// Rows of logits and what is allowed in each, borrowed from Python.
struct Batch<'py> {
    logits: LogitRows<'py>,
    masks: Masks<'py>,
}

enum Masks<'py> {
    All,
    /// One block of mask rows.
    Block(Rows<'py>),
    Each(Vec<Mask<'py>>),
}

impl<'py> Batch<'py> {
    fn new(logits: &Bound<'py, PyAny>, masks: Option<&Bound<'py, PyAny>>) -> PyResult<Self> {
        let mut batch = Batch { logits: LogitRows::new(logits)?, masks: Masks::All };
        if let Some(masks) = masks {
            batch.masks = masks_of(masks)?;
        }
        let rows = batch.logits.len();
        let masked = match &batch.masks {
            Masks::All => rows,
            Masks::Block(block) => block.rows(),
            Masks::Each(each) => each.len(),
        };
        if masked != rows {
            return Err(to_py(
                Error::new(ErrorKind::Mask, format!("{masked} masks for {rows} rows"))
                    .help("give one mask for each row; None in a list allows all"),
            ));
        }
        Ok(batch)
    }

    /// The rows of the core, for as long as `self` lives.
    fn rows(&self) -> PyResult<Vec<Row<'_>>> {
        let allowed = |at: usize| {
            Ok::<_, PyErr>(match &self.masks {
                Masks::All => logitree::mask::AllowedTokens::All,
                Masks::Block(masks) => logitree::mask::AllowedTokens::Mask(masks.row(at)?),
                Masks::Each(masks) => masks[at].allowed(),
            })
        };
        let rows = self.logits.floats()?.into_iter().enumerate();
        rows.map(|(at, logits)| Ok(Row { logits, allowed: allowed(at)? })).collect()
    }
}

fn masks_of<'py>(masks: &Bound<'py, PyAny>) -> PyResult<Masks<'py>> {
    if !is_sequence(masks) {
        let block = mask_rows(masks)?;
        if block.is_flat() {
            return Err(
                block.error("of one dimension", "give one row of words for each row of logits, or a list")
            );
        }
        return Ok(Masks::Block(block));
    }
    let each = masks.try_iter()?.zip(0..).map(|(mask, at)| {
        let mask = mask?;
        let found = if mask.is_none() {
            Mask::new(None, None)
        } else if is_sequence(&mask) {
            Mask::new(None, Some(&mask))
        } else {
            Mask::new(Some(&mask), None)
        };
        found.map_err(|error| in_row(masks.py(), error, at))
    });
    Ok(Masks::Each(each.collect::<PyResult<_>>()?))
}

/// Tokens, and log-probabilities before and after the chains if they were asked for.
fn columns<'py>(py: Python<'py>, picked: &[Picked], log_probabilities: bool) -> PyResult<Bound<'py, PyAny>> {
    let tokens = PyArray1::from_iter(py, picked.iter().map(|p| p.token));
    if !log_probabilities {
        return Ok(tokens.into_any());
    }
    let before = PyArray1::from_iter(py, picked.iter().map(|p| p.before));
    let after = PyArray1::from_iter(py, picked.iter().map(|p| p.after));
    Ok((tokens, before, after).into_pyobject(py)?.into_any())
}

/// The arguments of `Chain.sample_batch` beside the rows.
pub(super) struct Asked<'a, 'py> {
    pub states: Option<&'a Bound<'py, PyAny>>,
    pub accept: bool,
    pub threads: Option<&'a Bound<'py, PyAny>>,
    pub log_probabilities: bool,
}

/// Samples each row of `logits` with its chain: one of `asked.states`, or one that `chain` keeps for the row.
pub(super) fn sample_batch<'py>(
    chain: &Bound<'py, PyChain>,
    logits: &Bound<'py, PyAny>,
    masks: Option<&Bound<'py, PyAny>>,
    asked: &Asked<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = chain.py();
    let threads = asked.threads.map_or(Ok(0), |threads| whole(threads, "threads", 1, 1 << 16))?;
    let options = BatchOptions { threads, accept: asked.accept, log_probabilities: asked.log_probabilities };
    let batch = Batch::new(logits, masks)?;
    let rows = batch.rows()?;
    let picked = match asked.states {
        Some(states) => {
            let mut held = states_of(states)?;
            let mut chains: Vec<&mut Chain> = held.iter_mut().map(|chain| &mut chain.inner).collect();
            run(py, &rows, &mut chains, options)
        }
        None => {
            let mut chain = chain.try_borrow_mut()?;
            let PyChain { inner, rows: kept } = &mut *chain;
            kept.extend((kept.len()..rows.len()).map(|at| inner.sequence(at)));
            let mut chains: Vec<&mut Chain> = kept[..rows.len()].iter_mut().collect();
            run(py, &rows, &mut chains, options)
        }
    };
    columns(py, &picked?, asked.log_probabilities)
}

/// The chains of a list, each held for writing.
fn states_of<'py>(states: &Bound<'py, PyAny>) -> PyResult<Vec<PyRefMut<'py, PyChain>>> {
    let chains: Vec<Bound<'py, PyChain>> = states.extract().map_err(|_| {
        let message = format!("states is a {}", states.get_type());
        to_py(Error::new(ErrorKind::Sampling, message).help("give a sequence of chains, one for each row"))
    })?;
    hold(&chains, "chain", "chain.sequences(n)")
}

/// Runs the rows: without the interpreter, unless a chain calls Python.
fn run(
    py: Python<'_>,
    rows: &[Row<'_>],
    chains: &mut [&mut Chain],
    options: BatchOptions,
) -> PyResult<Vec<Picked>> {
    let picked = if chains.iter().any(|chain| chain.is_foreign()) {
        batch::sample(rows, chains, BatchOptions { threads: 1, ..options })
    } else {
        py.detach(|| batch::sample(rows, chains, options))
    };
    picked.map_err(to_py)
}

type Columns<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<TokenId>>, Bound<'py, PyArray1<f64>>);

/// The best `width` continuations of B beams: rows (uint32), tokens (uint32) and scores (float64, nats).
///
/// `logits` and `masks` as for `Chain.sample_batch`; `scores`: the beams' log-probabilities so far, [B]. A score is
/// `scores[row] + log_softmax(logits[row])[token]`, with the softmax over the whole row; the mask only restricts which
/// tokens are returned. Descending by score, then by row, then by token. A beam at -inf is not read, and a token at
/// -inf is not returned; the result is shorter than `width` if there are fewer. LogitsError for NaN or +inf in a row or
/// score, MaskError for an allowed id without a logit; their place names the row.
#[pyfunction]
#[pyo3(signature = (logits, scores, width, masks=None))]
fn beam_top<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyAny>,
    scores: &Bound<'py, PyAny>,
    width: &Bound<'py, PyAny>,
    masks: Option<&Bound<'py, PyAny>>,
) -> PyResult<Columns<'py>> {
    let width = whole(width, "width", 0, 1 << 32)?;
    let scores: Vec<f64> = scores.extract().map_err(|_| {
        let message = format!("scores is a {}", scores.get_type());
        to_py(
            Error::new(ErrorKind::Sampling, message)
                .help("give one number for each row, its log-probability"),
        )
    })?;
    let batch = Batch::new(logits, masks)?;
    let rows = batch.rows()?;
    let best = py.detach(|| best_beams(&rows, &scores, width)).map_err(to_py)?;
    Ok((
        PyArray1::from_iter(py, best.iter().map(|beam| beam.row)),
        PyArray1::from_iter(py, best.iter().map(|beam| beam.token)),
        PyArray1::from_iter(py, best.iter().map(|beam| beam.score)),
    ))
}

/// The steps of chains as numbers, for a kernel that runs them: int32 [B, words].
///
/// The words are those of `step_words` in crates/logitree-sampling/src/chain/steps.rs. SamplingError, with the row in
/// its place, for a chain that no kernel knows.
#[pyfunction]
fn step_words<'py>(py: Python<'py>, states: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray2<i32>>> {
    let held = states_of(states)?;
    let chains: Vec<&Chain> = held.iter().map(|chain| &chain.inner).collect();
    let (words, width) = sampling::step_words(&chains).map_err(to_py)?;
    let words = words.into_iter().map(u32::cast_signed).collect();
    PyArray1::from_vec(py, words).reshape([chains.len(), width])
}

/// Adds the functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(beam_top, m)?)?;
    m.add_function(wrap_pyfunction!(step_words, m)?)
}
