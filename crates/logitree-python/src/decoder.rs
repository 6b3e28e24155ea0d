//! Decoder and Step for Python.

use std::sync::Arc;

use logitree::decoder::{Decoder, Finish, Stop, Then};
use logitree::mask::words_for;
use logitree::trace::Step;
use logitree::TokenId;
use numpy::PyArray1;
use pyo3::exceptions::{PyDeprecationWarning, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::allowed::PyAllowedTokens;
use crate::base::Constraint;
use crate::errors::to_py;
use crate::logits::with_logits;
use crate::matcher::PyMatcher;
use crate::sampling::{adapt, settings, steering, whole, PyChain};
use crate::skeleton::{marks, Mark};
use crate::vocabulary::{token_id, PyVocabulary};

/// One decoded token and what is known about how it came.
///
/// Attributes: `token`, `source` ("sampled", "forced" or "external"), `forced`, `allowed` (number of allowed tokens),
/// `allowed_tokens` (their ids, ascending, where the constraint lists at most 256 of them, else None),
/// `p_model`, `surprisal` and `entropy` (the model's own distribution, nats; None where no logits were looked at),
/// `p` (after the chain; None where it did not run), `candidates` (the five most likely after the
/// chain: id, probability), `alternatives` (what could have come, and what cut it), `effects` (one tuple per sampler:
/// name, candidates before, after, logits changed, probability mass cut), `temperature` (what a rule of the grammar
/// asked for, else None), `mass_allowed`, `mask_micros`, `micros`.
#[pyclass(frozen, name = "Step", module = "logitree")]
pub struct PyStep(Step);

#[pymethods]
impl PyStep {
    /// The token's id.
    #[getter]
    fn token(&self) -> TokenId {
        self.0.token
    }

    /// How it came: "sampled" (picked by the chain), "forced" (the only allowed token), "external" (passed in).
    #[getter]
    fn source(&self) -> &'static str {
        self.0.source.name()
    }

    /// Whether `source` is "forced".
    #[getter]
    fn forced(&self) -> bool {
        self.0.source == logitree::trace::Source::Forced
    }

    /// Number of allowed tokens at this step.
    #[getter]
    fn allowed(&self) -> usize {
        self.0.allowed
    }

    /// Ids of the allowed tokens, ascending, where the constraint lists at most 256 of them; else None.
    #[getter]
    fn allowed_tokens(&self) -> Option<Vec<TokenId>> {
        self.0.allowed_tokens.clone()
    }

    /// Probability by the model's own distribution (all tokens); None where no logits were looked at.
    #[getter]
    fn p_model(&self) -> Option<f64> {
        self.0.model.map(|m| m.probability)
    }

    /// `-ln p_model`, in nats; None where no logits were looked at.
    #[getter]
    fn surprisal(&self) -> Option<f64> {
        self.0.model.map(|m| m.surprisal)
    }

    /// Entropy of the model's own distribution, in nats; None where no logits were looked at.
    #[getter]
    fn entropy(&self) -> Option<f64> {
        self.0.model.map(|m| m.entropy)
    }

    /// Probability after the chain; None where the chain did not run.
    #[getter]
    fn p(&self) -> Option<f64> {
        self.0.probability
    }

    /// The five most likely candidates after the chain: (id, probability).
    #[getter]
    fn candidates(&self) -> Vec<(TokenId, f32)> {
        self.0.candidates.clone()
    }

    /// The model's eight likeliest tokens, the `candidates` and the token itself, each once, by descending probability
    /// of the model: (id, probability by the model's own distribution, probability after the chain or None, what cut
    /// it: "constraint", "steering" or a sampler's name, or None).
    ///
    /// Empty where no logits were looked at.
    #[getter]
    fn alternatives(&self) -> Vec<(TokenId, f64, Option<f32>, Option<&'static str>)> {
        self.0.alternatives.iter().map(|a| (a.token, a.model, a.left, a.cut_by)).collect()
    }

    /// Probability of the allowed tokens together, by the model's own distribution; None where no logits were looked
    /// at.
    #[getter]
    fn mass_allowed(&self) -> Option<f64> {
        self.0.mass_allowed
    }

    /// The temperature that the constraint asked for (`temperature=` of a grammar's rule); None where it asked for none, or
    /// the chain did not run.
    #[getter]
    fn temperature(&self) -> Option<f32> {
        self.0.temperature
    }

    /// Of `micros`, the time that finding the allowed tokens took.
    #[getter]
    fn mask_micros(&self) -> f64 {
        self.0.mask_micros
    }

    /// One tuple per sampler: name, candidates before, after, logits changed, probability mass cut (0 to 1).
    ///
    /// If the chain is steered, "steering" is the first.
    #[getter]
    fn effects(&self) -> Vec<(&'static str, usize, usize, usize, f64)> {
        self.0.effects.iter().map(|e| (e.sampler, e.before, e.after, e.changed, e.mass_cut)).collect()
    }

    /// Wall-clock time of the step in microseconds, the chain's bookkeeping for `effects` included.
    #[getter]
    fn micros(&self) -> f64 {
        self.0.micros
    }

    fn __repr__(&self) -> String {
        format!("<Step: {}>", self.0)
    }
}

/// Decodes one sequence: constraint, chain, history, stop conditions and trace.
///
/// `matcher` constrains the whole output and is copied: the caller's own does not move. `max_tokens` counts the output
/// only. `stop`: texts that end the output where they appear. `stop_at_end_tokens`: the vocabulary's end-of-generation ids end
/// it. `trace` records every step. `logprobs`: each step has its token's log-probability and so many of the likeliest
/// tokens (`last_logprobs`); None: it does not. `span_chains`: chains that pick the tokens of single spans of a skeleton, by the spans'
/// numbers; None: those that the skeleton says. Raises ConstraintError for a matcher of a larger vocabulary.
///
/// Logits are read in place from any C-contiguous buffer of float32, float16 or bfloat16 with at least
/// `len(vocabulary)` values, and never written.
#[pyclass(name = "Decoder", module = "logitree")]
pub struct PyDecoder {
    /// The core's decoder.
    pub inner: Decoder,
}

impl PyDecoder {
    fn of(inner: Decoder) -> PyDecoder {
        PyDecoder { inner }
    }

    /// Runs `work` on the decoder: with the GIL where the work is short or calls Python, without it otherwise.
    fn work<T: Send>(&mut self, py: Python<'_>, call: impl FnOnce(&mut Decoder) -> T + Send) -> T {
        if self.inner.is_ready() || self.inner.is_foreign() {
            call(&mut self.inner)
        } else {
            py.detach(|| call(&mut self.inner))
        }
    }

    /// Shows the warnings since the last call.
    pub fn warn(&mut self, py: Python<'_>) -> PyResult<()> {
        if !self.inner.has_warnings() {
            return Ok(());
        }
        for text in self.inner.take_warnings() {
            let text = std::ffi::CString::new(text)?;
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2)?;
        }
        Ok(())
    }
}

#[pymethods]
impl PyDecoder {
    #[new]
    #[pyo3(signature = (vocabulary, chain, matcher=None, *, trace=false, max_tokens=None, stop=Vec::new(), stop_at_end_tokens=true, span_chains=None, logprobs=None, stop_at_eog=None))]
    #[allow(clippy::too_many_arguments)] // one each of Python's keywords
    fn new(
        py: Python<'_>,
        vocabulary: &PyVocabulary,
        chain: &PyChain,
        matcher: Option<&Bound<'_, PyAny>>,
        trace: bool,
        max_tokens: Option<usize>,
        stop: Vec<Text>,
        stop_at_end_tokens: bool,
        span_chains: Option<&Bound<'_, PyDict>>,
        logprobs: Option<usize>,
        stop_at_eog: Option<bool>,
    ) -> PyResult<Self> {
        if stop_at_eog.is_some() {
            let message = c"Decoder(stop_at_eog=) is stop_at_end_tokens= now";
            PyErr::warn(py, &py.get_type::<PyDeprecationWarning>(), message, 1)?;
        }
        let stop_at_end_tokens = stop_at_eog.unwrap_or(stop_at_end_tokens);
        let stop = stop.into_iter().map(|s| s.0).collect();
        let stop = Stop::new(max_tokens, stop, stop_at_end_tokens).map_err(to_py)?;
        let constraint = matcher.map(Constraint::read).transpose()?;
        let own = match (&constraint, span_chains) {
            (Some(constraint), None) => constraint.span_chains(PyChain::from(chain.inner.clone()))?,
            _ => None,
        };
        let matcher = constraint.map(|it| it.fork(&vocabulary.0)).transpose()?;
        let mut inner =
            Decoder::new(Arc::clone(&vocabulary.0), chain.inner.clone(), matcher, stop).map_err(to_py)?;
        for (span, chain) in span_chains.or(own.as_ref()).into_iter().flatten() {
            let chain = chain.cast::<PyChain>()?.try_borrow()?.inner.clone();
            inner.set_span_chain(&[span.extract()?], chain).map_err(to_py)?;
        }
        inner.set_trace(trace);
        inner.list_likeliest(logprobs);
        Ok(PyDecoder::of(inner))
    }

    /// One step in one native call: allowed tokens, chain, pick, acceptance. Returns the token.
    ///
    /// `logits`: float32, float16 or bfloat16, shape [n], n at least `len(vocabulary)`, as `Chain` reads them.
    /// They are read in place and never written. Values past the vocabulary (padding) are ignored, and all of them
    /// are where one token is allowed. Raises StateError when decoding is over; LogitsError for another dtype or shape,
    /// too few values, NaN or +inf among the allowed tokens, or nothing to choose from. The decoder is unchanged after
    /// an error.
    fn step(&mut self, py: Python<'_>, logits: &Bound<'_, PyAny>) -> PyResult<TokenId> {
        let token = with_logits(logits, |logits| self.work(py, |inner| inner.step(logits)))?;
        self.warn(py)?;
        Ok(token)
    }

    /// The forced tokens: a run of tokens that are each the only one allowed. Changes nothing.
    fn forced_tokens(&mut self, py: Python<'_>) -> PyResult<Vec<TokenId>> {
        let mut run = Vec::new();
        self.work(py, |inner| inner.forced(&mut run)).map_err(to_py)?;
        Ok(run)
    }

    /// Accepts the forced tokens and returns them. They need no forward pass of their own.
    fn take_forced(&mut self, py: Python<'_>) -> PyResult<Vec<TokenId>> {
        let mut run = Vec::new();
        self.work(py, |inner| inner.take_forced(&mut run)).map_err(to_py)?;
        self.warn(py)?;
        Ok(run)
    }

    /// Takes a token from outside. Raises TokenError if it is not allowed here, StateError when decoding is over.
    fn accept(&mut self, py: Python<'_>, token: i64) -> PyResult<()> {
        let token = token_id(token)?;
        self.work(py, |inner| inner.accept(token)).map_err(to_py)?;
        self.warn(py)
    }

    /// Whether `steer` has banned the token: `step` never picks it, and `accept` takes it all the same.
    fn vetoes(&self, token: i64) -> PyResult<bool> {
        Ok(self.inner.vetoes(token_id(token)?))
    }

    /// Counts the prompt in the penalties, without touching the constraint.
    ///
    /// Raises StateError after the first token, TokenError for an id outside the vocabulary.
    fn prime(&mut self, prompt: Vec<i64>) -> PyResult<()> {
        let prompt = prompt.into_iter().map(token_id).collect::<PyResult<Vec<_>>>()?;
        self.inner.prime(&prompt).map_err(to_py)
    }

    /// Forgets the last `n` tokens: constraint, chain and its draws, history and trace are as before them.
    ///
    /// Raises StateError if there are fewer; the decoder is unchanged then.
    #[pyo3(signature = (n=1))]
    fn rollback(&mut self, n: usize) -> PyResult<()> {
        self.inner.rollback(n).map_err(to_py)
    }

    /// An independent copy in the same state.
    fn fork(&self) -> Self {
        PyDecoder::of(self.inner.fork())
    }

    /// The same as `fork`, by llama.cpp's name.
    #[pyo3(name = "clone")]
    fn copied(&self) -> Self {
        self.fork()
    }

    fn __copy__(&self) -> Self {
        self.fork()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.fork()
    }

    /// `n` decoders in this state for several answers to one prompt: their chains draw as consecutive sequences of
    /// the seed, starting with this decoder's own. If the chain has not drawn yet, the first equals this decoder.
    ///
    /// With `rng="philox"` the sequences of all seeds differ. With other generators sequence i of a seed is sequence 0
    /// of `seed + i`: use seeds far apart. Raises StateError after the first token, SamplingError above 2**16.
    fn sequences(&self, n: &Bound<'_, PyAny>) -> PyResult<Vec<PyDecoder>> {
        let n = whole(n, "n", 0, 1 << 16)?;
        Ok(self.inner.sequences(n).map_err(to_py)?.into_iter().map(PyDecoder::of).collect())
    }

    /// Returns to the state it was built with, without steering.
    fn reset(&mut self) {
        self.inner.reset();
    }

    /// Constrains the next tokens by a copy of `matcher`, in place of the constraint that runs now, until `clear`.
    ///
    /// When it ends, the output continues without a constraint (`then="continue"`) or ends too (`then="stop"`). A
    /// constraint that has ended and is not cleared within 500 tokens of its activation is dropped with a UserWarning;
    /// one that has not ended is never dropped.
    #[pyo3(signature = (matcher, *, then="continue"))]
    fn activate(&mut self, matcher: &Bound<'_, PyAny>, then: &str) -> PyResult<()> {
        let then = match then {
            "continue" => Then::Continue,
            "stop" => Then::Stop,
            other => {
                return Err(PyValueError::new_err(format!(
                    "then is {other:?}, expected 'continue' or 'stop'"
                )))
            }
        };
        let matcher = Constraint::read(matcher)?.fork(self.inner.vocabulary())?;
        self.inner.activate(matcher, then).map_err(to_py)
    }

    /// Ends whatever was activated: the output continues under the constraint that the decoder was made with, or without
    /// one. That constraint has seen all tokens. Does nothing if nothing was activated.
    ///
    /// Raises TokenError if the decoder's own constraint does not allow what was written; the activated one stays then.
    fn clear(&mut self) -> PyResult<()> {
        self.inner.clear().map_err(to_py)
    }

    /// Steers the chain from the next step on, as `Chain.steer`.
    ///
    /// A forced token that is vetoed is neither forced nor picked: the step raises LogitsError.
    #[pyo3(signature = (edits))]
    fn steer(&mut self, edits: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        steering::steer(edits, |steering| self.inner.steer(steering))
    }

    /// Lets a rule pick the chain's parameters for each step, as `Chain.adapt`.
    #[pyo3(signature = (rule))]
    fn adapt(&mut self, rule: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.inner.adapt(adapt::rule_of(rule)?).map_err(to_py)
    }

    /// Changes parameters of the chain from the next step on, as `Chain.set`.
    #[pyo3(signature = (**params))]
    fn set(&mut self, params: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        self.inner.set_parameters(&settings(params)?).map_err(to_py)
    }

    /// The tokens that may come next; all where nothing constrains the output.
    fn allowed(&mut self, py: Python<'_>) -> PyResult<PyAllowedTokens> {
        let size = self.inner.vocabulary().len();
        let copy = |inner: &mut Decoder| Ok(PyAllowedTokens::new(inner.allowed()?, size));
        self.work(py, copy).map_err(to_py)
    }

    /// Deprecated: `allowed().mask()`. The allowed tokens: int32 words, shape [ceil(len(vocabulary) / 32)], least significant bit first.
    fn mask<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let size = self.inner.vocabulary().len();
        let mut words = vec![0; words_for(size)];
        self.work(py, |inner| inner.allowed().map(|allowed| allowed.write(size, &mut words)))
            .map_err(to_py)?;
        Ok(PyArray1::from_iter(py, words.into_iter().map(|word: u32| word as i32)))
    }

    /// The vocabulary it decodes over.
    #[getter]
    fn vocabulary(&self) -> PyVocabulary {
        PyVocabulary(Arc::clone(self.inner.vocabulary()))
    }

    /// The tokens accepted so far, without a primed prompt.
    #[getter]
    fn tokens(&self) -> Vec<TokenId> {
        self.inner.tokens().to_vec()
    }

    /// What is settled of a skeleton's spans after the first `tokens` tokens; None where no skeleton has begun.
    ///
    /// The number of the decoder's tokens before the skeleton's; the marks from number `seen` on; and the byte up to which
    /// the text is certain to belong to the open spans. A mark is "start", "end" or "item", the span's number, the byte of
    /// the skeleton's text, and at the end of an enum the number of its value. `ended`: the text ends after all
    /// tokens, and open spans with it.
    #[pyo3(signature = (tokens, seen=0, *, ended=false))]
    fn span_marks(&self, tokens: usize, seen: usize, ended: bool) -> Option<(usize, Vec<Mark>, usize)> {
        let (before, progress) = self.inner.spans()?;
        if ended {
            let tracker = progress.ended();
            return Some((before, marks(tracker.marks(seen)), tracker.length()));
        }
        let tracker = progress.after(tokens.checked_sub(before)?);
        Some((before, marks(tracker.marks(seen)), tracker.certain()))
    }

    /// Whether decoding is over.
    #[getter]
    fn is_finished(&self) -> bool {
        self.inner.finish().is_some()
    }

    /// Why decoding is over: None, "constraint", "end_of_generation", "stop" or "max_tokens".
    #[getter]
    fn finish_reason(&self) -> Option<&'static str> {
        self.inner.finish().map(Finish::name)
    }

    /// Index of the stop text that ended decoding, or None.
    #[getter]
    fn stop_index(&self) -> Option<usize> {
        match self.inner.finish() {
            Some(Finish::StopString(at)) => Some(at),
            _ => None,
        }
    }

    /// A copy of the running constraint in its present state, or None.
    #[getter]
    fn matcher(&self, py: Python<'_>) -> PyResult<Option<PyMatcher>> {
        let Some(running) = self.inner.matcher() else { return Ok(None) };
        Ok(Some(PyMatcher::of(running.fork(), Some(Py::new(py, self.vocabulary())?))))
    }

    /// A copy of the chain in its present state.
    #[getter]
    fn chain(&self) -> PyChain {
        self.inner.chain().clone().into()
    }

    /// The steps recorded (with `trace=True`), oldest first.
    #[getter]
    fn trace(&self) -> Vec<PyStep> {
        self.inner.trace().iter().cloned().map(PyStep).collect()
    }

    /// The last `n` steps recorded (with `trace=True`), oldest first; fewer where there are not so many.
    fn last_steps(&self, n: usize) -> Vec<PyStep> {
        let trace = self.inner.trace();
        trace[trace.len().saturating_sub(n)..].iter().cloned().map(PyStep).collect()
    }

    /// The last step recorded (with `trace=True`), or None.
    #[getter]
    fn last(&self) -> Option<PyStep> {
        self.inner.trace().last().cloned().map(PyStep)
    }

    /// How likely the last token was (with `logprobs`); None where it came by no step.
    ///
    /// Its log-probability by the model's own distribution over all tokens, the likeliest tokens of that with theirs,
    /// its log-probability in what constraint and chain left, and the likeliest of that. In nats; -inf where it could
    /// not come.
    #[getter]
    fn last_logprobs(&self) -> Option<(f64, Likeliest, f64, Likeliest)> {
        let both = self.inner.likelihoods()?.clone();
        Some((both.model.token, both.model.top, both.left.token, both.left.top))
    }

    /// Seconds that steps and forced tokens have spent on finding what is allowed; a step that has it at once counts nothing.
    #[getter]
    fn mask_seconds(&self) -> f64 {
        self.inner.mask_time().as_secs_f64()
    }

    fn __repr__(&self) -> String {
        let state = self.inner.finish().map_or("running", Finish::name);
        format!("<Decoder: {} tokens, {state}>", self.inner.tokens().len())
    }
}

/// Tokens with their log-probabilities, descending.
type Likeliest = Vec<(TokenId, f64)>;

/// Text or bytes, as bytes.
struct Text(Vec<u8>);

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(obj: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = obj.extract::<&str>() {
            return Ok(Text(text.as_bytes().to_vec()));
        }
        Ok(Text(obj.extract::<&[u8]>()?.to_vec()))
    }
}

/// Adds the classes to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyStep>()?;
    m.add_class::<PyDecoder>()
}
