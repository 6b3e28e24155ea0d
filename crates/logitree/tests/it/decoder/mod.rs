//! Tests of decoders, one by one and in batches.

mod batch;
mod log;
mod steps;
