//! The library itself: versions, features, sizes of structs, how many handles are alive.
#![allow(unsafe_code)] // exported names

use std::ffi::{c_char, CStr};

use crate::memory::{Argument, In};

/// The version of this interface. It grows when a declaration changes or goes; new declarations do not change it.
pub const LOGITREE_ABI_VERSION: u32 = 1;

/// A length that means: up to the first byte of 0.
pub const LOGITREE_NUL_TERMINATED: usize = usize::MAX;

/// No limit of tokens.
pub const LOGITREE_NO_LIMIT: usize = usize::MAX;

/// No token.
pub const LOGITREE_NO_TOKEN: u32 = u32::MAX;

const FEATURES: [&CStr; 23] = [
    c"gguf",
    c"tokenizer_json",
    c"tekken",
    c"sentencepiece",
    c"choices",
    c"regex",
    c"gbnf",
    c"lark",
    c"json_schema",
    c"structural_tag",
    c"token_tree",
    c"both",
    c"until",
    c"ban",
    c"canonical",
    c"skeleton",
    c"reasoning_budget",
    c"catalogue",
    c"chain",
    c"decoder",
    c"batch",
    c"walk",
    c"llama_sampler",
];

/// The version of the interface that the library has; compare it with LOGITREE_ABI_VERSION of the header.
#[no_mangle]
pub extern "C" fn logitree_abi_version() -> u32 {
    LOGITREE_ABI_VERSION
}

/// The version of logitree, such as "0.1.0". It lives forever.
#[no_mangle]
pub extern "C" fn logitree_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Whether the library has a feature: a type of constraint ("regex", "json_schema", "token_tree", ...), a format of
/// vocabularies ("gguf", ...), "chain", "decoder", "batch", "walk", "llama_sampler". NULL is no feature.
///
/// # Safety
/// `feature` is NULL or a text that ends in a byte of 0.
#[no_mangle]
pub unsafe extern "C" fn logitree_has_feature(feature: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    let feature: In<c_char> = unsafe { Argument::take(feature, "feature") };
    let Ok(feature) = feature.text() else { return false };
    FEATURES.iter().any(|known| known.to_bytes() == feature.as_bytes())
}

/// The name of the feature with this number, from 0 on; NULL past the last. It lives forever.
#[no_mangle]
pub extern "C" fn logitree_feature(number: usize) -> *const c_char {
    FEATURES.get(number).map_or(std::ptr::null(), |feature| feature.as_ptr())
}

/// The library's size of a struct of the header, such as "logitree_text"; 0 for an unknown name.
///
/// # Safety
/// `name` is NULL or a text that ends in a byte of 0.
#[no_mangle]
pub unsafe extern "C" fn logitree_struct_size(name: *const c_char) -> usize {
    // SAFETY: the caller's promise.
    let name: In<c_char> = unsafe { Argument::take(name, "name") };
    match name.text() {
        Ok("logitree_text") => size_of::<crate::memory::LogitreeText>(),
        Ok("logitree_decoder_options") => size_of::<crate::decoder::LogitreeDecoderOptions>(),
        Ok("logitree_beam") => size_of::<crate::catalogue::LogitreeBeam>(),
        Ok("logitree_llama_library") => size_of::<crate::llama::LogitreeLlamaLibrary>(),
        Ok("logitree_llama_options") => size_of::<crate::llama::LogitreeLlamaOptions>(),
        Ok("logitree_llama_counts") => size_of::<crate::llama::LogitreeLlamaCounts>(),
        _ => 0,
    }
}

/// Number of handles that were made and not freed, of all threads: what a test of a program compares.
#[no_mangle]
pub extern "C" fn logitree_live_handles() -> usize {
    crate::handles::live()
}
