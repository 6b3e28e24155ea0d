//! edt: divides the logits by a temperature that rises with the entropy.
//!
//! Zhang, Bao, Huang: "EDT: Improving Large Language Models' Generation by Entropy-based Dynamic Temperature Sampling",
//! 2024, arXiv:2403.14541: `T = t0 * n^(theta / H)`, H the entropy in nats, n = 0.8. llama.cpp's temp_ext, which also
//! looks at the entropy, has another formula.

use crate::distribution::Weight;
use crate::Result;
use crate::{arguments, check, Candidates, OnRejected, Sampler, Temp};

/// The temperature as a function of the entropy.
#[derive(Debug, Clone, Copy)]
pub struct Edt {
    t0: f32,
    theta: f32,
    n: f32,
}

impl Edt {
    /// The paper's n.
    pub const N: f32 = 0.8;

    /// `t0` is the temperature at infinite entropy (0 or less is greedy), `theta` how fast it falls with the entropy
    /// (0: it is constant).
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if a number is not finite, `theta` is below 0, or `n` is not above 0 and at most 1.
    pub fn new(t0: f32, theta: f32, n: f32) -> Result<Self> {
        check("edt", [t0.into(), theta.into(), n.into()])?;
        Ok(Edt { t0, theta, n })
    }

    /// The temperature at an entropy in nats.
    fn temperature(&self, entropy: f64) -> f32 {
        if self.theta == 0.0 || self.n == 1.0 {
            return self.t0;
        }
        // Without any entropy the exponent is infinite and the temperature 0.
        (f64::from(self.t0) * f64::from(self.n).powf(f64::from(self.theta) / entropy)) as f32
    }
}

arguments!(Edt, s => s.t0, s.theta, s.n);

impl Sampler for Edt {
    fn name(&self) -> &'static str {
        "edt"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        let t = self.temperature(Weight::of(candidates).entropy());
        if t.is_finite() && t != 1.0 {
            Temp { t }.apply(candidates);
        }
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn is_noop(&self) -> bool {
        self.t0 == 1.0 && (self.theta == 0.0 || self.n == 1.0)
    }
}
