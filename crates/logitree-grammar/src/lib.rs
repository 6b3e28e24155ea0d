//! Context-free languages over bytes: GBNF, Lark, JSON Schema and structural tags are read into [`rules`] and run by one
//! Earley recogniser.
//!
//! ```text
//! gbnf, lark, tags, json_schema -> rules -> earley (byte by byte; lexemes are expressions of logitree-automata)
//! ```
//!
//! ```
//! use logitree_grammar::earley::{Machine, MachineLimits, RulesSource, DEAD};
//! use logitree_grammar::{expr::Exprs, gbnf};
//!
//! let rules = gbnf::parse("root ::= \"(\" root \")\" | \"x\"")?;
//! let mut exprs = Exprs::new(1 << 16);
//! let source = RulesSource::new(&rules, &mut exprs, None)?;
//! let start = source.start();
//! let mut machine = Machine::new(Box::new(source), start, exprs, MachineLimits::default())?;
//! let mut config = machine.start();
//! for byte in *b"((x))" {
//!     config = machine.step(config, byte)?;
//! }
//! assert!(machine.is_accepting(config));
//! assert_eq!(machine.step(config, b')')?, DEAD);
//! # Ok::<(), logitree_grammar::Error>(())
//! ```
//!
//! A lexeme that is a whole token is an opaque set of token ids here: the crate knows no vocabulary.

mod append;
pub mod ast;
pub mod earley;
pub mod gbnf;
mod join;
pub mod json_schema;
pub mod lark;
pub mod lazy;
pub mod rules;
mod substrings;
pub mod tags;
mod weight;

pub use logitree_automata::{
    charset, dfa, expr, pattern, regex, CharSet, Dfa, Error, ErrorKind, Regex, Result,
};
use logitree_automata::{endings, id, problems, Chunks, IdTable};

/// The id of a token in its vocabulary.
pub type TokenId = u32;
