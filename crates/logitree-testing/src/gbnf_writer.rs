//! Writes rules as GBNF. Recurses as deep as rules nest, which their maker bounds.

use std::collections::HashSet;
use std::fmt::Write;

use logitree_grammar::rules::{RuleBody, Rules, TokenName, TokenNames};
use logitree_grammar::{CharSet, Error, ErrorKind, Regex, Result};

/// The rules as GBNF that llama.cpp and `gbnf::parse` read. Names use only the characters that llama.cpp
/// accepts (letters, digits and hyphens), and the start rule is called `root`.
///
/// # Errors
/// [`ErrorKind::Constraint`] for what GBNF cannot express: intersections and complements of languages, JSON
/// schemas, several tokens negated at once, tokens by a text without `<` and `>`.
pub fn write(rules: &Rules) -> Result<String> {
    let mut writer = Writer::new(rules);
    let text = writer.all();
    match writer.beyond {
        None => Ok(text),
        Some((rule, what)) => {
            let message =
                format!("the rule \"{}\" has {what}, which GBNF cannot say", rules.rules[rule].name);
            Err(Error::new(ErrorKind::Constraint, message).help("show it for reading instead"))
        }
    }
}

/// The rules for people: GBNF with `(a & b)` for intersection, `~(a)` for complement and `%json` for a schema.
pub fn show(rules: &Rules) -> String {
    Writer::new(rules).all()
}

/// The context of a part; each needs parentheses around more parts than the one before.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Within {
    /// None.
    Rule,
    /// Around alternatives.
    Alternative,
    /// Around sequences too.
    Sequence,
    /// Around repetitions too: `a?{2}` is easily misread.
    Repetition,
}

struct Writer<'r> {
    rules: &'r Rules,
    names: Vec<String>,
    text: String,
    /// The current rule.
    rule: usize,
    /// The first construct that GBNF cannot express, and its rule.
    beyond: Option<(usize, &'static str)>,
}

impl<'r> Writer<'r> {
    fn new(rules: &'r Rules) -> Writer<'r> {
        Writer { rules, names: names(rules), text: String::new(), rule: 0, beyond: None }
    }

    fn all(&mut self) -> String {
        for id in order(self.rules) {
            self.rule = id;
            self.text.push_str(&self.names[id]);
            self.text.push_str(" ::= ");
            self.node(&self.rules.rules[id].body, Within::Rule);
            self.text.push('\n');
        }
        std::mem::take(&mut self.text)
    }

    fn beyond(&mut self, what: &'static str) {
        self.beyond.get_or_insert((self.rule, what));
    }

    fn node(&mut self, node: &RuleBody, within: Within) {
        match node {
            RuleBody::Lexeme(regex) => self.regex(regex, within),
            RuleBody::Ref(id) => match self.names.get(id.index()) {
                Some(name) => self.text.push_str(name),
                None => {
                    self.beyond("a reference to no rule");
                    self.text.push('?');
                }
            },
            RuleBody::Seq(parts) => self.list(parts, " ", Within::Sequence, within, Self::node),
            RuleBody::Alt(parts) => self.list(parts, " | ", Within::Alternative, within, Self::node),
            RuleBody::Repeat { of, min, max } => {
                self.repeat(within, *min, *max, |writer| writer.node(of, Within::Repetition));
            }
            RuleBody::Tokens(set) => self.tokens(set),
            RuleBody::Json(_) => {
                self.beyond("a JSON schema");
                self.text.push_str("%json");
            }
            RuleBody::Both(_) => {
                self.beyond("an intersection");
                self.text.push_str("%both");
            }
        }
    }

    fn regex(&mut self, regex: &Regex, within: Within) {
        match regex {
            Regex::Nothing => self.set(&CharSet::none()),
            Regex::Empty => self.text.push_str("\"\""),
            Regex::Set(set) => self.set(set),
            Regex::Text(text) => self.literal(text),
            Regex::Concat(parts) => self.list(parts, " ", Within::Sequence, within, Self::regex),
            Regex::Or(parts) if parts.is_empty() => self.set(&CharSet::none()),
            Regex::Or(parts) => self.list(parts, " | ", Within::Alternative, within, Self::regex),
            Regex::And(parts) => {
                self.beyond("an intersection");
                self.text.push('(');
                self.list(parts, " & ", Within::Sequence, Within::Rule, Self::regex);
                self.text.push(')');
            }
            Regex::Automaton(dfa) => {
                self.beyond("an automaton");
                self.text.push_str(&format!("%automaton[{}]", dfa.len()));
            }
            Regex::Computed(_) => {
                self.beyond("a computed automaton");
                self.text.push_str("%computed");
            }
            Regex::Not(of) => {
                self.beyond("a complement");
                self.text.push_str("~(");
                self.regex(of, Within::Rule);
                self.text.push(')');
            }
            Regex::Repeat { of, min, max } => {
                self.repeat(within, *min, *max, |writer| writer.regex(of, Within::Repetition));
            }
        }
    }

    /// Writes parts with a separator, each in the context `inside`; in parentheses if `within` requires them.
    fn list<T>(
        &mut self,
        parts: &[T],
        between: &str,
        inside: Within,
        within: Within,
        one: fn(&mut Self, &T, Within),
    ) {
        match parts {
            [] => self.text.push_str("\"\""),
            [only] => one(self, only, within),
            _ => {
                let open = within >= inside;
                if open {
                    self.text.push('(');
                }
                for (place, part) in parts.iter().enumerate() {
                    if place > 0 {
                        self.text.push_str(between);
                    }
                    one(self, part, inside);
                }
                if open {
                    self.text.push(')');
                }
            }
        }
    }

    fn repeat(&mut self, within: Within, min: u32, max: Option<u32>, of: impl FnOnce(&mut Self)) {
        let open = within == Within::Repetition;
        if open {
            self.text.push('(');
        }
        of(self);
        let _ = match (min, max) {
            (0, None) => write!(self.text, "*"),
            (1, None) => write!(self.text, "+"),
            (0, Some(1)) => write!(self.text, "?"),
            (_, None) => write!(self.text, "{{{min},}}"),
            (_, Some(max)) if max == min => write!(self.text, "{{{min}}}"),
            (_, Some(max)) => write!(self.text, "{{{min},{max}}}"),
        };
        if open {
            self.text.push(')');
        }
    }

    fn set(&mut self, set: &CharSet) {
        if *set == CharSet::all() {
            return self.text.push('.');
        }
        let not = set.not();
        let negated = not.ranges().len() < set.ranges().len() || set.is_empty();
        self.text.push_str(if negated { "[^" } else { "[" });
        let shown = if negated { not } else { set.clone() };
        for &(from, to) in shown.ranges() {
            self.in_class(from);
            if to > from + 1 {
                self.text.push('-');
            }
            if to > from {
                self.in_class(to);
            }
        }
        self.text.push(']');
    }

    fn in_class(&mut self, code: u32) {
        match char::from_u32(code) {
            Some(c @ ('[' | ']' | '-')) => {
                self.text.push('\\');
                self.text.push(c);
            }
            Some('^') => self.text.push_str("\\x5E"),
            Some('"') => self.text.push('"'),
            Some(c) => self.character(c),
            None => {}
        }
    }

    fn literal(&mut self, text: &str) {
        self.text.push('"');
        text.chars().for_each(|c| self.character(c));
        self.text.push('"');
    }

    fn character(&mut self, c: char) {
        let _ = match c {
            '\n' => write!(self.text, "\\n"),
            '\t' => write!(self.text, "\\t"),
            '\r' => write!(self.text, "\\r"),
            '\\' => write!(self.text, "\\\\"),
            '"' => write!(self.text, "\\\""),
            ' '..='~' => write!(self.text, "{c}"),
            _ if c.is_alphanumeric() => write!(self.text, "{c}"),
            '\0'..='\u{ff}' => write!(self.text, "\\x{:02X}", u32::from(c)),
            '\0'..='\u{ffff}' => write!(self.text, "\\u{:04X}", u32::from(c)),
            _ => write!(self.text, "\\U{:08X}", u32::from(c)),
        };
    }

    fn tokens(&mut self, set: &TokenNames) {
        let several = set.tokens.len() != 1;
        if set.negated {
            if several {
                self.beyond("several tokens that must not come");
            }
            self.text.push('!');
        } else if set.tokens.is_empty() {
            return self.set(&CharSet::none());
        }
        if several {
            self.text.push('(');
        }
        for (place, token) in set.tokens.iter().enumerate() {
            if place > 0 {
                self.text.push_str(" | ");
            }
            match token {
                TokenName::Id(id) => {
                    let _ = write!(self.text, "<[{id}]>");
                }
                TokenName::Text(text) => {
                    let inside = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
                    if inside
                        .is_none_or(|name| name.is_empty() || name.starts_with('[') || name.contains('>'))
                    {
                        self.beyond("a token whose text is not of the form <name>");
                    }
                    self.text.push_str(text);
                }
            }
        }
        if several {
            self.text.push(')');
        }
    }
}

/// The rules in reading order: the start rule, the rules it refers to, the rules those refer to, and finally
/// unreferenced rules.
fn order(rules: &Rules) -> Vec<usize> {
    fn refer(node: &RuleBody, to: &mut impl FnMut(usize)) {
        match node {
            RuleBody::Ref(id) => to(id.index()),
            RuleBody::Seq(parts) | RuleBody::Alt(parts) => parts.iter().for_each(|part| refer(part, to)),
            RuleBody::Repeat { of, .. } => refer(of, to),
            RuleBody::Lexeme(_) | RuleBody::Tokens(_) | RuleBody::Json(_) | RuleBody::Both(_) => {}
        }
    }
    let mut seen = vec![false; rules.rules.len()];
    let mut order = Vec::with_capacity(seen.len());
    let mut next = 0;
    for id in [rules.start.index()].into_iter().chain(0..rules.rules.len()) {
        if id < seen.len() && !std::mem::replace(&mut seen[id], true) {
            order.push(id);
        }
        while let Some(&id) = order.get(next) {
            next += 1;
            refer(&rules.rules[id].body, &mut |id| {
                if id < seen.len() && !std::mem::replace(&mut seen[id], true) {
                    order.push(id);
                }
            });
        }
    }
    order
}

/// A unique name that GBNF allows for each rule; `root` for the start rule.
fn names(rules: &Rules) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::from(["root".into()]);
    let mut next = 2;
    let mut names = Vec::with_capacity(rules.rules.len());
    for (id, rule) in rules.rules.iter().enumerate() {
        if id == rules.start.index() {
            names.push("root".to_string());
            continue;
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let wanted: String = rule.name.chars().map(plain).collect();
        let mut name = if wanted.is_empty() { "rule".to_string() } else { wanted.clone() };
        while !taken.insert(name.clone()) {
            name = format!("{wanted}-{next}");
            next += 1;
        }
        names.push(name);
    }
    names
}
