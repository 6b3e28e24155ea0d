//! Serialises a grammar as a JSON list in which every node occurs once, after its children. Equal texts are
//! equal grammars.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::super::json_schema::SchemaOptions;
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
        written: SchemaOptions,
        documents: Vec<(String, String)>,
    },
    Tags {
        tags: Vec<TagNode<usize>>,
        triggers: Vec<Mark>,
        free_before: bool,
        at_least_one: bool,
        stop_after_first: bool,
        excludes: Vec<Mark>,
    },
    StructuralTag {
        text: String,
    },
    Lazy {
        grammar: usize,
        words: Vec<String>,
        tokens: Vec<(TokenName, Option<String>)>,
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
                Entry::JsonSchema { text, written: options, documents }
            }
            Syntax::Tags { tags, triggers, free_before, at_least_one, stop_after_first, excludes } => {
                let one =
                    |TagNode { begin, content, end }| TagNode { begin, content: self.place(&content), end };
                let tags = tags.into_iter().map(one).collect();
                Entry::Tags { tags, triggers, free_before, at_least_one, stop_after_first, excludes }
            }
            Syntax::StructuralTag(text) => Entry::StructuralTag { text },
            Syntax::Lazy { grammar, triggers } => {
                let Triggers { words, tokens, patterns } = triggers;
                let tokens = tokens.into_iter().map(|TokenTrigger { name, text }| (name, text)).collect();
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
            GrammarNode::read(Syntax::JsonSchema { text, options: written, documents })
        }
        Entry::Tags { tags, triggers, free_before, at_least_one, stop_after_first, excludes } => {
            let one = |TagNode { begin, content, end }| Ok(TagNode { begin, content: at(content)?, end });
            let tags = tags.into_iter().map(one).collect::<Result<Vec<_>>>()?;
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
            let tokens = tokens.into_iter().map(|(name, text)| TokenTrigger { name, text }).collect();
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
