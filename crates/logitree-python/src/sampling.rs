//! The chain and its samplers in Python: conversions only.

use crate::errors::to_py;
use crate::logits::{with_logits, Mask};
use crate::vocabulary::token_id;
use logitree::sampling::{
    presets, rng::fresh_seed, Chain, Dist, Effect, Generator, Greedy, LogitBias, MinP, Mode, Params,
    Penalties, Sampler, Seed, Temp, TopK, TopNSigma, TopP, TypP,
};
use logitree::{Error, ErrorKind, TokenId};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// One sampler with its parameters, to be put into chains. It keeps no state: each chain has its own copy.
#[pyclass(frozen, name = "Sampler", module = "logitree")]
pub struct PySampler(Box<dyn Sampler>);

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
}

fn sampler(sampler: impl Sampler + 'static) -> PySampler {
    PySampler(Box::new(sampler))
}

/// A whole number of Python as `T`, or a SamplingError that names the parameter.
fn whole<T: TryFrom<i128> + PartialOrd + std::fmt::Display>(
    value: &Bound<'_, PyAny>,
    name: &str,
    least: T,
    most: T,
) -> PyResult<T> {
    let given: Option<i128> = value.extract().ok();
    given.and_then(|v| T::try_from(v).ok()).filter(|v| (&least..=&most).contains(&v)).ok_or_else(|| {
        let shown = value.repr().map_or_else(|_| "?".into(), |r| r.to_string());
        to_py(
            Error::new(ErrorKind::Sampling, format!("{name} is {shown}"))
                .help(format!("{name} must be a whole number from {least} to {most}")),
        )
    })
}

fn seed_of(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    value.filter(|v| !v.is_none()).map(|v| whole(v, "seed", 0, u64::MAX)).transpose()
}

/// What a drawing sampler starts from; fresh entropy for a seed of None.
fn start_of(seed: Option<&Bound<'_, PyAny>>, rng: &str, sequence: u32) -> PyResult<Seed> {
    let seed = seed_of(seed)?.unwrap_or_else(|| u64::from(fresh_seed()));
    Ok(Seed { generator: Generator::parse(rng).map_err(to_py)?, seed, sequence })
}

fn keep_of(value: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    value.map_or(Ok(0), |v| whole(v, "min_keep", 0, i32::MAX).map(|n| n as usize))
}

/// Biases from a dict of id to number or a sequence of pairs.
fn biases_of(biases: &Bound<'_, PyAny>) -> PyResult<Vec<(TokenId, f32)>> {
    let pairs = match biases.cast::<PyDict>() {
        Ok(dict) => dict.items().into_any(),
        Err(_) => biases.clone(),
    };
    pairs.extract().map_err(|_| {
        to_py(
            Error::new(ErrorKind::Sampling, "logit_bias is not a mapping of token ids to numbers")
                .help("write {id: bias}, ids from 0 to 2**32 - 1"),
        )
    })
}

/// Adds a number to the logits of tokens: a dict of id to bias, or pairs. -inf bans; NaN and +inf are errors.
#[pyfunction]
fn logit_bias(biases: &Bound<'_, PyAny>) -> PyResult<PySampler> {
    Ok(sampler(LogitBias::new(&biases_of(biases)?).map_err(to_py)?))
}

/// Penalises the last `last_n` accepted tokens: a logit above 0 is divided by `repeat`, others multiplied; then
/// `count * freq + present` is subtracted.
#[pyfunction]
#[pyo3(signature = (last_n=64, repeat=1.0, freq=0.0, present=0.0))]
fn penalties(last_n: i32, repeat: f32, freq: f32, present: f32) -> PyResult<PySampler> {
    Ok(sampler(Penalties::new(last_n, repeat, freq, present).map_err(to_py)?))
}

/// Keeps the k best candidates, sorted; 0 or less keeps all.
#[pyfunction]
#[pyo3(signature = (k=40))]
fn top_k(k: i32) -> PySampler {
    sampler(TopK::new(k))
}

/// Keeps the candidates of locally typical surprisal up to probability p; 1 keeps all.
#[pyfunction]
#[pyo3(signature = (p=1.0, min_keep=None))]
fn typ_p(p: f32, min_keep: Option<&Bound<'_, PyAny>>) -> PyResult<PySampler> {
    Ok(sampler(TypP::new(p, keep_of(min_keep)?).map_err(to_py)?))
}

/// Keeps the fewest best candidates whose probabilities reach p; 1 keeps all.
#[pyfunction]
#[pyo3(signature = (p=0.95, min_keep=None))]
fn top_p(p: f32, min_keep: Option<&Bound<'_, PyAny>>) -> PyResult<PySampler> {
    Ok(sampler(TopP::new(p, keep_of(min_keep)?).map_err(to_py)?))
}

/// Keeps the candidates at least p times as probable as the best; 0 keeps all.
#[pyfunction]
#[pyo3(signature = (p=0.05, min_keep=None))]
fn min_p(p: f32, min_keep: Option<&Bound<'_, PyAny>>) -> PyResult<PySampler> {
    Ok(sampler(MinP::new(p, keep_of(min_keep)?).map_err(to_py)?))
}

/// Sets to -inf what lies more than n standard deviations below the best logit; 0 or less rejects nothing.
#[pyfunction]
fn top_n_sigma(n: f32) -> PyResult<PySampler> {
    Ok(sampler(TopNSigma::new(n).map_err(to_py)?))
}

/// Divides the logits by t; 0 or less leaves only the best.
#[pyfunction]
#[pyo3(signature = (t=0.8))]
fn temp(t: f32) -> PyResult<PySampler> {
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
#[pyo3(signature = (seed=None, rng="mt19937", sequence=0))]
fn dist(seed: Option<&Bound<'_, PyAny>>, rng: &str, sequence: u32) -> PyResult<PySampler> {
    Ok(sampler(Dist::new(start_of(seed, rng, sequence)?).map_err(to_py)?))
}

/// Keyword parameters over `start`, with llama.cpp's names.
fn params_of(start: Params, given: Option<&Bound<'_, PyDict>>) -> PyResult<Params> {
    let mut params = start;
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        match name.as_str() {
            "seed" => params.seed = seed_of(Some(&value))?,
            "rng" => params.rng = Generator::parse(&value.extract::<String>()?).map_err(to_py)?,
            "sequence" => params.sequence = whole(&value, "sequence", 0, u32::MAX)?,
            "min_keep" => params.min_keep = keep_of(Some(&value))?,
            "top_k" => params.top_k = whole(&value, "top_k", i32::MIN, i32::MAX)?,
            "top_p" => params.top_p = value.extract()?,
            "min_p" => params.min_p = value.extract()?,
            "typ_p" => params.typ_p = value.extract()?,
            "top_n_sigma" => params.top_n_sigma = value.extract()?,
            "temp" => params.temp = value.extract()?,
            "penalty_last_n" => params.penalty_last_n = whole(&value, "penalty_last_n", i32::MIN, i32::MAX)?,
            "penalty_repeat" => params.penalty_repeat = value.extract()?,
            "penalty_freq" => params.penalty_freq = value.extract()?,
            "penalty_present" => params.penalty_present = value.extract()?,
            "logit_bias" => params.logit_bias = biases_of(&value)?,
            _ => {
                let known = "seed, rng, sequence, min_keep, top_k, top_p, min_p, typ_p, top_n_sigma, temp, penalty_last_n, \
                             penalty_repeat, penalty_freq, penalty_present, logit_bias";
                return Err(to_py(
                    Error::new(ErrorKind::Sampling, format!("there is no parameter {name}"))
                        .help(format!("known: {known}")),
                ));
            }
        }
    }
    Ok(params)
}

/// What one sampler did in one step.
#[pyclass(frozen, name = "Effect", module = "logitree")]
pub struct PyEffect(pub Effect);

#[pymethods]
impl PyEffect {
    /// The sampler's name.
    #[getter]
    fn sampler(&self) -> &'static str {
        self.0.sampler
    }

    /// Candidates above -inf before it.
    #[getter]
    fn before(&self) -> usize {
        self.0.before
    }

    /// Candidates above -inf after it.
    #[getter]
    fn after(&self) -> usize {
        self.0.after
    }

    /// Logits it changed, of those that stayed.
    #[getter]
    fn changed(&self) -> usize {
        self.0.changed
    }

    /// Probability, before it, of what it cut.
    #[getter]
    fn mass_cut(&self) -> f64 {
        self.0.mass_cut
    }

    fn __repr__(&self) -> String {
        let Effect { sampler, before, after, changed, mass_cut } = &self.0;
        format!("Effect({sampler}: {before} -> {after}, changed {changed}, mass_cut {mass_cut:.6})")
    }
}

/// Samplers in order, with the state that goes with accepted tokens.
#[pyclass(name = "Chain", module = "logitree")]
#[derive(Clone)]
pub struct PyChain {
    /// The chain of the core.
    pub inner: Chain,
}

type Columns<'py> = (Bound<'py, PyArray1<TokenId>>, Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<f32>>);

#[pymethods]
impl PyChain {
    #[new]
    fn new(samplers: Vec<PyRef<'_, PySampler>>) -> PyResult<Self> {
        let samplers = samplers.iter().map(|s| s.0.clone()).collect();
        Ok(PyChain { inner: Chain::new(samplers).map_err(to_py)? })
    }

    /// The chain that llama.cpp's notation names: "penalties;top_k;temperature", or its letters, "ekt".
    #[staticmethod]
    #[pyo3(signature = (text, **params))]
    fn parse(text: &str, params: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let params = params_of(Params::default(), params)?;
        Ok(PyChain { inner: Chain::parse(text, &params).map_err(to_py)? })
    }

    /// llama.cpp's default chain; keywords change its defaults.
    #[staticmethod]
    #[pyo3(signature = (**params))]
    fn llama_cpp(params: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let params = params_of(Params::default(), params)?;
        Ok(PyChain { inner: presets::llama_cpp(&params).map_err(to_py)? })
    }

    /// tsampler's order and defaults.
    #[staticmethod]
    #[pyo3(signature = (**params))]
    fn tsampler(params: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let params = params_of(Params::tsampler(), params)?;
        Ok(PyChain { inner: presets::tsampler(&params).map_err(to_py)? })
    }

    /// The chain that picks the most likely token.
    #[staticmethod]
    fn greedy() -> Self {
        PyChain { inner: presets::greedy() }
    }

    /// Applies the chain and picks the next token; accept it with `accept`.
    #[pyo3(signature = (logits, mask=None, *, legal=None))]
    fn sample(
        &mut self,
        logits: &Bound<'_, PyAny>,
        mask: Option<&Bound<'_, PyAny>>,
        legal: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TokenId> {
        let mask = Mask::new(mask, legal)?;
        with_logits(logits, |logits| self.inner.sample(logits, mask.legal()))
    }

    /// Applies the chain: ids (uint32), logits (float32), probabilities (float32) of what survived, in order.
    #[pyo3(signature = (logits, mask=None, *, legal=None))]
    fn apply<'py>(
        &mut self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        mask: Option<&Bound<'py, PyAny>>,
        legal: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Columns<'py>> {
        let mask = Mask::new(mask, legal)?;
        with_logits(logits, |logits| self.inner.apply(logits, mask.legal(), None))?;
        let c = self.inner.candidates();
        Ok((
            PyArray1::from_slice(py, c.ids()),
            PyArray1::from_slice(py, c.logits()),
            PyArray1::from_slice(py, c.probabilities()),
        ))
    }

    /// Applies the chain and tells what each sampler did. Draws as `apply` does.
    #[pyo3(signature = (logits, mask=None, *, legal=None))]
    fn explain(
        &mut self,
        logits: &Bound<'_, PyAny>,
        mask: Option<&Bound<'_, PyAny>>,
        legal: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<PyEffect>> {
        let mask = Mask::new(mask, legal)?;
        let mut effects = Vec::new();
        with_logits(logits, |logits| self.inner.apply(logits, mask.legal(), Some(&mut effects)))?;
        Ok(effects.into_iter().map(PyEffect).collect())
    }

    /// The token that the last apply, explain or sample selected.
    fn pick(&mut self) -> PyResult<TokenId> {
        self.inner.pick().map_err(to_py)
    }

    /// Takes note of an accepted token.
    fn accept(&mut self, token: i64) -> PyResult<()> {
        self.inner.accept(token_id(token)?);
        Ok(())
    }

    /// Advances as `sample` would with one sole candidate; accept the forced token afterwards.
    fn forced(&mut self) {
        self.inner.forced();
    }

    /// Forgets the last n accepted tokens and what was drawn for them.
    #[pyo3(signature = (n=1))]
    fn rollback(&mut self, n: usize) -> PyResult<()> {
        self.inner.rollback(n).map_err(to_py)
    }

    /// Back to the state it was born with.
    fn reset(&mut self) {
        self.inner.reset();
    }

    /// An independent copy in the same state.
    fn fork(&self) -> Self {
        self.clone()
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }

    /// The samplers' names, in order.
    #[getter]
    fn names(&self) -> Vec<&'static str> {
        self.inner.names()
    }

    /// The samplers, in order.
    #[getter]
    fn samplers(&self) -> Vec<PySampler> {
        self.inner.samplers().iter().map(|s| PySampler(s.clone())).collect()
    }

    /// The seed it draws from; None if it does not draw.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.inner.seed().map(|s| s.seed)
    }

    /// "fast" or "parity".
    #[getter]
    fn mode(&self) -> &'static str {
        match self.inner.mode() {
            Mode::Fast => "fast",
            Mode::Parity => "parity",
        }
    }

    /// A copy in the same state that computes as llama.cpp does, ties and rounding included, at its speed.
    fn parity(&self) -> PyResult<Self> {
        Ok(PyChain { inner: self.inner.clone().with_mode(Mode::Parity).map_err(to_py)? })
    }

    /// The value of a parameter, by its name as in `llama_cpp(...)`; None if no sampler has it.
    fn get(&self, name: &str) -> Option<f64> {
        self.inner.parameter(name)
    }

    /// Changes parameters from the next step on, by their names as in `llama_cpp(...)`.
    #[pyo3(signature = (**params))]
    fn set(&mut self, params: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        for (name, value) in params.into_iter().flatten() {
            self.inner.set_parameter(&name.extract::<String>()?, value.extract()?).map_err(to_py)?;
        }
        Ok(())
    }

    /// The state (generators, histories) as bytes.
    fn snapshot<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.snapshot())
    }

    /// Takes the state of a snapshot of a chain with the same samplers and parameters.
    fn restore(&mut self, snapshot: &[u8]) -> PyResult<()> {
        self.inner.restore(snapshot).map_err(to_py)
    }

    /// Number of tokens accepted, less those rolled back.
    #[getter]
    fn accepted(&self) -> usize {
        self.inner.accepted()
    }

    fn __repr__(&self) -> String {
        format!("Chain([{}])", self.inner.describe().replace(" -> ", ", "))
    }
}

/// Adds the classes and functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PySampler>()?;
    m.add_class::<PyChain>()?;
    m.add_class::<PyEffect>()?;
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
