//! Compiles structures of tags to [`Rules`].

use super::super::append::append;
use super::super::endings::{free, free_before, until};
use super::super::rules::{Rule, RuleBody, RuleId, Rules, TokenName, TokenNames};
use super::super::Regex;
use super::{Content, Mark, Separated, Tag, Tags};
use crate::{Error, ErrorKind, Result};

/// Maximum nesting of contents.
pub(super) const MAX_NESTED: usize = 64;

/// Compiles `content`.
///
/// # Errors
/// [`ErrorKind::Constraint`] for a tag that no trigger starts, a trigger that starts no tag, an empty trigger,
/// and a text trigger where free text is whole tokens; [`ErrorKind::Limit`] for contents that nest too deeply.
pub fn rules(content: &Content) -> Result<Rules> {
    let mut rules = vec![Rule::new("~root", RuleBody::Seq(Vec::new()))];
    rules[0].body = compile_into(&mut rules, content)?;
    Ok(Rules { rules, start: RuleId(0) })
}

/// Compiles `content`, whose parts may be `rules`; what it needs is added to them.
///
/// # Errors
/// As [`rules`].
pub(crate) fn compile_into(rules: &mut Vec<Rule>, content: &Content) -> Result<RuleBody> {
    Compiler { rules, nested: 0 }.content(content, &[])
}

struct Compiler<'r> {
    rules: &'r mut Vec<Rule>,
    nested: usize,
}

impl Compiler<'_> {
    /// Makes a rule of what may be referenced more than once.
    fn rule(&mut self, name: String, body: RuleBody) -> RuleBody {
        self.rules.push(Rule::new(name, body));
        RuleBody::Ref(RuleId::new(self.rules.len() - 1))
    }

    /// Compiles `content` inside a tag that ends with any of `ends`: free text stops before them.
    fn content(&mut self, content: &Content, ends: &[Mark]) -> Result<RuleBody> {
        if self.nested == MAX_NESTED {
            let message = format!("contents of tags nest more than {MAX_NESTED} deep");
            return Err(Error::new(ErrorKind::Limit, message).help("give inner parts as a grammar"));
        }
        self.nested += 1;
        let node = match content {
            Content::Text(text) => lexeme(Regex::text(text)),
            Content::Rules(rules) => {
                let prefix = format!("~{}:", self.rules.len());
                RuleBody::Ref(append(self.rules, rules, &prefix))
            }
            Content::Rule(id) => RuleBody::Ref(*id),
            Content::AnyText { excludes, most, max_tokens } => {
                let all: Vec<&str> = texts(ends).chain(excludes.iter().map(String::as_str)).collect();
                let text = free(&all, *most);
                self.limited(text, *max_tokens)
            }
            Content::Tokens(set) if set.negated => {
                any_token_but(set.tokens.iter().cloned().chain(tokens(ends)))
            }
            Content::Tokens(set) => RuleBody::Tokens(set.clone()),
            Content::AnyTokens { excludes, most } => {
                any_tokens(excludes.iter().cloned().chain(tokens(ends)), *most)
            }
            Content::Sequence(parts) => RuleBody::Seq(self.all(parts, ends)?),
            Content::Any(parts) => RuleBody::Alt(self.all(parts, ends)?),
            Content::Repeat { of, min, max } => {
                RuleBody::Repeat { of: Box::new(self.content(of, ends)?), min: *min, max: *max }
            }
            Content::Tag(tag) => self.tag(tag)?,
            Content::Tags(tags) => self.tags(tags, ends, &[])?,
            Content::Separated(separated) => self.separated(separated)?,
        };
        self.nested -= 1;
        Ok(node)
    }

    /// A text that ends as soon as it can after so many tokens.
    fn limited(&mut self, text: Regex, max_tokens: Option<u32>) -> RuleBody {
        match max_tokens {
            None => lexeme(text),
            Some(0) => lexeme(Regex::Empty),
            Some(_) => {
                let node = self.rule("~text".into(), lexeme(text));
                if let Some(rule) = self.rules.last_mut() {
                    rule.marks.max_tokens = max_tokens;
                }
                node
            }
        }
    }

    fn all(&mut self, parts: &[Content], ends: &[Mark]) -> Result<Vec<RuleBody>> {
        parts.iter().map(|part| self.content(part, ends)).collect()
    }

    fn tag(&mut self, tag: &Tag) -> Result<RuleBody> {
        let body = self.body(tag)?;
        Ok(RuleBody::Seq(vec![mark(&tag.begin), body]))
    }

    /// What follows the begin mark of a tag. Free text and its end mark are one lexeme, since an end mark may
    /// also begin inside the text before it.
    fn body(&mut self, tag: &Tag) -> Result<RuleBody> {
        match &tag.content {
            Content::AnyText { excludes, most, max_tokens } => {
                let ends: Vec<&str> = texts(&tag.end).collect();
                let excludes: Vec<&str> = excludes.iter().map(String::as_str).collect();
                if max_tokens.is_none() {
                    return Ok(free_until(&ends, &excludes, &tag.end, *most));
                }
                let of_end = |end: &Mark| {
                    let text = match end.text() {
                        Some(text) if !text.is_empty() => free_before(text, &ends, &excludes, *most),
                        _ => free(&[&ends[..], &excludes].concat(), *most),
                    };
                    RuleBody::Seq(vec![self.limited(text, *max_tokens), mark(end)])
                };
                let ways: Vec<RuleBody> = tag.end.iter().map(of_end).collect();
                Ok(if ways.is_empty() {
                    self.limited(free(&excludes, *most), *max_tokens)
                } else {
                    RuleBody::Alt(ways)
                })
            }
            Content::Tags(tags) => self.tags(tags, &tag.end, &tag.end),
            content => Ok(RuleBody::Seq(vec![self.content(content, &tag.end)?, any_mark(&tag.end)])),
        }
    }

    /// Tags, each with a rule for what follows its begin mark.
    fn bodies(&mut self, tags: &[Tag]) -> Result<Vec<RuleBody>> {
        tags.iter()
            .map(|tag| {
                let body = self.body(tag)?;
                Ok(self.rule("~tag".into(), body))
            })
            .collect()
    }

    fn separated(&mut self, separated: &Separated) -> Result<RuleBody> {
        let bodies = self.bodies(&separated.tags)?;
        let one = whole(&separated.tags, &bodies);
        let one = self.rule("~tag".into(), one);
        let max = if separated.stop_after_first { Some(0) } else { None };
        let more = RuleBody::Seq(vec![lexeme(Regex::text(&separated.separator)), one.clone()]);
        let list = RuleBody::Seq(vec![one, RuleBody::Repeat { of: Box::new(more), min: 0, max }]);
        let min = u32::from(separated.at_least_one);
        Ok(RuleBody::Repeat { of: Box::new(list), min, max: Some(1) })
    }

    /// Free text with tags. The text stops before any of `stops`; `ends` follows it and is part of the node.
    fn tags(&mut self, tags: &Tags, stops: &[Mark], ends: &[Mark]) -> Result<RuleBody> {
        let triggers = tags.all_triggers();
        if let Some(error) = mistake(tags) {
            return Err(error);
        }
        let marks: Vec<&Mark> =
            triggers.iter().copied().chain(stops).filter(|mark| !is_empty(mark)).collect();
        let all: Vec<&str> = marks.iter().filter_map(|mark| mark.text()).collect();
        let excludes: Vec<&str> = texts(&tags.excludes).collect();
        let free_tokens = || {
            let marks = marks.iter().copied().chain(&tags.excludes);
            any_tokens(marks.filter_map(Mark::token), None)
        };
        let bodies = self.bodies(&tags.tags)?;

        let mut ways = Vec::new();
        for trigger in &triggers {
            let next = dispatch(tags, trigger, &bodies);
            let next = self.rule("~dispatch".into(), next);
            if tags.whole_tokens {
                ways.push(RuleBody::Seq(vec![free_tokens(), mark(trigger), next]));
            } else {
                let until = free_until(&all, &excludes, std::slice::from_ref(*trigger), None);
                ways.push(RuleBody::Seq(vec![until, next]));
            }
        }
        let triggered = self.rule("~triggered".into(), RuleBody::Alt(ways));
        let last = match tags.whole_tokens {
            true => RuleBody::Seq(vec![free_tokens(), any_mark(ends)]),
            false => free_until(&all, &excludes, ends, None),
        };

        let first = if tags.free_before { triggered.clone() } else { whole(&tags.tags, &bodies) };
        let more = RuleBody::Repeat { of: Box::new(triggered), min: 0, max: None };
        let some = match tags.stop_after_first {
            true => RuleBody::Seq(vec![first, any_mark(ends)]),
            false => RuleBody::Seq(vec![first, more, last.clone()]),
        };
        let none = if tags.free_before { last } else { any_mark(ends) };
        Ok(if tags.at_least_one { some } else { RuleBody::Alt(vec![some, none]) })
    }
}

/// Checks the triggers of `tags`.
pub(super) fn mistake(tags: &Tags) -> Option<Error> {
    let triggers = tags.all_triggers();
    let error = |message: String, help: &str| Some(Error::new(ErrorKind::Constraint, message).help(help));
    if triggers.iter().any(|trigger| is_empty(trigger)) {
        return error("a trigger is empty".into(), "name the text or the token that starts a tag");
    }
    for tag in &tags.tags {
        if !triggers.iter().any(|trigger| tag.begin.behind(trigger).is_some()) {
            let message = format!("no trigger starts the tag that begins with {}", said(&tag.begin));
            return error(message, "add a trigger that is a prefix of it");
        }
    }
    for trigger in triggers {
        if !tags.tags.iter().any(|tag| tag.begin.behind(trigger).is_some()) {
            let message = format!("the trigger {} starts no tag", said(trigger));
            return error(message, "add the tag, or put the text among what is excluded");
        }
        if tags.whole_tokens && !matches!(trigger, Mark::Token(_)) {
            let message = format!("the trigger {} is no token, and free text is whole tokens", said(trigger));
            return error(message, "name a token, or let free text be characters");
        }
    }
    None
}

/// A mark for messages.
fn said(mark: &Mark) -> String {
    match mark {
        Mark::Text(text) | Mark::Either(text) => format!("{text:?}"),
        Mark::Token(TokenName::Text(text)) => format!("the token {text:?}"),
        Mark::Token(TokenName::Id(id)) => format!("the token {id}"),
    }
}

/// Whether a mark is never text.
fn is_empty(mark: &Mark) -> bool {
    mark.text() == Some("")
}

/// The texts of marks, without the empty one.
fn texts(marks: &[Mark]) -> impl Iterator<Item = &str> {
    marks.iter().filter_map(Mark::text).filter(|text| !text.is_empty())
}

/// The tokens of marks.
fn tokens(marks: &[Mark]) -> impl Iterator<Item = TokenName> + '_ {
    marks.iter().filter_map(Mark::token)
}

fn lexeme(regex: Regex) -> RuleBody {
    RuleBody::Lexeme(regex)
}

/// Any whole tokens except these.
fn any_tokens(excludes: impl Iterator<Item = TokenName>, most: Option<u32>) -> RuleBody {
    RuleBody::Repeat { of: Box::new(any_token_but(excludes)), min: 0, max: most }
}

/// One whole token, none of these.
fn any_token_but(excludes: impl Iterator<Item = TokenName>) -> RuleBody {
    let mut tokens: Vec<TokenName> = Vec::new();
    for token in excludes {
        if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    RuleBody::Tokens(TokenNames { tokens, negated: true })
}

fn token(name: TokenName) -> RuleBody {
    RuleBody::Tokens(TokenNames { tokens: vec![name], negated: false })
}

/// The mark as a node.
fn mark(mark: &Mark) -> RuleBody {
    match mark {
        Mark::Text(text) => lexeme(Regex::text(text)),
        Mark::Token(name) => token(name.clone()),
        Mark::Either(text) => {
            RuleBody::Alt(vec![token(TokenName::Text(text.clone())), lexeme(Regex::text(text))])
        }
    }
}

/// Any of the marks; `None` if there is none.
fn any_mark(marks: &[Mark]) -> RuleBody {
    match marks {
        [] => RuleBody::Seq(Vec::new()),
        [only] => mark(only),
        _ => RuleBody::Alt(marks.iter().map(mark).collect()),
    }
}

/// Free text that contains none of `excludes`, then the first of `marks`, if that is one of `ends`; without `ends` only text
/// that contains neither.
fn free_until(marks: &[&str], excludes: &[&str], ends: &[Mark], most: Option<u32>) -> RuleBody {
    let free_of_all = || lexeme(free(&[marks, excludes].concat(), most));
    let mut ways = Vec::new();
    for end in ends {
        if let Some(text) = end.text() {
            ways.push(match text {
                "" => free_of_all(),
                _ => lexeme(until(text, marks, excludes, most)),
            });
        }
        if let Some(name) = end.token() {
            ways.push(RuleBody::Seq(vec![free_of_all(), token(name)]));
        }
    }
    match ways.pop() {
        None => free_of_all(),
        Some(only) if ways.is_empty() => only,
        Some(last) => {
            ways.push(last);
            RuleBody::Alt(ways)
        }
    }
}

/// Any one of the whole tags.
fn whole(tags: &[Tag], bodies: &[RuleBody]) -> RuleBody {
    RuleBody::Alt(
        tags.iter()
            .zip(bodies)
            .map(|(tag, body)| RuleBody::Seq(vec![mark(&tag.begin), body.clone()]))
            .collect(),
    )
}

/// What follows a trigger: the rest of a begin mark and what follows that.
fn dispatch(tags: &Tags, trigger: &Mark, bodies: &[RuleBody]) -> RuleBody {
    let ways = tags.tags.iter().zip(bodies).filter_map(|(tag, body)| {
        let rest = tag.begin.behind(trigger)?;
        Some(RuleBody::Seq(vec![lexeme(Regex::text(rest)), body.clone()]))
    });
    RuleBody::Alt(ways.collect())
}
