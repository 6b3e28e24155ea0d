//! Values about a distribution. They change nothing.
#![allow(unsafe_code)] // exported names

use std::ffi::c_void;

use logitree::metrics::{self, Base};

use crate::memory::{export, In, Out};

export! {
    /// Measures the distribution of `count` logits, in nats or `bits`. What is not asked for is NULL.
    ///
    /// `entropy`: infinite without a finite logit. `surprisal`: minus the logarithm of the probability of `token`;
    /// infinite for one that is not there, and where its logit is not finite. `ids`: NULL, or the token of each logit,
    /// for the candidates that a chain left. `dtype`: LOGITREE_F32, LOGITREE_F16 or LOGITREE_BF16.
    ///
    /// Pointers: `count` logits may be read at `logits` and, if it is not NULL, `count` ids at `ids`; a number may be
    /// written at `entropy` and at `surprisal`, if they are not NULL.
    fn logitree_metrics_measure(
        logits: In<c_void>,
        dtype: u32,
        ids: In<u32>,
        count: usize,
        token: u32,
        bits: bool,
        entropy: Out<f64>,
        surprisal: Out<f64>,
    ) {
        let (logits, base) = (logits.floats(dtype, count)?, if bits { Base::Bits } else { Base::Nats });
        if !entropy.is_null() {
            entropy.put(metrics::entropy(logits, base))?;
        }
        if surprisal.is_null() {
            return Ok(());
        }
        surprisal.put(if ids.is_null() {
            metrics::surprisal(logits, token, base)
        } else {
            metrics::surprisal_among(ids.slice(count)?, logits, token, base)
        })
    }

    /// The `capacity` best finite logits, descending, equal ones by id: their tokens and their probabilities under all
    /// logits.
    fn logitree_metrics_top(
        logits: In<c_void>,
        dtype: u32,
        count: usize,
        ids: Out<u32>,
        probabilities: Out<f64>,
        capacity: usize,
        written: Out<usize>,
    ) {
        let best = metrics::top_candidates(logits.floats(dtype, count)?, capacity);
        let tokens: Vec<u32> = best.iter().map(|one| one.id).collect();
        let shares: Vec<f64> = best.iter().map(|one| one.probability).collect();
        ids.put_all(&tokens, capacity, written)?;
        probabilities.put_all(&shares, capacity, written)
    }
}
