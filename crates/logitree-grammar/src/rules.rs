//! Context-free rules as plain data: what GBNF, Lark, tags and builders produce. It refuses to know how rules are run.

use std::sync::Arc;

use super::json_schema::Schema;
use super::Regex;

/// The number of a rule in its [`Rules`].
pub type RuleId = usize;

/// Whole tokens, for vocabularies that have them: control tokens and what a grammar names by id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenSet {
    /// How the grammar names them, in its order.
    pub tokens: Vec<TokenName>,
    /// Every token but these.
    pub negated: bool,
}

/// A token as a grammar names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TokenName {
    /// By its number.
    Id(u32),
    /// By its text, `<think>` say: the control token of that text, or the one token that spells it.
    Text(String),
}

/// The body of a rule.
#[derive(Debug, Clone)]
pub enum RuleBody {
    /// A regular language, in UTF-8.
    Lexeme(Regex),
    /// What another rule says.
    Ref(RuleId),
    /// One after the other.
    Seq(Vec<RuleBody>),
    /// Any of these.
    Alt(Vec<RuleBody>),
    /// At least `min` times and at most `max` times. Counted, never unrolled.
    Repeat {
        /// What is repeated.
        of: Box<RuleBody>,
        /// How often at least.
        min: u32,
        /// How often at most; `None` is without end.
        max: Option<u32>,
    },
    /// One whole token of a set.
    Tokens(TokenSet),
    /// A JSON value of a schema.
    Json(Arc<Schema>),
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The name in the grammar's text, for messages.
    pub name: String,
    /// What it says.
    pub body: RuleBody,
}

/// A grammar: rules, and the one that everything starts from.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The rules; a [`RuleId`] is a place here.
    pub rules: Vec<Rule>,
    /// Where it starts.
    pub start: RuleId,
}
