//! Names of rules: numbers on first sight, what is defined, what is missing. It refuses to know bodies' contents.

use std::collections::HashMap;

use super::super::problems::{did_you_mean, Problems};
use super::super::rules::{Rule, RuleBody, RuleId, Rules};

/// A rule as far as it was seen.
struct Seen<'t> {
    name: &'t str,
    /// Where it was first named.
    first: usize,
    /// Where it was defined.
    defined: Option<usize>,
    /// Whether its definition is broken, so that nothing else need be said about it.
    broken: bool,
    body: RuleBody,
}

/// The rules of one text.
#[derive(Default)]
pub(super) struct Names<'t> {
    ids: HashMap<&'t str, RuleId>,
    seen: Vec<Seen<'t>>,
    /// Bodies that were moved out of deep nests: the rule they were written in, and what they say. Their numbers lie
    /// in `moved_ids` until the text is read, since every rule that it names gets its number first.
    moved: Vec<(RuleId, RuleBody)>,
}

/// Numbers of moved bodies start here while the text is read.
const MOVED: RuleId = usize::MAX / 2;

impl<'t> Names<'t> {
    /// The number of the rule `name`, which stands at the byte offset `at`.
    pub(super) fn id(&mut self, name: &'t str, at: usize) -> RuleId {
        *self.ids.entry(name).or_insert_with(|| {
            self.seen.push(Seen {
                name,
                first: at,
                defined: None,
                broken: false,
                body: RuleBody::Seq(Vec::new()),
            });
            self.seen.len() - 1
        })
    }

    /// Notes that `id` is defined at `at`; the place of its earlier definition, if there is one.
    pub(super) fn define(&mut self, id: RuleId, at: usize) -> Option<usize> {
        let earlier = self.seen[id].defined;
        self.seen[id].defined = earlier.or(Some(at));
        earlier
    }

    /// Notes that something is wrong where `id` should be defined.
    pub(super) fn excuse(&mut self, id: RuleId) {
        self.seen[id].broken = true;
    }

    /// What the rule says.
    pub(super) fn set(&mut self, id: RuleId, body: RuleBody) {
        self.seen[id].body = body;
    }

    /// A rule of its own for a part of `owner`.
    pub(super) fn move_out(&mut self, owner: RuleId, body: RuleBody) -> RuleId {
        self.moved.push((owner, body));
        MOVED + self.moved.len() - 1
    }

    /// The rules, once everything was read; what is missing is a problem.
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
            .filter(|&id| self.seen[id].defined.is_some() || self.seen[id].broken);
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
        rules.extend(self.seen.into_iter().map(|rule| Rule { name: rule.name.into(), body: rule.body }));
        for (number, (owner, body)) in self.moved.into_iter().enumerate() {
            let name = format!("{}-part-{number}", rules[owner].name);
            rules.push(Rule { name, body });
        }
        for rule in &mut rules {
            settle(&mut rule.body, named);
        }
        Rules { rules, start: id.unwrap_or(0) }
    }
}

/// Gives moved bodies their last numbers. As deep as a body nests, which the reader bounds.
fn settle(node: &mut RuleBody, named: usize) {
    match node {
        RuleBody::Ref(id) if *id >= MOVED => *id = *id - MOVED + named,
        RuleBody::Seq(parts) | RuleBody::Alt(parts) => parts.iter_mut().for_each(|part| settle(part, named)),
        RuleBody::Repeat { of, .. } => settle(of, named),
        RuleBody::Ref(_) | RuleBody::Lexeme(_) | RuleBody::Tokens(_) | RuleBody::Json(_) => {}
    }
}
