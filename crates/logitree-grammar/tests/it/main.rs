//! The integration tests of the crate, in one binary: the recogniser and the syntaxes beside naive oracles.

mod earley;
#[path = "../support/gbnf_writer.rs"]
mod gbnf_writer;
mod intersection;
mod rule_oracle;
mod syntaxes;
mod triggers;
