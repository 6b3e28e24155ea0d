//! Values about a distribution. They change nothing.
#![allow(unsafe_code)] // exported names

use logitree::metrics::{self, Base};

use crate::memory::{export, In, Out};

fn base(bits: bool) -> Base {
    if bits {
        Base::Bits
    } else {
        Base::Nats
    }
}

export! {
    /// The entropy of the distribution of `count` logits, in nats or `bits`; infinite without a finite logit.
    fn logitree_metrics_entropy(logits: In<f32>, count: usize, bits: bool, out: Out<f64>) {
        out.put(metrics::entropy(logits.slice(count)?, base(bits)))
    }

    /// The surprisal of a token: minus the logarithm of its probability, in nats or `bits`. `ids`: NULL, or the token
    /// of each logit, for the candidates that a chain left. Infinite for a token that is not there, and where its logit
    /// is not finite.
    ///
    /// Pointers: `count` floats may be read at `logits` and, if it is not NULL, `count` ids at `ids`.
    fn logitree_metrics_surprisal(
        logits: In<f32>,
        ids: In<u32>,
        count: usize,
        token: u32,
        bits: bool,
        out: Out<f64>,
    ) {
        let logits = logits.slice(count)?;
        let found = if ids.is_null() {
            metrics::surprisal(logits, token, base(bits))
        } else {
            metrics::surprisal_among(ids.slice(count)?, logits, token, base(bits))
        };
        out.put(found)
    }

    /// The `capacity` best finite logits, descending, equal ones by id: their tokens and their probabilities under all
    /// logits.
    fn logitree_metrics_top(
        logits: In<f32>,
        count: usize,
        ids: Out<u32>,
        probabilities: Out<f64>,
        capacity: usize,
        written: Out<usize>,
    ) {
        let best = metrics::top_candidates(logits.slice(count)?, capacity);
        let tokens: Vec<u32> = best.iter().map(|one| one.id).collect();
        let shares: Vec<f64> = best.iter().map(|one| one.probability).collect();
        {
            ids.put_all(&tokens, capacity, written)?;
            probabilities.put_all(&shares, capacity, written)
        }
    }
}
