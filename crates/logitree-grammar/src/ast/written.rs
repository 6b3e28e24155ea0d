//! Serialises a grammar as a JSON list in which every node occurs once, after its children. Equal texts are
//! equal grammars.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use logitree_automata::stack::with_room;
use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;
use serde_json::{json, Map, Value};

use super::super::json_schema::SchemaOptions;
use super::super::lazy::{TokenTrigger, Triggers};
use super::super::rules::TokenName;
use super::{Grammar, NodeKind, RuleRef, Syntax, TagNode};
use crate::{Error, ErrorKind, Result};

impl Grammar {
    /// The grammar's construction as text, which [`Grammar::from_written`] reads. Grammars built in the
    /// same way have equal texts.
    pub fn written(&self) -> &Arc<str> {
        self.0.written.get_or_init(|| {
            let entries = entries(self, |writer, part| entry(writer, part).to_string());
            format!("[{}]", entries.join(",")).into()
        })
    }

    /// What the grammar was made from, as bytes: equal exactly for grammars built in the same way. Grammars are found by it,
    /// for it takes less than [`Grammar::written`]: texts in it are as they are.
    pub fn content(&self) -> &Arc<[u8]> {
        self.0.content.get_or_init(|| match self.kind() {
            NodeKind::Leaf(source, _) if source.parts().next().is_none() => recorded(source).into(),
            _ => recorded(&entries(self, record)).into(),
        })
    }

    /// Reads what [`Grammar::written`] wrote.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for any other text, and for texts that their reader no longer accepts.
    pub fn from_written(text: &str) -> Result<Grammar> {
        let entries: Vec<Map<String, Value>> = serde_json::from_str(text).map_err(wrong)?;
        let mut made: Vec<Grammar> = Vec::with_capacity(entries.len());
        let mut names = FxHashMap::default();
        for entry in entries {
            let part = read(&mut Fields(entry), &made, &mut names)
                .map_err(|e| e.within(&format!("part {}", made.len())))?;
            made.push(part);
        }
        made.pop().ok_or_else(|| wrong("it is empty"))
    }
}

impl Hash for Grammar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.content().hash(state);
    }
}

/// All bytes that the hash of a value is made from: equal exactly for equal values.
pub fn recorded(value: &(impl Hash + ?Sized)) -> Vec<u8> {
    struct Record(Vec<u8>);
    impl Hasher for Record {
        fn write(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut record = Record(Vec::with_capacity(64));
    value.hash(&mut record);
    record.0
}

fn wrong(why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Constraint, format!("no written grammar: {why}"))
}

/// The entries of all nodes of a grammar: each once, after those of its children.
fn entries<E: Eq + Hash>(of: &Grammar, entry: fn(&mut Writer<E>, &Grammar) -> E) -> Vec<E> {
    let (places, known, names) = Default::default();
    let mut writer = Writer { entry, places, known, names };
    with_room(|| writer.place(of));
    let mut entries: Vec<(E, usize)> = writer.places.into_iter().collect();
    entries.sort_unstable_by_key(|&(_, place)| place);
    entries.into_iter().map(|(entry, _)| entry).collect()
}

struct Writer<E> {
    entry: fn(&mut Writer<E>, &Grammar) -> E,
    places: FxHashMap<E, usize>,
    /// The places of what was looked at, by its address.
    known: FxHashMap<usize, usize>,
    names: FxHashMap<usize, usize>,
}

impl<E: Eq + Hash> Writer<E> {
    /// The index of `part` in the list. Recurses as deep as nodes may nest.
    fn place(&mut self, part: &Grammar) -> usize {
        if let Some(&place) = self.known.get(&part.address()) {
            return place;
        }
        let entry = (self.entry)(self, part);
        self.put(part.address(), entry)
    }

    /// The index of the entry of what is at an address.
    fn put(&mut self, address: usize, entry: E) -> usize {
        let next = self.places.len();
        let place = *self.places.entry(entry).or_insert(next);
        self.known.insert(address, place);
        place
    }

    fn all(&mut self, parts: &[Grammar]) -> Vec<usize> {
        parts.iter().map(|part| self.place(part)).collect()
    }

    fn named(&mut self, parts: &[(String, Grammar)]) -> Vec<(String, usize)> {
        parts.iter().map(|(name, part)| (name.clone(), self.place(part))).collect()
    }

    fn tags(&mut self, tags: &[TagNode]) -> Vec<TagNode<usize>> {
        let one =
            |TagNode { begin, content, end }: TagNode| TagNode { begin, content: self.place(&content), end };
        tags.iter().cloned().map(one).collect()
    }

    /// References are numbered in order of occurrence.
    fn name(&mut self, me: &RuleRef) -> usize {
        let next = self.names.len();
        *self.names.entry(me.address()).or_insert(next)
    }
}

/// The entry of `part` as bytes: equal exactly for equal entries.
fn record(writer: &mut Writer<Vec<u8>>, part: &Grammar) -> Vec<u8> {
    match part.kind() {
        NodeKind::Seq(parts) => recorded(&(0, writer.all(parts))),
        NodeKind::Alt(parts) => recorded(&(1, writer.all(parts))),
        NodeKind::Repeat { of, min, max } => recorded(&(2, writer.place(of), min, max)),
        NodeKind::Recursive(body, me) => {
            let me = writer.name(me);
            recorded(&(3, writer.place(body), me))
        }
        NodeKind::RuleRef(me) => recorded(&(4, writer.name(me))),
        NodeKind::Leaf(Syntax::Lark { text, grammars }, _) => recorded(&(5, text, writer.named(grammars))),
        NodeKind::Leaf(Syntax::Lazy { grammar, triggers }, _) => {
            recorded(&(6, writer.place(grammar), triggers))
        }
        NodeKind::Leaf(
            Syntax::Tags { tags, triggers, free_before, at_least_one, stop_after_first, excludes },
            _,
        ) => {
            let said = (free_before, at_least_one, stop_after_first);
            recorded(&(7, writer.tags(tags), triggers, said, excludes))
        }
        NodeKind::Leaf(Syntax::JsonSchema { text, options, documents }, _) => {
            // The arguments of all tools have the same form.
            let pairs = options.pairs.as_ref().map(|form| {
                let address = Arc::as_ptr(form).addr();
                let known = writer.known.get(&address).copied();
                known.unwrap_or_else(|| writer.put(address, recorded(&(9, form))))
            });
            let others = SchemaOptions { pairs: None, ..options.clone() };
            recorded(&(8, text, pairs, others, documents))
        }
        NodeKind::Leaf(source, _) => recorded(&(10, source)),
    }
}

/// The entry of `part` as JSON; numbers in `of`, `grammar`, `grammars` and `content` are indices of the list.
fn entry(writer: &mut Writer<String>, part: &Grammar) -> Value {
    let source = match part.kind() {
        NodeKind::Leaf(source, _) => source,
        NodeKind::Seq(parts) => return json!({"is": "seq", "of": writer.all(parts)}),
        NodeKind::Alt(parts) => return json!({"is": "alt", "of": writer.all(parts)}),
        NodeKind::Repeat { of, min, max } => {
            return json!({"is": "repeat", "of": writer.place(of), "min": min, "max": max});
        }
        NodeKind::Recursive(body, me) => {
            let me = writer.name(me);
            return json!({"is": "recursive", "of": writer.place(body), "me": me});
        }
        NodeKind::RuleRef(me) => return json!({"is": "me", "me": writer.name(me)}),
    };
    match source {
        Syntax::Regex(pattern) => json!({"is": "regex", "pattern": pattern}),
        Syntax::Gbnf { text, root } => json!({"is": "gbnf", "text": text, "root": root}),
        Syntax::Ebnf { text, root } => json!({"is": "ebnf", "text": text, "root": root}),
        Syntax::Lark { text, grammars } => {
            json!({"is": "lark", "text": text, "grammars": writer.named(grammars)})
        }
        Syntax::JsonSchema { text, options, documents } => {
            json!({"is": "json_schema", "text": text, "written": options, "documents": documents})
        }
        Syntax::Tags { tags, triggers, free_before, at_least_one, stop_after_first, excludes } => {
            json!({
                "is": "tags",
                "tags": writer.tags(tags),
                "triggers": triggers,
                "free_before": free_before,
                "at_least_one": at_least_one,
                "stop_after_first": stop_after_first,
                "excludes": excludes,
            })
        }
        Syntax::StructuralTag(text) => json!({"is": "structural_tag", "text": text}),
        Syntax::Lazy { grammar, triggers: Triggers { words, tokens, patterns } } => {
            let tokens: Vec<_> = tokens.iter().map(|TokenTrigger { name, text }| (name, text)).collect();
            json!({"is": "lazy", "grammar": writer.place(grammar), "words": words, "tokens": tokens, "patterns": patterns})
        }
        Syntax::Literal(text) => json!({"is": "literal", "text": text}),
        Syntax::Choice(texts) => json!({"is": "choice", "texts": texts}),
        Syntax::Anything => json!({"is": "anything"}),
        Syntax::Token(TokenName::Id(id)) => json!({"is": "token_id", "id": id}),
        Syntax::Token(TokenName::Text(text)) => json!({"is": "token_text", "text": text}),
    }
}

/// The fields of an entry that were not read yet.
struct Fields(Map<String, Value>);

impl Fields {
    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T> {
        let value = self.0.remove(name).unwrap_or_default();
        serde_json::from_value(value).map_err(|error| wrong(format!("`{name}`: {error}")))
    }
}

/// The node of an entry, made from the nodes before it.
fn read(fields: &mut Fields, made: &[Grammar], names: &mut FxHashMap<usize, RuleRef>) -> Result<Grammar> {
    let at = |place: usize| {
        made.get(place).cloned().ok_or_else(|| wrong(format!("there is no part {place} before it")))
    };
    let all = |places: Vec<usize>| places.into_iter().map(at).collect::<Result<Vec<_>>>();
    let mut named = |me: usize| names.entry(me).or_insert_with(|| RuleRef(Arc::new(0))).clone();
    let kind: String = fields.take("is")?;
    let node = match &*kind {
        "seq" => Grammar::seq(all(fields.take("of")?)?),
        "alt" => Grammar::alt(all(fields.take("of")?)?),
        "repeat" => at(fields.take("of")?)?.repeat(fields.take("min")?, fields.take("max")?),
        "recursive" => {
            let body = at(fields.take("of")?)?;
            Grammar::new(NodeKind::Recursive(body, named(fields.take("me")?)))
        }
        "me" => Grammar::new(NodeKind::RuleRef(named(fields.take("me")?))),
        _ => Grammar::read(syntax(&kind, fields, &at)?),
    }?;
    match fields.0.keys().next() {
        Some(more) => Err(wrong(format!("{kind} has no `{more}`"))),
        None => Ok(node),
    }
}

/// The text of an entry; `at` gives the grammars it refers to.
fn syntax(kind: &str, fields: &mut Fields, at: &impl Fn(usize) -> Result<Grammar>) -> Result<Syntax> {
    Ok(match kind {
        "regex" => Syntax::Regex(fields.take("pattern")?),
        "gbnf" => Syntax::Gbnf { text: fields.take("text")?, root: fields.take("root")? },
        "ebnf" => Syntax::Ebnf { text: fields.take("text")?, root: fields.take("root")? },
        "lark" => {
            let one = |(name, place): (String, usize)| Ok((name, at(place)?));
            let grammars = fields.take::<Vec<_>>("grammars")?.into_iter().map(one).collect::<Result<_>>()?;
            Syntax::Lark { text: fields.take("text")?, grammars }
        }
        "json_schema" => Syntax::JsonSchema {
            text: fields.take("text")?,
            options: fields.take("written")?,
            documents: fields.take("documents")?,
        },
        "tags" => {
            let one = |TagNode { begin, content, end }| Ok(TagNode { begin, content: at(content)?, end });
            Syntax::Tags {
                tags: fields.take::<Vec<_>>("tags")?.into_iter().map(one).collect::<Result<_>>()?,
                triggers: fields.take("triggers")?,
                free_before: fields.take("free_before")?,
                at_least_one: fields.take("at_least_one")?,
                stop_after_first: fields.take("stop_after_first")?,
                excludes: fields.take("excludes")?,
            }
        }
        "structural_tag" => Syntax::StructuralTag(fields.take("text")?),
        "lazy" => {
            let tokens: Vec<(TokenName, Option<String>)> = fields.take("tokens")?;
            let tokens = tokens.into_iter().map(|(name, text)| TokenTrigger { name, text }).collect();
            let triggers =
                Triggers { words: fields.take("words")?, tokens, patterns: fields.take("patterns")? };
            Syntax::Lazy { grammar: at(fields.take("grammar")?)?, triggers }
        }
        "literal" => Syntax::Literal(fields.take("text")?),
        "choice" => Syntax::Choice(fields.take("texts")?),
        "anything" => Syntax::Anything,
        "token_id" => Syntax::Token(TokenName::Id(fields.take("id")?)),
        "token_text" => Syntax::Token(TokenName::Text(fields.take("text")?)),
        _ => return Err(wrong(format!("there is no kind {kind:?}"))),
    })
}
