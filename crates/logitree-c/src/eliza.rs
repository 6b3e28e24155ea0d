//! The names of the design that token trees come from, elizaOS's token-trie sampler: its callers link without a change.
//! `include/eliza_token_trie_sampler.h` declares them; the header of this library does not.
//!
//! The design's functions take no library and no vocabulary: both are those of the libllama that the program has loaded, found
//! by the names of its functions. A payload of a handle is kept until it is cleared or replaced; what a handle leads to is
//! never looked at.
#![allow(unsafe_code)] // exported names, functions of another library, pointers of the caller

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logitree::decoder::Then;
use logitree::vocabulary::{Builder, TokenKind, VocabularyOptions};
use logitree::{Constraint, Error, ErrorKind, Vocabulary};
use logitree_llama::candidates::TokenData;
use logitree_llama::{LlamaLibrary, RawSampler, SamplerOptions, SamplerState, Selection};

use crate::library::LOGITREE_NUL_TERMINATED;
use crate::memory::{bytes, Argument, Out};
use crate::status::{argument, run, Failure, Outcome};
use crate::LogitreeStatus;
use logitree::constraint::token_tree::cache::cached;
use logitree::constraint::TreeSpan;

/// Bytes of `llama_token_data_array` on a 64-bit machine.
const ARRAY: usize = 32;

/// What a caller set for one handle.
type Set = Result<(Arc<[u8]>, c_int), (LogitreeStatus, Error)>;

/// What is set, by the handle as a number.
fn payloads() -> MutexGuard<'static, BTreeMap<usize, Set>> {
    static SET: Mutex<BTreeMap<usize, Set>> = Mutex::new(BTreeMap::new());
    SET.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A sampler for a chain of libllama that leaves the tokens of a token tree: `{modelId, descriptors: [one]}`.
///
/// Candidates that are not in the tree get a logit of -inf; with the mode 0 the likeliest of the others is selected and the only
/// candidate that is left, with 1 the samplers that follow choose. After a leaf nothing is masked, until a reset. The chain
/// that takes the sampler frees it. NULL after an error, and logitree_error_message() says which: a payload that cannot be read, has
/// no leaves or several descriptors, ids that the vocabulary does not have, another mode, or no libllama among the program's
/// global symbols. Names are not compared with the texts of their tokens: that is logitree_constraint_token_tree's part.
///
/// # Safety
/// `vocabulary` is NULL or of the libllama that the program has loaded; `payload` is NULL or ends in a byte of 0.
#[no_mangle]
pub unsafe extern "C" fn llama_sampler_init_token_trie(
    vocabulary: *const c_void,
    payload: *const c_char,
    mode: c_int,
) -> *mut c_void {
    let mut made = ptr::null_mut();
    run(|| {
        // SAFETY: the caller's promise.
        let payload = unsafe { bytes(payload, LOGITREE_NUL_TERMINATED, "trie_descriptor_json") }?;
        // SAFETY: the caller's promise.
        made = unsafe { sampler(vocabulary, payload, mode) }?;
        Ok(())
    });
    made.cast()
}

/// Sets the token tree of a handle: eliza_inference_token_trie_sampler makes samplers of it, until it is cleared or another is
/// set. A payload that cannot be read replaces the former one too: making a sampler gives its error then.
///
/// # Safety
/// `length` bytes may be read at `payload`.
#[no_mangle]
pub unsafe extern "C" fn eliza_inference_set_token_trie(
    handle: *mut c_void,
    payload: *const c_char,
    length: usize,
    mode: c_int,
) {
    run(|| {
        if handle.is_null() {
            return Err(argument("the handle is NULL", "handle"));
        }
        let read = || {
            check_mode(mode)?;
            // SAFETY: the caller's promise.
            let payload = unsafe { bytes(payload, length, "trie_payload_json") }?;
            cached(payload, None).and_then(|tree| TreeSpan::at(tree, None))?;
            Ok((payload.into(), mode))
        };
        let (set, outcome) = match read() {
            Ok(set) => (Ok(set), Ok(())),
            Err(Failure { status, error }) => (Err((status, error.clone())), Err(Failure { status, error })),
        };
        payloads().insert(handle.addr(), set);
        outcome
    });
}

/// Ends the token tree of a handle, whatever was set before: back to the caller's grammar. A handle without one is no error.
#[no_mangle]
pub extern "C" fn eliza_inference_clear_token_trie(handle: *mut c_void) {
    run(|| {
        payloads().remove(&handle.addr());
        Ok(())
    });
}

/// A new sampler of the token tree that is set for a handle, as llama_sampler_init_token_trie makes it; NULL and success if
/// none is set. To be called by what generates, once for each generation.
///
/// # Safety
/// `vocabulary` as for llama_sampler_init_token_trie; a pointer may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn eliza_inference_token_trie_sampler(
    handle: *mut c_void,
    vocabulary: *const c_void,
    out: *mut *mut c_void,
) -> LogitreeStatus {
    run(|| {
        // SAFETY: the caller's promise.
        let out: Out<*mut c_void> = unsafe { Argument::take(out, "out") };
        out.put(ptr::null_mut())?;
        let set = payloads().get(&handle.addr()).cloned();
        let Some(set) = set else { return Ok(()) };
        let (payload, mode) = set.map_err(|(status, error)| Failure { status, error })?;
        // SAFETY: the caller's promise.
        out.put(unsafe { sampler(vocabulary, &payload, mode) }?.cast::<c_void>())
    })
}

fn check_mode(mode: c_int) -> Outcome<Selection> {
    match mode {
        0 => Ok(Selection::Greedy),
        1 => Ok(Selection::Leave),
        mode => Err(argument(format!("there is no mode {mode}"), "mode")),
    }
}

/// # Safety
/// `vocabulary` is NULL or of the loaded libllama.
unsafe fn sampler(vocabulary: *const c_void, payload: &[u8], mode: c_int) -> Outcome<*mut RawSampler> {
    let selection = check_mode(mode)?;
    if vocabulary.is_null() {
        return Err(argument("the vocabulary is NULL", "vocab"));
    }
    let span = TreeSpan::at(cached(payload, None)?, None)?;
    // SAFETY: the caller's promise; the functions have these names.
    let (known, library) = unsafe {
        let functions = LlamaLibrary::FUNCTIONS.map(symbol);
        let library = LlamaLibrary::new(functions, size_of::<TokenData>(), ARRAY)?;
        (Arc::new(vocabulary_of(vocabulary)?), library)
    };
    let options = SamplerOptions { then: Then::Continue, counts_first: false, in_place: true };
    Ok(library.create(SamplerState::new(&known, Some(span.matcher(&known)?), selection, options)?)?)
}

/// The ids of libllama's vocabulary and which of them end a generation. A tree needs no texts.
///
/// # Safety
/// `vocabulary` is of the loaded libllama.
unsafe fn vocabulary_of(vocabulary: *const c_void) -> Outcome<Vocabulary> {
    type Size = unsafe extern "C" fn(*const c_void) -> i32;
    type IsEnd = unsafe extern "C" fn(*const c_void, i32) -> bool;
    // SAFETY: functions of these names have these signatures since llama.cpp's version of January 2025.
    let (size, is_end) = unsafe {
        (
            std::mem::transmute::<*const c_void, Size>(found(c"llama_vocab_n_tokens")?),
            std::mem::transmute::<*const c_void, IsEnd>(found(c"llama_vocab_is_eog")?),
        )
    };
    let (mut builder, mut ends) = (Builder::new(), Vec::new());
    // SAFETY: the caller's promise.
    for id in 0..unsafe { size(vocabulary) } {
        // SAFETY: the id is in the vocabulary.
        let is_end = unsafe { is_end(vocabulary, id) };
        let token = builder.push(if is_end { TokenKind::Control } else { TokenKind::Unused }, b"")?;
        ends.extend(is_end.then_some(token));
    }
    Ok(builder.build(VocabularyOptions {
        source: "libllama".into(),
        end_tokens: ends,
        ..VocabularyOptions::default()
    })?)
}

/// The address of a function of the program's libraries.
fn found(name: &CStr) -> Outcome<*const c_void> {
    let address = global(name);
    if !address.is_null() {
        return Ok(address);
    }
    let message = format!("the program has no function {}", name.to_string_lossy());
    let error = Error::new(ErrorKind::Constraint, message);
    Err(error.help("link libllama, or load it with RTLD_GLOBAL, before a sampler is made").into())
}

fn symbol(name: &'static str) -> *const c_void {
    let terminated = [name.as_bytes(), b"\0"].concat();
    CStr::from_bytes_with_nul(&terminated).map_or(ptr::null(), global)
}

#[cfg(unix)]
fn global(name: &CStr) -> *const c_void {
    extern "C" {
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    // RTLD_DEFAULT: every library that the program has loaded for all.
    let all = ptr::without_provenance_mut(if cfg!(target_os = "macos") { usize::MAX - 1 } else { 0 });
    // SAFETY: the name ends in a byte of 0.
    unsafe { dlsym(all, name.as_ptr()) }.cast_const()
}

#[cfg(not(unix))]
fn global(_: &CStr) -> *const c_void {
    ptr::null()
}
