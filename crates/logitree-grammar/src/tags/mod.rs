//! Tool calls and tags: free text until a trigger, then what the tag says, then free text again.
//!
//! ```text
//! free text .. <tool_call> {"name": ..} </tool_call> .. free text
//!              begin       content      end
//! ```
//!
//! Free text is every text in which no trigger stands; it may end in the middle of one. Where triggers overlap, the one
//! that ends first counts, and of two that end together the longer one. A mark is text, a token, or either: a control
//! token `<tool_call>` and the same characters spelled by ordinary tokens are told apart.
//!
//! [`rules`] makes [`Rules`] of a structure; [`from_json`] reads XGrammar's structural tags. The room refuses to know
//! which tokens exist.

mod compile;
mod from_json;

#[cfg(test)]
mod tests;

pub use compile::rules;
pub use from_json::{from_json, SchemaReader};

use super::rules::{Rules, TokenName, TokenSet};

/// What stands where a tag begins or ends, or what triggers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// These characters, whatever tokens spell them.
    Text(String),
    /// This token.
    Token(TokenName),
    /// The token of this text, or its characters.
    Either(String),
}

impl Mark {
    /// Its characters, where it is spelled.
    fn text(&self) -> Option<&str> {
        match self {
            Mark::Text(text) | Mark::Either(text) => Some(text),
            Mark::Token(_) => None,
        }
    }

    /// Its token, where it is one.
    fn token(&self) -> Option<TokenName> {
        match self {
            Mark::Text(_) => None,
            Mark::Token(name) => Some(name.clone()),
            Mark::Either(text) => Some(TokenName::Text(text.clone())),
        }
    }

    /// What this mark, which begins a tag, has behind `trigger`; nothing if it does not start with it.
    fn behind(&self, trigger: &Mark) -> Option<&str> {
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

/// What may stand somewhere.
#[derive(Debug, Clone)]
pub enum Content {
    /// This text.
    Text(String),
    /// What a grammar says.
    Rules(Rules),
    /// Any text in which none of `excludes` stands, nor an end of the tag around it.
    AnyText {
        /// Texts that must not stand in it.
        excludes: Vec<String>,
        /// How many characters it has at most.
        most: Option<u32>,
    },
    /// One whole token.
    Tokens(TokenSet),
    /// Any whole tokens but these and the end of the tag around them.
    AnyTokens {
        /// Tokens that must not come.
        excludes: Vec<TokenName>,
        /// How many there are at most.
        most: Option<u32>,
    },
    /// One after the other.
    Sequence(Vec<Content>),
    /// Any of these.
    Any(Vec<Content>),
    /// At least `min` times and at most `max` times.
    Repeat {
        /// What is repeated.
        of: Box<Content>,
        /// How often at least.
        min: u32,
        /// How often at most; `None` is without end.
        max: Option<u32>,
    },
    /// A tag.
    Tag(Box<Tag>),
    /// Free text with tags in it.
    Tags(Box<Tags>),
    /// Tags with a separator between them.
    Separated(Box<Separated>),
}

/// What stands between two marks.
#[derive(Debug, Clone)]
pub struct Tag {
    /// How it begins.
    pub begin: Mark,
    /// What it says.
    pub content: Content,
    /// How it ends: any of these; an empty list or an empty text needs no end.
    pub end: Vec<Mark>,
}

/// Free text with tags in it.
#[derive(Debug, Clone)]
pub struct Tags {
    /// The tags. Each begins with a trigger.
    pub tags: Vec<Tag>,
    /// What triggers tags; none stands for the beginnings of all tags.
    pub triggers: Vec<Mark>,
    /// Whether text may stand before the first tag.
    pub free_before: bool,
    /// Whether free text is whole tokens, control tokens included, instead of characters.
    pub whole_tokens: bool,
    /// Whether there is at least one tag.
    pub at_least_one: bool,
    /// Whether all ends behind the first tag.
    pub stop_after_first: bool,
    /// What must not stand in free text.
    pub excludes: Vec<Mark>,
}

impl Tags {
    /// Free text with any number of `tags` in it, which are triggered by their beginnings.
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

    /// The triggers, each once.
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
    /// What stands between two of them.
    pub separator: String,
    /// Whether there is at least one.
    pub at_least_one: bool,
    /// Whether there is at most one.
    pub stop_after_first: bool,
}
