//! Decoders: matcher, chain, history and stop conditions of one sequence.
#![allow(unsafe_code)] // exported names

use logitree::decoder::Then;
use logitree::{Chain, Decoder, Finish, Floats, Matcher, Stop};

use crate::chain::LogitreeChain;
use crate::handles::{exclusive, handle, remove, shared};
use crate::matcher::{put_allowed, LogitreeMatcher};
use crate::memory::{export, Argument, In, LogitreeText, Out};
use crate::status::{failure, Outcome};
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

/// When a decoder stops, apart from its constraint. Begin with LOGITREE_DECODER_OPTIONS_INIT.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct LogitreeDecoderOptions {
    /// sizeof(logitree_decoder_options).
    pub struct_size: usize,
    /// The most tokens; 0: no limit.
    pub max_tokens: usize,
    /// Texts that end the output where they appear.
    pub stop: *const LogitreeText,
    /// Number of these texts.
    pub stop_count: usize,
    /// Not 0: an end-of-generation token does not end decoding.
    pub ignores_end: u32,
}

export! {
    /// A decoder over `vocabulary`, with copies of chain and matcher. `matcher`: NULL, or the constraint of the whole
    /// output. `options`: NULL for none.
    ///
    /// Pointers: `options` is NULL or may be read, its texts too.
    fn logitree_decoder_new(
        vocabulary: *const LogitreeVocabulary,
        chain: *const LogitreeChain,
        matcher: *const LogitreeMatcher,
        options: In<LogitreeDecoderOptions>,
        out: Out<*mut LogitreeDecoder>,
    ) {
        let make = || {
            let stop = stop(options)?;
            let chain = Chain::clone(&*shared(chain)?);
            Ok(Decoder::new(vocabulary_of(vocabulary)?, chain, fork_of(matcher)?, stop)?)
        };
        out.create(make)
    }
}

/// A copy of a matcher that may be NULL.
fn fork_of(matcher: *const LogitreeMatcher) -> Outcome<Option<Box<dyn Matcher>>> {
    if matcher.is_null() {
        return Ok(None);
    }
    Ok(Some(shared(matcher)?.fork()))
}

fn stop(given: In<LogitreeDecoderOptions>) -> Outcome<Stop> {
    let Some(given) = given.options(|given| given.struct_size)? else {
        return Ok(Stop::default());
    };
    // SAFETY: the struct is the caller's, and the promise that it made covers the texts.
    let texts: In<LogitreeText> = unsafe { Argument::take(given.stop, "options.stop") };
    let strings = texts.texts(given.stop_count)?.into_iter().map(<[u8]>::to_vec).collect();
    let max_tokens = (given.max_tokens > 0).then_some(given.max_tokens);
    Ok(Stop::new(max_tokens, strings, given.ignores_end == 0)?)
}

export! {
    /// An independent copy in the same state.
    fn logitree_decoder_fork(decoder: *const LogitreeDecoder, out: Out<*mut LogitreeDecoder>) {
        out.create(|| Ok(shared(decoder)?.fork()))
    }

    /// Frees a decoder. NULL is no error.
    fn logitree_decoder_free(decoder: *mut LogitreeDecoder) {
        remove(decoder)
    }

    /// Counts a prompt's tokens in the chain's history, which the penalties read. Before the first token only.
    fn logitree_decoder_prime(decoder: *mut LogitreeDecoder, tokens: In<u32>, count: usize) {
        Ok(exclusive(decoder)?.prime(tokens.slice(count)?)?)
    }

    /// One step: the allowed tokens, the chain, the pick, and its acceptance. Logits are read, never written; `count`:
    /// at least the vocabulary's size.
    fn logitree_decoder_step(decoder: *mut LogitreeDecoder, logits: In<f32>, count: usize, token: Out<u32>) {
        step(decoder, Floats::F32(logits.slice(count)?), token)
    }

    /// As logitree_decoder_step with logits of 16 bits: bfloat16 or IEEE binary16.
    fn logitree_decoder_step_half(
        decoder: *mut LogitreeDecoder,
        logits: In<u16>,
        count: usize,
        bfloat16: bool,
        token: Out<u32>,
    ) {
        let bits = logits.slice(count)?;
        step(decoder, if bfloat16 { Floats::Bf16(bits) } else { Floats::F16(bits) }, token)
    }
}

fn step(decoder: *mut LogitreeDecoder, logits: Floats<'_>, token: Out<u32>) -> Outcome {
    let mut decoder = exclusive(decoder)?;
    // Written first, so that no token is taken whose id cannot be written.
    token.put(u32::MAX)?;
    let picked = decoder.step(logits)?;
    token.put(picked)
}

export! {
    /// Accepts a token from outside.
    fn logitree_decoder_accept(decoder: *mut LogitreeDecoder, token: u32) {
        Ok(exclusive(decoder)?.accept(token)?)
    }

    /// Accepts the forced tokens and writes them: evaluate them in one batch with the token before them. With too
    /// little room nothing is accepted.
    fn logitree_decoder_take_forced(
        decoder: *mut LogitreeDecoder,
        out: Out<u32>,
        capacity: usize,
        count: Out<usize>,
    ) {
        let mut decoder = exclusive(decoder)?;
        let mut run = Vec::new();
        decoder.forced(&mut run)?;
        if run.len() > capacity {
            return out.put_all(&run, capacity, count);
        }
        // The room is known before anything is accepted.
        let room = count.put(0).and_then(|()| out.slice(run.len()))?;
        run.clear();
        decoder.take_forced(&mut run)?;
        room[..run.len()].copy_from_slice(&run);
        count.put(run.len())
    }

    /// Forgets the last `count` tokens: matcher, chain and history are as before them.
    fn logitree_decoder_rollback(decoder: *mut LogitreeDecoder, count: usize) {
        Ok(exclusive(decoder)?.rollback(count)?)
    }

    /// Back to the state it was made with.
    fn logitree_decoder_reset(decoder: *mut LogitreeDecoder) {
        exclusive(decoder)?.reset();
        Ok(())
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

    /// The allowed tokens, ascending.
    fn logitree_decoder_allowed(decoder: *mut LogitreeDecoder, out: Out<u32>, capacity: usize, count: Out<usize>) {
        let mut decoder = exclusive(decoder)?;
        let size = decoder.vocabulary().len();
        put_allowed(decoder.allowed()?, size, out, capacity, count)
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
    fn logitree_decoder_chain(decoder: *const LogitreeDecoder, out: Out<*mut LogitreeChain>) {
        out.create(|| Ok(shared(decoder)?.chain().clone()))
    }

    /// A copy of the running constraint in its present state; LOGITREE_ERROR_STATE if there is none.
    fn logitree_decoder_matcher(decoder: *const LogitreeDecoder, out: Out<*mut LogitreeMatcher>) {
        let make = || {
            let decoder = shared(decoder)?;
            let none = || failure(LogitreeStatus::ErrorState, "the decoder has no constraint");
            decoder.matcher().map(Matcher::fork).ok_or_else(none)
        };
        out.create(make)
    }
}
