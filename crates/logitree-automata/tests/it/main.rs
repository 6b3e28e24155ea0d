//! The integration tests of the crate, in one binary: expressions and patterns beside naive oracles.

mod exprs;
mod pattern;
