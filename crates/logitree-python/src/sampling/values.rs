//! Numbers, seeds, biases and other parameters of samplers from Python.

use super::vocabulary::{breakers_of, pieces_of};
use crate::errors::to_py;
use crate::vocabulary::PyVocabulary;
use logitree::sampling::registry::Kind;
use logitree::sampling::{Generator, Seed, Value};
use logitree::{Error, ErrorKind, TokenId};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyMapping};

/// Characters of a wrong value that an error shows.
const MAX_SHOWN: usize = 60;

/// A whole number of Python as `T`, or a SamplingError that names the parameter. True and False are refused.
pub fn whole<T: TryFrom<i128> + PartialOrd + std::fmt::Display>(
    value: &Bound<'_, PyAny>,
    name: &str,
    least: T,
    most: T,
) -> PyResult<T> {
    let given: Option<i128> = if is_truth(value) { None } else { value.extract().ok() };
    given
        .and_then(|v| T::try_from(v).ok())
        .filter(|v| (&least..=&most).contains(&v))
        .ok_or_else(|| wrong(value, name, &format!("a whole number from {least} to {most}")))
}

/// A number of Python, or a SamplingError that names the parameter. True and False are refused.
pub fn real(value: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    let given: Option<f64> = if is_truth(value) { None } else { value.extract().ok() };
    given.ok_or_else(|| wrong(value, name, "a number"))
}

/// The same as a float32, infinite beyond its range.
pub(super) fn number(value: &Bound<'_, PyAny>, name: &str) -> PyResult<f32> {
    Ok(real(value, name)? as f32)
}

/// The value of a parameter to be changed. A switch is set by its truth.
pub(super) fn setting(value: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    match value.cast::<PyBool>() {
        Ok(truth) => Ok(f64::from(u8::from(truth.is_true()))),
        Err(_) => real(value, name),
    }
}

/// Whether it is True or False, of Python's or of NumPy's.
fn is_truth(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyBool>()
        || value.get_type().name().is_ok_and(|name| name == "bool" || name == "bool_")
}

/// The error for a value that is not what a parameter must be.
fn wrong(value: &Bound<'_, PyAny>, name: &str, must: &str) -> PyErr {
    let error = Error::new(ErrorKind::Sampling, format!("{name} is {}", shown(value)));
    to_py(error.help(format!("{name} must be {must}")))
}

/// How Python shows a value, or the beginning of that.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let mut shown = value.repr().map_or_else(|_| value.get_type().to_string(), |r| r.to_string());
    if let Some((end, _)) = shown.char_indices().nth(MAX_SHOWN) {
        shown.replace_range(end.., "...");
    }
    shown
}

/// The seed of a whole chain; nothing for None and for -1, which llama.cpp's tools take as "draw one".
pub(super) fn chain_seed_of(value: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    let drawn = !is_truth(value) && value.extract::<i64>().is_ok_and(|seed| seed == -1);
    seed_of((!drawn).then_some(value))
}

fn seed_of(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    value.filter(|v| !v.is_none()).map(|v| whole(v, "seed", 0, u64::MAX)).transpose()
}

/// What a drawing sampler starts from; a fresh seed for None.
pub(super) fn start_of(seed: Option<&Bound<'_, PyAny>>, rng: &str, sequence: u32) -> PyResult<Seed> {
    let fresh = || Seed::fresh().map(|fresh| fresh.seed).map_err(to_py);
    let seed = seed_of(seed)?.map_or_else(fresh, Ok)?;
    Ok(Seed { generator: Generator::parse(rng).map_err(to_py)?, seed, sequence })
}

/// A generator by its name.
pub(super) fn rng_of(value: &Bound<'_, PyAny>) -> PyResult<Generator> {
    Generator::parse(&value.extract::<String>()?).map_err(to_py)
}

/// A parameter's value of this kind; `name` is what errors call it.
pub(super) fn value_of(kind: Kind, value: &Bound<'_, PyAny>, name: &str) -> PyResult<Value> {
    Ok(match kind {
        Kind::Int => whole(value, name, i32::MIN, i32::MAX)?.into(),
        Kind::OptionalInt if value.is_none() => Value::Nothing,
        Kind::OptionalInt => whole(value, name, 1, i32::MAX)?.into(),
        Kind::Count => whole(value, name, 0, i32::MAX)?.into(),
        Kind::Float => number(value, name)?.into(),
        Kind::Truth => value.extract::<bool>()?.into(),
        Kind::Biases => biases_of(value, name)?.into(),
        Kind::Breakers if value.is_none() => Value::Nothing,
        Kind::Breakers => breakers_of(value)?.into(),
        Kind::Pieces => match value.extract::<Option<PyRef<'_, PyVocabulary>>>()? {
            Some(vocabulary) => pieces_of(&vocabulary, None)?.into(),
            None => Value::Nothing,
        },
        Kind::Seed => Value::Nothing,
    })
}

/// Biases from a mapping of id to number or a sequence of pairs; `what` they are, for the message.
pub(super) fn biases_of(biases: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<(TokenId, f32)>> {
    let wrong = |message: String| {
        to_py(Error::new(ErrorKind::Sampling, message).help("write {id: number}, ids from 0 to 2**32 - 1"))
    };
    let strange = |_| wrong(format!("{what} is not a mapping of token ids to numbers"));
    let pairs: Vec<Bound<'_, PyAny>> = match biases.cast::<PyMapping>() {
        Ok(mapping) => mapping.items()?.extract(),
        Err(_) => biases.extract(),
    }
    .map_err(strange)?;
    let pair = |(at, pair): (usize, &Bound<'_, PyAny>)| {
        pair.extract().map_err(|_| {
            let shown = shown(pair);
            wrong(format!("{what} has {shown} at {at}, which is no pair of a token id and a number"))
        })
    };
    pairs.iter().enumerate().map(pair).collect()
}
