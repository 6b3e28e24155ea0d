//! The integration tests of the crate, in one binary: the recogniser, the syntaxes and JSON Schema beside naive oracles.

mod earley;
#[path = "../support/gbnf_writer.rs"]
mod gbnf_writer;
mod json;
mod rule_oracle;
mod syntaxes;
mod triggers;
