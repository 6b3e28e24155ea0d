//! Tool calls and tags: free text until a trigger, then the tag's content, then free text again.
//!
//! ```text
//! free text .. <tool_call> {"name": ..} </tool_call> .. free text
//!              begin       content      end
//! ```
//!
//! Free text is every text that contains no trigger; it may end inside one. Of overlapping triggers the one
//! that ends first counts, and of two that end together the longer one. A mark is text, a token, or either: a
//! control token `<tool_call>` and the same characters spelled by ordinary tokens are distinct.
//!
//! [`rules`] compiles a structure to [`Rules`]; [`from_json`] reads XGrammar's structural tags.

mod compile;
mod from_json;

pub(crate) use compile::compile_into;
pub use compile::rules;
pub use from_json::{from_json, SchemaReader};

use serde::{Deserialize, Serialize};

use super::rules::{RuleId, Rules, TokenName, TokenNames};

/// The begin or end of a tag, or its trigger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// These characters, whatever tokens spell them.
    Text(String),
    /// The token with this text, or its characters.
    Either(String),
    /// This token.
    #[serde(untagged)]
    Token(TokenName),
}

impl Mark {
    /// Its characters, if it may be text.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Mark::Text(text) | Mark::Either(text) => Some(text),
            Mark::Token(_) => None,
        }
    }

    /// Its token, if it may be a token.
    pub(crate) fn token(&self) -> Option<TokenName> {
        match self {
            Mark::Text(_) => None,
            Mark::Token(name) => Some(name.clone()),
            Mark::Either(text) => Some(TokenName::Text(text.clone())),
        }
    }

    /// The rest of this begin mark after `trigger`; `None` if it does not start with it.
    pub(crate) fn behind(&self, trigger: &Mark) -> Option<&str> {
        let name = |mark: &Mark| match mark {
            Mark::Text(_) | Mark::Either(_) => None,
            Mark::Token(name) => Some(name.clone()),
        };
        match (self, trigger) {
            (Mark::Token(TokenName::Text(begin)), Mark::Either(text)) => (begin == text).then_some(""),
            (Mark::Token(begin), _) => (Some(begin) == name(trigger).as_ref()).then_some(""),
            (Mark::Text(begin) | Mark::Either(begin), Mark::Token(TokenName::Text(text))) => {
                begin.strip_prefix(&**text)
            }
            (Mark::Text(begin) | Mark::Either(begin), Mark::Text(text) | Mark::Either(text)) => {
                begin.strip_prefix(&**text)
            }
            (_, Mark::Token(TokenName::Id(_))) => None,
        }
    }
}

/// The content of a tag or of the whole text.
#[derive(Debug, Clone)]
pub enum Content {
    /// A literal string.
    Text(String),
    /// A grammar.
    Rules(Rules),
    /// A rule of the rules that the content becomes a part of.
    Rule(RuleId),
    /// Any text that contains none of `excludes` and no end mark of the surrounding tag.
    AnyText {
        /// Strings that it must not contain.
        excludes: Vec<String>,
        /// Maximum number of characters.
        most: Option<u32>,
        /// Maximum number of tokens.
        max_tokens: Option<u32>,
    },
    /// One whole token.
    Tokens(TokenNames),
    /// Any whole tokens except these and the end mark of the surrounding tag.
    AnyTokens {
        /// The excluded tokens.
        excludes: Vec<TokenName>,
        /// Maximum number of tokens.
        most: Option<u32>,
    },
    /// Concatenation.
    Sequence(Vec<Content>),
    /// Union.
    Any(Vec<Content>),
    /// At least `min` and at most `max` repetitions.
    Repeat {
        /// What is repeated.
        of: Box<Content>,
        /// The minimum count.
        min: u32,
        /// The maximum count; `None` is unbounded.
        max: Option<u32>,
    },
    /// A tag.
    Tag(Box<Tag>),
    /// Free text with tags in it.
    Tags(Box<Tags>),
    /// Tags with a separator between them.
    Separated(Box<Separated>),
}

/// A tag: content between two marks.
#[derive(Debug, Clone)]
pub struct Tag {
    /// The begin mark.
    pub begin: Mark,
    /// The content.
    pub content: Content,
    /// The end marks. Any one ends the tag. An empty list or an empty text needs no end.
    pub end: Vec<Mark>,
}

/// Free text with tags in it.
#[derive(Debug, Clone)]
pub struct Tags {
    /// The tags. Each starts with a trigger.
    pub tags: Vec<Tag>,
    /// The triggers; an empty list means the begin marks of all tags.
    pub triggers: Vec<Mark>,
    /// Whether text may precede the first tag.
    pub free_before: bool,
    /// Whether free text is whole tokens, control tokens included, instead of characters.
    pub whole_tokens: bool,
    /// Whether there is at least one tag.
    pub at_least_one: bool,
    /// Whether the text ends after the first tag.
    pub stop_after_first: bool,
    /// What free text must not contain.
    pub excludes: Vec<Mark>,
}

impl Tags {
    /// Free text with any number of `tags`, triggered by their begin marks.
    pub fn new(tags: Vec<Tag>) -> Tags {
        Tags {
            tags,
            triggers: Vec::new(),
            free_before: true,
            whole_tokens: false,
            at_least_one: false,
            stop_after_first: false,
            excludes: Vec::new(),
        }
    }

    /// The triggers, without duplicates.
    fn all_triggers(&self) -> Vec<&Mark> {
        let begins = self.tags.iter().map(|tag| &tag.begin);
        let all: Vec<&Mark> =
            if self.triggers.is_empty() { begins.collect() } else { self.triggers.iter().collect() };
        let mut once: Vec<&Mark> = Vec::with_capacity(all.len());
        for mark in all {
            if !once.contains(&mark) {
                once.push(mark);
            }
        }
        once
    }
}

/// Tags with a separator between them, and nothing else.
#[derive(Debug, Clone)]
pub struct Separated {
    /// The tags.
    pub tags: Vec<Tag>,
    /// The separator.
    pub separator: String,
    /// Whether there is at least one.
    pub at_least_one: bool,
    /// Whether there is at most one.
    pub stop_after_first: bool,
}
