//! logit_bias: adds a number to the logits of named tokens; -inf bans one.

use crate::reference::{Reference, TokenArray};
use crate::{none_left, within, Arguments, Candidates, FromArguments, OnRejected, Sampler, Value};
use crate::{Error, ErrorKind, Result, TokenId};
use std::sync::Arc;

const BANNED: &str = "logit_bias bans every candidate";

/// Additions by ascending token id.
#[derive(Debug, Clone, Default)]
pub struct LogitBias {
    biases: Arc<[(TokenId, f32)]>,
    bans: bool,
}

impl LogitBias {
    /// Adds each bias to its token's logit. Tokens that are not candidates are ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a bias of NaN or +inf, and for a token named twice.
    pub fn new(biases: &[(TokenId, f32)]) -> Result<Self> {
        let mut biases = biases.to_vec();
        biases.sort_unstable_by_key(|b| b.0);
        if let Some(twice) = biases.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(Error::new(ErrorKind::Sampling, format!("token {} is biased twice", twice[0].0))
                .help("add the two biases up"));
        }
        if let Some((id, bias)) = biases.iter().find(|b| b.1.is_nan() || b.1 == f32::INFINITY) {
            return Err(Error::new(ErrorKind::Sampling, format!("the bias of token {id} is {bias}"))
                .help("a bias is finite, or -inf to ban the token; to force tokens use a mask"));
        }
        let bans = biases.iter().any(|b| b.1 == f32::NEG_INFINITY);
        Ok(LogitBias { biases: biases.into(), bans })
    }
}

impl FromArguments for LogitBias {
    fn from_arguments(a: &Arguments) -> Result<Self> {
        LogitBias::new(&a.read::<Arc<_>>(0)?)
    }

    fn arguments(&self) -> Arguments {
        [Value::Biases(Arc::clone(&self.biases))].into()
    }
}

impl Sampler for LogitBias {
    fn name(&self) -> &'static str {
        "logit_bias"
    }

    fn apply(&mut self, candidates: &mut Candidates<'_>) {
        candidates.update(&self.biases, |x, &bias| {
            within(x + bias, x == f32::NEG_INFINITY || bias == f32::NEG_INFINITY)
        });
        if self.bans {
            candidates.fail_unless_alive(BANNED);
        }
    }

    fn on_rejected(&self) -> OnRejected {
        match self.bans {
            true => OnRejected::Adds,
            false => OnRejected::Ignores,
        }
    }

    fn reference(&mut self) -> Option<&mut dyn Reference> {
        Some(self)
    }

    fn is_noop(&self) -> bool {
        self.biases.is_empty()
    }
}

impl Reference for LogitBias {
    /// By position if the candidate with that id is there, else by search; the order flag stays.
    fn apply_reference(&mut self, array: &mut TokenArray) {
        for c in &mut array.data {
            if let Ok(at) = self.biases.binary_search_by_key(&c.id, |b| b.0) {
                c.logit += self.biases[at].1;
            }
        }
        if self.bans && array.data.iter().all(|c| c.logit == f32::NEG_INFINITY) {
            array.fault = Some(none_left(BANNED));
        }
    }
}
