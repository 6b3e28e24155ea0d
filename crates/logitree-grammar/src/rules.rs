//! Context-free rules as plain data: what GBNF, Lark, tags and builders produce.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::json_schema::Schema;
use super::Regex;
use crate::id;

id!(
    /// The index of a rule in its [`Rules`].
    pub struct RuleId
);

/// What the names of rules begin with that no user wrote.
pub(crate) const INNER: char = '~';

/// The name of a rule as its author wrote it; `None` for rules that the library made. A group inside of a rule has the
/// rule's name.
pub(crate) fn written_name(name: &str) -> Option<&str> {
    let name = match name.strip_prefix(INNER) {
        None => name,
        Some(inner) => inner.split_once(':')?.1,
    };
    if name.starts_with(INNER) {
        return written_name(name);
    }
    match name.rsplit_once("-part-") {
        Some((owner, number)) if number.bytes().all(|b| b.is_ascii_digit()) => Some(owner),
        _ => Some(name),
    }
}

/// A set of whole tokens, for control tokens and tokens that a grammar names by id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenNames {
    /// The tokens as the grammar names them, in its order.
    pub tokens: Vec<TokenName>,
    /// Whether the set is every token except these.
    pub negated: bool,
}

/// A token as a grammar names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TokenName {
    /// By id.
    #[serde(rename = "token_id")]
    Id(u32),
    /// By text, such as `<think>`: the control token with that text, or the one token that spells it.
    #[serde(rename = "token_text")]
    Text(String),
}

/// The body of a rule.
#[derive(Debug, Clone)]
pub enum RuleBody {
    /// A regular language, in UTF-8.
    Lexeme(Regex),
    /// A reference to another rule.
    Ref(RuleId),
    /// Concatenation.
    Seq(Vec<RuleBody>),
    /// Union.
    Alt(Vec<RuleBody>),
    /// At least `min` and at most `max` repetitions. Counted, never unrolled.
    Repeat {
        /// What is repeated.
        of: Box<RuleBody>,
        /// The minimum count.
        min: u32,
        /// The maximum count; `None` is unbounded.
        max: Option<u32>,
    },
    /// One whole token of a set.
    Tokens(TokenNames),
    /// A JSON value that is valid under a schema.
    Json(Arc<Schema>),
    /// A text of rules that is in a regular language, too.
    Both(Arc<Intersected>),
}

/// Rules and a regular language that are intersected.
#[derive(Debug)]
pub struct Intersected {
    /// The rules. They name no tokens.
    pub rules: Arc<Rules>,
    /// The language, in UTF-8.
    pub regex: Regex,
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The name in the grammar's text, for messages.
    pub name: String,
    /// The body.
    pub body: RuleBody,
    /// What it says beside its texts.
    pub marks: Marks,
}

impl Rule {
    /// A rule that only says which texts there are.
    pub fn new(name: impl Into<String>, body: RuleBody) -> Rule {
        Rule { name: name.into(), body, marks: Marks::default() }
    }
}

/// What a rule says of its occurrences beside their texts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Marks {
    /// After how many tokens an occurrence ends as soon as it can; at least 1. The token in which it begins counts only if it
    /// begins with it. Only of a rule that is a regular expression.
    pub max_tokens: Option<u32>,
    /// What is captured of an occurrence (`captures` in logitree-constraint).
    pub capture: Option<Captured>,
    /// The temperature at which the tokens of an occurrence are to be sampled: at least 0.
    pub temperature: Option<f32>,
}

impl Marks {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Marks::default()
    }

    /// Whether the tokens of an occurrence are treated in a way of their own: then its language alone is not the rule.
    pub fn concern_tokens(&self) -> bool {
        self.max_tokens.is_some() || self.temperature.is_some()
    }
}

/// A temperature as a grammar writes it: a finite number from 0 on.
pub(crate) fn temperature(written: &str) -> Option<f32> {
    written.parse().ok().filter(|number: &f32| number.is_finite() && *number >= 0.0)
}

/// What is captured of the text of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The name of the text; `None`: only what ends it has one.
    pub name: Option<Arc<str>>,
    /// What ends the text, where that is captured by itself.
    pub end: Option<CapturedEnd>,
}

/// What ends a captured text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedEnd {
    /// Its name; `None`: it is only taken off the text.
    pub name: Option<Arc<str>>,
    /// Its language.
    pub language: Regex,
    /// The language of the text before it, where it is a part of the rule's text (a suffix). `None`: it follows the rule's text
    /// (a stop).
    pub before: Option<Regex>,
}

/// The texts of the tokens between which [`Rules::with_borders`] puts what the rule of this number captures.
pub fn borders(number: usize) -> [String; 2] {
    [format!("<{number}>"), format!("</{number}>")]
}

/// A grammar: rules and a start rule.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The rules, indexed by [`RuleId`].
    pub rules: Vec<Rule>,
    /// The start rule.
    pub start: RuleId,
}

impl Rules {
    /// The same rules with each capture between two named tokens, [`borders`] of its number, and the captures by
    /// number. Tokens are not counted. `None` where nothing is captured.
    pub fn with_borders(&self) -> Option<(Rules, Vec<Captured>)> {
        let (mut made, mut captured) = (self.clone(), Vec::new());
        for id in 0..self.rules.len() {
            made.rules[id].marks = Marks::default();
            let Some(capture) = &self.rules[id].marks.capture else { continue };
            let inner = RuleId::new(made.rules.len());
            let border = |text: String| {
                RuleBody::Tokens(TokenNames { tokens: vec![TokenName::Text(text)], negated: false })
            };
            let [begin, end] = borders(captured.len()).map(border);
            let outer = RuleBody::Seq(vec![begin, RuleBody::Ref(inner), end]);
            let body = std::mem::replace(&mut made.rules[id].body, outer);
            made.rules.push(Rule::new(self.rules[id].name.clone(), body));
            captured.push(capture.clone());
        }
        (!captured.is_empty()).then_some((made, captured))
    }
}
