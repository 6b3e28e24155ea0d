//! The rules of a grammar's text in each syntax, and a vocabulary with long tokens, which small ones hide costs from.

use std::collections::BTreeMap;
use std::sync::Arc;

use logitree::grammar::json_schema::{load, SchemaOptions};
use logitree::grammar::rules::{RuleBody, Rules};
use logitree::grammar::{gbnf, lark, pattern};
use logitree::{Result, Vocabulary};

use crate::rules::of_bodies;
use crate::vocabulary::{bytes_and, ending_vocabulary};

pub fn of_pattern(text: &str) -> Result<Rules> {
    pattern::parse(text, &pattern::PatternOptions::WHOLE).map(|regex| of_bodies([RuleBody::Lexeme(regex)]))
}

pub fn of_schema(text: &str) -> Result<Rules> {
    load(text, &SchemaOptions::default(), &[]).map(|schema| of_bodies([RuleBody::Json(Arc::new(schema))]))
}

pub fn of_lark(text: &str) -> Result<Rules> {
    let schema = |text: &str| load(text, &SchemaOptions::default(), &[]).map(Arc::new);
    lark::parse(text, &lark::Resources { grammars: &BTreeMap::new(), schema: &schema })
}

/// The syntax of this number: GBNF, a pattern, a JSON Schema.
pub fn of_kind(kind: u8, text: &str) -> Result<Rules> {
    match kind % 3 {
        0 => gbnf::parse(text),
        1 => of_pattern(text),
        _ => of_schema(text),
    }
}

/// Every byte, long tokens, and an end token.
pub fn long_tokens() -> Arc<Vocabulary> {
    let long =
        ["a".repeat(16), "ab".repeat(8), "[".repeat(32), "(".repeat(16), " ".repeat(64), "x, ".repeat(5)];
    ending_vocabulary(&bytes_and(&long)).0
}
