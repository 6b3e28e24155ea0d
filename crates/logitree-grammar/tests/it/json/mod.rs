//! Tests of the JSON Schema compiler.

pub mod data;
mod format;
mod frames;
mod load;
mod random;
