//! The extension's allocator.
#![allow(unsafe_code)] // calls mimalloc

use std::ffi::{c_int, c_long};

use libmimalloc_sys::{mi_option_get, mi_option_set_default};

/// Compiling a schema makes and frees hundreds of small things: the system's allocator takes a fifth of that time.
/// Without huge pages (`no_thp`): the first use of one clears two MiB, in whatever mask comes just then.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 2: after how many milliseconds freed pages go back to the system.
const PURGE_DELAY: c_int = 15;
/// What it is unless the environment says otherwise.
const DEFAULT_MILLISECONDS: c_long = 10;
/// As long as it takes a model to make a few tokens: the next grammar uses the pages of the one before.
const MILLISECONDS: c_long = 1_000;

/// Keeps freed pages for a second. After ten milliseconds, less than a forward pass takes, they were returned: the next
/// grammar got them again, cleared by the system one by one. `MIMALLOC_PURGE_DELAY` in the environment has precedence.
pub fn keep_freed_pages() {
    // SAFETY: both take a number of an option, read and write one static array of mimalloc, check the number, and the
    // import of a module runs once, before other threads have this extension.
    unsafe {
        if mi_option_get(PURGE_DELAY) == DEFAULT_MILLISECONDS {
            mi_option_set_default(PURGE_DELAY, MILLISECONDS);
        }
    }
}
