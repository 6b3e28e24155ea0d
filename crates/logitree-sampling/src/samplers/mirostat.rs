//! mirostat: keeps as many of the best candidates as hold the surprisal of the drawn tokens near tau.
//!
//! Basu, Ramachandran, Keskar, Varshney: "Mirostat: A Neural Text Decoding Algorithm that Directly Controls
//! Perplexity", ICLR 2021. The exponent of Zipf's law is estimated from the best m candidates, the number to keep
//! from that; all of it in f32, as llama.cpp (src/llama-sampler.cpp) has it. Selects. The control loop is shared
//! with mirostat_v2.

use crate::reference::{libstdcxx, Reference, TokenArray};
use crate::rng::{Draws, Seed};
use crate::undo::Undo;
use crate::Result;
use crate::{arguments, check, finite, state, Arguments, Candidates, Sampler, StateReader, StateWriter};

/// The loop of both mirostats: draws among what is left, and moves mu by how far the surprisal is from tau.
#[derive(Debug, Clone)]
pub(super) struct Control {
    pub(super) tau: f32,
    pub(super) eta: f32,
    pub(super) mu: Undo,
    draws: Draws,
    cumulative: Vec<f64>,
}

impl Control {
    pub(super) fn new(name: &str, tau: f32, eta: f32, seed: Seed, stream: u32) -> Result<Self> {
        let initial = finite(name, "2 * tau", 2.0 * tau)?;
        let draws = Draws::new(seed.checked()?, stream);
        Ok(Control { tau, eta, mu: Undo::new(initial), draws, cumulative: Vec::new() })
    }

    /// Takes tau and eta of `new`; mu follows tau if nothing was accepted.
    pub(super) fn reconfigure(&mut self, new: Control) {
        if new.tau != self.tau {
            self.mu.set_initial(new.mu.now);
        }
        (self.tau, self.eta) = (new.tau, new.eta);
    }

    /// Draws one of the candidates, which are sorted or to be sorted later, selects it and learns from it.
    pub(super) fn draw(&mut self, candidates: &mut Candidates<'_>) {
        if !candidates.is_short() {
            let at = candidates.position_of(self.draws.double());
            let x = candidates.logit_at(at).unwrap_or(f32::NEG_INFINITY);
            candidates.select(at);
            return self.learn((f64::from(x) - candidates.log_sum()).exp() as f32);
        }
        let mut sum = 0.0f32;
        let probabilities = candidates.exponentials(|e| sum += e);
        probabilities.iter_mut().for_each(|p| *p /= sum);
        let weights = probabilities.iter().copied();
        let at = libstdcxx::discrete(weights, &mut self.cumulative, || self.draws.double());
        let p = probabilities[at];
        // The caller sees these: the f32 sum of many small terms, used for the draw, is off by more than 1e-6.
        let sum: f64 = probabilities.iter().copied().map(f64::from).sum();
        probabilities.iter_mut().for_each(|p| *p = (f64::from(*p) / sum) as f32);
        candidates.normalised();
        candidates.select(at);
        self.learn(p);
    }

    /// The same, as llama.cpp does it.
    pub(super) fn draw_reference(&mut self, array: &mut TokenArray) {
        array.softmax(true);
        if array.fault.is_some() {
            return;
        }
        let weights = array.data.iter().map(|c| c.p);
        let at = libstdcxx::discrete(weights, &mut array.cumulative, || self.draws.double());
        array.selected = Some(at);
        self.learn(array.data[at].p);
    }

    /// Moves mu after a draw of probability `p`. It stays finite, however large eta is; a probability of 0, as in
    /// parity mode after a division by an infinite sum, changes nothing.
    pub(super) fn learn(&mut self, p: f32) {
        let step = self.eta * (-p.log2() - self.tau);
        if !step.is_nan() {
            self.mu.now = (self.mu.now - step).clamp(f32::MIN, f32::MAX);
        }
    }

    pub(super) fn accept(&mut self) {
        self.draws.accept();
        self.mu.accept();
    }

    pub(super) fn rollback(&mut self, n: usize) {
        self.draws.rollback(n);
        self.mu.rollback(n);
    }

    pub(super) fn reset(&mut self) {
        self.draws.reset();
        self.mu.reset();
    }

    pub(super) fn seed(&self) -> Seed {
        self.draws.seed()
    }

    pub(super) fn resequence(&mut self, sequence: u32) {
        self.draws.resequence(sequence);
    }

    pub(super) fn save(&self, state: &mut StateWriter) {
        self.draws.save(state);
        self.mu.save(state);
    }

    pub(super) fn load(&mut self, state: &mut StateReader<'_>) -> Result<()> {
        self.draws.load(state)?;
        self.mu.load(state)
    }
}

/// The sum of exp(logit - max). Few candidates are sorted, and summed as llama.cpp does: f32, the best first. Many
/// are not; the f64 sum of many differs from llama.cpp's by its rounding (1e-5 of it at 128,256).
pub(super) fn mass(candidates: &mut Candidates<'_>) -> f32 {
    let few = candidates.is_short() || candidates.is_sorted();
    if few {
        candidates.sort();
    }
    let max = candidates.max();
    if few {
        return candidates.logits().iter().fold(0.0, |sum, x| sum + (x - max).exp());
    }
    candidates.weight() as f32
}

/// Mirostat with its estimate of Zipf's exponent.
#[derive(Debug, Clone)]
pub struct Mirostat {
    n_vocab: Option<i32>,
    m: i32,
    control: Control,
}

impl Mirostat {
    /// Which of a seed's counter-based streams is mirostat's.
    const STREAM: u32 = 2;

    /// Aims at a surprisal of `tau` bits and corrects by `eta` of the error; `m` candidates tell the exponent.
    /// `n_vocab` is a number of the formula: `None` takes the number of candidates of the step.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if tau, twice tau or eta is not finite, if m or n_vocab is below 1, or for a seed
    /// that the generator does not take.
    pub fn new(n_vocab: Option<i32>, tau: f32, eta: f32, m: i32, seed: Seed) -> Result<Self> {
        check("mirostat", [n_vocab.into(), tau.into(), eta.into(), m.into()])?;
        Ok(Mirostat { n_vocab, m, control: Control::new("mirostat", tau, eta, seed, Self::STREAM)? })
    }

    /// How many of `n` candidates to keep, the best of them having these probabilities, in order.
    fn keep(&self, n: usize, best: impl Iterator<Item = f32>) -> usize {
        let (mut products, mut squares) = (0.0f32, 0.0f32);
        let mut last = None;
        for (p, rank) in best.take(self.m as usize).zip(0u32..) {
            if let Some(before) = last.replace(p) {
                let t = ((rank + 1) as f32 / rank as f32).ln();
                let b = (before / p).ln();
                products += t * b;
                squares += t * t;
            }
        }
        let s = products / squares;
        let epsilon = s - 1.0;
        let n_vocab = self.n_vocab.unwrap_or(n as i32) as f32;
        let k = ((epsilon * 2.0f32.powf(self.control.mu.now)) / (1.0 - n_vocab.powf(-epsilon))).powf(1.0 / s);
        // A value outside int's range converts to the least int on x86-64, and hence to 1.
        let k = if (-2_147_483_648.0..2_147_483_648.0).contains(&k) { k as i32 } else { i32::MIN };
        (k.max(1) as usize).min(n)
    }
}

arguments! {
    Mirostat, s => s.n_vocab, s.control.tau, s.control.eta, s.m, s.control.seed();

    fn reconfigure(&mut self, a: &Arguments) -> Result<()> {
        let new = Mirostat::from_arguments(a)?;
        self.m = new.m;
        self.control.reconfigure(new.control);
        Ok(())
    }
}

impl Sampler for Mirostat {
    fn name(&self) -> &'static str {
        "mirostat"
    }

    state!(control);

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let sum = mass(candidates);
        let (n, max) = (candidates.len(), candidates.max());
        let p = |x: f32| (x - max).exp() / sum;
        let k = if candidates.is_sorted() {
            self.keep(n, candidates.logits().iter().map(|&x| p(x)))
        } else {
            self.keep(n, candidates.best(self.m as usize).iter().map(|&x| p(x)))
        };
        candidates.top(k);
        self.control.draw(candidates);
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn forced(&mut self) {
        self.control.learn(1.0);
    }

    fn selects(&self) -> bool {
        true
    }
}

impl Reference for Mirostat {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        array.softmax(true);
        if array.fault.is_some() {
            return;
        }
        let k = self.keep(array.data.len(), array.data.iter().map(|c| c.p));
        array.top_k(k as i32);
        self.control.draw_reference(array);
    }
}
