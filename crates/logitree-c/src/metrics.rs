//! Values about a distribution. They change nothing.
#![allow(unsafe_code)] // exported names and pointers of the caller

use logitree::metrics::{self, Base};

use crate::memory::{put, put_all, slice};
use crate::status::run;
use crate::LogitreeStatus;

fn base(bits: bool) -> Base {
    if bits {
        Base::Bits
    } else {
        Base::Nats
    }
}

/// The entropy of the distribution of `count` logits, in nats or `bits`; infinite without a finite logit.
///
/// # Safety
/// `count` floats may be read at `logits`; a number may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_metrics_entropy(
    logits: *const f32,
    count: usize,
    bits: bool,
    out: *mut f64,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put(out, metrics::entropy(slice(logits, count, "logits")?, base(bits)), "out") })
}

/// The surprisal of a token: minus the logarithm of its probability, in nats or `bits`. `ids`: NULL, or the token of each logit,
/// for the candidates that a chain left. Infinite for a token that is not there, and where its logit is not finite.
///
/// # Safety
/// `count` floats may be read at `logits` and, if it is not NULL, `count` ids at `ids`; a number may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_metrics_surprisal(
    logits: *const f32,
    ids: *const u32,
    count: usize,
    token: u32,
    bits: bool,
    out: *mut f64,
) -> LogitreeStatus {
    run(|| {
        // SAFETY: the caller's promise.
        let logits = unsafe { slice(logits, count, "logits") }?;
        let found = if ids.is_null() {
            metrics::surprisal(logits, token, base(bits))
        } else {
            // SAFETY: the caller's promise.
            metrics::surprisal_among(unsafe { slice(ids, count, "ids") }?, logits, token, base(bits))
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, found, "out") }
    })
}

/// The `capacity` best finite logits, descending, equal ones by id: their tokens and their probabilities under all logits.
///
/// # Safety
/// `count` floats may be read at `logits`; `capacity` ids may be written at `ids` and as many numbers at `probabilities`, and
/// their number at `written`.
#[no_mangle]
pub unsafe extern "C" fn logitree_metrics_top(
    logits: *const f32,
    count: usize,
    ids: *mut u32,
    probabilities: *mut f64,
    capacity: usize,
    written: *mut usize,
) -> LogitreeStatus {
    run(|| {
        // SAFETY: the caller's promise.
        let best = metrics::top_candidates(unsafe { slice(logits, count, "logits") }?, capacity);
        let tokens: Vec<u32> = best.iter().map(|one| one.id).collect();
        let shares: Vec<f64> = best.iter().map(|one| one.probability).collect();
        // SAFETY: the caller's promise.
        unsafe {
            put_all(&tokens, ids, capacity, written)?;
            put_all(&shares, probabilities, capacity, written)
        }
    })
}
