//! The integration tests of the crate, in one binary: the recogniser and the syntaxes beside naive oracles.

mod ast;
mod earley;
mod ebnf;
mod gbnf;
mod intersection;
mod lark;
mod lazy;
mod pairs;
mod syntaxes;
mod tags;
mod temperatures;
mod triggers;
