//! Rules joined by a program: sequence, choice, repetition, and the regular language that rules without recursion are.

use std::sync::Arc;

use super::append::append;
use super::rules::{Intersected, Marks, Rule, RuleBody, RuleId, Rules, TokenNames};
use super::weight::weight;
use super::Regex;

/// Bodies that a regular language is unfolded from at most.
const MAX_UNFOLDED: usize = 2_000;
/// How deep bodies may nest in each other, references followed.
const MAX_DEPTH: usize = 100;

impl Rules {
    /// The rules of a regular language.
    pub fn lexeme(regex: Regex) -> Rules {
        Rules { rules: vec![Rule::new("~root", RuleBody::Lexeme(regex))], start: RuleId(0) }
    }

    /// The parts in an order, which gets a reference to each.
    pub fn joined(parts: &[Arc<Rules>], order: impl FnOnce(Vec<RuleBody>) -> RuleBody) -> Rules {
        let mut rules = Vec::new();
        let bodies = parts.iter().map(|part| RuleBody::Ref(append(&mut rules, part, ""))).collect();
        finish(rules, order(bodies))
    }

    /// The texts of `part` that are in `regex`, too.
    pub fn both(part: &Arc<Rules>, regex: Regex) -> Rules {
        let both = match &part.rules[..] {
            [Rule { body: RuleBody::Both(inner), .. }] => Intersected {
                rules: Arc::clone(&inner.rules),
                regex: Regex::and([inner.regex.clone(), regex]),
            },
            _ => Intersected { rules: Arc::clone(part), regex },
        };
        finish(Vec::new(), RuleBody::Both(Arc::new(both)))
    }

    /// Whether what may come depends on how the text before is cut into tokens: a rule names tokens, or counts them.
    pub fn depends_on_tokens(&self) -> bool {
        !self.named_tokens().is_empty() || counts_tokens(&self.rules)
    }

    /// The tokens that the rules name.
    pub fn named_tokens(&self) -> Vec<&TokenNames> {
        let mut left: Vec<&RuleBody> = self.rules.iter().map(|rule| &rule.body).collect();
        let mut named = Vec::new();
        while let Some(body) = left.pop() {
            match body {
                RuleBody::Tokens(names) => named.push(names),
                RuleBody::Seq(parts) | RuleBody::Alt(parts) => left.extend(parts),
                RuleBody::Repeat { of, .. } => left.push(of),
                RuleBody::Both(both) => left.extend(both.rules.rules.iter().map(|rule| &rule.body)),
                RuleBody::Json(schema) => named.extend(schema.named_tokens()),
                RuleBody::Lexeme(_) | RuleBody::Ref(_) => {}
            }
        }
        named
    }

    /// The regular language that these rules are; `None` for rules that refer to themselves, name or count tokens, have a
    /// temperature or hold a schema, and for very large ones.
    pub fn regular(&self) -> Option<Regex> {
        regular(&self.rules, self.start, &mut { usize::MAX })
    }
}

/// The regular language of one of some rules, as [`Rules::regular`] has it. What its lexemes weigh is taken off `weight`: `None`
/// if that is too little.
pub(crate) fn regular(rules: &[Rule], of: RuleId, weight: &mut usize) -> Option<Regex> {
    let mut unfolding = Unfolding { rules, left: MAX_UNFOLDED, weight };
    unfolding.rule(of, 0)
}

/// Lets the rule end as soon as it can after `most` tokens. Returns false if it is no regular language, or weighs too much.
pub(crate) fn limit_tokens(rules: &mut [Rule], id: RuleId, most: u32, weight: &mut usize) -> bool {
    if regular(rules, id, weight).is_none() {
        return false;
    }
    let rule = &mut rules[id.index()];
    match most {
        0 => rule.body = RuleBody::Seq(Vec::new()),
        _ => rule.marks.max_tokens = Some(most),
    }
    true
}

/// Whether one of the rules counts tokens, or one inside of it.
fn counts_tokens(rules: &[Rule]) -> bool {
    has_marks(rules, |marks| marks.max_tokens.is_some())
}

/// Whether one of the rules has a temperature, or one inside of it.
pub(crate) fn has_temperatures(rules: &[Rule]) -> bool {
    has_marks(rules, |marks| marks.temperature.is_some())
}

fn has_marks(rules: &[Rule], are: fn(&Marks) -> bool) -> bool {
    let inside =
        |rule: &Rule| matches!(&rule.body, RuleBody::Both(both) if has_marks(&both.rules.rules, are));
    rules.iter().any(|rule| are(&rule.marks) || inside(rule))
}

struct Unfolding<'r, 'w> {
    rules: &'r [Rule],
    /// Bodies that may still be unfolded.
    left: usize,
    /// What lexemes may still weigh.
    weight: &'w mut usize,
}

impl Unfolding<'_, '_> {
    fn rule(&mut self, id: RuleId, depth: usize) -> Option<Regex> {
        let Rule { body, marks, .. } = &self.rules[id.index()];
        if marks.concern_tokens() {
            return None;
        }
        self.body(body, depth)
    }

    fn body(&mut self, body: &RuleBody, depth: usize) -> Option<Regex> {
        self.left = self.left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        match body {
            RuleBody::Lexeme(regex) => {
                if *self.weight < usize::MAX {
                    *self.weight = self.weight.checked_sub(weight(regex).0)?;
                }
                Some(regex.clone())
            }
            RuleBody::Ref(rule) => self.rule(*rule, depth + 1),
            RuleBody::Seq(parts) => self.all(parts, depth).map(Regex::concat),
            RuleBody::Alt(parts) => self.all(parts, depth).map(Regex::or),
            RuleBody::Repeat { of, min, max } => Some(self.body(of, depth + 1)?.repeat(*min, *max)),
            RuleBody::Both(both) => Some(Regex::and([both.rules.regular()?, both.regex.clone()])),
            RuleBody::Tokens(_) | RuleBody::Json(_) => None,
        }
    }

    fn all(&mut self, parts: &[RuleBody], depth: usize) -> Option<Vec<Regex>> {
        parts.iter().map(|part| self.body(part, depth + 1)).collect()
    }
}

fn finish(mut rules: Vec<Rule>, body: RuleBody) -> Rules {
    rules.push(Rule::new("~root", body));
    Rules { start: RuleId::new(rules.len() - 1), rules }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gbnf;

    #[test]
    fn rules_without_recursion_are_regular() {
        let read = |text: &str| Arc::new(gbnf::parse(text).unwrap());
        let digits = read("root ::= digit{2,3}\ndigit ::= [0-9]");
        assert!(digits.regular().is_some());
        let joined = Rules::joined(&[Arc::clone(&digits), read("root ::= \"x\" | \"y\"")], RuleBody::Seq);
        assert!(joined.regular().is_some());
        let nested = read("root ::= \"(\" root \")\" | \"\"");
        assert!(nested.regular().is_none());
        assert!(Rules::joined(&[digits, nested], RuleBody::Alt).regular().is_none());
        assert!(read("root ::= <[5]>").regular().is_none());
    }
}
