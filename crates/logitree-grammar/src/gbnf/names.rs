//! Rule names: assigns ids at first sight, and tracks which rules are defined or missing.

use std::collections::HashMap;

use super::super::problems::{did_you_mean, Problems};
use super::super::rules::{Rule, RuleBody, RuleId, Rules};
use super::super::tags::{self, Content};

/// A rule seen so far.
struct Seen<'t> {
    name: &'t str,
    /// The offset of its first reference.
    first: usize,
    /// The offset of its definition.
    defined: Option<usize>,
    /// Whether its definition is broken, so that no further problems are reported for it.
    broken: bool,
    body: RuleBody,
}

/// The rules of one text.
#[derive(Default)]
pub(super) struct Names<'t> {
    ids: HashMap<&'t str, RuleId>,
    seen: Vec<Seen<'t>>,
    /// Bodies that were moved out of deep nests, and the rule that contained each. Their ids are in `moved_ids`
    /// until the text is read, since all named rules get their ids first.
    moved: Vec<(RuleId, RuleBody)>,
    /// Contents of moved bodies that are made once all rules have their ids: the index in `moved`, and the content.
    contents: Vec<(usize, Content)>,
}

/// The first id of moved bodies while the text is read.
const MOVED: RuleId = RuleId(u32::MAX / 2);

impl<'t> Names<'t> {
    /// The id of the rule `name` at the byte offset `at`.
    pub(super) fn id(&mut self, name: &'t str, at: usize) -> RuleId {
        *self.ids.entry(name).or_insert_with(|| {
            self.seen.push(Seen {
                name,
                first: at,
                defined: None,
                broken: false,
                body: RuleBody::Seq(Vec::new()),
            });
            RuleId::new(self.seen.len() - 1)
        })
    }

    /// Marks `id` as defined at `at`. Returns the offset of its earlier definition, if there is one.
    pub(super) fn define(&mut self, id: RuleId, at: usize) -> Option<usize> {
        let earlier = self.seen[id.index()].defined;
        self.seen[id.index()].defined = earlier.or(Some(at));
        earlier
    }

    /// Marks the definition of `id` as broken.
    pub(super) fn excuse(&mut self, id: RuleId) {
        self.seen[id.index()].broken = true;
    }

    /// Sets the rule's body.
    pub(super) fn set(&mut self, id: RuleId, body: RuleBody) {
        self.seen[id.index()].body = body;
    }

    /// Makes a part of `owner` a rule of its own.
    pub(super) fn move_out(&mut self, owner: RuleId, body: RuleBody) -> RuleId {
        self.moved.push((owner, body));
        RuleId::new(MOVED.index() + self.moved.len() - 1)
    }

    /// Makes a content in `owner` a rule of its own. Its [`Content::Rule`]s are named rules.
    pub(super) fn add_content(&mut self, owner: RuleId, content: Content) -> RuleId {
        self.contents.push((self.moved.len(), content));
        self.move_out(owner, RuleBody::Seq(Vec::new()))
    }

    /// The rules, once everything is read; reports undefined ones.
    pub(super) fn finish(self, start: &str, problems: &mut Problems) -> Rules {
        for missing in self.seen.iter().filter(|rule| rule.defined.is_none() && !rule.broken) {
            if problems.is_full() {
                break;
            }
            let defined = self.seen.iter().filter(|rule| rule.defined.is_some()).map(|rule| rule.name);
            let help = did_you_mean(missing.name, defined)
                .unwrap_or_else(|| format!("define it: {} ::= ...", missing.name));
            problems.add(
                missing.first,
                format!("the rule \"{}\" is used and not defined", missing.name),
                help,
            );
        }
        let id = self
            .ids
            .get(start)
            .copied()
            .filter(|&id| self.seen[id.index()].defined.is_some() || self.seen[id.index()].broken);
        if id.is_none() && !problems.is_full() {
            let first = self.seen.first().map_or("...", |rule| rule.name);
            problems.add(
                0,
                format!("no rule \"{start}\" to start from"),
                format!("define it ({start} ::= {first}), or name another start"),
            );
        }
        let named = self.seen.len();
        let mut rules: Vec<Rule> = Vec::with_capacity(named + self.moved.len());
        rules.extend(self.seen.into_iter().map(|rule| Rule::new(rule.name, rule.body)));
        for (number, (owner, body)) in self.moved.into_iter().enumerate() {
            let name = format!("{}-part-{number}", rules[owner.index()].name);
            rules.push(Rule::new(name, body));
        }
        for rule in &mut rules {
            settle(&mut rule.body, named);
        }
        for (number, content) in self.contents {
            match tags::compile_into(&mut rules, &content) {
                Ok(body) => rules[named + number].body = body,
                Err(error) => problems.take(0, &error),
            }
        }
        Rules { rules, start: id.unwrap_or(RuleId(0)) }
    }
}

/// Assigns moved bodies their final ids. Recurses as deep as a body nests, which the reader bounds.
fn settle(node: &mut RuleBody, named: usize) {
    match node {
        RuleBody::Ref(id) if *id >= MOVED => *id = RuleId::new(id.index() - MOVED.index() + named),
        RuleBody::Seq(parts) | RuleBody::Alt(parts) => parts.iter_mut().for_each(|part| settle(part, named)),
        RuleBody::Repeat { of, .. } => settle(of, named),
        RuleBody::Ref(_)
        | RuleBody::Lexeme(_)
        | RuleBody::Tokens(_)
        | RuleBody::Json(_)
        | RuleBody::Both(_) => {}
    }
}
