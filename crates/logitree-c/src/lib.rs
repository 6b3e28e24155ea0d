//! logitree for C: what `include/logitree.h` declares, and nothing that the core does not do.
//!
//! The header is written from these files by `scripts/c_header.py`, comments included; a test compares the two. Rules for
//! every function, which the header repeats:
//!
//! - A function returns a [`LogitreeStatus`], 0 for success, and writes its results through pointers. After an error,
//!   nothing has changed, and what a handle would be written to holds NULL.
//! - No panic and no exception leaves a function.
//! - A handle is a number in the form of a pointer: it leads nowhere, and a handle that was freed or is of another kind
//!   is an error ([`handles`]).
//! - A function copies what it is given. Nothing that it returns is borrowed, except the texts of errors.

pub mod any;
pub mod batch;
pub mod catalogue;
pub mod chain;
mod chain_params;
pub mod constraint;
pub mod decoder;
pub mod eliza;
pub mod handles;
pub mod library;
pub mod llama;
pub mod matcher;
pub mod memory;
pub mod metrics;
pub mod status;
pub mod vocabulary;

pub use status::LogitreeStatus;
