//! Decoders: matcher, chain, history and stop conditions of one sequence.
#![allow(unsafe_code)] // exported names and pointers of the caller

use logitree::decoder::Then;
use logitree::{Chain, Decoder, Finish, Floats, Matcher, Stop};

use crate::chain::LogitreeChain;
use crate::handles::{exclusive, handle, remove, shared};
use crate::matcher::{put_allowed, LogitreeMatcher};
use crate::memory::{create, put, put_all, read_options, slice, slice_mut, texts, LogitreeText};
use crate::status::{failure, run, Outcome};
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

/// A decoder over `vocabulary`, with copies of chain and matcher. `matcher`: NULL, or the constraint of the whole output.
/// `options`: NULL for none.
///
/// # Safety
/// `options` is NULL or may be read, its texts too; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_decoder_new(
    vocabulary: *const LogitreeVocabulary,
    chain: *const LogitreeChain,
    matcher: *const LogitreeMatcher,
    options: *const LogitreeDecoderOptions,
    out: *mut *mut LogitreeDecoder,
) -> LogitreeStatus {
    run(|| {
        let make = || {
            // SAFETY: the caller's promise.
            let stop = unsafe { stop(options) }?;
            let chain = Chain::clone(&*shared(chain)?);
            Ok(Decoder::new(vocabulary_of(vocabulary)?, chain, fork_of(matcher)?, stop)?)
        };
        // SAFETY: the caller's promise.
        unsafe { create(out, make) }
    })
}

/// A copy of a matcher that may be NULL.
fn fork_of(matcher: *const LogitreeMatcher) -> Outcome<Option<Box<dyn Matcher>>> {
    if matcher.is_null() {
        return Ok(None);
    }
    Ok(Some(shared(matcher)?.fork()))
}

unsafe fn stop(given: *const LogitreeDecoderOptions) -> Outcome<Stop> {
    // SAFETY: the caller's promise.
    let Some(given) = unsafe { read_options(given, |given| given.struct_size, "options") }? else {
        return Ok(Stop::default());
    };
    // SAFETY: the caller's promise.
    let strings = unsafe { texts(given.stop, given.stop_count, "options.stop") }?;
    let strings = strings.into_iter().map(<[u8]>::to_vec).collect();
    let max_tokens = (given.max_tokens > 0).then_some(given.max_tokens);
    Ok(Stop::new(max_tokens, strings, given.ignores_end == 0)?)
}

/// An independent copy in the same state.
///
/// # Safety
/// A handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_decoder_fork(
    decoder: *const LogitreeDecoder,
    out: *mut *mut LogitreeDecoder,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { create(out, || Ok(shared(decoder)?.fork())) })
}

/// Frees a decoder. NULL is no error.
#[no_mangle]
pub extern "C" fn logitree_decoder_free(decoder: *mut LogitreeDecoder) -> LogitreeStatus {
    run(|| remove(decoder))
}

/// Counts a prompt's tokens in the chain's history, which the penalties read. Before the first token only.
///
/// # Safety
/// `count` ids may be read at `tokens`.
#[no_mangle]
pub unsafe extern "C" fn logitree_decoder_prime(
    decoder: *mut LogitreeDecoder,
    tokens: *const u32,
    count: usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| Ok(exclusive(decoder)?.prime(unsafe { slice(tokens, count, "tokens") }?)?))
}

/// One step: the allowed tokens, the chain, the pick, and its acceptance. Logits are read, never written; `count`: at least
/// the vocabulary's size.
///
/// # Safety
/// `count` floats may be read at `logits`; an id may be written at `token`.
#[no_mangle]
pub unsafe extern "C" fn logitree_decoder_step(
    decoder: *mut LogitreeDecoder,
    logits: *const f32,
    count: usize,
    token: *mut u32,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { step(decoder, Floats::F32(slice(logits, count, "logits")?), token) })
}

/// As logitree_decoder_step with logits of 16 bits: bfloat16 or IEEE binary16.
///
/// # Safety
/// `count` numbers of 16 bits may be read at `logits`; an id may be written at `token`.
#[no_mangle]
pub unsafe extern "C" fn logitree_decoder_step_half(
    decoder: *mut LogitreeDecoder,
    logits: *const u16,
    count: usize,
    bfloat16: bool,
    token: *mut u32,
) -> LogitreeStatus {
    run(|| {
        // SAFETY: the caller's promise.
        let bits = unsafe { slice(logits, count, "logits") }?;
        // SAFETY: the caller's promise.
        unsafe { step(decoder, if bfloat16 { Floats::Bf16(bits) } else { Floats::F16(bits) }, token) }
    })
}

unsafe fn step(decoder: *mut LogitreeDecoder, logits: Floats<'_>, token: *mut u32) -> Outcome {
    let mut decoder = exclusive(decoder)?;
    // SAFETY: the caller's promise. Written first, so that no token is taken whose id cannot be written.
    unsafe { put(token, u32::MAX, "token") }?;
    let picked = decoder.step(logits)?;
    // SAFETY: it was written before.
    unsafe { put(token, picked, "token") }
}

/// Accepts a token from outside.
#[no_mangle]
pub extern "C" fn logitree_decoder_accept(decoder: *mut LogitreeDecoder, token: u32) -> LogitreeStatus {
    run(|| Ok(exclusive(decoder)?.accept(token)?))
}

/// Accepts the forced tokens and writes them: evaluate them in one batch with the token before them. With too little room
/// nothing is accepted.
///
/// # Safety
/// `capacity` ids may be written at `out`, and a number at `count`.
#[no_mangle]
pub unsafe extern "C" fn logitree_decoder_take_forced(
    decoder: *mut LogitreeDecoder,
    out: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> LogitreeStatus {
    run(|| {
        let mut decoder = exclusive(decoder)?;
        let mut run = Vec::new();
        decoder.forced(&mut run)?;
        if run.len() > capacity {
            // SAFETY: the caller's promise.
            return unsafe { put_all(&run, out, capacity, count) };
        }
        // SAFETY: the caller's promise. The room is known before anything is accepted.
        let room = unsafe { put(count, 0, "count").and_then(|()| slice_mut(out, run.len(), "out")) }?;
        run.clear();
        decoder.take_forced(&mut run)?;
        room[..run.len()].copy_from_slice(&run);
        // SAFETY: it was written before.
        unsafe { put(count, run.len(), "count") }
    })
}

/// Forgets the last `count` tokens: matcher, chain and history are as before them.
#[no_mangle]
pub extern "C" fn logitree_decoder_rollback(decoder: *mut LogitreeDecoder, count: usize) -> LogitreeStatus {
    run(|| Ok(exclusive(decoder)?.rollback(count)?))
}

/// Back to the state it was made with.
#[no_mangle]
pub extern "C" fn logitree_decoder_reset(decoder: *mut LogitreeDecoder) -> LogitreeStatus {
    run(|| {
        exclusive(decoder)?.reset();
        Ok(())
    })
}

/// Constrains what comes next by a copy of `matcher`, until logitree_decoder_clear. `stops`: whether decoding is over when the
/// constraint is; else what follows is free.
#[no_mangle]
pub extern "C" fn logitree_decoder_activate(
    decoder: *mut LogitreeDecoder,
    matcher: *const LogitreeMatcher,
    stops: bool,
) -> LogitreeStatus {
    run(|| {
        let then = if stops { Then::Stop } else { Then::Continue };
        let copy = shared(matcher)?.fork();
        Ok(exclusive(decoder)?.activate(copy, then)?)
    })
}

/// Ends whatever was activated: what comes next is under the constraint that the decoder was made with, or free without one.
/// LOGITREE_ERROR_TOKEN if that constraint does not allow what was written; the activated one stays then.
#[no_mangle]
pub extern "C" fn logitree_decoder_clear(decoder: *mut LogitreeDecoder) -> LogitreeStatus {
    run(|| Ok(exclusive(decoder)?.clear()?))
}

/// The allowed tokens, ascending.
///
/// # Safety
/// `capacity` ids may be written at `out`, and a number at `count`.
#[no_mangle]
pub unsafe extern "C" fn logitree_decoder_allowed(
    decoder: *mut LogitreeDecoder,
    out: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe {
        let mut decoder = exclusive(decoder)?;
        let size = decoder.vocabulary().len();
        put_allowed(decoder.allowed()?, size, out, capacity, count)
    })
}

/// Why decoding is over (LOGITREE_FINISH_...; LOGITREE_RUNNING while it is not), and which stop text appeared.
/// `stop_index` may be NULL.
///
/// # Safety
/// A number may be written at `reason` and, if it is not NULL, at `stop_index`.
#[no_mangle]
pub unsafe extern "C" fn logitree_decoder_finish(
    decoder: *const LogitreeDecoder,
    reason: *mut u32,
    stop_index: *mut usize,
) -> LogitreeStatus {
    run(|| {
        let (why, index) = match shared(decoder)?.finish() {
            None => (LOGITREE_RUNNING, 0),
            Some(Finish::Constraint) => (LOGITREE_FINISH_CONSTRAINT, 0),
            Some(Finish::EndOfGeneration) => (LOGITREE_FINISH_END_OF_GENERATION, 0),
            Some(Finish::StopString(at)) => (LOGITREE_FINISH_STOP_STRING, at),
            Some(Finish::MaxTokens) => (LOGITREE_FINISH_MAX_TOKENS, 0),
        };
        if !stop_index.is_null() {
            // SAFETY: the caller's promise.
            unsafe { put(stop_index, index, "stop_index") }?;
        }
        // SAFETY: the caller's promise.
        unsafe { put(reason, why, "reason") }
    })
}

/// The tokens so far, without a primed prompt.
///
/// # Safety
/// `capacity` ids may be written at `out`, and a number at `count`.
#[no_mangle]
pub unsafe extern "C" fn logitree_decoder_tokens(
    decoder: *const LogitreeDecoder,
    out: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put_all(shared(decoder)?.tokens(), out, capacity, count) })
}

/// A copy of the decoder's chain in its present state.
///
/// # Safety
/// A handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_decoder_chain(
    decoder: *const LogitreeDecoder,
    out: *mut *mut LogitreeChain,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { create(out, || Ok(shared(decoder)?.chain().clone())) })
}

/// A copy of the running constraint in its present state; LOGITREE_ERROR_STATE if there is none.
///
/// # Safety
/// A handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_decoder_matcher(
    decoder: *const LogitreeDecoder,
    out: *mut *mut LogitreeMatcher,
) -> LogitreeStatus {
    let make = || {
        let decoder = shared(decoder)?;
        let none = || failure(LogitreeStatus::ErrorState, "the decoder has no constraint");
        decoder.matcher().map(Matcher::fork).ok_or_else(none)
    };
    // SAFETY: the caller's promise.
    run(|| unsafe { create(out, make) })
}
