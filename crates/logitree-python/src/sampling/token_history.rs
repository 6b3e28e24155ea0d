//! What tsampler has beside a chain, in Python: the history of tokens and random numbers. Conversions only.

use super::values::{start_of, whole};
use crate::errors::to_py;
use crate::vocabulary::token_id;
use logitree::sampling::{Penalties, Random, TokenHistory};
use logitree::TokenId;
use pyo3::prelude::*;

/// Accepted tokens and how often each occurs among the last `last_n` (64), for penalties by hand.
#[pyclass(name = "TokenHistory", module = "logitree.metrics")]
struct PyTokenHistory(TokenHistory);

#[pymethods]
impl PyTokenHistory {
    #[new]
    #[pyo3(signature = (last_n=None))]
    fn new(last_n: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let last_n = last_n.map_or(Ok(64), |n| whole(n, "last_n", 0, i32::MAX))?;
        Ok(PyTokenHistory(TokenHistory::new(last_n as usize)))
    }

    /// Records an accepted token.
    fn accept(&mut self, token: i64) -> PyResult<()> {
        self.0.accept(token_id(token)?);
        Ok(())
    }

    /// Forgets the last `n` tokens, or all; tokens that had left the window return.
    #[pyo3(signature = (n=1))]
    fn rollback(&mut self, n: usize) {
        self.0.rollback(n);
    }

    /// Forgets all tokens.
    fn reset(&mut self) {
        self.0.reset();
    }

    /// How often the token occurs in the window.
    fn count(&self, token: i64) -> u32 {
        TokenId::try_from(token).map_or(0, |token| self.0.count(token))
    }

    /// Whether the token is in the window.
    fn has(&self, token: i64) -> bool {
        self.count(token) > 0
    }

    fn __contains__(&self, token: i64) -> bool {
        self.has(token)
    }

    /// The length of the window.
    #[getter]
    fn last_n(&self) -> usize {
        self.0.last_n()
    }

    /// How many tokens are in the window.
    #[getter]
    fn size(&self) -> usize {
        self.0.len()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Each token of the window once, ascending.
    fn unique_tokens(&self) -> Vec<TokenId> {
        self.0.counts().iter().map(|c| c.0).collect()
    }

    /// A token's logit (float32) after the penalties: divided by `repeat` if above 0, else multiplied, then less
    /// `count * freq + present`; that of a token outside the window stays (llama.cpp's llama-sampler.cpp).
    ///
    /// Raises SamplingError for numbers that are not finite, or `repeat` not above 0.
    #[pyo3(signature = (token, logit, *, repeat=1.0, freq=0.0, present=0.0))]
    fn compute_adjustment(
        &self,
        token: i64,
        logit: f32,
        repeat: f32,
        freq: f32,
        present: f32,
    ) -> PyResult<f32> {
        let penalties = Penalties::new(0, repeat, freq, present).map_err(to_py)?;
        Ok(penalties.penalised(logit, self.count(token)))
    }

    /// Whether penalties of these numbers change anything.
    #[staticmethod]
    #[pyo3(signature = (*, repeat=1.0, freq=0.0, present=0.0))]
    fn has_penalties(repeat: f32, freq: f32, present: f32) -> bool {
        Penalties::penalises(repeat, freq, present)
    }

    fn __repr__(&self) -> String {
        format!("TokenHistory(last_n={}, size={})", self.0.last_n(), self.0.len())
    }
}

/// Random numbers: those that `dist` of the same seed, generator and sequence draws.
#[pyclass(name = "Random", module = "logitree.samplers")]
struct PyRandom(Random);

#[pymethods]
impl PyRandom {
    #[new]
    #[pyo3(signature = (seed=None, rng="xoroshiro128plus", sequence=0))]
    fn new(seed: Option<&Bound<'_, PyAny>>, rng: &str, sequence: u32) -> PyResult<Self> {
        Ok(PyRandom(Random::new(start_of(seed, rng, sequence)?).map_err(to_py)?))
    }

    /// The next number in [0, 1), of 53 bits.
    fn uniform(&mut self) -> f64 {
        self.0.uniform()
    }

    /// Moves to the position after `n` numbers, in one step per number between, or in one step with philox.
    ///
    /// Raises StateError beyond 2**27 with another generator than philox.
    fn seek(&mut self, n: u64) -> PyResult<()> {
        self.0.seek(n).map_err(to_py)
    }

    /// How many numbers were drawn.
    #[getter]
    fn drawn(&self) -> u64 {
        self.0.drawn()
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed().seed
    }

    fn __repr__(&self) -> String {
        format!("Random({})", self.0.seed().describe())
    }
}

/// Adds the classes to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyTokenHistory>()?;
    m.add_class::<PyRandom>()
}
