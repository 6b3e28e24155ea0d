//! Reads the options of EBNF's rules, `name[lazy, max_chars=20] ::=`, and applies them once all rules are read.

use std::collections::HashMap;

use super::super::endings::shortest;
use super::super::join::regular;
use super::super::problems::{excerpt, Problems};
use super::super::rules::{Rule, RuleBody, RuleId};
use super::super::{CharSet, Regex};
use super::read::Reader;

/// Maximum weight of all rules with options, with the rules that they name.
const MAX_WEIGHT: usize = 1 << 18;

const KNOWN: &str = "known are lazy, max_chars=number, max_tokens=number, capture and capture=\"name\"";

/// The options of a rule that change what may come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attributes {
    /// Whether it ends as early as it can.
    lazy: bool,
    /// Maximum number of characters.
    max_chars: Option<u32>,
    /// Maximum number of tokens.
    max_tokens: Option<u32>,
}

impl Attributes {
    pub(super) fn is_none(self) -> bool {
        self == Attributes::default()
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
                ("capture", false) => {}
                ("capture" | "stop_capture", true) if self.peek() == Some(b'"') => {
                    if self.quoted()?.is_empty() {
                        self.problems.add(
                            from,
                            format!("`{key}` has no name"),
                            format!("write {key}=\"name\""),
                        );
                    }
                }
                ("max_tokens", true) => {
                    let at = self.at;
                    read.max_tokens = Some(self.number()?);
                    if read.max_tokens == Some(0) {
                        self.problems.add(at, "`max_tokens` is 0", "the least is 1");
                    }
                }
                ("temperature", true) => {
                    self.at = from;
                    let help = "set it where tokens are sampled";
                    return self.fail("`temperature` does not describe text", help);
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

/// A rule with options, and where it is.
pub(super) type Marked = (RuleId, Attributes, usize);

/// Applies the options of `marked` rules. The rules are all that were read.
pub(super) fn apply(rules: &mut [Rule], marked: &[Marked], problems: &mut Problems) {
    let marked: HashMap<RuleId, (Attributes, usize)> =
        marked.iter().map(|&(id, attributes, at)| (id, (attributes, at))).collect();
    if marked.is_empty() {
        return;
    }
    let mut weight = MAX_WEIGHT;
    for id in callees_first(rules) {
        let Some(&(attributes, at)) = marked.get(&id) else { continue };
        let Some(mut regex) = regular(rules, id, &mut weight) else {
            let option = match attributes {
                Attributes { lazy: true, .. } => "lazy",
                Attributes { max_chars: Some(_), .. } => "max_chars",
                _ => "max_tokens",
            };
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
        if attributes.lazy {
            regex = shortest(regex);
        }
        if let Some(most) = attributes.max_chars {
            regex = Regex::and([regex, Regex::Set(CharSet::all()).repeat(0, Some(most))]);
        }
        rules[id.index()].body = RuleBody::Lexeme(regex);
        rules[id.index()].marks.max_tokens = attributes.max_tokens;
    }
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
