//! eta_cutoff: keeps the candidates of at least a probability that falls as the entropy rises.
//!
//! Hewitt, Manning, Liang: "Truncation Sampling as Language Model Desmoothing", EMNLP Findings 2022, arXiv:2210.15191:
//! `eta = min(epsilon, sqrt(epsilon) * exp(-H(p)))`. The same candidates as `EtaLogitsWarper` of transformers keeps,
//! ties with the last of `min_keep` included.

use crate::distribution::{keep_from, kth, Weight};
use crate::Result;
use crate::{arguments, check, Candidates, OnRejected, Sampler};

/// Keeps what has a probability of eta or more, in its order, and the `min_keep` best.
#[derive(Debug, Clone, Copy)]
pub struct EtaCutoff {
    epsilon: f32,
    min_keep: usize,
}

impl EtaCutoff {
    /// `epsilon <= 0` keeps all; the paper uses 3e-4 to 4e-3. `min_keep` counts as 1 if it is 0.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Sampling`] if `epsilon` is not finite or not below 1.
    pub fn new(epsilon: f32, min_keep: usize) -> Result<Self> {
        check("eta_cutoff", [epsilon.into()])?;
        Ok(EtaCutoff { epsilon, min_keep: min_keep.max(1) })
    }
}

arguments!(EtaCutoff, s => s.epsilon, s.min_keep);

impl Sampler for EtaCutoff {
    fn name(&self) -> &'static str {
        "eta_cutoff"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        if self.is_noop() {
            return;
        }
        let weight = Weight::of(candidates);
        let log = f64::from(self.epsilon).ln();
        let least = weight.log_sum() + log.min(log / 2.0 - weight.entropy());
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
