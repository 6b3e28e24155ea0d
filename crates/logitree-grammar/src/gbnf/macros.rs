//! Reads EBNF's macros, which look like calls: `Regex("[0-9]+", json_string=true)`, `TagDispatch(("<t>", rule))`.

use super::super::pattern::{self, PatternFlags, PatternOptions};
use super::super::rules::{RuleBody, TokenName, TokenNames};
use super::super::tags::{Content, Mark, Tag, Tags};
use super::super::{substrings, CharSet, Regex};
use super::read::Reader;
use crate::Result;

/// The macros, and how each is written.
const MACROS: [(&str, &str); 6] = [
    (
        "Regex",
        "it is Regex(\"pattern\"), Regex(\"pattern\", flags=\"is\") or Regex(\"pattern\", json_string=true)",
    ),
    ("Substring", "it is Substring(\"chunk\", ...)"),
    (
        "TagDispatch",
        "it is TagDispatch((\"tag\", rule), ..., loop_after_dispatch=true, excludes=(\"text\", ...))",
    ),
    (
        "TokenTagDispatch",
        "it is TokenTagDispatch((1, rule), ..., loop_after_dispatch=true, excludes=(2, ...))",
    ),
    ("Token", "it is Token(1, ...)"),
    ("ExcludeToken", "it is ExcludeToken(1, ...)"),
];

/// Maximum nesting of tuples.
const MAX_NESTED: usize = 8;

/// A value in the parentheses of a macro.
#[derive(Debug)]
enum Value<'t> {
    Text(String),
    Number(u32),
    Flag(bool),
    Name(&'t str, usize),
    Tuple(Vec<Value<'t>>),
}

/// The values of a macro, in order and by name.
#[derive(Default)]
struct Given<'t> {
    values: Vec<Value<'t>>,
    named: Vec<(&'t str, Value<'t>)>,
}

impl<'t> Given<'t> {
    /// The value of this name.
    fn take(&mut self, name: &str) -> Option<Value<'t>> {
        let at = self.named.iter().position(|(known, _)| *known == name)?;
        Some(self.named.swap_remove(at).1)
    }

    /// The flag of this name, if it is one or is not given.
    fn flag(&mut self, name: &str, default: bool) -> Option<bool> {
        match self.take(name) {
            None => Some(default),
            Some(Value::Flag(flag)) => Some(flag),
            Some(_) => None,
        }
    }
}

/// The macro of this name.
pub(super) fn named(name: &str) -> Option<usize> {
    MACROS.iter().position(|(known, _)| *known == name)
}

impl<'t> Reader<'t> {
    /// Reads a macro from its `(` on; its name begins at `from`.
    pub(super) fn macro_call(&mut self, number: usize, from: usize) -> Option<RuleBody> {
        let given = self.given()?;
        let (name, help) = MACROS[number];
        let made = match name {
            "Regex" => return self.regex(given, from, help),
            "Substring" => match substring(given) {
                Some(Err(error)) => {
                    self.problems.take(from, &error);
                    return None;
                }
                Some(Ok(regex)) => Some(RuleBody::Lexeme(regex)),
                None => None,
            },
            "TagDispatch" => self.dispatch(given, false),
            "TokenTagDispatch" => self.dispatch(given, true),
            _ => tokens(given, name == "ExcludeToken"),
        };
        if made.is_none() {
            self.at = from;
            return self.fail(format!("a {name} that cannot be read"), help);
        }
        made
    }

    /// The values between parentheses.
    fn given(&mut self) -> Option<Given<'t>> {
        let mut given = Given::default();
        self.at += 1;
        self.space(true);
        if self.eat(b')') {
            return Some(given);
        }
        loop {
            let from = self.at;
            let name = self.name().filter(|_| {
                self.space(true);
                self.peek() == Some(b'=')
            });
            match name {
                Some(name) => {
                    self.at += 1;
                    self.space(true);
                    let value = self.value(0)?;
                    if given.named.iter().any(|(known, _)| *known == name) {
                        self.at = from;
                        return self.fail(format!("{name} is given twice"), "keep one of them");
                    }
                    given.named.push((name, value));
                }
                None => {
                    self.at = from;
                    given.values.push(self.value(0)?);
                }
            }
            self.space(true);
            if self.eat(b')') {
                return Some(given);
            }
            if !self.eat(b',') {
                return self
                    .fail("a macro that is not closed", "its values are separated by , and end with )");
            }
            self.space(true);
        }
    }

    fn eat(&mut self, sign: u8) -> bool {
        let found = self.peek() == Some(sign);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, nested: usize) -> Option<Value<'t>> {
        match self.peek() {
            Some(b'"') => self.quoted().map(Value::Text),
            Some(b'0'..=b'9') => self.number().map(Value::Number),
            Some(b'(') if nested < MAX_NESTED => {
                self.at += 1;
                let mut values = Vec::new();
                loop {
                    self.space(true);
                    if self.eat(b')') {
                        return Some(Value::Tuple(values));
                    }
                    values.push(self.value(nested + 1)?);
                    self.space(true);
                    if !self.eat(b',') && self.peek() != Some(b')') {
                        return self.fail("a tuple that is not closed", "close it with )");
                    }
                }
            }
            _ => {
                let from = self.at;
                match self.name() {
                    Some("true") => Some(Value::Flag(true)),
                    Some("false") => Some(Value::Flag(false)),
                    Some(name) => Some(Value::Name(name, from)),
                    None => self.fail(
                        "a value of a macro must be here",
                        "it is a text, a number, true, false, the name of a rule, or a tuple of these",
                    ),
                }
            }
        }
    }

    fn regex(&mut self, mut given: Given<'t>, from: usize, help: &str) -> Option<RuleBody> {
        let (flags, in_json) = (given.take("flags"), given.flag("json_string", false));
        let (Some(in_json), true, [Value::Text(pattern)]) =
            (in_json, given.named.is_empty(), &given.values[..])
        else {
            self.at = from;
            return self.fail("a Regex that cannot be read", help);
        };
        let mut read = PatternOptions::WHOLE;
        read.flags = match flags {
            // The dot is any character where no flags are given.
            None => PatternFlags { dot_all: true, ..PatternFlags::default() },
            Some(Value::Text(letters)) if letters.chars().all(|letter| "isu".contains(letter)) => {
                PatternFlags {
                    ignore_case: letters.contains('i'),
                    dot_all: letters.contains('s'),
                    ..PatternFlags::default()
                }
            }
            Some(_) => {
                self.at = from;
                return self.fail("flags of a Regex that are not known", "known are i, s and u");
            }
        };
        match pattern::parse(pattern, &read) {
            Ok(regex) if in_json => {
                let plain = CharSet::from_ranges([(0, 0x1f), (0x22, 0x22), (0x5c, 0x5c)]).not();
                let plain = Regex::Set(plain).repeat(0, None);
                Some(RuleBody::Lexeme(Regex::and([regex, plain])))
            }
            Ok(regex) => Some(RuleBody::Lexeme(regex)),
            Err(error) => {
                self.problems.take(from, &error);
                None
            }
        }
    }

    /// Free text, or free tokens, that tags and their rules interrupt.
    fn dispatch(&mut self, mut given: Given<'t>, whole_tokens: bool) -> Option<RuleBody> {
        let goes_on = given.flag("loop_after_dispatch", true)?;
        let excludes = match given.take("excludes") {
            None => Vec::new(),
            Some(Value::Tuple(values)) => {
                values.into_iter().map(|value| mark(value, whole_tokens)).collect::<Option<Vec<_>>>()?
            }
            Some(_) => return None,
        };
        if !given.named.is_empty() {
            return None;
        }
        let mut tags = Vec::new();
        for pair in given.values {
            let Value::Tuple(pair) = pair else { return None };
            let [begin, Value::Name(rule, at)] = <[Value; 2]>::try_from(pair).ok()? else { return None };
            let content = Content::Rule(self.names.id(rule, at));
            tags.push(Tag { begin: mark(begin, whole_tokens)?, content, end: Vec::new() });
        }
        if tags.iter().any(|tag| excludes.iter().any(|text| tag.begin.behind(text).is_some())) {
            return None;
        }
        let tags = Tags { whole_tokens, stop_after_first: !goes_on, excludes, ..Tags::new(tags) };
        let content = match (tags.tags.is_empty(), whole_tokens) {
            (false, _) => Content::Tags(Box::new(tags)),
            (true, true) => {
                let excludes = tags.excludes.iter().filter_map(Mark::token).collect();
                Content::AnyTokens { excludes, most: None }
            }
            (true, false) => {
                let excludes = tags.excludes.iter().filter_map(Mark::text).map(str::to_string).collect();
                Content::AnyText { excludes, most: None, max_tokens: None }
            }
        };
        Some(RuleBody::Ref(self.names.add_content(self.owner, content)))
    }
}

/// What begins a tag, or is excluded: a text that is not empty, or a token.
fn mark(value: Value, whole_tokens: bool) -> Option<Mark> {
    match value {
        Value::Text(text) if !whole_tokens && !text.is_empty() => Some(Mark::Text(text)),
        Value::Number(id) if whole_tokens => Some(Mark::Token(TokenName::Id(id))),
        _ => None,
    }
}

fn substring(given: Given) -> Option<Result<Regex>> {
    let text = |value: Value| match value {
        Value::Text(text) => Some(text),
        _ => None,
    };
    let chunks: Vec<String> = given.values.into_iter().map(text).collect::<Option<_>>()?;
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    given.named.is_empty().then(|| substrings::runs(&chunks))
}

fn tokens(given: Given, negated: bool) -> Option<RuleBody> {
    let id = |value: Value| match value {
        Value::Number(id) => Some(TokenName::Id(id)),
        _ => None,
    };
    let tokens: Vec<TokenName> = given.values.into_iter().map(id).collect::<Option<_>>()?;
    (given.named.is_empty() && !tokens.is_empty()).then_some(RuleBody::Tokens(TokenNames { tokens, negated }))
}
