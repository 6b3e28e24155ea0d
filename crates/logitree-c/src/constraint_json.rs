//! A constraint's one JSON form: `{"type": "json_schema", "schema": ...}`. docs/c.md lists the types.
//!
//! What is wrong has a JSON pointer into the form. No pointers of C, and no handles.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use logitree::catalogue::{Catalogue, Intersection, ItemWalk};
use logitree::constraint::reasoning::{tag, ReasoningStart};
use logitree::constraint::skeleton::CompiledSkeleton;
use logitree::constraint::{
    DescriptorTree, PayloadCheck, ReasoningBudget, ReasoningOptions, Skeleton, TokenTree, TreeSpan,
};
use logitree::grammar::json_schema::{Draft, KeyOrder, NumberSpelling, SchemaOptions, Whitespace};
use logitree::grammar::lazy::{TokenTrigger, Triggers};
use logitree::grammar::rules::TokenName;
use logitree::{
    Constraint, Error, ErrorKind, GrammarNode, Matcher, OneOf, Result, Syntax, TokenId, Vocabulary,
};
use serde_json::Value;

use crate::json::{embedded, parse, Fields};

/// Any constraint.
pub type SharedConstraint = Arc<dyn Constraint>;

/// What a form is: grammars can be joined, others cannot.
enum Made {
    Grammar(GrammarNode),
    Other(SharedConstraint),
}

/// The constraint of a form.
///
/// # Errors
/// [`ErrorKind::Constraint`] with the place for a form that is malformed; those of the constraint itself.
pub fn read(text: &[u8]) -> Result<SharedConstraint> {
    Ok(match form(parse(text, ErrorKind::Constraint)?, "")? {
        Made::Grammar(grammar) => Arc::new(grammar),
        Made::Other(constraint) => constraint,
    })
}

fn form(value: Value, place: &str) -> Result<Made> {
    let mut fields = Fields::new(value, place, ErrorKind::Constraint)?;
    let kind = fields.text("type")?;
    let made = match kind.as_str() {
        "choices" => Made::Other(Arc::new(choices(&mut fields)?)),
        "token_tree" => Made::Other(Arc::new(token_tree(&mut fields)?)),
        "reasoning_budget" => Made::Other(Arc::new(reasoning(&mut fields)?)),
        "catalogue" => Made::Other(catalogue(&mut fields)?),
        "skeleton" => Made::Other(Arc::new(skeleton(&mut fields)?)),
        _ => match grammar(&kind, &mut fields) {
            Some(made) => Made::Grammar(made.map_err(|error| located(error, place))?),
            None => {
                return Err(fields.wrong(
                    "type",
                    "one of choices, regex, gbnf, lark, json_schema, json, structural_tag, literal, text, sequence, \
                     either, repeat, lazy, token_tree, skeleton, reasoning_budget, catalogue",
                ))
            }
        },
    };
    fields.end()?;
    Ok(made)
}

/// An error of a grammar's text, within the form. Errors about fields have their place already.
fn located(error: Error, place: &str) -> Error {
    if error.place.starts_with('/') || place.is_empty() {
        error
    } else {
        error.within(place)
    }
}

fn grammar(kind: &str, fields: &mut Fields) -> Option<Result<GrammarNode>> {
    let source = match kind {
        "regex" => fields.text("pattern").map(Syntax::Regex),
        "gbnf" => gbnf(fields),
        "lark" => lark(fields),
        "json_schema" => json_schema(fields),
        "json" => options(fields, KeyOrder::Any).map(|options| Syntax::JsonSchema {
            text: "true".into(),
            options,
            documents: Vec::new(),
        }),
        "structural_tag" => fields.required("tag").map(|tag| Syntax::StructuralTag(embedded(tag))),
        "literal" => fields.text("text").map(Syntax::Literal),
        "text" => Ok(Syntax::Anything),
        "lazy" => lazy(fields),
        "sequence" => return Some(parts(fields).and_then(GrammarNode::seq)),
        "either" => return Some(parts(fields).and_then(GrammarNode::alt)),
        "repeat" => return Some(repeat(fields)),
        _ => return None,
    };
    Some(source.and_then(GrammarNode::read))
}

fn gbnf(fields: &mut Fields) -> Result<Syntax> {
    let text = fields.text("text")?;
    let root = fields.optional_text("root")?.unwrap_or_else(|| "root".into());
    Ok(Syntax::Gbnf { text, root })
}

fn lark(fields: &mut Fields) -> Result<Syntax> {
    let text = fields.text("text")?;
    let mut grammars = Vec::new();
    if let Some(named) = fields.take("grammars") {
        let place = fields.at("grammars");
        let mut named = Fields::new(named, &place, ErrorKind::Constraint)?;
        for (name, value) in named.rest() {
            let at = named.at(&name);
            grammars.push((name, node(value, &at)?));
        }
    }
    Ok(Syntax::Lark { text, grammars })
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
    Ok(SchemaOptions { order, whitespace, separators, numbers, ascii, lenient, draft })
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

fn lazy(fields: &mut Fields) -> Result<Syntax> {
    let (value, place) = (fields.required("grammar")?, fields.at("grammar"));
    let grammar = node(value, &place)?;
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

/// A form that must be a grammar.
fn node(value: Value, place: &str) -> Result<GrammarNode> {
    match form(value, place)? {
        Made::Grammar(grammar) => Ok(grammar),
        Made::Other(_) => {
            let error = Error::new(ErrorKind::Constraint, "only grammars can be parts of a grammar");
            Err(error.at(place).help("write choices as \"either\" of \"literal\"s"))
        }
    }
}

fn parts(fields: &mut Fields) -> Result<Vec<GrammarNode>> {
    let place = fields.at("of");
    let items = fields.list("of")?;
    if items.is_empty() {
        return Err(fields.wrong("of", "a list of grammars"));
    }
    items.into_iter().enumerate().map(|(at, item)| node(item, &format!("{place}/{at}"))).collect()
}

fn repeat(fields: &mut Fields) -> Result<GrammarNode> {
    let (value, place) = (fields.required("of")?, fields.at("of"));
    let part = node(value, &place)?;
    let mut count = |name| {
        let n = fields.count(name)?;
        n.map(|n| u32::try_from(n).map_err(|_| fields.wrong(name, "below 2^32"))).transpose()
    };
    let (min, max) = (count("min")?.unwrap_or(0), count("max")?);
    part.repeat(min, max)
}

fn skeleton(fields: &mut Fields) -> Result<CompiledSkeleton> {
    let place = fields.at("skeleton");
    let skeleton = Skeleton::from_json(&embedded(fields.required("skeleton")?));
    let skeleton = skeleton.map_err(|error| error.within(&place))?;
    // What no text can be is refused here, not where it is bound.
    skeleton.compile().map_err(|error| error.within(&place))
}

fn choices(fields: &mut Fields) -> Result<OneOf> {
    let mut made = OneOf::new(fields.texts("texts")?);
    if let Some(following) = fields.optional_text("following")? {
        made = made.followed_by(following);
    }
    Ok(match fields.tokens("end_tokens")? {
        None => made,
        Some(tokens) => made.ended_by(tokens),
    })
}

fn token_tree(fields: &mut Fields) -> Result<TreeSpan> {
    let tree = match (fields.take("payload"), fields.optional_text("binary")?) {
        (Some(payload), None) => TokenTree::from_json(embedded(payload).as_bytes(), &PayloadCheck::default())
            .map_err(|error| error.within(&fields.at("payload")))?,
        (None, Some(binary)) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(binary);
            let bytes = bytes.map_err(|_| fields.wrong("binary", "base64"))?;
            tree_of_binary(&bytes).map_err(|error| error.within(&fields.at("binary")))?
        }
        _ => return Err(fields.wrong("payload", "there, or binary instead, and not both")),
    };
    let mut span = span(Arc::new(tree), fields.optional_text("path")?.as_deref())?;
    span.following = fields.optional_text("following")?.map(String::into_bytes);
    span.end_tokens = fields.tokens("end_tokens")?;
    Ok(span)
}

/// The tree of a descriptor's binary form.
///
/// # Errors
/// [`ErrorKind::Payload`] with the offset for malformed bytes, or if no leaf is there.
pub fn tree_of_binary(bytes: &[u8]) -> Result<TokenTree> {
    let descriptor = DescriptorTree::from_binary(bytes)?;
    if descriptor.leaf_count() == 0 {
        let message = format!("the descriptor {:?} has no leaves", descriptor.path());
        return Err(
            Error::new(ErrorKind::Payload, message).help("give a descriptor with leaves, or no token tree")
        );
    }
    Ok(TokenTree::from_descriptor(Arc::new(descriptor)))
}

/// The span of a tree at a path, which may be left out where there is one.
///
/// # Errors
/// [`ErrorKind::Constraint`] for an unknown path, or for none where there are several.
pub fn span(tree: Arc<TokenTree>, path: Option<&str>) -> Result<TreeSpan> {
    let path = match (path, tree.descriptors()) {
        (None, [only]) => only.path().to_string(),
        (None, all) => {
            let message = format!("the token tree has {} paths: say which", all.len());
            return Err(Error::new(ErrorKind::Constraint, message));
        }
        (Some(path), _) => tree.descriptor(path)?.path().to_string(),
    };
    Ok(TreeSpan { tree, path, following: None, end_tokens: None })
}

/// A reasoning budget whose tags may be texts, which the vocabulary resolves.
pub struct ReasoningForm {
    /// Begins, ends and message, of which each is ids or the text of one token.
    pub begin: Vec<TagForm>,
    /// See `begin`.
    pub end: Vec<TagForm>,
    /// See `begin`.
    pub message: Option<TagForm>,
    /// The rest, with no tags.
    pub options: ReasoningOptions,
    /// Where the output begins.
    pub start: ReasoningStart,
    /// What follows the last block.
    pub then: Option<SharedConstraint>,
}

/// A sequence of tokens.
#[derive(Debug, Clone)]
pub enum TagForm {
    /// By their ids.
    Ids(Vec<TokenId>),
    /// The token with this text.
    Text(String),
}

impl TagForm {
    fn resolve(&self, vocabulary: &Vocabulary) -> Result<Vec<TokenId>> {
        match self {
            TagForm::Ids(ids) => Ok(ids.clone()),
            TagForm::Text(text) => match tag(text.as_bytes(), vocabulary)? {
                Some(id) => Ok(vec![id]),
                None => {
                    let error = Error::new(ErrorKind::Constraint, format!("no token is {text:?}"));
                    Err(error.help("give the ids of its tokens"))
                }
            },
        }
    }
}

impl Constraint for ReasoningForm {
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        let all = |tags: &[TagForm]| tags.iter().map(|tag| tag.resolve(vocabulary)).collect::<Result<_>>();
        let message = self.message.as_ref().map_or(Ok(Vec::new()), |message| message.resolve(vocabulary))?;
        let (begin, end) = (all(&self.begin)?, all(&self.end)?);
        let options = ReasoningOptions { begin, end, message, ..self.options.clone() };
        let then = self.then.as_ref().map(|then| then.matcher(vocabulary)).transpose()?;
        ReasoningBudget::new(options, vocabulary)?.matcher(self.start, then)
    }
}

fn reasoning(fields: &mut Fields) -> Result<ReasoningForm> {
    let (begin, end) = (tags(fields, "begin")?, tags(fields, "end")?);
    let message = tags(fields, "message")?.pop();
    let default = ReasoningOptions::default();
    let ramp = match fields.take("ramp") {
        None => default.ramp,
        Some(value) => value.as_f64().ok_or_else(|| fields.wrong("ramp", "a number"))? as f32,
    };
    let is_given = fields.has("max_blocks");
    let max_blocks = fields.count("max_blocks")?;
    let options = ReasoningOptions {
        budget: fields.count("budget")?,
        soft: fields.count("soft")?,
        ramp,
        max_blocks: if is_given { max_blocks } else { default.max_blocks },
        whole: fields.switch("whole")?,
        ..default
    };
    let start = match fields.optional_text("start")?.as_deref() {
        None | Some("outside") => ReasoningStart::Outside,
        Some("inside") => ReasoningStart::Inside,
        Some("closing") => ReasoningStart::Closing,
        Some(_) => return Err(fields.wrong("start", "\"outside\", \"inside\" or \"closing\"")),
    };
    let then = match fields.take("then") {
        None => None,
        Some(value) => Some(match form(value, &fields.at("then"))? {
            Made::Grammar(grammar) => Arc::new(grammar),
            Made::Other(constraint) => constraint,
        }),
    };
    Ok(ReasoningForm { begin, end, message, options, start, then })
}

/// A text, ids, or a list of texts and lists of ids.
fn tags(fields: &mut Fields, name: &str) -> Result<Vec<TagForm>> {
    let id = |value: &Value| value.as_u64().and_then(|id| TokenId::try_from(id).ok());
    let one = |value: &Value| match value {
        Value::String(text) => Some(TagForm::Text(text.clone())),
        Value::Array(ids) => ids.iter().map(id).collect::<Option<_>>().map(TagForm::Ids),
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

fn catalogue(fields: &mut Fields) -> Result<SharedConstraint> {
    let path = fields.text("index")?;
    let walk = ItemWalk {
        snapshot: Catalogue::open(Path::new(&path), false)?.snapshot(),
        end: fields.token("end")?,
    };
    let place = fields.at("and");
    let peers = fields.list("and")?.into_iter().enumerate().map(|(at, value)| {
        Ok(match form(value, &format!("{place}/{at}"))? {
            Made::Grammar(grammar) => Arc::new(grammar) as SharedConstraint,
            Made::Other(constraint) => constraint,
        })
    });
    let peers: Vec<SharedConstraint> = peers.collect::<Result<_>>()?;
    let fuel = fields.count("fuel")?.map_or(Intersection::FUEL, |fuel| fuel as u64);
    Ok(if peers.is_empty() { Arc::new(walk) } else { Arc::new(Intersection { walk, peers, fuel }) })
}
