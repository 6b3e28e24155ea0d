//! The sampler for llama.cpp's own chains.
#![allow(unsafe_code)] // exported names

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

use logitree::constraint::form::Fields;
use logitree::decoder::Then;
use logitree::Chain;
use logitree_llama::{LlamaLibrary, RawSampler, SamplerOptions, SamplerRecord, SamplerState, Selection};

use crate::chain::LogitreeChain;
use crate::decoder::fork_of;
use crate::handles::{handle, insert, remove, shared};
use crate::matcher::LogitreeMatcher;
use crate::memory::{export, In, Out};
use crate::status::{argument, invalid, Outcome};
use crate::vocabulary::{vocabulary_of, LogitreeVocabulary};

handle! {
    /// What a program may ask of a sampler that a chain of llama.cpp owns. Any number of threads may use it at once.
    LogitreeLlamaRecord, Arc<SamplerRecord>, 7, "record"
}

/// The functions of the libllama that the program has loaded: their addresses, as dlsym gives them. All are needed.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct LogitreeLlamaLibrary {
    /// sizeof(logitree_llama_library).
    pub struct_size: usize,
    /// sizeof(llama_token_data) of its llama.h: 12.
    pub token_data_size: usize,
    /// sizeof(llama_token_data_array) of its llama.h: 32 on a 64-bit machine.
    pub token_data_array_size: usize,
    /// llama_sampler_init.
    pub sampler_init: *const c_void,
    /// llama_sampler_name.
    pub sampler_name: *const c_void,
    /// llama_sampler_accept.
    pub sampler_accept: *const c_void,
    /// llama_sampler_apply.
    pub sampler_apply: *const c_void,
    /// llama_sampler_reset.
    pub sampler_reset: *const c_void,
    /// llama_sampler_clone.
    pub sampler_clone: *const c_void,
    /// llama_sampler_free.
    pub sampler_free: *const c_void,
}

export! {
    /// Makes a llama_sampler for any chain of the loaded libllama: a constraint, a whole logitree chain that selects,
    /// or both.
    ///
    /// `matcher`: NULL, or the constraint, from its present state on; it is copied. `chain`: NULL, or the chain; it is
    /// copied. The pointer at `sampler` is a `struct llama_sampler *` that belongs to the
    /// caller, until llama_sampler_chain_add gives it to a chain or llama_sampler_free frees it. Place it after
    /// penalties and before everything that cuts candidates. `record`: NULL, or where a handle is written that says
    /// what went wrong.
    ///
    /// `options`: NULL, or a JSON object {"mode": "sample", "then": "continue", "counts_first": true}. "mode", without a
    /// chain: "greedy" (the default) selects the likeliest of the allowed tokens, with "sample" the samplers that follow
    /// choose. "then": after a constraint that is over only end-of-generation tokens follow ("stop", the default), or
    /// anything ("continue"). "counts_first": tokens that are accepted before the first apply are the beginning of the
    /// output, and not a prompt.
    ///
    /// A sampler fails closed: after an error an end-of-generation token is the only candidate, until a reset.
    ///
    /// Pointers: the functions are those of one libllama, which stays loaded while a sampler lives; `length` bytes may
    /// be read at `options`, if it is not NULL; a pointer may be written at `sampler` and, if it is not NULL, a handle at `record`. libllama uses a
    /// sampler in one thread at a time.
    fn logitree_llama_sampler(
        library: In<LogitreeLlamaLibrary>,
        vocabulary: *const LogitreeVocabulary,
        matcher: *const LogitreeMatcher,
        chain: *const LogitreeChain,
        options: In<c_char>,
        length: usize,
        sampler: Out<*mut c_void>,
        record: Out<*mut LogitreeLlamaRecord>,
    ) {
        sampler.put(ptr::null_mut())?;
        if !record.is_null() {
            record.put(ptr::null_mut())?;
        }
        let (selection, options) = read(options.options(length)?).map_err(invalid)?;
        let library = library_of(library)?;
        let state = state_of(vocabulary, matcher, chain, selection, options)?;
        let watched = if record.is_null() { None } else { Some(insert(Arc::clone(state.record()))?) };
        let made: *mut RawSampler = library.create(state).inspect_err(|_| {
            // Just made: it cannot be in use.
            drop(watched.map(|record: *mut LogitreeLlamaRecord| remove(record.cast())));
        })?;
        if let Some(watched) = watched {
            record.put(watched)?;
        }
        sampler.put(made.cast::<c_void>())
    }
}

fn library_of(library: In<LogitreeLlamaLibrary>) -> Outcome<LlamaLibrary> {
    let Some(given) = library.sized(|given| given.struct_size)? else {
        return Err(argument("library is NULL", "library"));
    };
    let functions = [
        given.sampler_init,
        given.sampler_name,
        given.sampler_accept,
        given.sampler_apply,
        given.sampler_reset,
        given.sampler_clone,
        given.sampler_free,
    ];
    // SAFETY: the caller's promise.
    Ok(unsafe { LlamaLibrary::new(functions, given.token_data_size, given.token_data_array_size) }?)
}

/// Who selects without a chain, and the rest of the options.
fn read(mut given: Fields) -> logitree::Result<(Selection, SamplerOptions)> {
    let selection = match given.optional_text("mode")?.as_deref() {
        None | Some("greedy") => Selection::Greedy,
        Some("sample") => Selection::Leave,
        Some(_) => return Err(given.wrong("mode", "\"greedy\" or \"sample\"")),
    };
    let then = match given.optional_text("then")?.as_deref() {
        None | Some("stop") => Then::Stop,
        Some("continue") => Then::Continue,
        Some(_) => return Err(given.wrong("then", "\"stop\" or \"continue\"")),
    };
    let counts_first = given.switch("counts_first")?;
    given.end()?;
    Ok((selection, SamplerOptions { then, counts_first, ..SamplerOptions::default() }))
}

fn state_of(
    vocabulary: *const LogitreeVocabulary,
    matcher: *const LogitreeMatcher,
    chain: *const LogitreeChain,
    otherwise: Selection,
    options: SamplerOptions,
) -> Outcome<SamplerState> {
    let selection =
        if chain.is_null() { otherwise } else { Selection::Chain(Box::new(Chain::clone(&*shared(chain)?))) };
    Ok(SamplerState::new(&vocabulary_of(vocabulary)?, fork_of(matcher)?, selection, options)?)
}

export! {
    /// The first error of the sampler and its clones since the last call: its status, and this thread's last error.
    /// LOGITREE_OK if there was none. logitree_describe of the record has the sums of its steps.
    fn logitree_llama_record_check(record: *const LogitreeLlamaRecord) {
        shared(record)?.take_error().map_or(Ok(()), |error| Err(error.into()))
    }
}
