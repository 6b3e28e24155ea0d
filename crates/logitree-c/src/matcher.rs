//! Matchers: which tokens are allowed in one sequence.
#![allow(unsafe_code)] // exported names and pointers of the caller

use logitree::constraint::{accept_all, fill, Matcher};
use logitree::mask::AllowedTokens;
use logitree::TokenId;

use crate::constraint::{constraint_of, LogitreeConstraint};
use crate::handles::{exclusive, handle, remove, shared};
use crate::memory::{create, put, put_all, slice, slice_mut};
use crate::status::{run, Outcome};
use crate::vocabulary::{vocabulary_of, LogitreeVocabulary};
use crate::LogitreeStatus;

handle! {
    /// A constraint bound to a vocabulary, with the state of one sequence. For one thread at a time; a fork gives each its
    /// own.
    LogitreeMatcher, Box<dyn Matcher>, 3, "matcher"
}

/// A matcher at the beginning of a sequence. Constraint and vocabulary may be freed while it lives.
///
/// # Safety
/// A handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_new(
    constraint: *const LogitreeConstraint,
    vocabulary: *const LogitreeVocabulary,
    out: *mut *mut LogitreeMatcher,
) -> LogitreeStatus {
    let make = || Ok(constraint_of(constraint)?.matcher(&vocabulary_of(vocabulary)?)?);
    // SAFETY: the caller's promise.
    run(|| unsafe { create(out, make) })
}

/// An independent copy in the same state.
///
/// # Safety
/// A handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_fork(
    matcher: *const LogitreeMatcher,
    out: *mut *mut LogitreeMatcher,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { create(out, || Ok(shared(matcher)?.fork())) })
}

/// Frees a matcher. NULL is no error.
#[no_mangle]
pub extern "C" fn logitree_matcher_free(matcher: *mut LogitreeMatcher) -> LogitreeStatus {
    run(|| remove(matcher))
}

/// Number of token ids that masks cover.
///
/// # Safety
/// A number may be written at `size`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_vocabulary_size(
    matcher: *const LogitreeMatcher,
    size: *mut usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put(size, shared(matcher)?.vocabulary_size(), "size") })
}

/// Writes the allowed tokens as a mask over `words`: bit `id % 32` of word `id / 32`. `count`: at least the vocabulary's
/// size divided by 32, rounded up; words past that are 0, or all ones where nothing is masked.
///
/// # Safety
/// `count` words may be written at `words`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_mask(
    matcher: *mut LogitreeMatcher,
    words: *mut u32,
    count: usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| Ok(fill(&mut **exclusive(matcher)?, unsafe { slice_mut(words, count, "words") }?)?))
}

/// Sets the logits of all tokens that are not allowed to minus infinity, in place; the others are not written.
///
/// # Safety
/// `count` floats may be read and written at `logits`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_apply(
    matcher: *mut LogitreeMatcher,
    logits: *mut f32,
    count: usize,
) -> LogitreeStatus {
    run(|| {
        let mut matcher = exclusive(matcher)?;
        // SAFETY: the caller's promise.
        let logits = unsafe { slice_mut(logits, count, "logits") }?;
        Ok(matcher.allowed()?.apply(logits)?)
    })
}

/// The allowed tokens, ascending; where nothing is masked, every id.
///
/// # Safety
/// `capacity` ids may be written at `out`, and a number at `count`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_allowed(
    matcher: *mut LogitreeMatcher,
    out: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe {
        let mut matcher = exclusive(matcher)?;
        let size = matcher.vocabulary_size();
        put_allowed(matcher.allowed()?, size, out, capacity, count)
    })
}

/// Writes allowed tokens as ids.
///
/// # Safety
/// As [`put_all`].
pub(crate) unsafe fn put_allowed(
    allowed: AllowedTokens<'_>,
    size: usize,
    out: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> Outcome {
    let ids = match allowed {
        // SAFETY: the caller's promise.
        AllowedTokens::Ids(ids) => return unsafe { put_all(ids, out, capacity, count) },
        allowed => (0..size as TokenId).filter(|&id| allowed.contains(id)).collect::<Vec<TokenId>>(),
    };
    // SAFETY: the caller's promise.
    unsafe { put_all(&ids, out, capacity, count) }
}

/// Whether a token is allowed here.
///
/// # Safety
/// A truth value may be written at `allowed`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_is_allowed(
    matcher: *mut LogitreeMatcher,
    token: u32,
    allowed: *mut bool,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put(allowed, exclusive(matcher)?.is_allowed(token)?, "allowed") })
}

/// Accepts a token. LOGITREE_ERROR_TOKEN, and nothing changes, if it is not allowed here.
#[no_mangle]
pub extern "C" fn logitree_matcher_accept(matcher: *mut LogitreeMatcher, token: u32) -> LogitreeStatus {
    run(|| Ok(exclusive(matcher)?.accept(token)?))
}

/// Accepts all of `count` tokens or none.
///
/// # Safety
/// `count` ids may be read at `tokens`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_accept_all(
    matcher: *mut LogitreeMatcher,
    tokens: *const u32,
    count: usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| Ok(accept_all(&mut **exclusive(matcher)?, unsafe { slice(tokens, count, "tokens") }?)?))
}

/// Forgets the last `count` tokens. LOGITREE_ERROR_STATE, and nothing changes, if fewer were accepted.
#[no_mangle]
pub extern "C" fn logitree_matcher_rollback(matcher: *mut LogitreeMatcher, count: usize) -> LogitreeStatus {
    run(|| Ok(exclusive(matcher)?.rollback(count)?))
}

/// Back to the state it was made with.
#[no_mangle]
pub extern "C" fn logitree_matcher_reset(matcher: *mut LogitreeMatcher) -> LogitreeStatus {
    run(|| {
        exclusive(matcher)?.reset();
        Ok(())
    })
}

/// The forced tokens: the run of tokens from here of which each is the only one allowed. They need no forward pass. Changes
/// nothing.
///
/// # Safety
/// `capacity` ids may be written at `out`, and a number at `count`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_forced(
    matcher: *mut LogitreeMatcher,
    out: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> LogitreeStatus {
    run(|| {
        let mut run = Vec::new();
        exclusive(matcher)?.forced(&mut run)?;
        // SAFETY: the caller's promise.
        unsafe { put_all(&run, out, capacity, count) }
    })
}

/// Whether the constraint is over: complete, with no continuation. Then the end tokens alone are allowed, unless it is
/// open-ended; without end tokens, asking for the allowed tokens is an error.
///
/// # Safety
/// A truth value may be written at `finished`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_is_finished(
    matcher: *const LogitreeMatcher,
    finished: *mut bool,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put(finished, shared(matcher)?.is_finished(), "finished") })
}

/// Whether anything may follow the end of the constraint: nothing is masked there. So it is with token trees.
///
/// # Safety
/// A truth value may be written at `open_ended`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_is_open_ended(
    matcher: *const LogitreeMatcher,
    open_ended: *mut bool,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put(open_ended, shared(matcher)?.after_end().is_free(), "open_ended") })
}

/// Whether what was accepted is complete; more may still be allowed.
///
/// # Safety
/// A truth value may be written at `accepting`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_is_accepting(
    matcher: *const LogitreeMatcher,
    accepting: *mut bool,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put(accepting, shared(matcher)?.is_accepting(), "accepting") })
}

/// Number of tokens accepted, less those rolled back.
///
/// # Safety
/// A number may be written at `count`.
#[no_mangle]
pub unsafe extern "C" fn logitree_matcher_accepted(
    matcher: *const LogitreeMatcher,
    count: *mut usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put(count, shared(matcher)?.accepted(), "count") })
}
