//! Reads GBNF and EBNF in one pass with a stack of open groups, so that nesting takes memory and not the call stack.

use super::super::problems::{excerpt, Problems};
use super::super::rules::{RuleBody, RuleId, Rules, TokenName, TokenNames};
use super::super::Regex;
use super::attributes::{self, Attributes, Marked};
use super::characters::{character, class, scalar};
use super::names::Names;
use super::{macros, Dialect};
use crate::{Error, ErrorKind, Result};

/// Maximum nesting of a body; deeper parts become rules of their own, so that recursive functions over bodies
/// are safe.
const DEEP: u32 = 32;

/// Maximum number of open groups.
const MAX_OPEN: usize = 1 << 17;

/// Maximum size of a text in bytes: its rules take up to fifty times as many, and reading it up to a quarter of a second.
const MAX_BYTES: usize = 3 << 20;

/// How many unclosed literals or classes end the reading: each costs a pass over the text.
const MAX_UNCLOSED: usize = 3;

/// Reads the rules of `text`.
pub(super) fn rules(text: &str, start: &str, dialect: Dialect) -> Result<Rules> {
    if text.len() > MAX_BYTES {
        let message = format!("the {dialect} grammar has {} bytes, more than {MAX_BYTES}", text.len());
        return Err(
            Error::new(ErrorKind::Limit, message).help("long lists of texts are better given as choices")
        );
    }
    let mut reader = Reader {
        text,
        dialect,
        at: 0,
        problems: Problems::default(),
        names: Names::default(),
        owner: RuleId(0),
        marked: Vec::new(),
        unclosed: 0,
    };
    reader.space(true);
    while reader.at < text.len() {
        let line = reader.at;
        if reader.rule().is_none() {
            if reader.problems.is_full() || reader.unclosed == MAX_UNCLOSED {
                break;
            }
            reader.skip_to_rule(line);
        }
        reader.space(true);
    }
    let Reader { mut problems, names, marked, .. } = reader;
    let mut rules = names.finish(start, &mut problems);
    if problems.is_empty() {
        attributes::apply(&mut rules.rules, &marked, &mut problems);
    }
    problems.finish(text, &format!("the {dialect} grammar"))?;
    Ok(rules)
}

/// A sequence of nodes and the depth of the deepest.
#[derive(Default)]
struct Row {
    nodes: Vec<RuleBody>,
    /// The depth of all nodes but the last.
    depth: u32,
    /// The depth of the last node.
    last: u32,
}

impl Row {
    fn push(&mut self, (node, depth): Part) {
        self.depth = self.depth.max(self.last);
        self.last = depth;
        self.nodes.push(node);
    }

    /// Removes the last node. At most once after each push.
    fn pop(&mut self) -> Option<Part> {
        let depth = std::mem::take(&mut self.last);
        Some((self.nodes.pop()?, depth))
    }

    fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The sequence as one node: its only node, or a node of `kind`.
    fn join(mut self, kind: fn(Vec<RuleBody>) -> RuleBody) -> Part {
        if self.nodes.len() == 1 {
            if let Some(only) = self.pop() {
                return only;
            }
        }
        self.nodes.shrink_to_fit();
        (kind(self.nodes), self.depth.max(self.last) + 1)
    }
}

/// A node and its depth.
type Part = (RuleBody, u32);

/// An open group: its finished alternatives and the current sequence.
struct Group {
    /// The offset of its parenthesis.
    open: usize,
    /// Whether it says what follows the rule.
    is_lookahead: bool,
    alternatives: Row,
    sequence: Row,
}

impl Group {
    fn new(open: usize) -> Group {
        Group { open, is_lookahead: false, alternatives: Row::default(), sequence: Row::default() }
    }
}

/// The bounds of a repetition.
type Times = (u32, Option<u32>);

pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    dialect: Dialect,
    pub(super) at: usize,
    pub(super) problems: Problems,
    pub(super) names: Names<'t>,
    /// The current rule.
    pub(super) owner: RuleId,
    /// The rules with options.
    marked: Vec<Marked>,
    /// How many literals or classes were not closed.
    unclosed: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Reports a problem here.
    pub(super) fn fail<T>(&mut self, message: impl Into<String>, help: impl Into<String>) -> Option<T> {
        self.problems.add(self.at, message, help);
        None
    }

    /// Skips blanks and comments, and line ends where they are insignificant.
    pub(super) fn space(&mut self, newlines: bool) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => self.at += 1,
                b'\r' | b'\n' if newlines => self.at += 1,
                b'#' => {
                    let rest = &self.text.as_bytes()[self.at..];
                    self.at += rest.iter().position(|b| matches!(b, b'\r' | b'\n')).unwrap_or(rest.len());
                }
                _ => break,
            }
        }
    }

    /// Reads a name, if there is one here.
    pub(super) fn name(&mut self) -> Option<&'t str> {
        let name = name_at(self.text, self.at, self.dialect)?;
        self.at += name.len();
        Some(name)
    }

    /// Reads a rule; `None` if it is broken and the problem reported.
    fn rule(&mut self) -> Option<()> {
        let from = self.at;
        let Some(name) = self.name() else {
            let message = format!("a rule must start here, not {}", excerpt(self.text, from));
            return self.fail(message, "a rule is name ::= definition, names are letters, digits, - and _");
        };
        let id = self.names.id(name, from);
        let options = match self.peek() {
            Some(b'[') if self.is_ebnf() => {
                let read = self.attributes();
                if read.is_none() {
                    self.names.excuse(id);
                }
                read?
            }
            _ => Attributes::default(),
        };
        self.space(self.is_ebnf());
        if !self.text[self.at..].starts_with("::=") {
            self.names.excuse(id);
            let message = format!("`::=` must follow \"{name}\", not {}", excerpt(self.text, self.at));
            return self.fail(message, "a rule is name ::= definition; end a line with | to continue it");
        }
        if let Some(earlier) = self.names.define(id, from) {
            self.defined_twice(name, earlier, from);
        }
        self.at += 3;
        self.owner = id;
        if !options.is_none() {
            self.marked.push((id, options, from));
        }
        self.space(!self.is_ebnf());
        let body = self.body()?;
        self.names.set(id, body);
        Some(())
    }

    /// Reports a second definition. One that will not be listed is only counted: finding a line is a pass over the text.
    fn defined_twice(&mut self, name: &str, earlier: usize, here: usize) {
        if self.problems.is_full() {
            return self.problems.add_unlisted(1);
        }
        let line = 1 + self.text[..earlier].bytes().filter(|&b| b == b'\n').count();
        let message = format!("the rule \"{name}\" is defined twice, first in line {line}");
        self.problems.add(here, message, "join both with |, or name one of them otherwise");
    }

    /// Recovers from a problem in the rule that starts at `line`: continues at the next line that starts a
    /// rule.
    fn skip_to_rule(&mut self, line: usize) {
        // An open quote may have run over many rules, so recovery starts at the line after the failed one.
        let failed = self.at;
        self.at = line.max(self.text[..failed].rfind('\n').unwrap_or(0));
        while let Some(end) = self.text[self.at..].find('\n') {
            self.at += end + 1;
            let here = self.at + self.text[self.at..].len()
                - self.text[self.at..].trim_start_matches([' ', '\t']).len();
            if defines(self.text, here, self.dialect) {
                return;
            }
        }
        self.at = self.text.len();
    }

    /// Reads everything after `::=` up to the end of the rule.
    fn body(&mut self) -> Option<RuleBody> {
        let mut groups = vec![Group::new(self.at)];
        loop {
            let inside = groups.len() > 1;
            let gap = self.at;
            self.space(inside || self.is_ebnf());
            if self.is_ebnf() && !inside && self.starts_rule(gap) {
                break;
            }
            let group = groups.last_mut()?;
            match self.peek() {
                Some(b'|') => {
                    self.something(group);
                    self.at += 1;
                    self.space(true);
                    let done = std::mem::take(&mut group.sequence).join(RuleBody::Seq);
                    group.alternatives.push(self.shallow(done));
                }
                Some(b'(') => {
                    let group = self.open(groups.len())?;
                    groups.push(group);
                }
                Some(b')') if inside => {
                    self.at += 1;
                    let done = groups.pop()?;
                    if !done.alternatives.is_empty() {
                        self.something(&done);
                    }
                    if done.is_lookahead {
                        self.rule_ends()?;
                        break;
                    }
                    let part = self.group(done);
                    groups.last_mut()?.sequence.push(part);
                }
                Some(b'*' | b'+' | b'?' | b'{') => self.repeat(&mut group.sequence, inside)?,
                Some(b'\r' | b'\n') | None if !inside => {
                    if !self.goes_on() {
                        break;
                    }
                }
                None => {
                    self.at = group.open;
                    return self.fail("a group that is not closed", "close it with )");
                }
                Some(_) => {
                    let part = self.terminal_or_name()?;
                    group.sequence.push((part, 0));
                }
            }
        }
        let whole = groups.pop()?;
        self.something(&whole);
        Some(self.group(whole).0)
    }

    /// Opens a group, inside of so many.
    fn open(&mut self, inside: usize) -> Option<Group> {
        if inside == MAX_OPEN {
            return self.fail(format!("more than {MAX_OPEN} groups are open"), "give parts names");
        }
        let is_lookahead = self.is_ebnf() && self.text[self.at..].starts_with("(=");
        if is_lookahead && inside > 1 {
            return self.fail("a look-ahead inside a group", "it is at the end of a rule: (= \"text\")");
        }
        let group = Group { is_lookahead, ..Group::new(self.at) };
        self.at += 1 + usize::from(is_lookahead);
        Some(group)
    }

    fn is_ebnf(&self) -> bool {
        self.dialect == Dialect::Ebnf
    }

    /// Reports an alternative without anything in it, where the dialect has none.
    fn something(&mut self, group: &Group) {
        if self.is_ebnf() && group.sequence.is_empty() {
            self.problems.add(self.at, "an alternative without anything", "an empty text is written \"\"");
        }
    }

    /// Whether a rule is defined from here on, at the beginning of a line: there is only white space since `gap`.
    fn starts_rule(&self, gap: usize) -> bool {
        self.text[gap..self.at].contains(['\n', '\r']) && defines(self.text, self.at, self.dialect)
    }

    /// Checks that nothing follows a rule's look-ahead.
    fn rule_ends(&mut self) -> Option<()> {
        let gap = self.at;
        self.space(true);
        if self.peek().is_none() || self.starts_rule(gap) {
            return Some(());
        }
        self.fail("a look-ahead before the end of its rule", "put it last")
    }

    /// Applies a repetition sign to the last node of the sequence.
    fn repeat(&mut self, row: &mut Row, inside: bool) -> Option<()> {
        let from = self.at;
        let (min, max) = self.times(inside)?;
        let Some((node, depth)) = row.pop() else {
            self.at = from;
            let message = format!("nothing before {} that it could repeat", excerpt(self.text, from));
            return self.fail(message, "put it after a literal, a class, a name or a group");
        };
        // `a?*` and the like are one repetition; otherwise a row of signs would nest.
        let is_sign = |min: u32, max: Option<u32>| min <= 1 && max.is_none_or(|max| max == 1);
        row.push(match node {
            RuleBody::Repeat { of, min: least, max: most } if is_sign(min, max) && is_sign(least, most) => {
                (RuleBody::Repeat { of, min: min * least, max: max.and(most) }, depth)
            }
            node => (RuleBody::Repeat { of: Box::new(node), min, max }, depth + 1),
        });
        let (node, depth) = row.pop()?;
        row.push(self.shallow((node, depth)));
        Some(())
    }

    /// Whether the next line continues with `|`; if so, skips to it.
    fn goes_on(&mut self) -> bool {
        let end = self.at;
        self.space(true);
        let goes_on = self.peek() == Some(b'|');
        if !goes_on {
            self.at = end;
        }
        goes_on
    }

    fn group(&mut self, group: Group) -> Part {
        let Group { mut alternatives, sequence, .. } = group;
        let last = sequence.join(RuleBody::Seq);
        alternatives.push(self.shallow(last));
        let whole = alternatives.join(RuleBody::Alt);
        self.shallow(whole)
    }

    /// The part, or a reference to it if it nests too deeply to be nested further.
    fn shallow(&mut self, (node, depth): Part) -> Part {
        if depth < DEEP {
            return (node, depth);
        }
        (RuleBody::Ref(self.names.move_out(self.owner, node)), 0)
    }

    fn terminal_or_name(&mut self) -> Option<RuleBody> {
        match self.peek()? {
            b'"' => self.literal(),
            b'[' => {
                let mark = self.problems.mark();
                let Some((set, after)) = class(self.text, self.at, self.dialect, &mut self.problems) else {
                    self.problems.forget(mark);
                    self.unclosed += 1;
                    return self
                        .fail("a class that is not closed", "close it with ]; a bracket in it is \\]");
                };
                self.at = after;
                Some(RuleBody::Lexeme(Regex::Set(set)))
            }
            b'.' if !self.is_ebnf() => {
                self.at += 1;
                Some(RuleBody::Lexeme(Regex::Set(super::super::CharSet::all())))
            }
            b'<' | b'!' => self.token(),
            _ => {
                let from = self.at;
                if let Some(name) = self.name() {
                    if let Some(number) = macros::named(name).filter(|_| self.is_ebnf()) {
                        self.space(true);
                        if self.peek() != Some(b'(') {
                            let message = format!("the macro {name} has no values");
                            return self.fail(message, format!("write {name}(...)"));
                        }
                        return self.macro_call(number, from);
                    }
                    if self.text[self.at..].trim_start_matches([' ', '\t']).starts_with("::=") {
                        self.at = from;
                        let message =
                            format!("the rule \"{name}\" starts before the one before it has ended");
                        return self.fail(message, "close its groups; an empty text is written \"\"");
                    }
                    return Some(RuleBody::Ref(self.names.id(name, from)));
                }
                let message = format!("{} cannot stand in a rule", excerpt(self.text, from));
                self.fail(message, "write \"text\", [a-z], ., <token>, a name, ( ), |, *, +, ? or {m,n}")
            }
        }
    }

    fn literal(&mut self) -> Option<RuleBody> {
        self.quoted().map(|text| RuleBody::Lexeme(Regex::text(text)))
    }

    /// The text between quotes.
    pub(super) fn quoted(&mut self) -> Option<String> {
        let (open, mark) = (self.at, self.problems.mark());
        let mut text = String::new();
        let mut at = open + 1;
        while self.text.as_bytes().get(at) != Some(&b'"') {
            let Some((code, next)) = character(self.text, at, self.dialect, &mut self.problems) else {
                self.problems.forget(mark);
                self.unclosed += 1;
                return self.fail("a literal that is not closed", "close it with \"; a quote in it is \\\"");
            };
            text.extend(scalar(code, at, &mut self.problems));
            at = next;
        }
        self.at = at + 1;
        Some(text)
    }

    /// `<text>` or `<[7]>`; with `!` every token except this one.
    fn token(&mut self) -> Option<RuleBody> {
        let from = self.at;
        let negated = self.peek() == Some(b'!');
        self.at += usize::from(negated);
        let rest = &self.text[self.at..];
        let help = "a token is <its text> or <[its number]>";
        let Some(end) = rest.find('>').filter(|_| rest.starts_with('<')) else {
            self.at = from;
            return self.fail(format!("{} is no token", excerpt(self.text, from)), help);
        };
        let whole = &rest[..=end];
        let inside = &whole[1..end];
        let name = if let Some(number) = inside.strip_prefix('[') {
            let digits =
                number.strip_suffix(']').filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
            let Some(id) = digits.and_then(|n| n.parse().ok()) else {
                self.at = from;
                return self.fail(
                    format!("`{}` has no number of a token", excerpt(whole, 0).trim_matches('`')),
                    help,
                );
            };
            TokenName::Id(id)
        } else if inside.is_empty() {
            self.at = from;
            return self.fail("`<>` names no token", help);
        } else {
            TokenName::Text(whole.into())
        };
        self.at += end + 1;
        Some(RuleBody::Tokens(TokenNames { tokens: vec![name], negated }))
    }

    /// `*`, `+`, `?` or `{m,n}`.
    fn times(&mut self, newlines: bool) -> Option<Times> {
        let from = self.at;
        let sign = self.peek()?;
        self.at += 1;
        match sign {
            b'*' => return Some((0, None)),
            b'+' => return Some((1, None)),
            b'?' => return Some((0, Some(1))),
            _ => self.space(newlines),
        }
        let min = self.number()?;
        self.space(newlines);
        let mut max = Some(min);
        if self.peek() == Some(b',') {
            self.at += 1;
            self.space(newlines);
            max = match self.peek() {
                Some(b'0'..=b'9') => Some(self.number()?),
                _ => None,
            };
            self.space(newlines);
        }
        if self.peek() != Some(b'}') {
            let message = format!("a repetition must end here, not {}", excerpt(self.text, self.at));
            return self.fail(message, "it is {m}, {m,} or {m,n}");
        }
        self.at += 1;
        if max.is_some_and(|max| max < min) {
            let message = format!("`{}` has a most that is less than its least", &self.text[from..self.at]);
            self.problems.add(from, message, "turn the numbers round");
        }
        Some((min, max))
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        let digits = self.text[self.at..].bytes().take_while(u8::is_ascii_digit).count();
        let written = &self.text[self.at..self.at + digits];
        if written.is_empty() {
            let message = format!("a repetition needs a number here, not {}", excerpt(self.text, self.at));
            return self.fail(message, "it is {m}, {m,} or {m,n}; from nothing on is {0,n}");
        }
        let Ok(number) = written.parse() else {
            let message = format!("the number {} is too large", excerpt(written, 0));
            return self.fail(message, format!("the largest is {}; without end is {{m,}}", u32::MAX));
        };
        self.at += digits;
        Some(number)
    }
}

/// The name at `at`.
fn name_at(text: &str, at: usize, dialect: Dialect) -> Option<&str> {
    let is_ebnf = dialect == Dialect::Ebnf;
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_') || is_ebnf && *b == b'.';
    let bytes = &text.as_bytes()[at..];
    let length = bytes.iter().take_while(|b| is_part(b)).count();
    let is_name = length > 0 && !(is_ebnf && (bytes[0].is_ascii_digit() || bytes[..length] == *b"."));
    is_name.then(|| &text[at..at + length])
}

/// Whether a rule is defined at `at`: its name, in EBNF its options, and `::=`.
fn defines(text: &str, at: usize, dialect: Dialect) -> bool {
    let Some(name) = name_at(text, at, dialect) else { return false };
    let mut rest = &text[at + name.len()..];
    if dialect == Dialect::Gbnf {
        return rest.trim_start_matches([' ', '\t']).starts_with("::=");
    }
    if rest.starts_with('[') {
        let Some(close) = rest.find([']', '\n', '\r']) else { return false };
        rest = &rest[close + 1..];
    }
    rest.trim_start_matches([' ', '\t', '\n', '\r']).starts_with("::=")
}
