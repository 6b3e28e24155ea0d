//! What dry and infill need from a vocabulary: sequence breakers and the texts of tokens.

use crate::errors::to_py;
use crate::vocabulary::{token_id, PyVocabulary};
use logitree::sampling::{self, Breakers, SharedPieces, VocabularyPieces, DRY_BREAKERS};
use logitree::{Error, ErrorKind, TokenId};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::sync::Arc;

type Sequences = Vec<Vec<TokenId>>;

/// A breaker's text; `None` for one that is a sequence of ids.
fn text_of(breaker: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(text) = breaker.cast::<PyString>() {
        return Ok(Some(text.to_str()?.as_bytes().to_vec()));
    }
    Ok(breaker.cast::<PyBytes>().ok().map(|bytes| bytes.as_bytes().to_vec()))
}

fn no_breakers(message: &str) -> PyErr {
    to_py(Error::new(ErrorKind::Sampling, message).help(
        "pass a list of texts with vocabulary=..., or of sequences of token ids, as dry_breakers makes them",
    ))
}

/// The breakers' texts; llama.cpp's four for None.
fn texts_of(breakers: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Vec<u8>>> {
    let Some(breakers) = breakers else {
        return Ok(DRY_BREAKERS.iter().map(|text| text.as_bytes().to_vec()).collect());
    };
    if text_of(breakers)?.is_some() {
        return Err(no_breakers("breakers is a text, not a list of them"));
    }
    breakers
        .try_iter()?
        .map(|b| text_of(&b?)?.ok_or_else(|| no_breakers("a breaker is not a text")))
        .collect()
}

/// Breakers of token ids from a sequence of sequences.
pub(super) fn breakers_of(breakers: &Bound<'_, PyAny>) -> PyResult<Breakers> {
    let ids = |b: Bound<'_, PyAny>| -> PyResult<Vec<TokenId>> {
        if text_of(&b)?.is_some() {
            return Err(no_breakers("a breaker is a text, which takes a vocabulary"));
        }
        b.try_iter()?.map(|id| token_id(id?.extract()?)).collect()
    };
    let sequences: Sequences = breakers.try_iter()?.map(|b| ids(b?)).collect::<PyResult<_>>()?;
    Breakers::new(&sequences).map_err(to_py)
}

/// The pieces that infill asks for.
pub(super) fn pieces_of(vocabulary: &PyVocabulary, eot: Option<i64>) -> PyResult<SharedPieces> {
    let end = eot.map(token_id).transpose()?;
    let pieces = VocabularyPieces::new(Arc::clone(&vocabulary.0), end).map_err(to_py)?;
    Ok(SharedPieces(Arc::new(pieces)))
}

/// The token sequences of DRY's breakers over the whole vocabulary: every token whose text contains one, and every
/// token whose text ends with the beginning of one, followed by the tokens of the rest.
///
/// Of a breaker 40 bytes count, of a rest 20 tokens. `tokenize` turns a rest into ids, without special tokens and
/// without a space in front; breakers of one ASCII character need none, for others its absence is a SamplingError. A
/// rest that is not UTF-8 reaches it with U+FFFD in it.
#[pyfunction]
#[pyo3(signature = (vocabulary, breakers=None, tokenize=None))]
pub(super) fn dry_breakers(
    vocabulary: &PyVocabulary,
    breakers: Option<&Bound<'_, PyAny>>,
    tokenize: Option<&Bound<'_, PyAny>>,
) -> PyResult<Sequences> {
    // A Python exception is raised again unchanged.
    let mut raised = None;
    let found = sampling::dry_breakers(&vocabulary.0, &texts_of(breakers)?, |rest| {
        let rest = String::from_utf8_lossy(rest);
        let Some(tokenize) = tokenize else {
            return Err(Error::new(ErrorKind::Sampling, format!("{rest:?} of a breaker has to be tokenised"))
                .help("pass tokenize=..., a callable from str to ids without special tokens; one character needs none"));
        };
        let ids = || -> PyResult<Vec<TokenId>> {
            tokenize.call1((&*rest,))?.try_iter()?.map(|id| token_id(id?.extract()?)).collect()
        };
        ids().map_err(|error| {
            raised = Some(error);
            Error::new(ErrorKind::Sampling, "tokenize failed")
        })
    });
    found.map_err(|error| raised.unwrap_or_else(|| to_py(error)))
}

/// Adds the function to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(dry_breakers, m)?)
}
