//! The integration tests of the crate: one binary, a module for each part of the crate. Tests that count
//! allocations have a binary of their own, `tests/memory`.

mod catalogue_operations;
mod constraint;
mod decoder;
mod grammar;
mod mask;
mod trie;
mod vocabulary;
