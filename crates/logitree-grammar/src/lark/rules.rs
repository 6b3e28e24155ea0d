//! Compiles items to [`Rules`].

use std::collections::HashMap;
use std::sync::Arc;

use super::super::append::append;
use super::super::endings::{before, shortest};
use super::super::join::limit_tokens;
use super::super::problems::{Problem, Problems};
use super::super::rules::{Captured, CapturedEnd, Rule, RuleBody, RuleId, Rules};
use super::super::Regex;
use super::ast::{Alternative, Choice, Ending, Expr, Item, Parameter, RuleItem, Value};
use super::choices::prefer;
use super::scope::{Scope, Terminal};
use super::terminals::Terminals;
use super::{stops, tokens, Resources};

/// Maximum number of alternatives of all rules with parameters, once for each value.
const MAX_ALTERNATIVES: usize = 1 << 18;

/// The rules of `items`.
pub(super) fn compile(items: &[Item], resources: &Resources, problems: &mut Problems) -> Rules {
    let mut compiler = Compiler {
        resources,
        problems,
        rules: Vec::new(),
        embedded: HashMap::new(),
        weight: 0,
        parameter: None,
        alternatives: 0,
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
    /// The value of the parameter of the rule that is being compiled, if it has one.
    parameter: Option<u64>,
    /// How many alternatives rules with parameters have.
    alternatives: usize,
    /// The lazy rules and their languages.
    lazy: Vec<(RuleId, Regex)>,
}

impl Compiler<'_> {
    fn new_rule(&mut self, name: impl Into<String>) -> RuleId {
        self.rules.push(Rule::new(name, RuleBody::Seq(Vec::new())));
        RuleId::new(self.rules.len() - 1)
    }

    fn terminals(&mut self) -> Terminals<'_> {
        Terminals { problems: self.problems, weight: &mut self.weight, nested: 0 }
    }

    /// Compiles a grammar whose text is at `at`. Returns its start rule. `prefix` starts its rules' names.
    fn grammar(&mut self, items: &[Item], at: usize, prefix: &str) -> RuleId {
        let rules = &mut self.rules;
        let mut scope = Scope::read(items, self.problems, |name| {
            rules.push(Rule::new(format!("{prefix}{name}"), RuleBody::Seq(Vec::new())));
            RuleId::new(rules.len() - 1)
        });
        let parameter = self.parameter.take();
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
        self.parametric_rules(&mut scope);
        self.parameter = parameter;
        self.limit_tokens(items, &scope);
        self.temper(items, &scope);
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

    /// Lets the rules with `max_tokens` count tokens. All rules are compiled.
    fn limit_tokens(&mut self, items: &[Item], scope: &Scope) {
        for item in items {
            let Item::Rule(rule) = item else { continue };
            let Some((most, at)) = rule.attributes.max_tokens else { continue };
            let id = scope.rules.get(rule.name).copied().filter(|_| !rule.is_parametric);
            if !id.is_some_and(|id| limit_tokens(&mut self.rules, id, most, &mut { usize::MAX })) {
                let message = format!("`max_tokens` of the rule \"{}\", which is no terminal", rule.name);
                self.problems.add(at, message, "give it to a rule of terminals");
            }
        }
    }

    /// Gives rules their temperatures. All rules are compiled, and those that count tokens are found.
    fn temper(&mut self, items: &[Item], scope: &Scope) {
        for item in items {
            let Item::Rule(rule) = item else { continue };
            let made = scope.parametric.get(rule.name).into_iter().flat_map(|rule| rule.made.values());
            for id in made.chain(scope.rules.get(rule.name)) {
                self.rules[id.index()].marks.temperature = rule.attributes.temperature;
            }
        }
    }

    /// What the rule `id` captures, and `end` of it.
    fn capture(&mut self, id: RuleId, rule: &RuleItem, end: Option<(Regex, Option<Regex>)>) {
        let named = |name: &String| if name.is_empty() { rule.name.into() } else { name.as_str().into() };
        let name: Option<Arc<str>> = rule.attributes.capture.as_ref().map(named);
        let end_name: Option<Arc<str>> = rule.attributes.end_capture.as_deref().map(Arc::from);
        if name.is_some() || end_name.is_some() {
            let end = end.map(|(language, before)| CapturedEnd { name: end_name, language, before });
            self.rules[id.index()].marks.capture = Some(Captured { name, end });
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
        let Some(ending) = &rule.attributes.ending else {
            self.capture(id, rule, None);
            return self.choice(&rule.body, scope);
        };
        let mut end = None;
        let body = self.terminals().choice(&rule.body, scope).map(|sized| sized.0);
        let language = match ending {
            Ending::Lazy => body.map(shortest),
            Ending::Suffix(suffix) => {
                let suffix = self.terminals().value(&suffix.value, suffix.at, scope).map(|sized| sized.0);
                body.zip(suffix).map(|(body, suffix)| {
                    end = Some((suffix.clone(), Some(body.clone())));
                    shortest(Regex::concat([body, suffix]))
                })
            }
            Ending::Stop(stop) => {
                let language = self.terminals().value(&stop.value, stop.at, scope).map(|sized| sized.0);
                end = language.clone().map(|language| (language, None));
                match (body, language) {
                    (Some(body), Some(Regex::Text(text))) => Some(before(body, &text)),
                    (Some(body), Some(language)) => {
                        let made = stops::before_any(body, language);
                        made.map_err(|error| self.problems.take(stop.at, &error)).ok()
                    }
                    _ => None,
                }
            }
        };
        self.capture(id, rule, end);
        let language = language.unwrap_or(Regex::Nothing);
        if !matches!(ending, Ending::Stop(_)) {
            self.lazy.push((id, language.clone()));
        }
        Self::then_ignored(RuleBody::Lexeme(language), scope)
    }

    /// The bodies of the rules with values of their parameters, and of those that they refer to.
    fn parametric_rules(&mut self, scope: &mut Scope) {
        while let Some((id, name, value)) = scope.open.pop() {
            let Some(rule) = scope.parametric.get(name).map(|rule| rule.item) else { continue };
            self.alternatives += rule.body.alternatives.len();
            if self.alternatives > MAX_ALTERNATIVES {
                let message = format!(
                    "the values of parameters give rules more than {MAX_ALTERNATIVES} alternatives: use fewer bits"
                );
                self.problems.push(Problem::limit(Some(rule.at), message));
            }
            // A problem would come again with each value.
            if !self.problems.is_empty() {
                scope.open.clear();
                break;
            }
            self.parameter = Some(value);
            self.rules[id.index()].body = self.rule(id, rule, scope);
        }
        self.parameter = None;
    }

    /// The rule of a name with this value of its parameter.
    fn instance(&mut self, name: &str, parameter: Parameter, at: usize, scope: &mut Scope) -> RuleBody {
        let value = match self.parameter {
            None if parameter.is_own() => {
                let message = "the value of a parameter in a rule that has none";
                self.problems.add(at, message, format!("write a number: {name}::0"));
                return RuleBody::Seq(Vec::new());
            }
            own => parameter.value(own.unwrap_or(0)),
        };
        let Some((&name, rule)) = scope.parametric.get_key_value(name) else {
            match scope.rules.contains_key(name) {
                true => {
                    let message = format!("the rule \"{name}\" has no parameter");
                    self.problems.add(at, message, format!("leave the value out, or define it as {name}::_"));
                }
                false => scope.unknown(name, at, self.problems),
            }
            return RuleBody::Seq(Vec::new());
        };
        if let Some(&id) = rule.made.get(&value) {
            return RuleBody::Ref(id);
        }
        let id = self.new_rule(name);
        if let Some(rule) = scope.parametric.get_mut(name) {
            rule.made.insert(value, id);
        }
        scope.open.push((id, name, value));
        RuleBody::Ref(id)
    }

    fn choice(&mut self, choice: &Choice, scope: &mut Scope) -> RuleBody {
        let mut alternatives = Vec::with_capacity(choice.alternatives.len());
        for alternative in &choice.alternatives {
            match (&alternative.condition, self.parameter) {
                (Some((condition, _)), Some(value)) if !condition.holds(value) => {}
                (Some((_, at)), None) => {
                    let message = "a condition in a rule without a parameter";
                    self.problems.add(*at, message, "leave it out, or define the rule as name::_");
                }
                _ => alternatives.push(self.alternative(alternative, scope)),
            }
        }
        if alternatives.is_empty() && !choice.alternatives.is_empty() {
            return RuleBody::Alt(Vec::new());
        }
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
            Value::Instance(name, parameter) => self.instance(name, *parameter, at, scope),
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
            None if scope.parametric.contains_key(name) => {
                let message = format!("the rule \"{name}\" has a parameter");
                self.problems.add(at, message, format!("say its value: {name}::0"));
                RuleBody::Seq(Vec::new())
            }
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
