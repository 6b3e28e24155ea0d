//! The sampler for llama.cpp's own chains.
#![allow(unsafe_code)] // exported names

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use logitree::decoder::Then;
use logitree::{Chain, Matcher};
use logitree_llama::{LlamaLibrary, RawSampler, SamplerOptions, SamplerRecord, SamplerState, Selection};

use crate::chain::LogitreeChain;
use crate::handles::{handle, insert, remove, shared};
use crate::matcher::LogitreeMatcher;
use crate::memory::{export, In, Out};
use crate::status::{argument, Outcome};
use crate::vocabulary::{vocabulary_of, LogitreeVocabulary};

handle! {
    /// What a program may ask of a sampler that a chain of llama.cpp owns. Any number of threads may use it at once.
    LogitreeLlamaRecord, Arc<SamplerRecord>, 8, "record"
}

/// Mode 0: the likeliest of the allowed tokens is selected.
pub const LOGITREE_LLAMA_GREEDY: u32 = 0;
/// Mode 1: the samplers that follow choose among the allowed tokens.
pub const LOGITREE_LLAMA_SAMPLE: u32 = 1;

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

/// How a sampler behaves. Begin with LOGITREE_LLAMA_OPTIONS_INIT.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct LogitreeLlamaOptions {
    /// sizeof(logitree_llama_options).
    pub struct_size: usize,
    /// LOGITREE_LLAMA_GREEDY or LOGITREE_LLAMA_SAMPLE; not looked at with a chain.
    pub mode: u32,
    /// 0: only end-of-generation tokens follow a constraint that is over; not 0: anything.
    pub continues: u32,
    /// 0: tokens that are accepted before the first apply are a prompt; not 0: they are the beginning of the output.
    pub counts_first: u32,
}

/// Sums over the steps of a sampler and its clones. A skip ratio is (candidates - allowed candidates) / candidates.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct LogitreeLlamaCounts {
    /// sizeof(logitree_llama_counts).
    pub struct_size: usize,
    /// Steps in which the constraint decided what is allowed.
    pub steps: u64,
    /// Of those, steps with one allowed candidate.
    pub sole: u64,
    /// Candidates before the constraint.
    pub candidates: u64,
    /// Candidates that were allowed.
    pub kept: u64,
    /// Sum of the steps' skip ratios.
    pub skip_ratio: f64,
    /// Sum of their squares.
    pub skip_ratio_squared: f64,
}

export! {
    /// Makes a llama_sampler for any chain of the loaded libllama: a constraint, a whole logitree chain that selects,
    /// or both.
    ///
    /// `matcher`: NULL, or the constraint, from its present state on; it is copied. `chain`: NULL, or the chain; it is
    /// copied. `options`: NULL for greedy. The pointer at `sampler` is a `struct llama_sampler *` that belongs to the
    /// caller, until llama_sampler_chain_add gives it to a chain or llama_sampler_free frees it. Place it after
    /// penalties and before everything that cuts candidates. `record`: NULL, or where a handle is written that says
    /// what went wrong.
    ///
    /// A sampler fails closed: after an error an end-of-generation token is the only candidate, until a reset.
    ///
    /// Pointers: the functions are those of one libllama, which stays loaded while a sampler lives; the structs may be
    /// read; a pointer may be written at `sampler` and, if it is not NULL, a handle at `record`. libllama uses a
    /// sampler in one thread at a time.
    fn logitree_llama_sampler(
        library: In<LogitreeLlamaLibrary>,
        vocabulary: *const LogitreeVocabulary,
        matcher: *const LogitreeMatcher,
        chain: *const LogitreeChain,
        options: In<LogitreeLlamaOptions>,
        sampler: Out<*mut c_void>,
        record: Out<*mut LogitreeLlamaRecord>,
    ) {
        let given = {
            sampler.put(ptr::null_mut())?;
            if !record.is_null() {
                record.put(ptr::null_mut())?;
            }
            options.options(|given| given.struct_size)?
        };
        let library = library_of(library)?;
        let state = state_of(vocabulary, matcher, chain, given)?;
        let watched = if record.is_null() { None } else { Some(insert(Arc::clone(state.record()))?) };
        let made: *mut RawSampler = library.create(state).inspect_err(|_| {
            // Just made: it cannot be in use.
            drop(watched.map(remove::<LogitreeLlamaRecord>));
        })?;
        {
            if let Some(watched) = watched {
                record.put(watched)?;
            }
            sampler.put(made.cast::<c_void>())
        }
    }
}

fn library_of(library: In<LogitreeLlamaLibrary>) -> Outcome<LlamaLibrary> {
    let Some(given) = library.options(|given| given.struct_size)? else {
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

fn state_of(
    vocabulary: *const LogitreeVocabulary,
    matcher: *const LogitreeMatcher,
    chain: *const LogitreeChain,
    given: Option<LogitreeLlamaOptions>,
) -> Outcome<SamplerState> {
    let vocabulary = vocabulary_of(vocabulary)?;
    let matcher: Option<Box<dyn Matcher>> =
        if matcher.is_null() { None } else { Some(shared(matcher)?.fork()) };
    let selection = if chain.is_null() {
        match given.map_or(LOGITREE_LLAMA_GREEDY, |given| given.mode) {
            LOGITREE_LLAMA_GREEDY => Selection::Greedy,
            LOGITREE_LLAMA_SAMPLE => Selection::Leave,
            mode => return Err(argument(format!("there is no mode {mode}"), "options.mode")),
        }
    } else {
        Selection::Chain(Box::new(Chain::clone(&*shared(chain)?)))
    };
    let options = given.map_or_else(SamplerOptions::default, |given| SamplerOptions {
        then: if given.continues == 0 { Then::Stop } else { Then::Continue },
        counts_first: given.counts_first != 0,
        ..SamplerOptions::default()
    });
    Ok(SamplerState::new(&vocabulary, matcher, selection, options)?)
}

export! {
    /// The first error of the sampler and its clones since the last call: its status, and this thread's last error.
    /// LOGITREE_OK if there was none.
    fn logitree_llama_record_check(record: *const LogitreeLlamaRecord) {
        shared(record)?.take_error().map_or(Ok(()), |error| Err(error.into()))
    }

    /// The sums so far. `counts->struct_size` is set by the caller: LOGITREE_LLAMA_COUNTS_INIT.
    ///
    /// Pointers: `counts` is NULL or may be read and written.
    fn logitree_llama_record_counts(record: *const LogitreeLlamaRecord, counts: Out<LogitreeLlamaCounts>) {
        let Some(given) = counts.before().options(|given| given.struct_size)?
        else {
            return Err(argument("counts is NULL", "counts"));
        };
        let sums = shared(record)?.counts();
        let made = LogitreeLlamaCounts {
            struct_size: given.struct_size,
            steps: sums.steps,
            sole: sums.sole,
            candidates: sums.candidates,
            kept: sums.kept,
            skip_ratio: sums.skip_ratio,
            skip_ratio_squared: sums.skip_ratio_squared,
        };
        counts.put(made)
    }

    /// Frees a record. The sampler lives on. NULL is no error.
    fn logitree_llama_record_free(record: *mut LogitreeLlamaRecord) {
        remove(record)
    }
}
