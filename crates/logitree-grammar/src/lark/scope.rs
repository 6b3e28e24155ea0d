//! Resolves the names of one grammar.

use std::collections::HashMap;

use super::super::problems::{did_you_mean, Problems};
use super::super::rules::RuleId;
use super::super::Regex;
use super::ast::{Choice, Item, RuleItem};
use super::common;
use super::options::Options;

/// The origin of a terminal.
pub(super) enum Source<'i, 't> {
    Written(&'i Choice<'t>),
    Common(Regex),
}

/// The state of a terminal.
#[derive(Clone)]
pub(super) enum Read {
    Not,
    /// Being read: meeting it again is a cycle.
    Now,
    /// Its language, weight and depth; `None` if it is broken.
    Done(Option<(Regex, usize, usize)>),
}

/// A terminal.
pub(super) struct Terminal<'i, 't> {
    pub(super) at: usize,
    pub(super) source: Source<'i, 't>,
    pub(super) read: Read,
    /// The rule that wraps it, once a rule refers to it.
    pub(super) rule: Option<RuleId>,
}

/// A rule with a parameter.
pub(super) struct Parametric<'i, 't> {
    pub(super) item: &'i RuleItem<'t>,
    /// The rules by the value of the parameter.
    pub(super) made: HashMap<u64, RuleId>,
}

/// The names of one grammar.
#[derive(Default)]
pub(super) struct Scope<'i, 't> {
    pub(super) rules: HashMap<&'t str, RuleId>,
    pub(super) written: Vec<(RuleId, &'i RuleItem<'t>)>,
    pub(super) parametric: HashMap<&'t str, Parametric<'i, 't>>,
    /// Rules with a value of their parameter that are referred to and have no body yet.
    pub(super) open: Vec<(RuleId, &'t str, u64)>,
    pub(super) terminals: HashMap<&'t str, Terminal<'i, 't>>,
    pub(super) ignored: Vec<&'i Choice<'t>>,
    pub(super) options: Options,
    /// The rule of ignored text, if there is any.
    pub(super) ignore: Option<RuleId>,
}

impl<'i, 't> Scope<'i, 't> {
    /// The names that `items` define; `new` makes a rule for a name.
    pub(super) fn read(
        items: &'i [Item<'t>],
        problems: &mut Problems,
        mut new: impl FnMut(&str) -> RuleId,
    ) -> Scope<'i, 't> {
        let mut scope = Scope::default();
        for item in items {
            match item {
                Item::Rule(rule) if rule.is_parametric && !scope.is_rule(rule.name) => {
                    scope.parametric.insert(rule.name, Parametric { item: rule, made: HashMap::new() });
                }
                Item::Rule(rule) => {
                    if scope.is_rule(rule.name) {
                        let message = format!("the rule \"{}\" is defined twice", rule.name);
                        problems.add(rule.at, message, "join both with |, or name one of them otherwise");
                    }
                    let id = new(rule.name);
                    scope.rules.entry(rule.name).or_insert(id);
                    scope.written.push((id, rule));
                }
                Item::Terminal { name, at, body } => {
                    scope.terminal(name, *at, Source::Written(body), problems)
                }
                Item::Import { path, name, alias, at } => match (*path, common::terminal(name)) {
                    ("common", Some(regex)) => scope.terminal(alias, *at, Source::Common(regex), problems),
                    ("common", None) => {
                        let message = format!("common has no terminal \"{name}\"");
                        problems.add(*at, message, format!("it has {}", common::NAMES));
                    }
                    _ => {
                        let message = format!("the library \"{path}\" is not known");
                        problems.add(
                            *at,
                            message,
                            "import common.NAME, or refer to another grammar by @name",
                        );
                    }
                },
                Item::Broken(name) if name.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                    let read = Read::Done(None);
                    let source = Source::Common(Regex::Nothing);
                    scope.terminals.entry(name).or_insert(Terminal { at: 0, source, read, rule: None });
                }
                Item::Broken(name) => {
                    scope.rules.entry(name).or_insert(RuleId(0));
                }
                Item::Ignore(choice) => scope.ignored.push(choice),
                Item::Options { json, at } => scope.options.read(json, *at, problems),
            }
        }
        scope
    }

    fn is_rule(&self, name: &str) -> bool {
        self.rules.contains_key(name) || self.parametric.contains_key(name)
    }

    fn terminal(&mut self, name: &'t str, at: usize, source: Source<'i, 't>, problems: &mut Problems) {
        if self.terminals.contains_key(name) {
            let message = format!("the terminal {name} is defined twice");
            problems.add(at, message, "join both with |, or name one of them otherwise");
            return;
        }
        self.terminals.insert(name, Terminal { at, source, read: Read::Not, rule: None });
    }

    /// Reports that `name` at `at` is undefined.
    pub(super) fn unknown(&self, name: &str, at: usize, problems: &mut Problems) {
        if problems.is_full() {
            return;
        }
        let upper = name.bytes().any(|byte| byte.is_ascii_uppercase());
        let what = if upper { "terminal" } else { "rule" };
        let names = self.rules.keys().chain(self.parametric.keys()).chain(self.terminals.keys()).copied();
        let help = if common::terminal(name).is_some() {
            format!("import it: %import common.{name}")
        } else {
            did_you_mean(name, names).unwrap_or_else(|| format!("define it: {name}: ..."))
        };
        problems.add(at, format!("the {what} \"{name}\" is used and not defined"), help);
    }
}
