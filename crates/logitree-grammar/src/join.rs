//! Rules joined by a program: sequence, choice, repetition, and the regular language that rules without recursion are.

use std::sync::Arc;

use super::append::append;
use super::rules::{Intersected, Rule, RuleBody, RuleId, Rules, TokenNames};
use super::Regex;

/// Bodies that a regular language is unfolded from at most.
const MAX_UNFOLDED: usize = 2_000;
/// How deep bodies may nest in each other, references followed.
const MAX_DEPTH: usize = 100;

impl Rules {
    /// The rules of a regular language.
    pub fn lexeme(regex: Regex) -> Rules {
        Rules { rules: vec![Rule { name: "~root".into(), body: RuleBody::Lexeme(regex) }], start: RuleId(0) }
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

    /// Whether a rule names tokens.
    pub fn names_tokens(&self) -> bool {
        !self.named_tokens().is_empty()
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
                RuleBody::Lexeme(_) | RuleBody::Ref(_) | RuleBody::Json(_) => {}
            }
        }
        named
    }

    /// The regular language that these rules are; `None` for rules that refer to themselves, name tokens or hold a schema,
    /// and for very large ones.
    pub fn regular(&self) -> Option<Regex> {
        let mut left = MAX_UNFOLDED;
        self.unfolded(&self.rules[self.start.index()].body, 0, &mut left)
    }

    fn unfolded(&self, body: &RuleBody, depth: usize, left: &mut usize) -> Option<Regex> {
        *left = left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let mut all = |parts: &[RuleBody]| -> Option<Vec<Regex>> {
            parts.iter().map(|part| self.unfolded(part, depth + 1, left)).collect()
        };
        match body {
            RuleBody::Lexeme(regex) => Some(regex.clone()),
            RuleBody::Ref(rule) => self.unfolded(&self.rules[rule.index()].body, depth + 1, left),
            RuleBody::Seq(parts) => all(parts).map(Regex::concat),
            RuleBody::Alt(parts) => all(parts).map(Regex::or),
            RuleBody::Repeat { of, min, max } => Some(self.unfolded(of, depth + 1, left)?.repeat(*min, *max)),
            RuleBody::Both(both) => Some(Regex::and([both.rules.regular()?, both.regex.clone()])),
            RuleBody::Tokens(_) | RuleBody::Json(_) => None,
        }
    }
}

fn finish(mut rules: Vec<Rule>, body: RuleBody) -> Rules {
    rules.push(Rule { name: "~root".into(), body });
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
