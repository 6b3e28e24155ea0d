//! The samplers' constructors in Python: conversions only.

use super::pickled;
use crate::errors::to_py;
use logitree::sampling::{
    rng::fresh_seed, Dist, Generator, Greedy, LogitBias, MinP, Penalties, Sampler, Seed, Temp, TopK,
    TopNSigma, TopP, TypP,
};
use logitree::{Error, ErrorKind, TokenId};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyMapping};

/// Characters of a wrong value that an error shows.
const SHOWN: usize = 60;

/// One sampler with its parameters, to be put into chains. It keeps no state: each chain has its own copy.
#[pyclass(frozen, name = "Sampler", module = "logitree")]
pub struct PySampler(pub Box<dyn Sampler>);

#[pymethods]
impl PySampler {
    /// llama.cpp's name of the sampler.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        self.0.describe()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        pickled::sampler(py, &*self.0)
    }
}

pub(super) fn sampler(sampler: impl Sampler + 'static) -> PySampler {
    PySampler(Box::new(sampler))
}

/// A whole number of Python as `T`, or a SamplingError that names the parameter. True and False are none.
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

/// A number of Python, or a SamplingError that names the parameter. True and False are none.
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
    if let Some((end, _)) = shown.char_indices().nth(SHOWN) {
        shown.replace_range(end.., "...");
    }
    shown
}

/// A number as it was given, or the default: what is wrong with it is said when it is taken out, for only then is the
/// parameter's name known.
pub(super) enum Number<'py> {
    Is(f32),
    Given(Bound<'py, PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Number<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Number::Given(value.to_owned()))
    }
}

impl Number<'_> {
    /// The number; infinite if it is one of Python's that no f32 holds.
    pub(super) fn real(&self, name: &str) -> PyResult<f32> {
        match self {
            Number::Is(x) => Ok(*x),
            Number::Given(value) => number(value, name),
        }
    }

    /// The number, which must be whole.
    pub(super) fn int(&self, name: &str) -> PyResult<i32> {
        match self {
            Number::Is(x) => Ok(*x as i32),
            Number::Given(value) => whole(value, name, i32::MIN, i32::MAX),
        }
    }

    /// The same from 0 on.
    pub(super) fn count(&self, name: &str) -> PyResult<u32> {
        match self {
            Number::Is(x) => Ok(*x as u32),
            Number::Given(value) => whole(value, name, 0, u32::MAX),
        }
    }
}

pub(super) fn seed_of(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    value.filter(|v| !v.is_none()).map(|v| whole(v, "seed", 0, u64::MAX)).transpose()
}

/// What a drawing sampler starts from; fresh entropy for a seed of None.
pub(super) fn start_of(seed: Option<&Bound<'_, PyAny>>, rng: &str, sequence: u32) -> PyResult<Seed> {
    let seed = seed_of(seed)?.unwrap_or_else(|| u64::from(fresh_seed()));
    Ok(Seed { generator: Generator::parse(rng).map_err(to_py)?, seed, sequence })
}

pub(super) fn keep_of(value: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    value.map_or(Ok(0), |v| whole(v, "min_keep", 0, i32::MAX).map(|n| n as usize))
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

/// Adds a number to the logits of tokens: a dict of id to bias, or pairs. -inf bans; NaN and +inf are errors.
#[pyfunction]
fn logit_bias(biases: &Bound<'_, PyAny>) -> PyResult<PySampler> {
    Ok(sampler(LogitBias::new(&biases_of(biases, "logit_bias")?).map_err(to_py)?))
}

/// Penalises the last `last_n` accepted tokens: a logit above 0 is divided by `repeat`, others multiplied; then
/// `count * freq + present` is subtracted.
#[pyfunction]
#[pyo3(signature = (last_n=Number::Is(64.0), repeat=Number::Is(1.0), freq=Number::Is(0.0), present=Number::Is(0.0)),
    text_signature = "(last_n=64, repeat=1.0, freq=0.0, present=0.0)")]
fn penalties(
    last_n: Number<'_>,
    repeat: Number<'_>,
    freq: Number<'_>,
    present: Number<'_>,
) -> PyResult<PySampler> {
    let last_n = last_n.int("last_n")?;
    let repeat = repeat.real("repeat")?;
    let freq = freq.real("freq")?;
    let present = present.real("present")?;
    Ok(sampler(Penalties::new(last_n, repeat, freq, present).map_err(to_py)?))
}

/// Keeps the k best candidates, sorted; 0 or less keeps all.
#[pyfunction]
#[pyo3(signature = (k=Number::Is(40.0)),
    text_signature = "(k=40)")]
fn top_k(k: Number<'_>) -> PyResult<PySampler> {
    Ok(sampler(TopK::new(k.int("k")?)))
}

/// Keeps the candidates of locally typical surprisal up to probability p; 1 keeps all.
#[pyfunction]
#[pyo3(signature = (p=Number::Is(1.0), min_keep=None),
    text_signature = "(p=1.0, min_keep=None)")]
fn typ_p(p: Number<'_>, min_keep: Option<&Bound<'_, PyAny>>) -> PyResult<PySampler> {
    let p = p.real("p")?;
    Ok(sampler(TypP::new(p, keep_of(min_keep)?).map_err(to_py)?))
}

/// Keeps the fewest best candidates whose probabilities reach p; 1 keeps all.
#[pyfunction]
#[pyo3(signature = (p=Number::Is(0.95), min_keep=None),
    text_signature = "(p=0.95, min_keep=None)")]
fn top_p(p: Number<'_>, min_keep: Option<&Bound<'_, PyAny>>) -> PyResult<PySampler> {
    let p = p.real("p")?;
    Ok(sampler(TopP::new(p, keep_of(min_keep)?).map_err(to_py)?))
}

/// Keeps the candidates at least p times as probable as the best; 0 keeps all.
#[pyfunction]
#[pyo3(signature = (p=Number::Is(0.05), min_keep=None),
    text_signature = "(p=0.05, min_keep=None)")]
fn min_p(p: Number<'_>, min_keep: Option<&Bound<'_, PyAny>>) -> PyResult<PySampler> {
    let p = p.real("p")?;
    Ok(sampler(MinP::new(p, keep_of(min_keep)?).map_err(to_py)?))
}

/// Sets to -inf what lies more than n standard deviations below the best logit; 0 or less rejects nothing.
#[pyfunction]
#[pyo3(signature = (n))]
fn top_n_sigma(n: Number<'_>) -> PyResult<PySampler> {
    let n = n.real("n")?;
    Ok(sampler(TopNSigma::new(n).map_err(to_py)?))
}

/// Divides the logits by t; 0 or less leaves only the best.
#[pyfunction]
#[pyo3(signature = (t=Number::Is(0.8)),
    text_signature = "(t=0.8)")]
fn temp(t: Number<'_>) -> PyResult<PySampler> {
    let t = t.real("t")?;
    Ok(sampler(Temp::new(t).map_err(to_py)?))
}

/// Selects the first best candidate.
#[pyfunction]
fn greedy() -> PySampler {
    sampler(Greedy)
}

/// Draws by probability, llama.cpp's draws for the same seed (each means itself, 0 too). None takes fresh entropy:
/// `repr` and `Chain.seed` tell it. `rng`: "mt19937" (llama.cpp's, 32-bit seeds), "xoroshiro128plus" or "philox"
/// (64-bit seeds); with philox a draw depends on seed, `sequence` and position alone.
#[pyfunction]
#[pyo3(signature = (seed=None, rng="mt19937", sequence=Number::Is(0.0)),
    text_signature = "(seed=None, rng=\"mt19937\", sequence=0)")]
fn dist(seed: Option<&Bound<'_, PyAny>>, rng: &str, sequence: Number<'_>) -> PyResult<PySampler> {
    let sequence = sequence.count("sequence")?;
    Ok(sampler(Dist::new(start_of(seed, rng, sequence)?).map_err(to_py)?))
}

/// Adds the class and the functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PySampler>()?;
    m.add_function(wrap_pyfunction!(logit_bias, m)?)?;
    m.add_function(wrap_pyfunction!(penalties, m)?)?;
    m.add_function(wrap_pyfunction!(top_k, m)?)?;
    m.add_function(wrap_pyfunction!(typ_p, m)?)?;
    m.add_function(wrap_pyfunction!(top_p, m)?)?;
    m.add_function(wrap_pyfunction!(min_p, m)?)?;
    m.add_function(wrap_pyfunction!(top_n_sigma, m)?)?;
    m.add_function(wrap_pyfunction!(temp, m)?)?;
    m.add_function(wrap_pyfunction!(greedy, m)?)?;
    m.add_function(wrap_pyfunction!(dist, m)?)?;
    Ok(())
}
