//! The chain in Python: conversions only. One file for the samplers, one for the keywords of whole chains, one for
//! each thing beside them.

pub mod adapt;
mod batch;
mod custom;
mod measures;
mod params;
mod pickle;
mod samplers;
pub mod steering;
mod token_history;
mod values;
mod vocabulary;

use crate::errors::to_py;
use crate::logits::{with_logits, Mask};
use crate::vocabulary::token_id;
use batch::Asked;
use logitree::sampling::{presets, Chain, Effect, Mode, Params, Sampler, Setting};
use logitree::{Error, ErrorKind, TokenId};
use measures::PyMeasures;
use numpy::PyArray1;
use params::params_of;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use samplers::PySampler;
use steering::PySteering;
pub use values::whole;

/// What one sampler did in one step. A candidate counts while its logit is above -inf.
#[pyclass(frozen, name = "Effect", module = "logitree.steering")]
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

    /// Probability of what it removed, under the logits before it: 0 to 1.
    #[getter]
    fn mass_cut(&self) -> f64 {
        self.0.mass_cut
    }

    fn __repr__(&self) -> String {
        let Effect { sampler, before, after, changed, mass_cut, .. } = &self.0;
        format!("Effect({sampler}: {before} -> {after}, changed {changed}, mass_cut {mass_cut:.6})")
    }
}

/// Samplers in order, with the state that follows accepted tokens.
///
/// Logits: one row of float32, float16 or bfloat16, shape [n], read in place and never written: a NumPy array
/// (bfloat16 of ml_dtypes, or its bits as uint16), or what NumPy or DLPack can view without copying (ctypes array,
/// memoryview, array.array, torch tensor on the CPU). 16-bit logits are converted to float32 block by
/// block, without a copy of the row. Anything else is a LogitsError, as are NaN and +inf among the allowed logits, and
/// nothing to choose from.
///
/// It can be pickled with samplers, mode and state.
///
/// Not for two threads at once: the second call is a RuntimeError. `fork` and `states` give each its own.
///
/// What is allowed: `mask`, one row of int32 (or uint32) words, shape [ceil(n / 32)], bit `id % 32` of word
/// `id // 32`, ids past its end not being allowed; or `allowed`, token ids or an `AllowedTokens`. Only their logits
/// are read. Neither: all. An allowed id without a logit is a MaskError.
#[pyclass(name = "Chain", module = "logitree")]
#[derive(Clone)]
pub struct PyChain {
    /// The chain of the core.
    pub inner: Chain,
    /// The chains that it keeps for the rows of its batches, made when they are first needed.
    rows: Vec<Chain>,
}

impl From<Chain> for PyChain {
    fn from(inner: Chain) -> Self {
        PyChain { inner, rows: Vec::new() }
    }
}

/// Most chains that `sequences` makes at once: what does not fit into memory would end the process.
const MAX_SEQUENCES: u32 = 1 << 20;

type Columns<'py> = (Bound<'py, PyArray1<TokenId>>, Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<f32>>);

#[pymethods]
impl PyChain {
    #[new]
    fn new(samplers: Vec<PyRef<'_, PySampler>>) -> PyResult<Self> {
        let samplers = samplers.iter().map(|s| s.0.clone()).collect();
        Ok(PyChain::from(Chain::new(samplers).map_err(to_py)?))
    }

    /// The chain that llama.cpp's notation names: "penalties;top_k;temperature", or its letters, "ekt".
    ///
    /// llama.cpp's own default is "edskypmxt"; "a" is adaptive_p, "i" infill. Biases come first and `dist` last if the
    /// text does not name them; adaptive_p is last wherever it is named. With `mirostat` 1 or 2 the named samplers are
    /// not used, as in llama.cpp. SamplingError for an invalid text.
    #[staticmethod]
    #[pyo3(signature = (text, **params))]
    fn parse(text: &str, params: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        preset(Params::default(), params, |params| Chain::parse(text, params))
    }

    /// llama.cpp's order: biases, penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature, dist.
    ///
    /// With `mirostat` 1 or 2: biases, temp and that mirostat. With an `adaptive_target` of 0 or more adaptive_p
    /// replaces dist.
    #[staticmethod]
    #[pyo3(signature = (**params))]
    fn llama_cpp(params: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        preset(Params::default(), params, presets::llama_cpp)
    }

    /// tsampler's order: penalties, ts_top_k, typ_p, top_p, min_p, ts_top_n_sigma, temp, dist; repeat penalty 1.1.
    ///
    /// The generator is tsampler's, xoroshiro128plus, which takes seeds of 64 bits: milliseconds will do.
    /// SamplingError for keywords that switch on a sampler that tsampler lacks.
    #[staticmethod]
    #[pyo3(signature = (**params))]
    fn tsampler(params: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        preset(Params::tsampler(), params, presets::tsampler)
    }

    /// transformers' order (5.23, `do_sample=True`): biases, penalties, no_repeat_ngram, temp, hf_top_h,
    /// hf_top_k, hf_top_p, min_p, hf_typ_p, epsilon_cutoff, eta_cutoff, dist.
    ///
    /// The same candidates stay as in transformers, with the same probabilities within 1e-6; `min_keep` is
    /// `min_tokens_to_keep`. Accept the prompt too: penalties and no_repeat_ngram include it. The draws
    /// are `dist`'s: those of `torch.multinomial` are not reproduced. Defaults: `top_k` 50, `temp` 1, the
    /// penalties over all accepted tokens, everything else off. SamplingError for a `temp` of 0 or less, and for
    /// keywords that switch on a sampler that transformers lacks.
    #[staticmethod]
    #[pyo3(signature = (**params))]
    fn transformers(params: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        preset(Params::transformers(), params, presets::transformers)
    }

    /// The chain that picks the most likely token.
    #[staticmethod]
    fn greedy() -> Self {
        PyChain::from(presets::greedy())
    }

    /// Applies the chain, picks the next token and accepts it, as `llama_sampler_sample` does.
    #[pyo3(signature = (logits, mask=None, *, allowed=None))]
    fn sample(
        &mut self,
        logits: &Bound<'_, PyAny>,
        mask: Option<&Bound<'_, PyAny>>,
        allowed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TokenId> {
        let mask = Mask::new(mask, allowed)?;
        with_logits(logits, |logits| self.inner.sample(logits, mask.allowed()))
    }

    /// Applies the chain and picks the next token, without accepting it.
    #[pyo3(signature = (logits, mask=None, *, allowed=None))]
    fn draw(
        &mut self,
        logits: &Bound<'_, PyAny>,
        mask: Option<&Bound<'_, PyAny>>,
        allowed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TokenId> {
        let mask = Mask::new(mask, allowed)?;
        with_logits(logits, |logits| self.inner.draw(logits, mask.allowed()))
    }

    /// Applies the chain (a `dist` draws): ids, logits and probabilities of the survivors, in order.
    #[pyo3(signature = (logits, mask=None, *, allowed=None))]
    fn apply<'py>(
        &mut self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        mask: Option<&Bound<'py, PyAny>>,
        allowed: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Columns<'py>> {
        let mask = Mask::new(mask, allowed)?;
        with_logits(logits, |logits| self.inner.apply(logits, mask.allowed(), None))?;
        let c = self.inner.candidates();
        Ok((
            PyArray1::from_slice(py, c.ids()),
            PyArray1::from_slice(py, c.logits()),
            PyArray1::from_slice(py, c.probabilities()),
        ))
    }

    /// What each sampler would do in the next step. Draws nothing and changes no state.
    #[pyo3(signature = (logits, mask=None, *, allowed=None))]
    fn explain(
        &self,
        logits: &Bound<'_, PyAny>,
        mask: Option<&Bound<'_, PyAny>>,
        allowed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<PyEffect>> {
        let mask = Mask::new(mask, allowed)?;
        let effects = with_logits(logits, |logits| self.inner.explain(logits, mask.allowed()))?;
        Ok(effects.into_iter().map(PyEffect).collect())
    }

    /// The token that the last apply, draw or sample selected.
    fn pick(&mut self) -> PyResult<TokenId> {
        self.inner.pick().map_err(to_py)
    }

    /// Records an accepted token, picked here or elsewhere.
    fn accept(&mut self, token: i64) -> PyResult<()> {
        self.inner.accept(token_id(token)?);
        Ok(())
    }

    /// Advances as `sample` would with one sole candidate; accept the forced token afterwards.
    fn forced(&mut self) {
        self.inner.forced();
    }

    /// Forgets the last n accepted tokens and what was drawn for them; StateError if there are fewer.
    #[pyo3(signature = (n=None), text_signature = "($self, n=1)")]
    fn rollback(&mut self, n: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let n = n.map_or(Ok(1), |n| values::whole(n, "n", 0, usize::MAX))?;
        self.inner.rollback(n).map_err(to_py)
    }

    /// Returns to the initial state; steering is cleared, a rule stays.
    fn reset(&mut self) {
        self.inner.reset();
        self.rows.clear();
    }

    /// n chains of the same samplers in the initial state, as sequences 0 to n - 1 of the seed.
    ///
    /// With `rng="philox"` a draw depends on seed, sequence and position alone; the other generators take the
    /// seed `sequence` further. LimitError above 2**20.
    fn sequences(&self, n: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        let n: u32 = values::whole(n, "n", 0, u32::MAX)?;
        if n > MAX_SEQUENCES {
            let error = Error::new(ErrorKind::Limit, format!("{n} chains are more than {MAX_SEQUENCES}"));
            return Err(to_py(error.help("ask for one chain for each row that runs at once")));
        }
        Ok(self.inner.sequences(n as usize).into_iter().map(PyChain::from).collect())
    }

    /// Samples each row with a chain of its own: tokens, uint32 [B]. A row's token depends on its logits, its mask
    /// and its chain alone, not on B, order or `threads`.
    ///
    /// `logits`: [B, V] (rows without gaps), or a list of rows of any lengths; dtypes as for `sample`. `masks`:
    /// int32 (or uint32) [B, ceil(V / 32)], or a list with words, a list of ids, or None (all) for each row.
    /// `states`: one chain for each row, of any samplers. Without it, this chain keeps `sequences(B)` from call to
    /// call, one more where B grows; `reset` and `restore` reset them. `accept`: each chain accepts its
    /// token. `threads`: a limit, by default one per core, fewer if there is little work; a batch with a callback
    /// runs on the calling thread. Otherwise the GIL is released, and other threads must not write to the logits.
    ///
    /// `log_probabilities`: returns (tokens, before, after): float64 [B], nats; `before` under all of the row's
    /// logits, `after` among the candidates that the chain left: those of `measures`.
    ///
    /// A bad row is an error of the kind that `sample` raises, with "row 3" in its place, for the first bad row:
    /// the others were sampled and have their token (`states[i].pick()`), and none has accepted it.
    #[pyo3(signature = (logits, masks=None, states=None, *, accept=true, threads=None, log_probabilities=false))]
    fn sample_batch<'py>(
        slf: &Bound<'py, Self>,
        logits: &Bound<'py, PyAny>,
        masks: Option<&Bound<'py, PyAny>>,
        states: Option<&Bound<'py, PyAny>>,
        accept: bool,
        threads: Option<&Bound<'py, PyAny>>,
        log_probabilities: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        batch::sample_batch(slf, logits, masks, &Asked { states, accept, threads, log_probabilities })
    }

    /// An independent copy in the same state.
    fn fork(&self) -> Self {
        self.clone()
    }

    /// The same as `fork`, by llama.cpp's name.
    #[pyo3(name = "clone")]
    fn copied(&self) -> Self {
        self.fork()
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

    /// The samplers, in order, in their initial state: the present state stays with the chain.
    #[getter]
    fn samplers(&self) -> Vec<PySampler> {
        let initial = |sampler: &dyn Sampler| {
            let mut sampler = sampler.clone_box();
            if !sampler.is_foreign() {
                sampler.reset();
            }
            PySampler(sampler)
        };
        self.inner.samplers().iter().map(|sampler| initial(sampler.as_ref())).collect()
    }

    /// The seed it draws from, reported also where it was fresh entropy; None if it does not draw.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.inner.seed().map(|s| s.seed)
    }

    /// Whether each step from now on is measured: see `measures`. Off costs nothing; on, the sums are those
    /// that the samplers use where all tokens are allowed.
    #[pyo3(signature = (on=true))]
    fn measure(&mut self, on: bool) {
        self.inner.measure(on);
    }

    /// What the last step's distributions were; None if steps are not measured or it picked nothing.
    #[getter]
    fn measures(&self) -> Option<PyMeasures> {
        self.inner.measures().map(PyMeasures::new)
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
    ///
    /// SamplingError if a sampler is not one of llama.cpp's.
    fn parity(&self) -> PyResult<Self> {
        Ok(PyChain::from(self.inner.clone().with_mode(Mode::Parity).map_err(to_py)?))
    }

    /// The value of a parameter, by its name as in `llama_cpp`; None if no sampler has it.
    fn get(&self, name: &str) -> Option<f64> {
        self.inner.parameter(name)
    }

    /// Changes parameters from the next step on, by their names as in `llama_cpp`. SamplingError if no
    /// sampler has one, or for an invalid value.
    #[pyo3(signature = (**params))]
    fn set(&mut self, params: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let settings = settings(params)?;
        self.inner.set_parameters(&settings).map_err(to_py)?;
        // The rows have the same samplers: what the chain takes they take.
        self.rows.iter_mut().try_for_each(|row| row.set_parameters(&settings)).map_err(to_py)
    }

    /// Adds to single logits before the first sampler, from the next step on; -inf vetoes.
    ///
    /// It stays until it is changed; None removes it. `fork` copies it, `rollback` keeps it, `reset` clears it,
    /// `snapshot` does not contain it. Ids that are not candidates are ignored. The cost depends on the edits, not on
    /// the vocabulary. Raises SamplingError for NaN and +inf. A step in which every allowed token is vetoed raises
    /// LogitsError.
    #[pyo3(signature = (edits))]
    fn steer(&mut self, edits: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        steering::steer(edits, |steering| {
            self.inner.steer(steering);
            self.rows.iter_mut().for_each(|row| row.steer(steering));
        })
    }

    /// A copy of what steers it.
    #[getter]
    fn steering(&self) -> PySteering {
        PySteering(self.inner.steering().clone())
    }

    /// Lets `rule` select the parameters of each step from the next one on; None: the chain's own again.
    ///
    /// A callable is given the entropy (nats) and the top probability of the allowed logits, steering included, and
    /// returns settings by the names of `llama_cpp`, or None for the chain's own; its exceptions come out of the step
    /// unchanged. Settings apply to one step. The rule is not called where one token is allowed. The distribution is
    /// measured once per step, only while there is a rule.
    ///
    /// Raises SamplingError for a declared parameter that no sampler has (a sampler that is switched off must
    /// be in the chain to be switched on), or an invalid value; from a callable, at the step.
    #[pyo3(signature = (rule))]
    fn adapt(&mut self, rule: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let rule = adapt::rule_of(rule)?;
        self.rows.iter_mut().try_for_each(|row| row.adapt(rule.clone())).map_err(to_py)?;
        self.inner.adapt(rule).map_err(to_py)
    }

    /// The state (generators, histories, running means, a burst): `restore` continues from here.
    ///
    /// Steering is not in it.
    fn snapshot<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.snapshot())
    }

    /// Takes the state of a snapshot of a chain with the same samplers and parameters; else StateError.
    fn restore(&mut self, snapshot: &[u8]) -> PyResult<()> {
        self.inner.restore(snapshot).map_err(to_py)?;
        self.rows.clear();
        Ok(())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        pickle::chain(slf)
    }

    /// Number of tokens accepted, less those rolled back.
    #[getter]
    fn accepted(&self) -> usize {
        self.inner.accepted()
    }

    fn __repr__(&self) -> String {
        let samplers = self.inner.describe().replace(" -> ", ", ");
        let rule = self.inner.rule().map_or(String::new(), |r| format!(" adapting by {}", r.describe()));
        let mode = if self.inner.mode() == Mode::Parity { " in parity mode" } else { "" };
        format!("Chain([{samplers}]){mode}{rule}")
    }
}

/// The chain that `build` makes of `start` with these keywords.
fn preset(
    start: Params,
    keywords: Option<&Bound<'_, PyDict>>,
    build: impl FnOnce(&Params) -> logitree::Result<Chain>,
) -> PyResult<PyChain> {
    build(&params_of(start, keywords)?).map(PyChain::from).map_err(to_py)
}

/// Parameters to be changed, from keywords.
pub fn settings(params: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<Setting>> {
    let setting = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        let value = values::setting(&value, &name)?;
        Ok((name.into(), value))
    };
    params.into_iter().flatten().map(setting).collect()
}

/// Adds the classes and functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyChain>()?;
    m.add_class::<PyEffect>()?;
    m.add_class::<PyMeasures>()?;
    m.add_class::<PySteering>()?;
    m.add_class::<adapt::PyEntropyRule>()?;
    m.add_class::<adapt::PyBurst>()?;
    vocabulary::register(m)?;
    token_history::register(m)?;
    batch::register(m)?;
    custom::register(m)?;
    pickle::register(m)?;
    samplers::register(m)
}
