//! temp_ext (dynamic temperature): a temperature between t - delta and t + delta, the higher the flatter the
//! distribution is. With delta <= 0 it is temp.
//!
//! The temperature is `least + (most - least) * (entropy / ln n) ^ exponent`, n being the number of candidates.
//! Output sorted; one sole candidate is left alone. Source: llama.cpp, src/llama-sampler.cpp.

use crate::distribution::Weight;
use crate::reference::{Reference, TokenArray};
use crate::Result;
use crate::{arguments, check, finite, Candidates, OnGreatest, OnRejected, Sampler, Temp};

/// The temperature, how far it may go from there, and how the entropy is bent.
#[derive(Debug, Clone, Copy)]
pub struct TempExt {
    t: f32,
    delta: f32,
    exponent: f32,
}

impl TempExt {
    /// Between `max(0, t - delta)` and `t + delta`; `delta <= 0` is temp(t).
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if a number, or their sum, is not finite, or for an exponent below 0, which would
    /// ask for infinite temperatures.
    pub fn new(t: f32, delta: f32, exponent: f32) -> Result<Self> {
        finite("temp", "t", t)?;
        check("temp_ext", [t.into(), delta.into(), exponent.into()])?;
        finite("temp_ext", "t + delta", t + delta.max(0.0))?;
        Ok(TempExt { t, delta, exponent })
    }

    /// The temperature for `n` candidates of this entropy in nats, in f64.
    fn exact_temperature(&self, n: usize, entropy: f64) -> f32 {
        let (least, most) = (f64::from(self.t - self.delta).max(0.0), f64::from(self.t + self.delta));
        let share = (entropy / (n as f64).ln()).min(1.0);
        (least + (most - least) * share.powf(f64::from(self.exponent))) as f32
    }

    /// The temperature for `n` candidates of these probabilities, with llama.cpp's rounding.
    fn temperature(&self, n: usize, probabilities: impl Iterator<Item = f32>) -> f32 {
        let most_entropy = -(1.0 / n as f32).ln();
        let mut entropy = 0.0f32;
        for p in probabilities.filter(|&p| p > 0.0) {
            entropy -= p * p.ln();
        }
        let (least, most) = ((self.t - self.delta).max(0.0), self.t + self.delta);
        least + (most - least) * (entropy / most_entropy).powf(self.exponent)
    }
}

arguments!(TempExt, s => s.t, s.delta, s.exponent);

impl Sampler for TempExt {
    fn name(&self) -> &'static str {
        "temp_ext"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let mut t = self.t;
        if self.delta > 0.0 {
            let n = candidates.len();
            if n <= 1 {
                return;
            }
            candidates.sort_later();
            t = if candidates.is_short() {
                let mut sum = 0.0f32;
                let exponentials = candidates.exponentials(|e| sum += e);
                self.temperature(n, exponentials.iter().map(|e| e / sum))
            } else {
                self.exact_temperature(n, Weight::of(candidates).entropy())
            };
        }
        if t.is_finite() {
            Temp { t }.apply(candidates);
        }
    }

    fn on_greatest(&self) -> OnGreatest {
        match self.delta > 0.0 {
            true => OnGreatest::Unknown,
            false if self.t > 0.0 => OnGreatest::Keeps,
            false => OnGreatest::Leaves,
        }
    }

    /// With a delta the number of candidates counts.
    fn on_rejected(&self) -> OnRejected {
        match self.delta > 0.0 {
            true => OnRejected::Counts,
            false if self.t > 0.0 => OnRejected::Ignores,
            false => OnRejected::Adds,
        }
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn is_noop(&self) -> bool {
        self.delta <= 0.0 && self.t == 1.0
    }
}

impl Reference for TempExt {
    /// llama.cpp also computes the new probabilities, in double, which no sampler reads.
    fn apply_reference(&mut self, array: &mut TokenArray) {
        let n = array.data.len();
        if self.delta <= 0.0 {
            return array.temper(self.t);
        }
        if n <= 1 {
            return;
        }
        array.softmax(true);
        if array.fault.is_none() {
            let t = self.temperature(n, array.data.iter().map(|c| c.p));
            array.temper(t);
        }
    }
}
