//! Serialises a grammar as a JSON list in which every node occurs once, after its children. Equal texts are
//! equal grammars.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::super::json_schema::{Draft, KeyOrder, SchemaOptions, Whitespace};
use super::super::lazy::{TokenTrigger, Triggers};
use super::super::rules::TokenName;
use super::super::tags::Mark;
use super::{GrammarNode, NodeKind, RuleRef, Syntax, TagNode};
use crate::{Error, ErrorKind, Result};

/// A node; numbers in `of` are indices of the list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
enum Entry {
    Regex {
        pattern: String,
    },
    Gbnf {
        text: String,
        root: String,
    },
    Lark {
        text: String,
        grammars: Vec<(String, usize)>,
    },
    JsonSchema {
        text: String,
        written: Writing,
        documents: Vec<(String, String)>,
    },
    Tags {
        tags: Vec<TagEntry>,
        triggers: Vec<MarkEntry>,
        free_before: bool,
        at_least_one: bool,
        stop_after_first: bool,
        excludes: Vec<MarkEntry>,
    },
    StructuralTag {
        text: String,
    },
    Lazy {
        grammar: usize,
        words: Vec<String>,
        tokens: Vec<TriggerEntry>,
        patterns: Vec<String>,
    },
    Literal {
        text: String,
    },
    Choice {
        texts: Vec<String>,
    },
    Anything,
    TokenId {
        id: u32,
    },
    TokenText {
        text: String,
    },
    Seq {
        of: Vec<usize>,
    },
    Alt {
        of: Vec<usize>,
    },
    Repeat {
        of: usize,
        min: u32,
        max: Option<u32>,
    },
    Recursive {
        of: usize,
        me: usize,
    },
    #[serde(rename = "me")]
    Reference {
        me: usize,
    },
}

/// [`SchemaOptions`] by their public names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Writing {
    order: String,
    whitespace: String,
    separators: Option<(String, String)>,
    ascii: bool,
    lenient: bool,
    draft: String,
}

/// A [`TagNode`] whose content is an index.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TagEntry {
    begin: MarkEntry,
    content: usize,
    end: Vec<MarkEntry>,
}

/// A [`Mark`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MarkEntry {
    Text(String),
    TokenId(u32),
    TokenText(String),
    Either(String),
}

impl MarkEntry {
    fn of(mark: &Mark) -> MarkEntry {
        match mark.clone() {
            Mark::Text(text) => MarkEntry::Text(text),
            Mark::Token(TokenName::Id(id)) => MarkEntry::TokenId(id),
            Mark::Token(TokenName::Text(text)) => MarkEntry::TokenText(text),
            Mark::Either(text) => MarkEntry::Either(text),
        }
    }

    fn all(marks: &[Mark]) -> Vec<MarkEntry> {
        marks.iter().map(MarkEntry::of).collect()
    }

    fn mark(self) -> Mark {
        match self {
            MarkEntry::Text(text) => Mark::Text(text),
            MarkEntry::TokenId(id) => Mark::Token(TokenName::Id(id)),
            MarkEntry::TokenText(text) => Mark::Token(TokenName::Text(text)),
            MarkEntry::Either(text) => Mark::Either(text),
        }
    }
}

/// A [`TokenTrigger`]: its token, and its text if the grammar writes it as text.
type TriggerEntry = (MarkEntry, Option<String>);

/// The trigger of an entry.
fn trigger((mark, text): TriggerEntry) -> Result<TokenTrigger> {
    match mark.mark() {
        Mark::Token(name) => Ok(TokenTrigger { name, text }),
        _ => {
            Err(Error::new(ErrorKind::Constraint, "no written grammar: a text among the tokens that trigger"))
        }
    }
}

/// The marks of entries.
fn marks(entries: Vec<MarkEntry>) -> Vec<Mark> {
    entries.into_iter().map(MarkEntry::mark).collect()
}

impl GrammarNode {
    /// The grammar's construction as text, which [`GrammarNode::from_written`] reads. Grammars built in the
    /// same way have equal texts.
    pub fn written(&self) -> String {
        let mut writer = Writer::default();
        writer.place(self);
        serde_json::to_string(&writer.entries).expect("entries are strings and numbers")
    }

    /// Reads what [`GrammarNode::written`] wrote.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for any other text, and for texts that their reader no longer accepts.
    pub fn from_written(text: &str) -> Result<GrammarNode> {
        let wrong = |why: String| Error::new(ErrorKind::Constraint, format!("no written grammar: {why}"));
        let entries: Vec<Entry> = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
        let mut made: Vec<GrammarNode> = Vec::with_capacity(entries.len());
        let mut names = FxHashMap::default();
        for entry in entries {
            let part =
                read(entry, &made, &mut names).map_err(|e| e.within(&format!("part {}", made.len())))?;
            made.push(part);
        }
        made.pop().ok_or_else(|| wrong("it is empty".into()))
    }
}

#[derive(Default)]
struct Writer {
    entries: Vec<Entry>,
    places: FxHashMap<Entry, usize>,
    known: FxHashMap<usize, usize>,
    names: FxHashMap<usize, usize>,
}

impl Writer {
    /// The index of `part` in the list. Recurses as deep as nodes may nest.
    fn place(&mut self, part: &GrammarNode) -> usize {
        if let Some(&place) = self.known.get(&part.address()) {
            return place;
        }
        let entry = match part.kind() {
            NodeKind::Leaf(source, _) => self.leaf(source),
            NodeKind::Seq(parts) => Entry::Seq { of: self.all(parts) },
            NodeKind::Alt(parts) => Entry::Alt { of: self.all(parts) },
            NodeKind::Repeat { of, min, max } => Entry::Repeat { of: self.place(of), min: *min, max: *max },
            NodeKind::Recursive(body, me) => {
                let me = self.name(me);
                Entry::Recursive { of: self.place(body), me }
            }
            NodeKind::RuleRef(me) => Entry::Reference { me: self.name(me) },
        };
        let place = *self.places.entry(entry.clone()).or_insert(self.entries.len());
        if place == self.entries.len() {
            self.entries.push(entry);
        }
        self.known.insert(part.address(), place);
        place
    }

    fn leaf(&mut self, source: &Syntax) -> Entry {
        match source.clone() {
            Syntax::Regex(pattern) => Entry::Regex { pattern },
            Syntax::Gbnf { text, root } => Entry::Gbnf { text, root },
            Syntax::Lark { text, grammars } => {
                let grammars = grammars.iter().map(|(name, part)| (name.clone(), self.place(part))).collect();
                Entry::Lark { text, grammars }
            }
            Syntax::JsonSchema { text, options, documents } => {
                let SchemaOptions { order, whitespace, separators, ascii, lenient, draft } = options;
                let (order, whitespace, draft) =
                    (order.name().into(), whitespace.name().into(), draft.name().into());
                let written = Writing { order, whitespace, separators, ascii, lenient, draft };
                Entry::JsonSchema { text, written, documents }
            }
            Syntax::Tags { tags, triggers, free_before, at_least_one, stop_after_first, excludes } => {
                let mut tag = |tag: &TagNode| TagEntry {
                    begin: MarkEntry::of(&tag.begin),
                    content: self.place(&tag.content),
                    end: MarkEntry::all(&tag.end),
                };
                let tags = tags.iter().map(&mut tag).collect();
                let (triggers, excludes) = (MarkEntry::all(&triggers), MarkEntry::all(&excludes));
                Entry::Tags { tags, triggers, free_before, at_least_one, stop_after_first, excludes }
            }
            Syntax::StructuralTag(text) => Entry::StructuralTag { text },
            Syntax::Lazy { grammar, triggers } => {
                let Triggers { words, tokens, patterns } = triggers;
                let one = |TokenTrigger { name, text }| (MarkEntry::of(&Mark::Token(name)), text);
                let tokens = tokens.into_iter().map(one).collect();
                Entry::Lazy { grammar: self.place(&grammar), words, tokens, patterns }
            }
            Syntax::Literal(text) => Entry::Literal { text },
            Syntax::Choice(texts) => Entry::Choice { texts },
            Syntax::Anything => Entry::Anything,
            Syntax::Token(TokenName::Id(id)) => Entry::TokenId { id },
            Syntax::Token(TokenName::Text(text)) => Entry::TokenText { text },
        }
    }

    fn all(&mut self, parts: &[GrammarNode]) -> Vec<usize> {
        parts.iter().map(|part| self.place(part)).collect()
    }

    /// References are numbered in order of occurrence.
    fn name(&mut self, me: &RuleRef) -> usize {
        let next = self.names.len();
        *self.names.entry(me.address()).or_insert(next)
    }
}

/// The node of an entry, made from the nodes before it.
fn read(entry: Entry, made: &[GrammarNode], names: &mut FxHashMap<usize, RuleRef>) -> Result<GrammarNode> {
    let at = |place: usize| {
        made.get(place).cloned().ok_or_else(|| {
            Error::new(
                ErrorKind::Constraint,
                format!("no written grammar: there is no part {place} before it"),
            )
        })
    };
    let all = |places: Vec<usize>| places.into_iter().map(at).collect::<Result<Vec<_>>>();
    let mut named = |me: usize| names.entry(me).or_insert_with(|| RuleRef(std::sync::Arc::new(0))).clone();
    match entry {
        Entry::Regex { pattern } => GrammarNode::read(Syntax::Regex(pattern)),
        Entry::Gbnf { text, root } => GrammarNode::read(Syntax::Gbnf { text, root }),
        Entry::Lark { text, grammars } => {
            let one = |(name, place): (String, usize)| Ok((name, at(place)?));
            let grammars = grammars.into_iter().map(one).collect::<Result<Vec<_>>>()?;
            GrammarNode::read(Syntax::Lark { text, grammars })
        }
        Entry::JsonSchema { text, written, documents } => {
            let Writing { order, whitespace, separators, ascii, lenient, draft } = written;
            let (order, whitespace) = (KeyOrder::from_name(&order)?, Whitespace::from_name(&whitespace)?);
            let draft = Draft::from_name(&draft)?;
            let options = SchemaOptions { order, whitespace, separators, ascii, lenient, draft };
            GrammarNode::read(Syntax::JsonSchema { text, options, documents })
        }
        Entry::Tags { tags, triggers, free_before, at_least_one, stop_after_first, excludes } => {
            let one = |TagEntry { begin, content, end }| {
                Ok(TagNode { begin: begin.mark(), content: at(content)?, end: marks(end) })
            };
            let tags = tags.into_iter().map(one).collect::<Result<Vec<_>>>()?;
            let (triggers, excludes) = (marks(triggers), marks(excludes));
            GrammarNode::read(Syntax::Tags {
                tags,
                triggers,
                free_before,
                at_least_one,
                stop_after_first,
                excludes,
            })
        }
        Entry::StructuralTag { text } => GrammarNode::read(Syntax::StructuralTag(text)),
        Entry::Lazy { grammar, words, tokens, patterns } => {
            let tokens = tokens.into_iter().map(trigger).collect::<Result<_>>()?;
            let triggers = Triggers { words, tokens, patterns };
            GrammarNode::read(Syntax::Lazy { grammar: at(grammar)?, triggers })
        }
        Entry::Literal { text } => GrammarNode::read(Syntax::Literal(text)),
        Entry::Choice { texts } => GrammarNode::read(Syntax::Choice(texts)),
        Entry::Anything => GrammarNode::read(Syntax::Anything),
        Entry::TokenId { id } => GrammarNode::read(Syntax::Token(TokenName::Id(id))),
        Entry::TokenText { text } => GrammarNode::read(Syntax::Token(TokenName::Text(text))),
        Entry::Seq { of } => GrammarNode::seq(all(of)?),
        Entry::Alt { of } => GrammarNode::alt(all(of)?),
        Entry::Repeat { of, min, max } => at(of)?.repeat(min, max),
        Entry::Recursive { of, me } => GrammarNode::new(NodeKind::Recursive(at(of)?, named(me))),
        Entry::Reference { me } => GrammarNode::new(NodeKind::RuleRef(named(me))),
    }
}
