//! Matchers: which tokens are allowed in one sequence.
#![allow(unsafe_code)] // exported names

use logitree::constraint::{accept_all, fill, Matcher};
use logitree::mask::AllowedTokens;
use logitree::TokenId;

use crate::constraint::{constraint_of, LogitreeConstraint};
use crate::handles::{exclusive, handle, remove, shared};
use crate::memory::{export, In, Out};
use crate::status::Outcome;
use crate::vocabulary::{vocabulary_of, LogitreeVocabulary};

handle! {
    /// A constraint bound to a vocabulary, with the state of one sequence. For one thread at a time; a fork gives each
    /// its own.
    LogitreeMatcher, Box<dyn Matcher>, 3, "matcher"
}

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

    /// Frees a matcher. NULL is no error.
    fn logitree_matcher_free(matcher: *mut LogitreeMatcher) {
        remove(matcher)
    }

    /// Number of token ids that masks cover.
    fn logitree_matcher_vocabulary_size(matcher: *const LogitreeMatcher, size: Out<usize>) {
        size.put(shared(matcher)?.vocabulary_size())
    }

    /// Writes the allowed tokens as a mask over `words`: bit `id % 32` of word `id / 32`. `count`: at least the
    /// vocabulary's size divided by 32, rounded up; words past that are 0, or all ones where nothing is masked.
    fn logitree_matcher_mask(matcher: *mut LogitreeMatcher, words: Out<u32>, count: usize) {
        Ok(fill(&mut **exclusive(matcher)?, words.slice(count)?)?)
    }

    /// Sets the logits of all tokens that are not allowed to minus infinity, in place; the others are not written.
    fn logitree_matcher_apply(matcher: *mut LogitreeMatcher, logits: Out<f32>, count: usize) {
        let mut matcher = exclusive(matcher)?;
        let logits = logits.slice(count)?;
        Ok(matcher.allowed()?.apply(logits)?)
    }

    /// The allowed tokens, ascending; where nothing is masked, every id.
    fn logitree_matcher_allowed(matcher: *mut LogitreeMatcher, out: Out<u32>, capacity: usize, count: Out<usize>) {
        let mut matcher = exclusive(matcher)?;
        let size = matcher.vocabulary_size();
        put_allowed(matcher.allowed()?, size, out, capacity, count)
    }
}

/// Writes allowed tokens as ids.
pub(crate) fn put_allowed(
    allowed: AllowedTokens<'_>,
    size: usize,
    out: Out<u32>,
    capacity: usize,
    count: Out<usize>,
) -> Outcome {
    let ids = match allowed {
        AllowedTokens::Ids(ids) => return out.put_all(ids, capacity, count),
        allowed => (0..size as TokenId).filter(|&id| allowed.contains(id)).collect::<Vec<TokenId>>(),
    };
    out.put_all(&ids, capacity, count)
}

export! {
    /// Whether a token is allowed here.
    fn logitree_matcher_is_allowed(matcher: *mut LogitreeMatcher, token: u32, allowed: Out<bool>) {
        allowed.put(exclusive(matcher)?.is_allowed(token)?)
    }

    /// Accepts a token. LOGITREE_ERROR_TOKEN, and nothing changes, if it is not allowed here.
    fn logitree_matcher_accept(matcher: *mut LogitreeMatcher, token: u32) {
        Ok(exclusive(matcher)?.accept(token)?)
    }

    /// Accepts all of `count` tokens or none.
    fn logitree_matcher_accept_all(matcher: *mut LogitreeMatcher, tokens: In<u32>, count: usize) {
        Ok(accept_all(&mut **exclusive(matcher)?, tokens.slice(count)?)?)
    }

    /// Forgets the last `count` tokens. LOGITREE_ERROR_STATE, and nothing changes, if fewer were accepted.
    fn logitree_matcher_rollback(matcher: *mut LogitreeMatcher, count: usize) {
        Ok(exclusive(matcher)?.rollback(count)?)
    }

    /// Back to the state it was made with.
    fn logitree_matcher_reset(matcher: *mut LogitreeMatcher) {
        exclusive(matcher)?.reset();
        Ok(())
    }

    /// The forced tokens: the run of tokens from here that are each the only one allowed. They need no forward pass.
    /// Changes nothing.
    fn logitree_matcher_forced(matcher: *mut LogitreeMatcher, out: Out<u32>, capacity: usize, count: Out<usize>) {
        let mut run = Vec::new();
        exclusive(matcher)?.forced(&mut run)?;
        out.put_all(&run, capacity, count)
    }

    /// Whether the constraint is over: complete, with no continuation. Then the end tokens alone are allowed, unless it
    /// is open-ended; without end tokens, asking for the allowed tokens is an error.
    fn logitree_matcher_is_finished(matcher: *const LogitreeMatcher, finished: Out<bool>) {
        finished.put(shared(matcher)?.is_finished())
    }

    /// Whether anything may follow the end of the constraint: nothing is masked there. So it is with token trees.
    fn logitree_matcher_is_open_ended(matcher: *const LogitreeMatcher, open_ended: Out<bool>) {
        open_ended.put(shared(matcher)?.after_end().is_free())
    }

    /// Whether what was accepted is complete; more may still be allowed.
    fn logitree_matcher_is_accepting(matcher: *const LogitreeMatcher, accepting: Out<bool>) {
        accepting.put(shared(matcher)?.is_accepting())
    }

    /// Number of tokens accepted, less those rolled back.
    fn logitree_matcher_accepted(matcher: *const LogitreeMatcher, count: Out<usize>) {
        count.put(shared(matcher)?.accepted())
    }
}
