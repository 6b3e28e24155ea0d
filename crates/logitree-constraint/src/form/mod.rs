//! The serialised form of constraints: one JSON object each, `{"type": "json_schema", "schema": ...}`. docs/c.md lists the
//! types. [`read`] reads it, [`Constraint::form`] writes it.
//!
//! What is wrong has a JSON pointer into the form. What lies outside of a form, such as a catalogue or a tokenizer, is named
//! in it and found by the caller: [`Names`].

mod fields;

use std::sync::Arc;

use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine;
use serde_json::{Map, Value};

use crate::canonical::CanonicalSpelling;
use crate::reasoning::{ReasoningBudget, ReasoningOptions, ReasoningStart, Tag};
use crate::skeleton::{CompiledSkeleton, Skeleton, SkeletonOptions};
use crate::token_tree::cache::{self, cached, token_trees};
use crate::token_tree::{DescriptorTree, TokenTree, TreeSpan};
use crate::{Composition, Constraint, Error, ErrorKind, Key, Matcher, OneOf, Result, TokenId};
use logitree_automata::stack::with_call_room;
use logitree_grammar::ast::{Grammar, Syntax, TagNode};
use logitree_grammar::json_schema::{Draft, KeyOrder, NumberSpelling, SchemaOptions, Whitespace};
use logitree_grammar::lazy::{TokenTrigger, Triggers};
use logitree_grammar::rules::TokenName;
use logitree_grammar::tags::Mark;
use logitree_tokens::tokenizer::Tokenizer;
use logitree_tokens::vocabulary::Vocabulary;

pub use fields::{embedded, parse, Fields, MAX_JSON_BYTES};

/// The types of this crate.
const TYPES: &str = "choices, regex, gbnf, ebnf, lark, json_schema, json, structural_tag, literal, text, token, tags, lazy, grammar, \
    sequence, either, repeat, both, until, ban, at_least, at_most, canonical, token_tree, skeleton, reasoning_budget";

/// Finds what forms name.
pub trait Names {
    /// The tokenizer of this name.
    ///
    /// # Errors
    /// Its own; here [`ErrorKind::Constraint`].
    fn tokenizer(&self, name: &str) -> Result<Arc<Tokenizer>> {
        Err(Error::new(ErrorKind::Constraint, format!("there is no tokenizer {name:?} here")))
    }

    /// What token trees must fit: their ids and names. `None`: they are not checked.
    fn vocabulary(&self) -> Option<&Vocabulary> {
        None
    }

    /// The constraint of a type that this crate does not know; `None`: the caller does not know it either. Fields that it
    /// leaves are an error; constraints in them are read by [`Reader::constraint`].
    ///
    /// # Errors
    /// Its own.
    fn constraint(
        &self,
        kind: &str,
        fields: &mut Fields,
        reader: &Reader<'_>,
    ) -> Result<Option<Arc<dyn Constraint>>> {
        let _ = (kind, fields, reader);
        Ok(None)
    }
}

/// Nothing has a name.
impl Names for () {}

/// The constraint of a form.
///
/// # Errors
/// [`ErrorKind::Constraint`] with the place for a form that is malformed; those of the constraint itself and of `names`.
pub fn read(text: &[u8], names: &dyn Names) -> Result<Arc<dyn Constraint>> {
    Reader { names }.constraint(parse(text, ErrorKind::Constraint)?, "")
}

/// The form of a type, without the fields that are null.
pub(crate) fn written<const N: usize>(kind: &str, fields: [(&str, Value); N]) -> Value {
    let given = fields.into_iter().filter(|(_, value)| !value.is_null());
    let all = [("type", kind.into())].into_iter().chain(given);
    Value::Object(all.map(|(name, value)| (name.to_string(), value)).collect::<Map<_, _>>())
}

/// Bytes as text.
///
/// # Errors
/// [`ErrorKind::Constraint`] for what is not UTF-8.
pub(crate) fn as_text(bytes: &[u8]) -> Result<Value> {
    std::str::from_utf8(bytes).map(Value::from).map_err(|_| {
        Error::new(ErrorKind::Constraint, "bytes that are not UTF-8 have no JSON form")
            .help("give texts in UTF-8")
    })
}

/// Reads the forms in a form.
pub struct Reader<'a> {
    names: &'a dyn Names,
}

/// What a form is. Grammars join to grammars, and parts of compositions are met.
enum Made {
    Grammar(Grammar),
    Composition(Composition),
    Other(Arc<dyn Constraint>),
}

impl Made {
    fn constraint(self) -> Arc<dyn Constraint> {
        match self {
            Made::Grammar(grammar) => Arc::new(grammar),
            Made::Composition(composition) => Arc::new(composition),
            Made::Other(constraint) => constraint,
        }
    }

    fn part(self) -> Composition {
        match self {
            Made::Grammar(grammar) => Composition::grammar(grammar),
            Made::Composition(composition) => composition,
            Made::Other(constraint) => Composition::of(constraint),
        }
    }
}

/// What the caller found, with the form that named it.
struct Named {
    constraint: Arc<dyn Constraint>,
    form: Value,
}

impl Constraint for Named {
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        self.constraint.matcher(vocabulary)
    }

    fn key(&self) -> Option<Key> {
        self.constraint.key()
    }

    fn form(&self) -> Result<Value> {
        Ok(self.form.clone())
    }
}

impl Reader<'_> {
    /// The constraint of a form at a place, a JSON pointer.
    ///
    /// # Errors
    /// As [`read`].
    pub fn constraint(&self, value: Value, place: &str) -> Result<Arc<dyn Constraint>> {
        self.made(value, place).map(Made::constraint)
    }

    fn made(&self, value: Value, place: &str) -> Result<Made> {
        with_call_room(|| self.made_here(value, place))
    }

    fn made_here(&self, value: Value, place: &str) -> Result<Made> {
        let mut fields = Fields::new(value, place, ErrorKind::Constraint)?;
        let kind = fields.text("type")?;
        let made = match kind.as_str() {
            "choices" => choices(&mut fields).map(|made| Made::Other(Arc::new(made))),
            "token_tree" => {
                token_tree(&mut fields, self.names.vocabulary()).map(|made| Made::Other(Arc::new(made)))
            }
            "skeleton" => {
                skeleton(&mut fields, self.names.vocabulary()).map(|made| Made::Other(Arc::new(made)))
            }
            "reasoning_budget" => self.reasoning(&mut fields).map(|made| Made::Other(Arc::new(made))),
            "canonical" => self.canonical(&mut fields).map(|made| Made::Other(Arc::new(made))),
            "sequence" => self.joined(&mut fields, Grammar::seq, Composition::then),
            "either" => self.joined(&mut fields, Grammar::alt, Composition::either),
            "repeat" => self.repeat(&mut fields),
            "both" | "until" | "ban" | "at_least" | "at_most" => {
                self.composition(&kind, &mut fields).map(Made::Composition)
            }
            _ => match self.syntax(&kind, &mut fields).and_then(Syntaxes::node) {
                Ok(Some(grammar)) => Ok(Made::Grammar(grammar)),
                Ok(None) => {
                    let form = fields.whole(&kind);
                    match self.names.constraint(&kind, &mut fields, self)? {
                        Some(constraint) => Ok(Made::Other(Arc::new(Named { constraint, form }))),
                        None => return Err(fields.wrong("type", &format!("one of {TYPES}"))),
                    }
                }
                Err(error) => Err(error),
            },
        };
        let made = made.map_err(|error| located(error, place))?;
        fields.end()?;
        Ok(made)
    }

    /// A constraint in a field.
    fn inner(&self, fields: &mut Fields, name: &str) -> Result<Made> {
        let (value, place) = (fields.required(name)?, fields.at(name));
        self.made(value, &place)
    }

    /// The constraints in a list, at least one.
    fn several(&self, fields: &mut Fields, name: &str) -> Result<Vec<Made>> {
        let place = fields.at(name);
        let items = fields.list(name)?;
        if items.is_empty() {
            return Err(fields.wrong(name, "a list of constraints"));
        }
        items.into_iter().enumerate().map(|(at, item)| self.made(item, &format!("{place}/{at}"))).collect()
    }

    /// A grammar where all parts are grammars, else a composition.
    fn joined(
        &self,
        fields: &mut Fields,
        grammar: fn(Vec<Grammar>) -> Result<Grammar>,
        composition: fn(Vec<Composition>) -> Result<Composition>,
    ) -> Result<Made> {
        let parts = self.several(fields, "of")?;
        if parts.iter().all(|part| matches!(part, Made::Grammar(_))) {
            let grammars = parts.into_iter().filter_map(|part| match part {
                Made::Grammar(node) => Some(node),
                _ => None,
            });
            return grammar(grammars.collect()).map(Made::Grammar);
        }
        composition(parts.into_iter().map(Made::part).collect()).map(Made::Composition)
    }

    fn repeat(&self, fields: &mut Fields) -> Result<Made> {
        let part = self.inner(fields, "of")?;
        let mut count = |name| {
            let n = fields.count(name)?;
            n.map(|n| u32::try_from(n).map_err(|_| fields.wrong(name, "below 2^32"))).transpose()
        };
        let (min, max) = (count("min")?.unwrap_or(0), count("max")?);
        match part {
            Made::Grammar(node) => node.repeat(min, max).map(Made::Grammar),
            other => other.part().repeat(min, max).map(Made::Composition),
        }
    }

    fn composition(&self, kind: &str, fields: &mut Fields) -> Result<Composition> {
        if kind == "both" {
            let mut parts = self.several(fields, "of")?.into_iter().map(Made::part);
            let first = parts.next().ok_or_else(|| fields.wrong("of", "a list of constraints"))?;
            return parts.try_fold(first, |both, other| both.both(&other));
        }
        if kind == "until" {
            let stop = self.inner(fields, "stop")?.part();
            let text = match fields.is_given("of") {
                true => self.inner(fields, "of")?.part(),
                false => Composition::grammar(Grammar::read(Syntax::Anything)?),
            };
            return Composition::until(&text, &stop);
        }
        let of = self.inner(fields, "of")?.part();
        if kind == "ban" {
            let sequences = fields.read("tokens", "a list of lists of token ids")?.unwrap_or_default();
            return of.without(fields.texts("words")?, sequences);
        }
        let n = fields.count("n")?.ok_or_else(|| fields.wrong("n", "there"))?;
        if kind == "at_least" {
            of.at_least(n)
        } else {
            of.at_most(n)
        }
    }

    fn canonical(&self, fields: &mut Fields) -> Result<CanonicalSpelling> {
        let of = self.inner(fields, "of")?.constraint();
        let name = fields.text("tokenizer")?;
        let tokenizer = self.names.tokenizer(&name).map_err(|error| error.within(&fields.at("tokenizer")))?;
        let before = fields.tokens("before")?.unwrap_or_default();
        Ok(CanonicalSpelling { of, tokenizer, name, before })
    }

    fn reasoning(&self, fields: &mut Fields) -> Result<ReasoningBudget> {
        let (begin, end) = (tags(fields, "begin")?, tags(fields, "end")?);
        let mut messages = tags(fields, "message")?;
        if messages.len() > 1 {
            return Err(fields.wrong("message", "one text or token list"));
        }
        let message = messages.pop();
        let default = ReasoningOptions::default();
        let is_given = fields.has("max_blocks");
        let max_blocks = fields.count("max_blocks")?;
        let options = ReasoningOptions {
            budget: fields.count("budget")?,
            soft: fields.count("soft")?,
            ramp: fields.read("ramp", "a number")?.unwrap_or(default.ramp),
            max_blocks: if is_given { max_blocks } else { default.max_blocks },
            whole: fields.switch("whole")?,
            ..default
        };
        if !options.ramp.is_finite() {
            return Err(fields.wrong("ramp", "a finite number"));
        }
        let start = match fields.optional_text("start")?.as_deref() {
            None | Some("outside") => ReasoningStart::Outside,
            Some("inside") => ReasoningStart::Inside,
            Some("closing") => ReasoningStart::Closing,
            Some(_) => return Err(fields.wrong("start", "\"outside\", \"inside\" or \"closing\"")),
        };
        let then = match fields.is_given("then") {
            true => Some(self.inner(fields, "then")?.constraint()),
            false => None,
        };
        Ok(ReasoningBudget { begin, end, message, options, start, then })
    }

    /// A form that must be a grammar.
    fn node(&self, value: Value, place: &str) -> Result<Grammar> {
        match self.made(value, place)? {
            Made::Grammar(grammar) => Ok(grammar),
            _ => {
                let error = Error::new(ErrorKind::Constraint, "only grammars can be parts of a grammar");
                Err(error.at(place).help("write choices as \"either\" of \"literal\"s"))
            }
        }
    }

    /// The text of a grammar; `None` for a type that is no grammar's.
    fn syntax(&self, kind: &str, fields: &mut Fields) -> Result<Syntaxes> {
        Ok(Syntaxes::Text(match kind {
            "regex" => Syntax::Regex(fields.text("pattern")?),
            "gbnf" => {
                let text = fields.text("text")?;
                Syntax::Gbnf { text, root: fields.optional_text("root")?.unwrap_or_else(|| "root".into()) }
            }
            "ebnf" => {
                let text = fields.text("text")?;
                Syntax::Ebnf { text, root: fields.optional_text("root")?.unwrap_or_else(|| "root".into()) }
            }
            "lark" => Syntax::Lark { text: fields.text("text")?, grammars: self.named(fields, "grammars")? },
            "json_schema" => json_schema(fields)?,
            "json" => Syntax::JsonSchema {
                text: "true".into(),
                options: options(fields, KeyOrder::Any)?,
                documents: Vec::new(),
            },
            "structural_tag" => Syntax::StructuralTag(embedded(fields.required("tag")?)),
            "literal" => Syntax::Literal(fields.text("text")?),
            "text" => Syntax::Anything,
            "token" => Syntax::Token(match fields.required("token")? {
                Value::String(text) => TokenName::Text(text),
                id => TokenName::Id(fields.of(id, "token", "a text or a token id")?),
            }),
            "lazy" => self.lazy(fields)?,
            "tags" => self.tags(fields)?,
            "grammar" => {
                let (value, place) = (fields.required("parts")?, fields.at("parts"));
                let read = Grammar::from_written(&value.to_string());
                return read.map(Syntaxes::Node).map_err(|error| error.within(&place));
            }
            _ => return Ok(Syntaxes::None),
        }))
    }

    fn named(&self, fields: &mut Fields, name: &str) -> Result<Vec<(String, Grammar)>> {
        let Some(named) = fields.take(name) else { return Ok(Vec::new()) };
        let mut named = Fields::new(named, &fields.at(name), ErrorKind::Constraint)?;
        let each = named.rest().into_iter().map(|(name, value)| {
            let at = named.at(&name);
            Ok((name, self.node(value, &at)?))
        });
        each.collect()
    }

    fn lazy(&self, fields: &mut Fields) -> Result<Syntax> {
        let (value, place) = (fields.required("grammar")?, fields.at("grammar"));
        let grammar = self.node(value, &place)?;
        let (words, patterns) = (fields.texts("words")?, fields.texts("patterns")?);
        let token = |value: &Value| match value {
            Value::String(text) => {
                Some(TokenTrigger { name: TokenName::Text(text.clone()), text: Some(text.clone()) })
            }
            other => {
                let id = other.as_u64().and_then(|id| TokenId::try_from(id).ok())?;
                Some(TokenTrigger { name: TokenName::Id(id), text: None })
            }
        };
        let tokens: Option<Vec<TokenTrigger>> = fields.list("tokens")?.iter().map(token).collect();
        let tokens = tokens.ok_or_else(|| fields.wrong("tokens", "a list of texts and ids"))?;
        Ok(Syntax::Lazy { grammar, triggers: Triggers { words, tokens, patterns } })
    }

    fn tags(&self, fields: &mut Fields) -> Result<Syntax> {
        let place = fields.at("tags");
        let marks =
            "a list of {\"text\": ...}, {\"token_text\": ...}, {\"token_id\": ...} and {\"either\": ...}";
        let each = fields.list("tags")?.into_iter().enumerate().map(|(at, value)| {
            let mut tag = Fields::new(value, &format!("{place}/{at}"), ErrorKind::Constraint)?;
            let (content, at) = (tag.required("content")?, tag.at("content"));
            let begin: Mark = tag.read("begin", marks)?.ok_or_else(|| tag.wrong("begin", "there"))?;
            let end = tag.read("end", marks)?.unwrap_or_default();
            tag.end()?;
            Ok(TagNode { begin, content: self.node(content, &at)?, end })
        });
        Ok(Syntax::Tags {
            tags: each.collect::<Result<_>>()?,
            triggers: fields.read("triggers", marks)?.unwrap_or_default(),
            free_before: fields.read("text", "true or false")?.unwrap_or(true),
            at_least_one: fields.switch("at_least_one")?,
            stop_after_first: fields.switch("stop_after_first")?,
            excludes: fields.read("excludes", marks)?.unwrap_or_default(),
        })
    }
}

/// What a type of grammar holds.
enum Syntaxes {
    None,
    Text(Syntax),
    Node(Grammar),
}

impl Syntaxes {
    fn node(self) -> Result<Option<Grammar>> {
        match self {
            Syntaxes::None => Ok(None),
            Syntaxes::Text(syntax) => Grammar::read(syntax).map(Some),
            Syntaxes::Node(node) => Ok(Some(node)),
        }
    }
}

/// An error of a grammar's text, within the form. Errors about fields have their place already.
fn located(error: Error, place: &str) -> Error {
    if error.place.starts_with('/') || place.is_empty() {
        error
    } else {
        error.within(place)
    }
}

fn options(fields: &mut Fields, order: KeyOrder) -> Result<SchemaOptions> {
    let order = fields.optional_text("order")?.map_or(Ok(order), |name| KeyOrder::from_name(&name))?;
    let whitespace = fields.optional_text("whitespace")?;
    let whitespace = whitespace.map_or(Ok(Whitespace::Bounded), |name| Whitespace::from_name(&name))?;
    let numbers = fields.optional_text("numbers")?;
    let numbers = numbers.map_or(Ok(NumberSpelling::Any), |name| NumberSpelling::from_name(&name))?;
    let draft = fields.optional_text("draft")?;
    let draft = draft.map_or(Ok(Draft::Draft2020), |name| Draft::from_name(&name))?;
    let separators = match fields.texts("separators")?.as_slice() {
        [] => None,
        [item, key] => Some((item.clone(), key.clone())),
        _ => return Err(fields.wrong("separators", "two strings")),
    };
    let (ascii, lenient) = (fields.switch("ascii")?, fields.switch("lenient")?);
    let unset = SchemaOptions::default();
    Ok(SchemaOptions { order, whitespace, separators, numbers, ascii, lenient, draft, ..unset })
}

fn json_schema(fields: &mut Fields) -> Result<Syntax> {
    let text = embedded(fields.required("schema")?);
    let options = options(fields, KeyOrder::Schema)?;
    let mut documents = Vec::new();
    if let Some(named) = fields.take("documents") {
        let mut named = Fields::new(named, &fields.at("documents"), ErrorKind::Constraint)?;
        documents = named.rest().into_iter().map(|(uri, document)| (uri, embedded(document))).collect();
    }
    Ok(Syntax::JsonSchema { text, options, documents })
}

fn skeleton(fields: &mut Fields, known: Option<&Vocabulary>) -> Result<CompiledSkeleton> {
    let place = fields.at("skeleton");
    let skeleton = Skeleton::from_json(&embedded(fields.required("skeleton")?));
    // What no text can be is refused here, not where it is bound.
    let compiled = skeleton.and_then(|skeleton| skeleton.compile()).map_err(|error| error.within(&place))?;
    let tree = match fields.is_given("tree") {
        true => Some(payload(fields, "tree", known)?),
        false => None,
    };
    let run_tokens = fields.read("run_tokens", "a list of lists of token ids and nulls")?.unwrap_or_default();
    Ok(compiled.with(SkeletonOptions { tree, run_tokens }))
}

fn choices(fields: &mut Fields) -> Result<OneOf> {
    let mut made = OneOf::new(fields.texts("texts")?);
    if let Some(following) = fields.optional_text("following")? {
        made = made.followed_by(following);
    }
    if let Some(spellings) = fields.read("spellings", "a list of lists of token ids")? {
        made = made.spelled(spellings);
    }
    Ok(match fields.tokens("end_tokens")? {
        None => made,
        Some(tokens) => made.ended_by(tokens),
    })
}

/// The tree of a payload in a field, an object or its text; its ids and names fit the vocabulary, if there is one.
fn payload(fields: &mut Fields, name: &str, known: Option<&Vocabulary>) -> Result<Arc<TokenTree>> {
    let text = embedded(fields.required(name)?);
    cached(text.as_bytes(), known).map_err(|error| {
        let at = fields.at(name);
        match error.place.starts_with('/') {
            true => Error { place: at + &error.place, ..error },
            false => error.within(&at),
        }
    })
}

fn token_tree(fields: &mut Fields, known: Option<&Vocabulary>) -> Result<TreeSpan> {
    let tree = match (fields.is_given("payload"), fields.optional_text("binary")?) {
        (true, None) => payload(fields, "payload", known)?,
        (false, Some(binary)) => {
            let bytes = BASE64.decode(binary).map_err(|_| fields.wrong("binary", "base64"))?;
            let key = cache::Key { content: &bytes, context: b"binary" };
            let tree = token_trees().get_or_build(key, || TokenTree::from_binary(&bytes));
            let fitting = tree.and_then(|tree| {
                known.map_or(Ok(()), |known| tree.check_range(known.len()))?;
                Ok(tree)
            });
            fitting.map_err(|error| error.within(&fields.at("binary")))?
        }
        _ => return Err(fields.wrong("payload", "there, or binary instead, and not both")),
    };
    let mut span = TreeSpan::at(tree, fields.optional_text("path")?.as_deref())?;
    span.following = fields.optional_text("following")?.map(String::into_bytes);
    span.end_tokens = fields.tokens("end_tokens")?;
    Ok(span)
}

/// A descriptor as the field that [`read`] takes: its payload, or its binary form where names of leaves are lost.
pub(crate) fn descriptor(descriptor: &DescriptorTree) -> (&'static str, Value) {
    if descriptor.names().is_empty() {
        return ("binary", BASE64.encode(descriptor.to_binary()).into());
    }
    ("payload", serde_json::json!({ "descriptors": [leaves(descriptor)] }))
}

/// A descriptor as an object of a payload.
pub(crate) fn leaves(descriptor: &DescriptorTree) -> Value {
    let mut leaves = Vec::with_capacity(descriptor.leaf_count());
    descriptor.for_each_leaf(|node, tokens| {
        leaves.push(serde_json::json!({ "name": descriptor.leaf_name(node), "tokens": tokens }));
    });
    serde_json::json!({ "path": descriptor.path(), "leaves": leaves })
}

/// A text, ids, or a list of texts and lists of ids.
fn tags(fields: &mut Fields, name: &str) -> Result<Vec<Tag>> {
    let id = |value: &Value| value.as_u64().and_then(|id| TokenId::try_from(id).ok());
    let one = |value: &Value| match value {
        Value::String(text) => Some(Tag::Text(text.clone())),
        Value::Array(ids) => ids.iter().map(id).collect::<Option<_>>().map(Tag::Ids),
        _ => None,
    };
    let Some(value) = fields.take(name) else { return Ok(Vec::new()) };
    let read = match &value {
        Value::Array(items) if items.first().is_some_and(|item| !item.is_number()) => {
            items.iter().map(one).collect()
        }
        other => one(other).map(|tag| vec![tag]),
    };
    read.ok_or_else(|| fields.wrong(name, "a text, token ids, or a list of such"))
}
