//! Texts of every syntax, each read into rules by its reader.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::earley::{TokenSets, ValueSource};
use super::super::expr::Exprs;
use super::super::lazy::{self, Triggers};
use super::super::rules::{Rule, RuleBody, RuleId, Rules, TokenName, TokenNames};
use super::super::tags::{self, Content, Mark, Tag, Tags};
use super::super::{gbnf, json_schema as json, lark, pattern, Regex};
use super::Grammar;
use crate::{Error, ErrorKind, Result};

/// Limits for compiling a lenient schema when it is read: expressions and fuel.
const MAX_EXPRS: usize = 1 << 21;
const MAX_FUEL: u64 = 5_000_000;

/// Maximum bytes of a regular expression, of a structural tag, and of a literal or a choice: reading as many takes at most
/// a quarter of a second. The other syntaxes have limits of their own.
const MAX_PATTERN: usize = 4 << 20;
const MAX_TAG: usize = 8 << 20;
const MAX_TEXTS: usize = 16 << 20;

/// A text of some syntax.
#[derive(Debug, Clone, Hash)]
pub enum Syntax {
    /// A regular expression that matches the whole string.
    Regex(String),
    /// GBNF.
    Gbnf {
        /// The grammar.
        text: String,
        /// The start rule.
        root: String,
    },
    /// XGrammar's EBNF.
    Ebnf {
        /// The grammar.
        text: String,
        /// The start rule.
        root: String,
    },
    /// Lark in llguidance's dialect, from the rule `start`.
    Lark {
        /// The grammar.
        text: String,
        /// The grammars that `@name` refers to.
        grammars: Vec<(String, Grammar)>,
    },
    /// A JSON Schema: the values that are valid under it, written as the options say.
    JsonSchema {
        /// The schema's document.
        text: String,
        /// How values are written and how the document is read.
        options: json::SchemaOptions,
        /// Documents it may refer to: URIs and JSON texts.
        documents: Vec<(String, String)>,
    },
    /// Free text with tags in it.
    Tags {
        /// The tags.
        tags: Vec<TagNode>,
        /// The triggers; an empty list means the beginnings of all tags.
        triggers: Vec<Mark>,
        /// Whether text may precede the first tag.
        free_before: bool,
        /// Whether there is at least one tag.
        at_least_one: bool,
        /// Whether the text ends after the first tag.
        stop_after_first: bool,
        /// Strings and tokens that free text must not contain.
        excludes: Vec<Mark>,
    },
    /// XGrammar's structural tag as JSON.
    StructuralTag(String),
    /// Free text until a trigger, then a grammar that starts with the trigger's own text.
    Lazy {
        /// The grammar from the trigger on.
        grammar: Grammar,
        /// The triggers.
        triggers: Triggers,
    },
    /// A literal string.
    Literal(String),
    /// One of these strings.
    Choice(Vec<String>),
    /// Any string.
    Anything,
    /// One whole token.
    Token(TokenName),
}

/// A tag: content between a begin mark and an end mark.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagNode<Part = Grammar> {
    /// The begin mark.
    pub begin: Mark,
    /// The content.
    pub content: Part,
    /// The end marks. Any one ends the tag.
    pub end: Vec<Mark>,
}

impl Syntax {
    /// The rules of the text.
    pub(super) fn rules(&self) -> Result<Rules> {
        self.check_length()?;
        match self {
            Syntax::Regex(text) => {
                Ok(alone(RuleBody::Lexeme(pattern::parse(text, &pattern::PatternOptions::WHOLE)?)))
            }
            Syntax::Gbnf { text, root } => gbnf::parse_from(text, root),
            Syntax::Ebnf { text, root } => gbnf::parse_ebnf(text, root),
            Syntax::Lark { text, grammars } => lark_rules(text, grammars),
            Syntax::JsonSchema { text, options, documents } => {
                Ok(alone(RuleBody::Json(schema(json::load(text, options, documents)?)?)))
            }
            Syntax::Tags { tags, triggers, free_before, at_least_one, stop_after_first, excludes } => {
                let tags = tags.iter().map(TagNode::tag).collect::<Result<Vec<_>>>()?;
                tags::rules(&Content::Tags(Box::new(Tags {
                    triggers: triggers.clone(),
                    free_before: *free_before,
                    at_least_one: *at_least_one,
                    stop_after_first: *stop_after_first,
                    excludes: excludes.clone(),
                    ..Tags::new(tags)
                })))
            }
            Syntax::StructuralTag(text) => structural_tag(text),
            Syntax::Lazy { grammar, triggers } => lazy::rules(&*grammar.rules()?, triggers),
            Syntax::Literal(text) => Ok(alone(RuleBody::Lexeme(Regex::text(text)))),
            Syntax::Choice(texts) => {
                Ok(alone(RuleBody::Lexeme(Regex::or(texts.iter().map(|text| Regex::text(text.as_str()))))))
            }
            Syntax::Anything => Ok(alone(RuleBody::Lexeme(Regex::anything()))),
            Syntax::Token(name) => {
                Ok(alone(RuleBody::Tokens(TokenNames { tokens: vec![name.clone()], negated: false })))
            }
        }
    }

    fn check_length(&self) -> Result<()> {
        let texts = "a catalogue holds millions of texts";
        let (what, bytes, most, help) = match self {
            Syntax::Regex(text) => {
                ("regular expression", text.len(), MAX_PATTERN, "give a list of texts as a choice")
            }
            Syntax::StructuralTag(text) => ("structural tag", text.len(), MAX_TAG, ""),
            Syntax::Literal(text) => ("literal", text.len(), MAX_TEXTS, ""),
            Syntax::Choice(all) => ("choice", all.iter().map(String::len).sum(), MAX_TEXTS, texts),
            _ => return Ok(()),
        };
        if bytes > most {
            let message = format!("the {what} has {bytes} bytes, more than {most}");
            return Err(Error::new(ErrorKind::Limit, message).help(help));
        }
        Ok(())
    }

    /// The grammars that the text refers to.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Grammar> {
        let (named, tags, lazy): (&[(String, Grammar)], &[TagNode], Option<&Grammar>) = match self {
            Syntax::Lark { grammars, .. } => (grammars, &[], None),
            Syntax::Tags { tags, .. } => (&[], tags, None),
            Syntax::Lazy { grammar, .. } => (&[], &[], Some(grammar)),
            _ => (&[], &[], None),
        };
        named.iter().map(|(_, part)| part).chain(tags.iter().map(|tag| &tag.content)).chain(lazy)
    }
}

impl TagNode {
    fn tag(&self) -> Result<Tag> {
        let content = Content::Rules(Rules::clone(&*self.content.rules()?));
        Ok(Tag { begin: self.begin.clone(), content, end: self.end.clone() })
    }
}

/// Rules with a single body.
fn alone(body: RuleBody) -> Rules {
    Rules { rules: vec![Rule::new("~root", body)], start: RuleId(0) }
}

/// The rules of a Lark text. Its schemas use the default options, but for what they say in `"x-guidance"`.
fn lark_rules(text: &str, grammars: &[(String, Grammar)]) -> Result<Rules> {
    let own = |(name, part): &(String, Grammar)| Ok((name.clone(), Rules::clone(&*part.rules()?)));
    let grammars = grammars.iter().map(own).collect::<Result<BTreeMap<_, _>>>()?;
    let read = |text: &str| {
        let (text, options) = lark::guided(text)?;
        schema(json::load(&text, &options, &[])?)
    };
    lark::parse(text, &lark::Resources { grammars: &grammars, schema: &read })
}

/// The rules of XGrammar's structural tag.
fn structural_tag(text: &str) -> Result<Rules> {
    let value = serde_json::from_str(text).map_err(|error| {
        let place = format!("{}:{}", error.line(), error.column());
        Error::new(ErrorKind::Constraint, format!("the structural tag is not JSON: {error}")).at(place)
    })?;
    let read = |text: &str, options: &json::SchemaOptions| schema(json::load(text, options, &[])?);
    tags::rules(&tags::from_json(&value, &read)?)
}

/// The schema with a warning for everything that lenient mode drops; some is found only by compiling it.
fn schema(read: json::Schema) -> Result<Arc<json::Schema>> {
    let mut schema = Arc::new(read);
    if schema.options.lenient {
        let mut exprs = Exprs::new(MAX_EXPRS);
        exprs.set_fuel(MAX_FUEL);
        let mut values = json::JsonRules::new();
        values.root(&schema, &mut TokenSets::default(), &mut exprs)?;
        let dropped: Vec<String> = values.warnings().map(str::to_string).collect();
        drop(values);
        Arc::make_mut(&mut schema).warnings.extend(dropped);
    }
    Ok(schema)
}
