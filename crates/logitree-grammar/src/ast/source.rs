//! Texts of every syntax, each read into rules by its own reader. It refuses to know how parts are joined.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::earley::Values;
use super::super::expr::Exprs;
use super::super::lazy::{self, Triggers};
use super::super::rules::{Node, Rule, Rules, TokenName, TokenSet};
use super::super::tags::{self, Content, Mark, Tag, Tags};
use super::super::{gbnf, json_schema as json, lark, pattern, Regex};
use super::Part;
use crate::{Error, ErrorKind, Result};

/// What compiling a lenient schema may cost while it is read: expressions, and steps of work.
const MOST_EXPRS: usize = 1 << 21;
const MOST_FUEL: u64 = 5_000_000;

/// A text of some syntax.
#[derive(Debug, Clone)]
pub enum Source {
    /// A regular expression; the whole text matches it.
    Regex(String),
    /// GBNF, from the rule `root`.
    Gbnf {
        /// The grammar.
        text: String,
        /// Where it starts.
        root: String,
    },
    /// Lark as llguidance reads it, from the rule `start`.
    Lark {
        /// The grammar.
        text: String,
        /// What its `@name` stand for.
        grammars: Vec<(String, Part)>,
    },
    /// A JSON Schema: a value that is valid under it, as the options write it.
    JsonSchema {
        /// The schema's document.
        text: String,
        /// How values are written, and how the document is read.
        options: json::Options,
        /// What it may refer to: URIs and the JSON found there.
        documents: Vec<(String, String)>,
    },
    /// Free text with tags in it.
    Tags {
        /// The tags.
        tags: Vec<TagPart>,
        /// What triggers them; none stands for the beginnings of all tags.
        triggers: Vec<Mark>,
        /// Whether text may stand before the first tag.
        free_before: bool,
        /// Whether there is at least one tag.
        at_least_one: bool,
        /// Whether all ends behind the first tag.
        stop_after_first: bool,
        /// What must not stand in free text.
        excludes: Vec<Mark>,
    },
    /// XGrammar's structural tag, as JSON.
    StructuralTag(String),
    /// Free text until a trigger, and from there on a grammar that starts with the trigger's own text.
    Lazy {
        /// What comes from the trigger on.
        grammar: Part,
        /// What triggers it.
        triggers: Triggers,
    },
    /// This text.
    Literal(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// Any text.
    Anything,
    /// One whole token.
    Token(TokenName),
}

/// A tag: what stands between two marks.
#[derive(Debug, Clone)]
pub struct TagPart {
    /// How it begins.
    pub begin: Mark,
    /// What it says.
    pub content: Part,
    /// How it ends: any of these.
    pub end: Vec<Mark>,
}

impl Source {
    /// The rules that the text says.
    pub(super) fn rules(&self) -> Result<Rules> {
        match self {
            Source::Regex(text) => Ok(alone(Node::Lexeme(pattern::parse(text, &pattern::Options::WHOLE)?))),
            Source::Gbnf { text, root } => gbnf::parse_from(text, root),
            Source::Lark { text, grammars } => lark_rules(text, grammars),
            Source::JsonSchema { text, options, documents } => {
                Ok(alone(Node::Json(schema(json::load(text, options, documents)?)?)))
            }
            Source::Tags { tags, triggers, free_before, at_least_one, stop_after_first, excludes } => {
                let tags = tags.iter().map(TagPart::tag).collect::<Result<Vec<_>>>()?;
                tags::rules(&Content::Tags(Box::new(Tags {
                    triggers: triggers.clone(),
                    free_before: *free_before,
                    at_least_one: *at_least_one,
                    stop_after_first: *stop_after_first,
                    excludes: excludes.clone(),
                    ..Tags::new(tags)
                })))
            }
            Source::StructuralTag(text) => structural_tag(text),
            Source::Lazy { grammar, triggers } => lazy::rules(&*grammar.rules()?, triggers),
            Source::Literal(text) => Ok(alone(Node::Lexeme(Regex::text(text)))),
            Source::Choice(texts) => {
                Ok(alone(Node::Lexeme(Regex::or(texts.iter().map(|text| Regex::text(text.as_str()))))))
            }
            Source::Anything => Ok(alone(Node::Lexeme(Regex::anything()))),
            Source::Token(name) => {
                Ok(alone(Node::Tokens(TokenSet { tokens: vec![name.clone()], negated: false })))
            }
        }
    }

    /// The grammars that the text was read with.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Part> {
        let (named, tags, lazy): (&[(String, Part)], &[TagPart], Option<&Part>) = match self {
            Source::Lark { grammars, .. } => (grammars, &[], None),
            Source::Tags { tags, .. } => (&[], tags, None),
            Source::Lazy { grammar, .. } => (&[], &[], Some(grammar)),
            _ => (&[], &[], None),
        };
        named.iter().map(|(_, part)| part).chain(tags.iter().map(|tag| &tag.content)).chain(lazy)
    }
}

impl TagPart {
    fn tag(&self) -> Result<Tag> {
        let content = Content::Rules(Rules::clone(&*self.content.rules()?));
        Ok(Tag { begin: self.begin.clone(), content, end: self.end.clone() })
    }
}

/// Rules of one body.
fn alone(body: Node) -> Rules {
    Rules { rules: vec![Rule { name: "root".into(), body }], start: 0 }
}

/// The rules of a Lark text; schemas in it are written with the default options.
fn lark_rules(text: &str, grammars: &[(String, Part)]) -> Result<Rules> {
    let own = |(name, part): &(String, Part)| Ok((name.clone(), Rules::clone(&*part.rules()?)));
    let grammars = grammars.iter().map(own).collect::<Result<BTreeMap<_, _>>>()?;
    let options = json::Options::default();
    let read = |text: &str| schema(json::load(text, &options, &[])?);
    lark::parse(text, &lark::Resources { grammars: &grammars, schema: &read })
}

/// The rules of XGrammar's structural tag; schemas in it are written with the default options.
fn structural_tag(text: &str) -> Result<Rules> {
    let value = serde_json::from_str(text).map_err(|error| {
        let place = format!("{}:{}", error.line(), error.column());
        Error::new(ErrorKind::Constraint, format!("the structural tag is not JSON: {error}")).at(place)
    })?;
    let read = |text: &str, any_order: bool| {
        let order = if any_order { json::Order::Any } else { json::Order::Schema };
        schema(json::load(text, &json::Options { order, ..json::Options::default() }, &[])?)
    };
    tags::rules(&tags::from_json(&value, &read)?)
}

/// The schema with all that is dropped of it named, where it is lenient: some is only found when it is compiled.
fn schema(read: json::Schema) -> Result<Arc<json::Schema>> {
    let mut schema = Arc::new(read);
    if schema.options.lenient {
        let mut exprs = Exprs::new(MOST_EXPRS);
        exprs.set_fuel(MOST_FUEL);
        let mut frames = json::Frames::new();
        frames.root(&schema, &mut exprs)?;
        let dropped: Vec<String> = frames.warnings().map(str::to_string).collect();
        drop(frames);
        Arc::make_mut(&mut schema).warnings.extend(dropped);
    }
    Ok(schema)
}
