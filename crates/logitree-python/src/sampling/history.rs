//! The constructors of the samplers that need a vocabulary's help, dry and infill: conversions only.

use super::samplers::{sampler, Number, PySampler};
use crate::errors::to_py;
use crate::vocabulary::{token_id, PyVocabulary};
use logitree::decoder::{self, VocabularyPieces, DRY_BREAKERS};
use logitree::sampling::{Dry, Infill, SharedPieces};
use logitree::{Error, ErrorKind, TokenId};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::sync::Arc;

type Breakers = Vec<Vec<TokenId>>;

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
    breakers.try_iter()?.map(|b| ids(b?)).collect()
}

/// The pieces that infill asks for.
pub(super) fn pieces_of(vocabulary: &PyVocabulary, eot: Option<i64>) -> PyResult<SharedPieces> {
    let end = eot.map(token_id).transpose()?;
    let pieces = VocabularyPieces::new(Arc::clone(&vocabulary.0), end).map_err(to_py)?;
    Ok(SharedPieces(Arc::new(pieces)))
}

/// The token sequences of DRY's breakers over a vocabulary, head first.
#[pyfunction]
#[pyo3(signature = (vocabulary, breakers=None, tokenize=None))]
fn dry_breakers(
    vocabulary: &PyVocabulary,
    breakers: Option<&Bound<'_, PyAny>>,
    tokenize: Option<&Bound<'_, PyAny>>,
) -> PyResult<Breakers> {
    // What Python raised goes on as it was.
    let mut raised = None;
    let found = decoder::dry_breakers(&vocabulary.0, &texts_of(breakers)?, |rest| {
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

/// Makes less likely what would go on with a repetition of `allowed_length` accepted tokens or more.
#[pyfunction]
#[pyo3(signature = (multiplier=Number::Is(0.0), base=Number::Is(1.75), allowed_length=Number::Is(2.0), last_n=Number::Is(64.0), breakers=None, vocabulary=None, tokenize=None),
    text_signature = "(multiplier=0.0, base=1.75, allowed_length=2, last_n=64, breakers=None, vocabulary=None, tokenize=None)")]
fn dry(
    multiplier: Number<'_>,
    base: Number<'_>,
    allowed_length: Number<'_>,
    last_n: Number<'_>,
    breakers: Option<&Bound<'_, PyAny>>,
    vocabulary: Option<&PyVocabulary>,
    tokenize: Option<&Bound<'_, PyAny>>,
) -> PyResult<PySampler> {
    let multiplier = multiplier.real("multiplier")?;
    let base = base.real("base")?;
    let allowed_length = allowed_length.int("allowed_length")?;
    let last_n = last_n.int("last_n")?;
    let breakers = match (breakers, vocabulary) {
        (None, None) => Vec::new(),
        (breakers, Some(vocabulary)) => dry_breakers(vocabulary, breakers, tokenize)?,
        (Some(breakers), None) => breakers_of(breakers)?,
    };
    Ok(sampler(Dry::new(multiplier, base, allowed_length, last_n, &breakers).map_err(to_py)?))
}

/// Ends the text if that is likely, merges candidates that begin alike, and keeps what is then likely.
#[pyfunction]
#[pyo3(signature = (vocabulary, eot=None))]
fn infill(vocabulary: &PyVocabulary, eot: Option<i64>) -> PyResult<PySampler> {
    Ok(sampler(Infill::new(pieces_of(vocabulary, eot)?)))
}

/// Adds the functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(dry, m)?)?;
    m.add_function(wrap_pyfunction!(dry_breakers, m)?)?;
    m.add_function(wrap_pyfunction!(infill, m)?)?;
    Ok(())
}
