//! The integration tests of the crate, in one binary: the recogniser, the syntaxes and JSON Schema beside naive oracles.

mod earley;
mod json;
mod rule_oracle;
mod syntaxes;
mod triggers;
