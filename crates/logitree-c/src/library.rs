//! The library itself: versions, features, how many handles are alive.
#![allow(unsafe_code)] // exported names

use std::ffi::c_char;

use crate::memory::{Argument, In};

/// The version of this interface. It grows when a declaration changes or goes; new declarations do not change it.
pub const LOGITREE_ABI_VERSION: u32 = 2;

/// A length that means: up to the first byte of 0.
pub const LOGITREE_NUL_TERMINATED: usize = usize::MAX;

/// No limit of tokens.
pub const LOGITREE_NO_LIMIT: usize = usize::MAX;

/// No token.
pub const LOGITREE_NO_TOKEN: u32 = u32::MAX;

pub(crate) const FEATURES: [&str; 24] = [
    "gguf",
    "tokenizer_json",
    "tekken",
    "sentencepiece",
    "choices",
    "regex",
    "gbnf",
    "ebnf",
    "lark",
    "json_schema",
    "structural_tag",
    "token_tree",
    "both",
    "until",
    "ban",
    "canonical",
    "skeleton",
    "reasoning_budget",
    "catalogue",
    "chain",
    "decoder",
    "batch",
    "walk",
    "llama_sampler",
];

/// The version of the interface that the library has; compare it with LOGITREE_ABI_VERSION of the header.
#[no_mangle]
pub extern "C" fn logitree_abi_version() -> u32 {
    LOGITREE_ABI_VERSION
}

/// The version of logitree, such as "0.2.0". It lives forever.
#[no_mangle]
pub extern "C" fn logitree_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Whether the library has a feature: a type of constraint ("regex", "json_schema", "token_tree", ...), a format of
/// vocabularies ("gguf", ...), "chain", "decoder", "batch", "walk", "llama_sampler". NULL is no feature. logitree_describe(NULL) lists them.
///
/// # Safety
/// `feature` is NULL or a text that ends in a byte of 0.
#[no_mangle]
pub unsafe extern "C" fn logitree_has_feature(feature: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    let feature: In<c_char> = unsafe { Argument::take(feature, "feature") };
    let Ok(feature) = feature.text() else { return false };
    FEATURES.contains(&feature)
}

/// Number of handles that were made and not freed, of all threads: what a test of a program compares.
#[no_mangle]
pub extern "C" fn logitree_live_handles() -> usize {
    crate::handles::live()
}
