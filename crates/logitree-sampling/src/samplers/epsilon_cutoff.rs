//! epsilon_cutoff: keeps the candidates of at least a given probability.
//!
//! Hewitt, Manning, Liang: "Truncation Sampling as Language Model Desmoothing", EMNLP Findings 2022, arXiv:2210.15191.
//! The same candidates as `EpsilonLogitsWarper` of transformers keeps, ties with the last of `min_keep` included.

use crate::distribution::{keep_from, kth, Weight};
use crate::Result;
use crate::{arguments, check, Candidates, OnRejected, Sampler};

/// Keeps what has a probability of `epsilon` or more, in its order, and the `min_keep` best.
#[derive(Debug, Clone, Copy)]
pub struct EpsilonCutoff {
    epsilon: f32,
    min_keep: usize,
}

impl EpsilonCutoff {
    /// `epsilon <= 0` keeps all; the paper uses 3e-4 to 9e-4. `min_keep` counts as 1 if it is 0.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `epsilon` is not finite or not below 1.
    pub fn new(epsilon: f32, min_keep: usize) -> Result<Self> {
        check("epsilon_cutoff", [epsilon.into()])?;
        Ok(EpsilonCutoff { epsilon, min_keep: min_keep.max(1) })
    }
}

arguments!(EpsilonCutoff, s => s.epsilon, s.min_keep);

impl Sampler for EpsilonCutoff {
    fn name(&self) -> &'static str {
        "epsilon_cutoff"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.is_noop() {
            return;
        }
        let least = Weight::of(candidates).log_sum() + f64::from(self.epsilon).ln();
        let spared = kth(candidates, self.min_keep);
        keep_from(candidates, least.min(f64::from(spared)));
    }

    fn on_rejected(&self) -> OnRejected {
        OnRejected::Ignores
    }

    fn is_noop(&self) -> bool {
        self.epsilon <= 0.0
    }
}
