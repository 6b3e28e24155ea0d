//! Reads the options of EBNF's rules, `name[lazy, max_chars=20] ::=`, and applies them once all rules are read.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::endings::shortest;
use super::super::join::regular;
use super::super::problems::{excerpt, Problems};
use super::super::rules::{temperature, Captured, Marks, Rule, RuleBody, RuleId};
use super::super::{CharSet, Regex};
use super::read::Reader;

/// Maximum weight of all rules with options, with the rules that they name.
const MAX_WEIGHT: usize = 1 << 18;

const KNOWN: &str =
    "known are lazy, max_chars=number, max_tokens=number, temperature=number, capture and capture=\"name\"";

/// The options of a rule.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Attributes {
    /// Whether it ends as early as it can.
    lazy: bool,
    /// Maximum number of characters.
    max_chars: Option<u32>,
    /// Maximum number of tokens.
    max_tokens: Option<u32>,
    /// The name of what it captures; empty: the rule's.
    capture: Option<String>,
    /// The temperature at which it is sampled.
    temperature: Option<f32>,
}

impl Attributes {
    pub(super) fn is_none(&self) -> bool {
        *self == Attributes::default()
    }

    /// The option that asks for a rule that is one regular expression.
    fn of_regular(&self) -> Option<&'static str> {
        let options = [
            ("lazy", self.lazy),
            ("max_chars", self.max_chars.is_some()),
            ("max_tokens", self.max_tokens.is_some()),
        ];
        options.into_iter().find(|option| option.1).map(|option| option.0)
    }
}

impl Reader<'_> {
    /// Reads the options up to their `]`.
    pub(super) fn attributes(&mut self) -> Option<Attributes> {
        let mut read = Attributes::default();
        let mut seen: Vec<&str> = Vec::new();
        self.at += 1;
        loop {
            self.space(false);
            let from = self.at;
            let key = self.name().unwrap_or_default();
            if seen.contains(&key) {
                return self.fail(format!("`{key}` is given twice"), "keep one of them");
            }
            seen.push(key);
            self.space(false);
            let has_value = self.peek() == Some(b'=');
            if has_value {
                self.at += 1;
                self.space(false);
            }
            match (key, has_value) {
                ("lazy", false) => read.lazy = true,
                ("max_chars", true) => read.max_chars = Some(self.number()?),
                ("capture", false) => read.capture = Some(String::new()),
                ("capture", true) if self.peek() == Some(b'"') => {
                    let name = self.quoted()?;
                    if name.is_empty() {
                        self.problems.add(from, "`capture` has no name", "write capture=\"name\"");
                    }
                    read.capture = Some(name);
                }
                ("max_tokens", true) => {
                    let at = self.at;
                    read.max_tokens = Some(self.number()?);
                    if read.max_tokens == Some(0) {
                        self.problems.add(at, "`max_tokens` is 0", "the least is 1");
                    }
                }
                ("temperature", true) => {
                    let rest = &self.text[self.at..];
                    let length = rest.bytes().take_while(|&byte| is_of_number(byte)).count();
                    read.temperature = temperature(&rest[..length]);
                    if read.temperature.is_none() {
                        let help = "write temperature=0.7";
                        return self.fail("`temperature` is no number from 0 on", help);
                    }
                    self.at += length;
                }
                _ => {
                    self.at = from;
                    return self.fail(format!("unknown option {}", excerpt(self.text, from)), KNOWN);
                }
            }
            self.space(false);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Some(read);
                }
                _ => return self.fail("the options of a rule are not closed", "close them with ]"),
            }
        }
    }
}

/// Whether a number with a fraction and an exponent may have `byte`.
fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')
}

/// A rule with options, and where it is.
pub(super) type Marked = (RuleId, Attributes, usize);

/// Applies the options of `marked` rules. The rules are all that were read.
pub(super) fn apply(rules: &mut [Rule], marked: &[Marked], problems: &mut Problems) {
    let marked: HashMap<RuleId, (&Attributes, usize)> =
        marked.iter().map(|(id, attributes, at)| (*id, (attributes, *at))).collect();
    if marked.is_empty() {
        return;
    }
    let mut weight = MAX_WEIGHT;
    for id in callees_first(rules) {
        let Some(&(attributes, at)) = marked.get(&id) else { continue };
        let name = || Arc::from(rules[id.index()].name.as_str());
        let named = |given: &String| if given.is_empty() { name() } else { Arc::from(given.as_str()) };
        let capture =
            attributes.capture.as_ref().map(|given| Captured { name: Some(named(given)), end: None });
        let Attributes { max_tokens, temperature, .. } = *attributes;
        let marks = Marks { max_tokens, capture, temperature };
        let Some(option) = attributes.of_regular() else {
            rules[id.index()].marks = marks;
            continue;
        };
        let Some(mut regex) = regular(rules, id, &mut weight) else {
            let name = &rules[id.index()].name;
            let message =
                format!("`{option}` of the rule \"{name}\", which is no regular expression, or a large one");
            problems.add(
                at,
                message,
                "give it to a rule of texts, classes, Regex and Substring that does not name itself",
            );
            continue;
        };
        if let Some(inner) = captured_inside(rules, id) {
            let name = &rules[id.index()].name;
            let message =
                format!("`{option}` of the rule \"{name}\", which contains the captured \"{inner}\"");
            problems.add(at, message, "capture the outer rule, or leave the option out");
        }
        if attributes.lazy {
            regex = shortest(regex);
        }
        if let Some(most) = attributes.max_chars {
            regex = Regex::and([regex, Regex::Set(CharSet::all()).repeat(0, Some(most))]);
        }
        rules[id.index()].body = RuleBody::Lexeme(regex);
        rules[id.index()].marks = marks;
    }
}

/// The name of a rule that is captured and that this one refers to, also by others.
fn captured_inside(rules: &[Rule], id: RuleId) -> Option<&str> {
    let (mut seen, mut open) = (vec![false; rules.len()], Vec::new());
    referred(&rules[id.index()].body, &mut |callee| open.push(callee));
    while let Some(id) = open.pop() {
        let rule = &rules[id.index()];
        if rule.marks.capture.is_some() {
            return Some(&rule.name);
        }
        if !std::mem::replace(&mut seen[id.index()], true) {
            referred(&rule.body, &mut |callee| open.push(callee));
        }
    }
    None
}

/// All rules, each after those that it refers to, as far as these do not refer to it.
fn callees_first(rules: &[Rule]) -> Vec<RuleId> {
    let mut order = Vec::with_capacity(rules.len());
    let mut seen = vec![false; rules.len()];
    for start in 0..rules.len() {
        // A rule, and whether those that it refers to were looked at.
        let mut open = vec![(RuleId::new(start), false)];
        while let Some((id, is_done)) = open.pop() {
            if is_done {
                order.push(id);
            } else if !std::mem::replace(&mut seen[id.index()], true) {
                open.push((id, true));
                referred(&rules[id.index()].body, &mut |callee| open.push((callee, false)));
            }
        }
    }
    order
}

/// Calls `take` for each reference in a body. Recurses as deep as a body nests, which the reader bounds.
fn referred(body: &RuleBody, take: &mut impl FnMut(RuleId)) {
    match body {
        RuleBody::Ref(id) => take(*id),
        RuleBody::Seq(parts) | RuleBody::Alt(parts) => parts.iter().for_each(|part| referred(part, take)),
        RuleBody::Repeat { of, .. } => referred(of, take),
        RuleBody::Lexeme(_) | RuleBody::Tokens(_) | RuleBody::Json(_) | RuleBody::Both(_) => {}
    }
}
