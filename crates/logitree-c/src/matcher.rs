//! Matchers: which tokens are allowed in one sequence.
#![allow(unsafe_code)] // exported names

use std::ffi::c_void;

use logitree::constraint::{fill, Matcher};
use logitree::mask::AllowedTokens;
use logitree::TokenId;

use crate::constraint::{constraint_of, LogitreeConstraint};
use crate::handles::{exclusive, handle, shared};
use crate::memory::{export, no_dtype, Out, LOGITREE_BF16, LOGITREE_F16, LOGITREE_F32};
use crate::vocabulary::{vocabulary_of, LogitreeVocabulary};

handle! {
    /// A constraint bound to a vocabulary, with the state of one sequence. For one thread at a time; a fork gives each
    /// its own.
    LogitreeMatcher, Box<dyn Matcher>, 3, "matcher"
}

/// What was accepted is complete; more may still be allowed.
pub const LOGITREE_ACCEPTING: u32 = 1;
/// The constraint is over: complete, with no continuation. Then the end tokens alone are allowed, unless it is open-ended;
/// without end tokens, asking for the allowed tokens is an error.
pub const LOGITREE_FINISHED: u32 = 2;
/// Anything may follow the end of the constraint: nothing is masked there. So it is with token trees.
pub const LOGITREE_OPEN_ENDED: u32 = 4;

export! {
    /// A matcher at the beginning of a sequence. Constraint and vocabulary may be freed while it lives.
    fn logitree_matcher_new(
        constraint: *const LogitreeConstraint,
        vocabulary: *const LogitreeVocabulary,
        out: Out<*mut LogitreeMatcher>,
    ) {
        let make = || Ok(constraint_of(constraint)?.matcher(&vocabulary_of(vocabulary)?)?);
        out.create(make)
    }

    /// An independent copy in the same state.
    fn logitree_matcher_fork(matcher: *const LogitreeMatcher, out: Out<*mut LogitreeMatcher>) {
        out.create(|| Ok(shared(matcher)?.fork()))
    }

    /// Writes the allowed tokens as a mask over `words`: bit `id % 32` of word `id / 32`. `count`: at least the
    /// vocabulary's size divided by 32, rounded up; words past that are 0, or all ones where nothing is masked.
    fn logitree_matcher_mask(matcher: *mut LogitreeMatcher, words: Out<u32>, count: usize) {
        Ok(fill(&mut **exclusive(matcher)?, words.slice(count)?)?)
    }

    /// Sets the logits of all tokens that are not allowed to minus infinity, in place; the others are not written.
    /// `dtype`: LOGITREE_F32, LOGITREE_F16 or LOGITREE_BF16.
    fn logitree_matcher_apply(matcher: *mut LogitreeMatcher, logits: Out<c_void>, dtype: u32, count: usize) {
        let mut matcher = exclusive(matcher)?;
        let done = match dtype {
            LOGITREE_F32 => matcher.allowed()?.apply(logits.cast::<f32>().slice(count)?),
            LOGITREE_F16 => matcher.allowed()?.apply(logits.cast::<half::f16>().slice(count)?),
            LOGITREE_BF16 => matcher.allowed()?.apply(logits.cast::<half::bf16>().slice(count)?),
            _ => return Err(no_dtype(dtype)),
        };
        Ok(done?)
    }

    /// The allowed tokens, ascending; where nothing is masked, every id.
    fn logitree_matcher_allowed(matcher: *mut LogitreeMatcher, out: Out<u32>, capacity: usize, count: Out<usize>) {
        let mut matcher = exclusive(matcher)?;
        let size = matcher.vocabulary_size();
        let ids = match matcher.allowed()? {
            AllowedTokens::Ids(ids) => return out.put_all(ids, capacity, count),
            allowed => (0..size as TokenId).filter(|&id| allowed.contains(id)).collect::<Vec<TokenId>>(),
        };
        out.put_all(&ids, capacity, count)
    }

    /// Whether a token is allowed here.
    fn logitree_matcher_is_allowed(matcher: *mut LogitreeMatcher, token: u32, allowed: Out<bool>) {
        allowed.put(exclusive(matcher)?.is_allowed(token)?)
    }

    /// The forced tokens: the run of tokens from here that are each the only one allowed. They need no forward pass.
    /// Changes nothing.
    fn logitree_matcher_forced(matcher: *mut LogitreeMatcher, out: Out<u32>, capacity: usize, count: Out<usize>) {
        let mut run = Vec::new();
        exclusive(matcher)?.forced(&mut run)?;
        out.put_all(&run, capacity, count)
    }

    /// The state as flags: LOGITREE_ACCEPTING, LOGITREE_FINISHED, LOGITREE_OPEN_ENDED. `accepted`: NULL, or where the
    /// number of tokens accepted, less those rolled back, is written.
    ///
    /// Pointers: a number may be written at `flags` and, if it is not NULL, at `accepted`.
    fn logitree_matcher_state(matcher: *const LogitreeMatcher, flags: Out<u32>, accepted: Out<usize>) {
        let matcher = shared(matcher)?;
        let all = [
            (matcher.is_accepting(), LOGITREE_ACCEPTING),
            (matcher.is_finished(), LOGITREE_FINISHED),
            (matcher.after_end().is_free(), LOGITREE_OPEN_ENDED),
        ];
        if !accepted.is_null() {
            accepted.put(matcher.accepted())?;
        }
        flags.put(all.into_iter().filter_map(|(holds, flag)| holds.then_some(flag)).sum())
    }
}
