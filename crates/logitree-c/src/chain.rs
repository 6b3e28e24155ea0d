//! Chains of samplers.
#![allow(unsafe_code)] // exported names and pointers of the caller

use std::ffi::c_char;

use logitree::mask::AllowedTokens;
use logitree::sampling::Steering;
use logitree::{Chain, Mode, TokenId};

use crate::chain_params;
use crate::constraint::name;
use crate::handles::{exclusive, handle, remove, shared};
use crate::library::LOGITREE_NUL_TERMINATED;
use crate::matcher::LogitreeMatcher;
use crate::memory::{bytes, create, put, put_all, slice, text};
use crate::status::{run, Outcome};
use crate::LogitreeStatus;

handle! {
    /// Samplers in order, with their random numbers and histories. For one thread at a time.
    LogitreeChain, Chain, 4, "chain"
}

/// The chain of a notation of llama.cpp: "penalties;top_k;temperature", or its letters, "ekt"; "greedy" picks the
/// likeliest. NULL: llama.cpp's default chain.
///
/// `parameters`: NULL, or a JSON object {"temp": 0.8, "top_k": 40, "seed": 42}; docs/samplers.md lists the names. Without a
/// "seed" the chain takes a fresh one. Instead of a notation: "preset", which is "llama_cpp", "tsampler" or "transformers"; or
/// "samplers" alone, a list of samplers in order with their own parameters: [{"name": "top_k", "k": 40}, {"name": "dist",
/// "seed": 42, "rng": "xoroshiro128plus"}]. A chain that does not select can be applied.
///
/// # Safety
/// `notation` is NULL or ends in a byte of 0; `length` bytes may be read at `parameters`, if it is not NULL; a handle may
/// be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_chain_new(
    notation: *const c_char,
    parameters: *const c_char,
    length: usize,
    out: *mut *mut LogitreeChain,
) -> LogitreeStatus {
    run(|| {
        let make = || {
            // SAFETY: the caller's promise.
            let (notation, parameters) = unsafe {
                let given = !parameters.is_null();
                let json = if given { Some(bytes(parameters, length, "parameters")?) } else { None };
                (name(notation, "notation")?, json)
            };
            Ok(chain_params::chain(notation, parameters)?)
        };
        // SAFETY: the caller's promise.
        unsafe { create(out, make) }
    })
}

/// An independent copy in the same state.
///
/// # Safety
/// A handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_chain_clone(
    chain: *const LogitreeChain,
    out: *mut *mut LogitreeChain,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { create(out, || Ok(shared(chain)?.clone())) })
}

/// Frees a chain. NULL is no error.
#[no_mangle]
pub extern "C" fn logitree_chain_free(chain: *mut LogitreeChain) -> LogitreeStatus {
    run(|| remove(chain))
}

/// Computes as llama.cpp does from the next step on, rounding and ties included, or as fast as possible.
#[no_mangle]
pub extern "C" fn logitree_chain_set_parity(chain: *mut LogitreeChain, parity: bool) -> LogitreeStatus {
    run(|| {
        let mut chain = exclusive(chain)?;
        *chain = chain.clone().with_mode(if parity { Mode::Parity } else { Mode::Fast })?;
        Ok(())
    })
}

/// Picks a token with `matcher`'s allowed tokens, or with all where it is NULL.
unsafe fn pick(
    chain: *mut LogitreeChain,
    logits: *const f32,
    count: usize,
    matcher: *mut LogitreeMatcher,
    token: *mut u32,
    choose: fn(&mut Chain, &[f32], AllowedTokens<'_>) -> logitree::Result<TokenId>,
) -> Outcome {
    // SAFETY: the caller's promise.
    let logits = unsafe { slice(logits, count, "logits") }?;
    let mut chain = exclusive(chain)?;
    let picked = if matcher.is_null() {
        choose(&mut chain, logits, AllowedTokens::All)?
    } else {
        choose(&mut chain, logits, exclusive(matcher)?.allowed()?)?
    };
    // SAFETY: the caller's promise.
    unsafe { put(token, picked, "token") }
}

/// Picks a token and accepts it in the chain (not in the matcher). `matcher`: NULL, or what allows tokens.
///
/// # Safety
/// `count` floats may be read at `logits`; an id may be written at `token`.
#[no_mangle]
pub unsafe extern "C" fn logitree_chain_sample(
    chain: *mut LogitreeChain,
    logits: *const f32,
    count: usize,
    matcher: *mut LogitreeMatcher,
    token: *mut u32,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe {
        pick(chain, logits, count, matcher, token, |chain, logits, set| chain.sample(logits, set))
    })
}

/// As logitree_chain_sample, without accepting the token.
///
/// # Safety
/// As logitree_chain_sample.
#[no_mangle]
pub unsafe extern "C" fn logitree_chain_draw(
    chain: *mut LogitreeChain,
    logits: *const f32,
    count: usize,
    matcher: *mut LogitreeMatcher,
    token: *mut u32,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe {
        pick(chain, logits, count, matcher, token, |chain, logits, set| chain.draw(logits, set))
    })
}

/// Applies the chain, which need not select, and writes the candidates that are left, in the chain's order: `written` ids,
/// logits and probabilities. Nothing is accepted; a sampler that draws has drawn. `matcher`: NULL, or what allows tokens.
/// LOGITREE_ERROR_BUFFER if they do not fit: `count` elements always do.
///
/// # Safety
/// `count` floats may be read at `logits`; `capacity` values may be written at each of `ids`, `left` and `probabilities`, and a
/// number at `written`.
#[no_mangle]
pub unsafe extern "C" fn logitree_chain_apply(
    chain: *mut LogitreeChain,
    logits: *const f32,
    count: usize,
    matcher: *mut LogitreeMatcher,
    ids: *mut u32,
    left: *mut f32,
    probabilities: *mut f32,
    capacity: usize,
    written: *mut usize,
) -> LogitreeStatus {
    run(|| {
        // SAFETY: the caller's promise.
        let logits = unsafe { slice(logits, count, "logits") }?;
        let mut chain = exclusive(chain)?;
        if matcher.is_null() {
            chain.apply(logits, AllowedTokens::All, None)?;
        } else {
            chain.apply(logits, exclusive(matcher)?.allowed()?, None)?;
        }
        let found = chain.candidates();
        // SAFETY: the caller's promise.
        unsafe {
            put_all(found.ids(), ids, capacity, written)?;
            put_all(found.logits(), left, capacity, written)?;
            put_all(found.probabilities(), probabilities, capacity, written)
        }
    })
}

/// Adds to the logits of `count` tokens at every step from the next one on, before the first sampler; -inf vetoes a token. In
/// place of former additions; with a count of 0 none is left.
///
/// # Safety
/// `count` ids may be read at `ids`, and as many floats at `additions`.
#[no_mangle]
pub unsafe extern "C" fn logitree_chain_steer(
    chain: *mut LogitreeChain,
    ids: *const u32,
    additions: *const f32,
    count: usize,
) -> LogitreeStatus {
    run(|| {
        // SAFETY: the caller's promise.
        let (ids, additions) = unsafe { (slice(ids, count, "ids")?, slice(additions, count, "additions")?) };
        let mut steering = Steering::new();
        ids.iter().zip(additions).try_for_each(|(&id, &by)| steering.add(id, by))?;
        exclusive(chain)?.steer(&steering);
        Ok(())
    })
}

/// Records an accepted token, of the output or of the prompt.
#[no_mangle]
pub extern "C" fn logitree_chain_accept(chain: *mut LogitreeChain, token: u32) -> LogitreeStatus {
    run(|| {
        exclusive(chain)?.accept(token);
        Ok(())
    })
}

/// Forgets the last `count` accepted tokens and all that was drawn for them.
#[no_mangle]
pub extern "C" fn logitree_chain_rollback(chain: *mut LogitreeChain, count: usize) -> LogitreeStatus {
    run(|| Ok(exclusive(chain)?.rollback(count)?))
}

/// Back to the initial state: same seed, nothing accepted.
#[no_mangle]
pub extern "C" fn logitree_chain_reset(chain: *mut LogitreeChain) -> LogitreeStatus {
    run(|| {
        exclusive(chain)?.reset();
        Ok(())
    })
}

/// The state as bytes, without samplers and parameters: generators, histories, running means.
///
/// # Safety
/// `capacity` bytes may be written at `out`, and a number at `length`.
#[no_mangle]
pub unsafe extern "C" fn logitree_chain_snapshot(
    chain: *const LogitreeChain,
    out: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put_all(&shared(chain)?.snapshot(), out, capacity, length) })
}

/// Takes the state that a chain of the same samplers and parameters gave.
///
/// # Safety
/// `length` bytes may be read at `snapshot`.
#[no_mangle]
pub unsafe extern "C" fn logitree_chain_restore(
    chain: *mut LogitreeChain,
    snapshot: *const u8,
    length: usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| Ok(exclusive(chain)?.restore(unsafe { slice(snapshot, length, "snapshot") }?)?))
}

/// The samplers with their parameters, "->" between them: UTF-8 without a byte of 0 after it.
///
/// # Safety
/// `capacity` bytes may be written at `out`, and a number at `length`.
#[no_mangle]
pub unsafe extern "C" fn logitree_chain_describe(
    chain: *const LogitreeChain,
    out: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put_all(shared(chain)?.describe().as_bytes(), out, capacity, length) })
}

/// Changes a numeric parameter from the next step on.
///
/// # Safety
/// `parameter` is NULL or ends in a byte of 0.
#[no_mangle]
pub unsafe extern "C" fn logitree_chain_set(
    chain: *mut LogitreeChain,
    parameter: *const c_char,
    value: f64,
) -> LogitreeStatus {
    run(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { text(parameter, LOGITREE_NUL_TERMINATED, "parameter") }?;
        Ok(exclusive(chain)?.set_parameter(name, value)?)
    })
}
