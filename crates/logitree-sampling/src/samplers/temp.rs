//! temp: divides the logits by the temperature. At or below 0 only the first maximum stays above -inf; the chain
//! continues, so that a later `dist` still draws.

use crate::reference::{Reference, TokenArray};
use crate::Result;
use crate::{arguments, check, Candidates, OnGreatest, OnRejected, Sampler, Step};

/// The temperature.
#[derive(Debug, Clone, Copy)]
pub struct Temp {
    pub(super) t: f32,
}

impl Temp {
    /// `t <= 0` is greedy; 1 changes nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `t` is not finite.
    pub fn new(t: f32) -> Result<Self> {
        check("temp", [t.into()])?;
        Ok(Temp { t })
    }
}

arguments!(Temp, s => s.t);

impl Sampler for Temp {
    fn name(&self) -> &'static str {
        "temp"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        // A temperature so small that the best logit overflows counts as 0.
        if self.t <= 0.0 || !(candidates.max() / self.t).is_finite() {
            candidates.keep_only_best();
        } else {
            candidates.divide(self.t);
        }
    }

    fn on_greatest(&self) -> OnGreatest {
        match self.t > 0.0 {
            true => OnGreatest::Keeps,
            false => OnGreatest::Leaves,
        }
    }

    fn on_rejected(&self) -> OnRejected {
        match self.t > 0.0 {
            true => OnRejected::Ignores,
            false => OnRejected::Adds,
        }
    }

    fn step(&self) -> Option<Step> {
        Some(Step::Temperature(self.t))
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn is_noop(&self) -> bool {
        self.t == 1.0
    }
}

impl Reference for Temp {
    fn apply_reference(&mut self, array: &mut TokenArray) {
        array.temper(self.t);
    }
}
