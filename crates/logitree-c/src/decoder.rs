//! Decoders: matcher, chain, history and stop conditions of one sequence.
#![allow(unsafe_code)] // exported names

use std::ffi::{c_char, c_void};

use logitree::constraint::form::Fields;
use logitree::decoder::Then;
use logitree::{Chain, Decoder, Finish, Matcher, Stop};

use crate::chain::LogitreeChain;
use crate::handles::{exclusive, handle, shared};
use crate::library::LOGITREE_NO_TOKEN;
use crate::matcher::LogitreeMatcher;
use crate::memory::{export, In, Out};
use crate::status::{failure, invalid, Outcome};
use crate::vocabulary::{vocabulary_of, LogitreeVocabulary};
use crate::LogitreeStatus;

handle! {
    /// Decodes one sequence. For one thread at a time.
    LogitreeDecoder, Decoder, 5, "decoder"
}

/// Why decoding is over: LOGITREE_RUNNING while it is not.
pub const LOGITREE_RUNNING: u32 = 0;
/// The constraint is over.
pub const LOGITREE_FINISH_CONSTRAINT: u32 = 1;
/// The model ended its turn.
pub const LOGITREE_FINISH_END_OF_GENERATION: u32 = 2;
/// A stop string appeared.
pub const LOGITREE_FINISH_STOP_STRING: u32 = 3;
/// The greatest number of tokens was reached.
pub const LOGITREE_FINISH_MAX_TOKENS: u32 = 4;

export! {
    /// A decoder over `vocabulary`, with copies of chain and matcher. `matcher`: NULL, or the constraint of the whole
    /// output.
    ///
    /// `options`: NULL, or a JSON object that says when it stops, apart from its constraint: {"max_tokens": 100, "stop":
    /// ["\n"], "ignore_end": true}. "stop" are texts that end the output where they appear; with "ignore_end" an
    /// end-of-generation token does not end it.
    ///
    /// Pointers: `length` bytes may be read at `options`, if it is not NULL.
    fn logitree_decoder_new(
        vocabulary: *const LogitreeVocabulary,
        chain: *const LogitreeChain,
        matcher: *const LogitreeMatcher,
        options: In<c_char>,
        length: usize,
        out: Out<*mut LogitreeDecoder>,
    ) {
        let make = || {
            let stop = stop(options.options(length)?).map_err(invalid)?;
            let chain = Chain::clone(&*shared(chain)?);
            Ok(Decoder::new(vocabulary_of(vocabulary)?, chain, fork_of(matcher)?, stop)?)
        };
        out.create(make)
    }
}

/// A copy of a matcher that may be NULL.
pub(crate) fn fork_of(matcher: *const LogitreeMatcher) -> Outcome<Option<Box<dyn Matcher>>> {
    if matcher.is_null() {
        return Ok(None);
    }
    Ok(Some(shared(matcher)?.fork()))
}

fn stop(mut options: Fields) -> logitree::Result<Stop> {
    let max_tokens = options.count("max_tokens")?;
    if max_tokens == Some(0) {
        return Err(options.wrong("max_tokens", "at least 1"));
    }
    let strings = options.texts("stop")?.into_iter().map(String::into_bytes).collect();
    let ignores_end = options.switch("ignore_end")?;
    options.end()?;
    Stop::new(max_tokens, strings, !ignores_end)
}

export! {
    /// An independent copy in the same state.
    fn logitree_decoder_fork(decoder: *const LogitreeDecoder, out: Out<*mut LogitreeDecoder>) {
        out.create(|| Ok(shared(decoder)?.fork()))
    }

    /// Counts a prompt's tokens in the chain's history, which the penalties read. Before the first token only.
    fn logitree_decoder_prime(decoder: *mut LogitreeDecoder, tokens: In<u32>, count: usize) {
        Ok(exclusive(decoder)?.prime(tokens.slice(count)?)?)
    }

    /// One step: the allowed tokens, the chain, the pick, and its acceptance. Logits are read, never written; `count`:
    /// at least the vocabulary's size. `dtype`: LOGITREE_F32, LOGITREE_F16 or LOGITREE_BF16.
    fn logitree_decoder_step(
        decoder: *mut LogitreeDecoder,
        logits: In<c_void>,
        dtype: u32,
        count: usize,
        token: Out<u32>,
    ) {
        let logits = logits.floats(dtype, count)?;
        let mut decoder = exclusive(decoder)?;
        // Written first, so that no token is taken whose id cannot be written.
        token.put(LOGITREE_NO_TOKEN)?;
        token.put(decoder.step(logits)?)
    }

    /// Constrains what comes next by a copy of `matcher`, until logitree_decoder_clear. `stops`: whether decoding is
    /// over when the constraint is; else what follows is free.
    fn logitree_decoder_activate(decoder: *mut LogitreeDecoder, matcher: *const LogitreeMatcher, stops: bool) {
        let then = if stops { Then::Stop } else { Then::Continue };
        let copy = shared(matcher)?.fork();
        Ok(exclusive(decoder)?.activate(copy, then)?)
    }

    /// Ends whatever was activated: what comes next is under the constraint that the decoder was made with, or free
    /// without one. LOGITREE_ERROR_TOKEN if that constraint does not allow what was written; the activated one stays
    /// then.
    fn logitree_decoder_clear(decoder: *mut LogitreeDecoder) {
        Ok(exclusive(decoder)?.clear()?)
    }

    /// Why decoding is over (LOGITREE_FINISH_...; LOGITREE_RUNNING while it is not), and which stop text appeared.
    /// `stop_index` may be NULL.
    ///
    /// Pointers: a number may be written at `reason` and, if it is not NULL, at `stop_index`.
    fn logitree_decoder_finish(decoder: *const LogitreeDecoder, reason: Out<u32>, stop_index: Out<usize>) {
        let (why, index) = match shared(decoder)?.finish() {
            None => (LOGITREE_RUNNING, 0),
            Some(Finish::Constraint) => (LOGITREE_FINISH_CONSTRAINT, 0),
            Some(Finish::EndOfGeneration) => (LOGITREE_FINISH_END_OF_GENERATION, 0),
            Some(Finish::StopString(at)) => (LOGITREE_FINISH_STOP_STRING, at),
            Some(Finish::MaxTokens) => (LOGITREE_FINISH_MAX_TOKENS, 0),
        };
        if !stop_index.is_null() {
            stop_index.put(index)?;
        }
        reason.put(why)
    }

    /// The tokens so far, without a primed prompt.
    fn logitree_decoder_tokens(
        decoder: *const LogitreeDecoder,
        out: Out<u32>,
        capacity: usize,
        count: Out<usize>,
    ) {
        out.put_all(shared(decoder)?.tokens(), capacity, count)
    }

    /// A copy of the decoder's chain in its present state.
    fn logitree_decoder_chain(decoder: *const LogitreeDecoder, chain: Out<*mut LogitreeChain>) {
        chain.create(|| Ok(shared(decoder)?.chain().clone()))
    }

    /// A copy of the decoder's running constraint in its present state. LOGITREE_ERROR_STATE if there is none.
    fn logitree_decoder_matcher(decoder: *const LogitreeDecoder, matcher: Out<*mut LogitreeMatcher>) {
        let none = || failure(LogitreeStatus::ErrorState, "the decoder has no constraint");
        matcher.create(|| shared(decoder)?.matcher().map(Matcher::fork).ok_or_else(none))
    }
}
