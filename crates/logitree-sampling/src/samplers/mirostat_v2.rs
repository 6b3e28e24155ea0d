//! mirostat_v2: keeps the candidates of at most mu bits of surprisal, and moves mu so that the surprisal of what is
//! drawn stays near tau.
//!
//! Basu et al., ICLR 2021, without the estimate of Zipf's exponent; llama.cpp, src/llama-sampler.cpp. Selects. The
//! fast path sorts only what may stay: a surprisal of at most mu is a logit of at least `log Z - mu ln 2`.

use super::mirostat::{mass, Control};
use crate::reference::{Reference, TokenArray};
use crate::rng::Seed;
use crate::Result;
use crate::{arguments, check, state, Arguments, Candidates, OnRejected, Sampler};
use std::f64::consts::LN_2;

/// Logits this close below the bound are looked at, too: wider than the rounding of f32 exponentials.
const MARGIN: f64 = 1e-3;

/// Mirostat 2.0.
#[derive(Debug, Clone)]
pub struct MirostatV2 {
    control: Control,
}

impl MirostatV2 {
    /// Which of a seed's counter-based streams is mirostat_v2's.
    const STREAM: u32 = 3;

    /// Aims at a surprisal of `tau` bits and corrects by `eta` of the error. mu begins at twice tau.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if tau, twice tau or eta is not finite, or for a seed that the generator does
    /// not take.
    pub fn new(tau: f32, eta: f32, seed: Seed) -> Result<Self> {
        check("mirostat_v2", [tau.into(), eta.into()])?;
        Ok(MirostatV2 { control: Control::new("mirostat_v2", tau, eta, seed, Self::STREAM)? })
    }

    /// How many of these probabilities, in order, come before the first that is too surprising; at least 1.
    fn keep(&self, probabilities: impl Iterator<Item = f32>) -> usize {
        let mu = self.control.mu.now;
        probabilities.take_while(|p| -p.log2() <= mu).count().max(1)
    }
}

arguments! {
    MirostatV2, s => s.control.tau, s.control.eta, s.control.seed();

    fn reconfigure(&mut self, a: &Arguments) -> Result<()> {
        self.control.reconfigure(MirostatV2::from_arguments(a)?.control);
        Ok(())
    }
}

impl Sampler for MirostatV2 {
    fn name(&self) -> &'static str {
        "mirostat_v2"
    }

    state!(control);

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let sum = mass(candidates);
        let max = candidates.max();
        if !candidates.is_sorted() {
            let log_z = f64::from(max) + f64::from(sum).ln();
            let bound = log_z - f64::from(self.control.mu.now) * LN_2;
            // Of few, each is looked at again below, with llama.cpp's rounding.
            candidates.keep_at_least_later(((bound - MARGIN) as f32).min(max));
            if !candidates.is_short() {
                if bound > f64::from(max) {
                    candidates.top(1);
                } else {
                    candidates.keep_at_least_later(bound as f32);
                }
            }
        }
        if candidates.is_sorted() {
            let kept = self.keep(candidates.logits().iter().map(|x| (x - max).exp() / sum));
            candidates.truncate(kept);
        }
        self.control.draw(candidates);
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
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

impl Reference for MirostatV2 {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        array.softmax(true);
        if array.fault.is_some() {
            return;
        }
        let kept = self.keep(array.data.iter().map(|c| c.p));
        array.data.truncate(kept);
        self.control.draw_reference(array);
    }
}
