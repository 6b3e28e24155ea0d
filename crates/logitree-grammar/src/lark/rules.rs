//! Compiles items to [`Rules`].

use std::collections::HashMap;

use super::super::append::append;
use super::super::endings::{before, shortest};
use super::super::problems::Problems;
use super::super::rules::{Rule, RuleBody, RuleId, Rules};
use super::super::Regex;
use super::ast::{Alternative, Choice, Ending, Expr, Item, RuleItem, Value};
use super::choices::prefer;
use super::scope::{Scope, Terminal};
use super::terminals::Terminals;
use super::{tokens, Resources};

/// The rules of `items`.
pub(super) fn compile(items: &[Item], resources: &Resources, problems: &mut Problems) -> Rules {
    let mut compiler = Compiler {
        resources,
        problems,
        rules: Vec::new(),
        embedded: HashMap::new(),
        weight: 0,
        lazy: Vec::new(),
    };
    let start = compiler.grammar(items, 0, "");
    let Compiler { mut rules, lazy, problems, .. } = compiler;
    if problems.is_empty() && !prefer(&mut rules, &lazy) {
        problems.add(0, "lazy terminals occur in too many choices", "use tags, or fewer of them");
    }
    Rules { rules, start }
}

struct Compiler<'c> {
    resources: &'c Resources<'c>,
    problems: &'c mut Problems,
    rules: Vec<Rule>,
    /// The start rules of the resources' grammars that were referenced.
    embedded: HashMap<String, RuleId>,
    /// The total weight of all terminals.
    weight: usize,
    /// The lazy rules and their languages.
    lazy: Vec<(RuleId, Regex)>,
}

impl Compiler<'_> {
    fn new_rule(&mut self, name: impl Into<String>) -> RuleId {
        self.rules.push(Rule { name: name.into(), body: RuleBody::Seq(Vec::new()) });
        RuleId::new(self.rules.len() - 1)
    }

    fn terminals(&mut self) -> Terminals<'_> {
        Terminals { problems: self.problems, weight: &mut self.weight, nested: 0 }
    }

    /// Compiles a grammar whose text is at `at`. Returns its start rule. `prefix` starts its rules' names.
    fn grammar(&mut self, items: &[Item], at: usize, prefix: &str) -> RuleId {
        let rules = &mut self.rules;
        let mut scope = Scope::read(items, self.problems, |name| {
            rules.push(Rule { name: format!("{prefix}{name}"), body: RuleBody::Seq(Vec::new()) });
            RuleId::new(rules.len() - 1)
        });
        self.ignored(&mut scope);
        let mut names: Vec<(usize, &str)> =
            scope.terminals.iter().map(|(name, terminal)| (terminal.at, *name)).collect();
        names.sort_unstable();
        for (at, name) in names {
            self.terminals().named(name, at, &mut scope);
        }
        for (id, rule) in std::mem::take(&mut scope.written) {
            self.rules[id.index()].body = self.rule(id, rule, &mut scope);
        }
        let Some(&start) = scope.rules.get("start") else {
            if !self.problems.is_full() {
                self.problems.add(at, "no rule \"start\"", "define it: start: ...");
            }
            return RuleId(0);
        };
        match scope.ignore {
            Some(ignore) if scope.options.allow_initial_skip => {
                let id = self.new_rule(format!("~after-ignored:{prefix}start"));
                self.rules[id.index()].body =
                    RuleBody::Seq(vec![RuleBody::Ref(ignore), RuleBody::Ref(start)]);
                id
            }
            _ => start,
        }
    }

    /// The rule of ignored text.
    fn ignored(&mut self, scope: &mut Scope) {
        let ignored = std::mem::take(&mut scope.ignored);
        let mut languages = Vec::new();
        for choice in &ignored {
            languages.extend(self.terminals().choice(choice, scope).map(|sized| sized.0));
        }
        if ignored.is_empty() {
            return;
        }
        let max = if scope.options.ignore_once { Some(1) } else { None };
        let id = self.new_rule("~ignored");
        self.rules[id.index()].body = RuleBody::Lexeme(Regex::or(languages).repeat(0, max));
        scope.ignore = Some(id);
    }

    /// The node followed by ignored text.
    fn then_ignored(node: RuleBody, scope: &Scope) -> RuleBody {
        match scope.ignore {
            Some(ignore) => RuleBody::Seq(vec![node, RuleBody::Ref(ignore)]),
            None => node,
        }
    }

    fn rule(&mut self, id: RuleId, rule: &RuleItem, scope: &mut Scope) -> RuleBody {
        let Some(ending) = &rule.ending else { return self.choice(&rule.body, scope) };
        let body = self.terminals().choice(&rule.body, scope).map(|sized| sized.0);
        let language = match ending {
            Ending::Lazy => body.map(shortest),
            Ending::Suffix(suffix) => {
                let suffix = self.terminals().value(&suffix.value, suffix.at, scope).map(|sized| sized.0);
                body.zip(suffix).map(|(body, suffix)| shortest(Regex::concat([body, suffix])))
            }
            Ending::Stop(stop) => {
                let language = self.terminals().value(&stop.value, stop.at, scope).map(|sized| sized.0);
                match language {
                    Some(Regex::Text(text)) => body.map(|body| before(body, &text)),
                    Some(_) => {
                        let help = "use suffix=, and take the end off the text afterwards";
                        self.problems.add(stop.at, "a stop that is not one plain text", help);
                        None
                    }
                    None => None,
                }
            }
        };
        let language = language.unwrap_or(Regex::Nothing);
        if !matches!(ending, Ending::Stop(_)) {
            self.lazy.push((id, language.clone()));
        }
        Self::then_ignored(RuleBody::Lexeme(language), scope)
    }

    fn choice(&mut self, choice: &Choice, scope: &mut Scope) -> RuleBody {
        let alternatives =
            choice.alternatives.iter().map(|alternative| self.alternative(alternative, scope)).collect();
        single(alternatives, RuleBody::Alt)
    }

    fn alternative(&mut self, alternative: &Alternative, scope: &mut Scope) -> RuleBody {
        if let [sequence] = &alternative.all[..] {
            let parts = sequence.iter().map(|part| self.part(part, scope)).collect();
            return single(parts, RuleBody::Seq);
        }
        let at = alternative.all.iter().flatten().next().map_or(0, |part| part.at);
        self.problems.add(at, "& joins terminals, not rules", "give what it joins a name in upper case");
        RuleBody::Seq(Vec::new())
    }

    fn part(&mut self, part: &Expr, scope: &mut Scope) -> RuleBody {
        let node = if part.negated {
            let language = self.terminals().value(&part.value, part.at, scope);
            let language = language.map_or(Regex::Nothing, |sized| sized.0.not());
            Self::then_ignored(RuleBody::Lexeme(language), scope)
        } else {
            self.value(&part.value, part.at, scope)
        };
        match part.times {
            None => node,
            Some((min, max)) => RuleBody::Repeat { of: Box::new(node), min, max },
        }
    }

    fn value(&mut self, value: &Value, at: usize, scope: &mut Scope) -> RuleBody {
        match value {
            Value::Group(choice) => self.choice(choice, scope),
            Value::Optional(choice) => {
                let of = Box::new(self.choice(choice, scope));
                RuleBody::Repeat { of, min: 0, max: Some(1) }
            }
            Value::Name(name) => self.name(name, at, scope),
            Value::Token(said) => {
                Self::then_ignored(RuleBody::Tokens(tokens::set(said, at, self.problems)), scope)
            }
            Value::Grammar(name) => {
                let node = RuleBody::Ref(self.embed(name, at));
                Self::then_ignored(node, scope)
            }
            Value::Json(json) => match (self.resources.schema)(json) {
                Ok(schema) => Self::then_ignored(RuleBody::Json(schema), scope),
                Err(error) => {
                    self.problems.take(at, &error);
                    RuleBody::Seq(Vec::new())
                }
            },
            Value::Nested(items) => {
                let prefix = format!("~lark-{}:", self.rules.len());
                let node = RuleBody::Ref(self.grammar(items, at, &prefix));
                Self::then_ignored(node, scope)
            }
            Value::Text { text, .. } if text.is_empty() => RuleBody::Seq(Vec::new()),
            Value::Text { .. } | Value::Pattern { .. } | Value::Range(..) | Value::Structured(_) => {
                let language =
                    self.terminals().value(value, at, scope).map_or(Regex::Nothing, |sized| sized.0);
                Self::then_ignored(RuleBody::Lexeme(language), scope)
            }
        }
    }

    fn name(&mut self, name: &str, at: usize, scope: &mut Scope) -> RuleBody {
        if let Some(&id) = scope.rules.get(name) {
            return RuleBody::Ref(id);
        }
        match scope.terminals.get(name) {
            None => {
                scope.unknown(name, at, self.problems);
                RuleBody::Seq(Vec::new())
            }
            Some(Terminal { rule: Some(id), .. }) => RuleBody::Ref(*id),
            Some(Terminal { at, .. }) => {
                let at = *at;
                let language =
                    self.terminals().named(name, at, scope).map_or(Regex::Nothing, |sized| sized.0);
                let id = self.new_rule(name);
                self.rules[id.index()].body = Self::then_ignored(RuleBody::Lexeme(language), scope);
                if let Some(terminal) = scope.terminals.get_mut(name) {
                    terminal.rule = Some(id);
                }
                RuleBody::Ref(id)
            }
        }
    }

    /// The start rule of the resource grammar `name`; its rules are copied at first use.
    fn embed(&mut self, name: &str, at: usize) -> RuleId {
        if let Some(&id) = self.embedded.get(name) {
            return id;
        }
        let Some(other) = self.resources.grammars.get(name) else {
            let known: Vec<&str> = self.resources.grammars.keys().take(20).map(String::as_str).collect();
            let help =
                format!("known are: {}", if known.is_empty() { "none".into() } else { known.join(", ") });
            self.problems.add(at, format!("the grammar @{name} is not known"), help);
            return RuleId(0);
        };
        let start = append(&mut self.rules, other, &format!("{name}-"));
        self.embedded.insert(name.into(), start);
        start
    }
}

/// The only node, or a node of `kind` with all.
fn single(mut nodes: Vec<RuleBody>, kind: fn(Vec<RuleBody>) -> RuleBody) -> RuleBody {
    match nodes.pop() {
        Some(only) if nodes.is_empty() => only,
        Some(last) => {
            nodes.push(last);
            kind(nodes)
        }
        None => RuleBody::Seq(nodes),
    }
}
