//! The rules of a grammar's text in each syntax, and a vocabulary with long tokens, which small ones hide costs from.
#![allow(dead_code)] // each of those that include this file uses a part

use std::collections::BTreeMap;
use std::sync::Arc;

use logitree::grammar::json_schema::{load, SchemaOptions};
use logitree::grammar::rules::{Rule, RuleBody, RuleId, Rules};
use logitree::grammar::{lark, pattern};
use logitree::vocabulary::{Token, TokenKind, Vocabulary, VocabularyOptions};
use logitree::{Result, TokenId};

pub fn alone(body: RuleBody) -> Rules {
    Rules { rules: vec![Rule { name: "root".into(), body }], start: RuleId(0) }
}

pub fn of_pattern(text: &str) -> Result<Rules> {
    pattern::parse(text, &pattern::PatternOptions::WHOLE).map(|regex| alone(RuleBody::Lexeme(regex)))
}

pub fn of_schema(text: &str) -> Result<Rules> {
    load(text, &SchemaOptions::default(), &[]).map(|schema| alone(RuleBody::Json(Arc::new(schema))))
}

pub fn of_lark(text: &str) -> Result<Rules> {
    let schema = |text: &str| load(text, &SchemaOptions::default(), &[]).map(Arc::new);
    lark::parse(text, &lark::Resources { grammars: &BTreeMap::new(), schema: &schema })
}

/// Every byte, long tokens, and an end token.
pub fn long_tokens() -> Arc<Vocabulary> {
    let normal = |bytes: Vec<u8>| Token { bytes, kind: TokenKind::Normal };
    let mut tokens: Vec<Token> = (0..=255u8).map(|byte| normal(vec![byte])).collect();
    let long =
        ["a".repeat(16), "ab".repeat(8), "[".repeat(32), "(".repeat(16), " ".repeat(64), "x, ".repeat(5)];
    tokens.extend(long.map(|text| normal(text.into_bytes())));
    tokens.push(Token { bytes: b"</s>".to_vec(), kind: TokenKind::Control });
    let end = tokens.len() as TokenId - 1;
    let about = VocabularyOptions { end_of_generation: vec![end], ..VocabularyOptions::default() };
    Arc::new(Vocabulary::new(tokens, about).expect("a vocabulary with an end"))
}
