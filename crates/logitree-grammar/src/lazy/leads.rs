//! Unfolds the beginning of a grammar into regular languages and their continuations, until a trigger is
//! complete or impossible.

use super::super::rules::{Rule, RuleBody, RuleId, TokenNames};
use super::super::Regex;
use super::quotient::is_nullable;
use super::Asker;
use crate::{Error, ErrorKind, Result};

/// Maximum number of unfolding steps.
const MAX_STEPS: usize = 10_000;
/// Maximum number of nodes of the beginnings.
const MAX_NODES: usize = 200_000;
/// How deep rules are followed to decide whether they are regular.
const MAX_DEEP: usize = 100;

/// A beginning.
pub(super) struct Lead {
    pub(super) text: Regex,
    /// The whole token it starts with, instead of text.
    pub(super) token: Option<TokenNames>,
    pub(super) rest: Vec<RuleBody>,
}

/// A beginning being unfolded: its text, and the continuation in reverse order.
type Open = (Vec<Regex>, Vec<RuleBody>);

/// The state of the search.
pub(super) struct Leads<'l> {
    pub(super) rules: &'l [Rule],
    pub(super) asker: &'l mut Asker,
    /// The trigger, from where the grammar starts.
    pub(super) from: Regex,
    /// Whether a whole token triggers, where there is no text before it.
    pub(super) token: bool,
    /// The trigger in messages.
    pub(super) said: &'l str,
}

impl Leads<'_> {
    /// All beginnings of `node`.
    pub(super) fn of(mut self, node: RuleBody) -> Result<Vec<Lead>> {
        let mut open: Vec<Open> = vec![(Vec::new(), vec![node])];
        let mut leads = Vec::new();
        let (mut steps, mut nodes) = (0, 0);
        while let Some((text, mut rest)) = open.pop() {
            steps += 1;
            if steps > MAX_STEPS || nodes > MAX_NODES {
                return Err(self.too_much());
            }
            let next = if self.is_complete(&text)? { None } else { rest.pop() };
            let Some(next) = next else {
                rest.reverse();
                leads.push(Lead { text: Regex::Concat(text), token: None, rest });
                continue;
            };
            if let Some(regex) = self.regular(&next, 0, &mut nodes) {
                let mut text = text;
                text.push(regex);
                open.push((text, rest));
                continue;
            }
            match next {
                RuleBody::Ref(id) => {
                    rest.push(self.body(id)?);
                    open.push((text, rest));
                }
                RuleBody::Seq(parts) => {
                    rest.extend(parts.into_iter().rev());
                    open.push((text, rest));
                }
                RuleBody::Alt(parts) => {
                    for part in parts.into_iter().rev() {
                        let rest = rest.iter().cloned().chain([part]).collect();
                        open.push((text.clone(), rest));
                    }
                }
                RuleBody::Repeat { of, min, max } => {
                    if min == 0 {
                        open.push((text.clone(), rest.clone()));
                    }
                    if max != Some(0) {
                        let max = max.map(|max| max - 1);
                        rest.push(RuleBody::Repeat { of: of.clone(), min: min.saturating_sub(1), max });
                        rest.push(*of);
                        open.push((text, rest));
                    }
                }
                RuleBody::Tokens(set) => {
                    // A token is not text: it cannot complete a trigger that text has begun.
                    if text.iter().all(is_nullable) {
                        rest.reverse();
                        leads.push(Lead { text: Regex::Empty, token: Some(set), rest });
                    }
                }
                RuleBody::Json(_) | RuleBody::Both(_) => return Err(self.json()),
                RuleBody::Lexeme(_) => {}
            }
            nodes += rest_size(&open);
        }
        Ok(leads)
    }

    /// Whether no string that has not triggered yet can still trigger.
    fn is_complete(&mut self, text: &[Regex]) -> Result<bool> {
        if self.token && text.iter().all(is_nullable) {
            return Ok(false);
        }
        let text = Regex::Concat(text.to_vec());
        let triggered = Regex::concat([self.from.clone(), Regex::anything()]);
        let not_yet = Regex::and([text, triggered.not()]);
        self.asker.none(vec![Regex::concat([not_yet, Regex::anything()]), self.from.clone()])
    }

    /// The node as a regular language, if it is one and not too large.
    fn regular(&self, node: &RuleBody, deep: usize, nodes: &mut usize) -> Option<Regex> {
        *nodes += 1;
        if deep > MAX_DEEP || *nodes > MAX_NODES {
            return None;
        }
        let all = |parts: &[RuleBody], nodes: &mut usize| -> Option<Vec<Regex>> {
            parts.iter().map(|part| self.regular(part, deep + 1, nodes)).collect()
        };
        match node {
            RuleBody::Lexeme(regex) => Some(regex.clone()),
            RuleBody::Ref(id) => {
                let rule = Some(&self.rules[id.index()]).filter(|rule| !rule.marks.concern_tokens())?;
                self.regular(&rule.body, deep + 1, nodes)
            }
            RuleBody::Seq(parts) => all(parts, nodes).map(Regex::Concat),
            RuleBody::Alt(parts) => all(parts, nodes).map(Regex::Or),
            RuleBody::Repeat { of, min, max } => Some(self.regular(of, deep + 1, nodes)?.repeat(*min, *max)),
            RuleBody::Tokens(_) | RuleBody::Json(_) | RuleBody::Both(_) => None,
        }
    }

    fn too_much(&self) -> Error {
        let message = format!("the grammar unfolds without end before the trigger {} is complete", self.said);
        Error::new(ErrorKind::Limit, message).help("let the grammar start with the trigger's text")
    }

    /// The body of a rule before the trigger is complete.
    fn body(&self, id: RuleId) -> Result<RuleBody> {
        let Rule { body, marks, .. } = &self.rules[id.index()];
        let says = [
            (marks.max_tokens.is_some(), "counts tokens"),
            (marks.temperature.is_some(), "has a temperature"),
        ];
        if let Some((_, says)) = says.into_iter().find(|(is, _)| *is) {
            let message = format!("a rule {says} before the trigger {} is complete", self.said);
            let help = "give max_tokens and temperature to rules after the trigger's text";
            return Err(Error::new(ErrorKind::Constraint, message).help(help));
        }
        Ok(body.clone())
    }

    fn json(&self) -> Error {
        let message = format!("the grammar starts with JSON before the trigger {} is complete", self.said);
        Error::new(ErrorKind::Constraint, message)
            .help("use tags, or write the trigger's text before the JSON")
    }
}

/// How many nodes the last beginning holds at the top: the cost of copying it.
fn rest_size(open: &[Open]) -> usize {
    open.last().map_or(0, |(text, rest)| text.len() + rest.len())
}
