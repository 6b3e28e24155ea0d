//! Lowers rules to nodes: regular and small parts become one lexeme, the rest keeps its structure.
//!
//! A rule is regular if it does not refer to itself. Its expression is inlined at its references, as long as
//! the copies stay small. A rule that ends in a long run of almost any characters (a string) stays a lexeme of
//! its own inside a sequence: its derivatives are then the same everywhere, and so are their mask tables.

use std::sync::Arc;

use super::super::expr::{nested_counts, Encoding, Exprs};
use super::super::join::has_temperatures;
use super::super::regex::Regex;
use super::super::rules::{written_name, RuleBody, RuleId, Rules};
use super::embedded::Embedded;
use super::lowered::{LoweredId, LoweredKind, LoweredNode, LoweredRules, TokenSets};
use super::ValueSource;
use crate::{Error, ErrorKind, Result};

/// Maximum number of nodes inlined into one lexeme.
const MAX_COPIED: usize = 2_000;
/// Maximum number of inlined nodes in total.
const MAX_COPIES: usize = 1_000_000;
/// Maximum depth of an assembled lexeme.
const MAX_DEEP: usize = 64;
/// A character set of this size is almost any character.
const WIDE_SET: usize = 64;
/// A run of this length is long.
const WIDE_COUNT: u32 = 16;
/// Maximum nesting inside a rule's text.
const MAX_NESTED: usize = 10_000;

/// A regular language that may still be extended.
#[derive(Clone)]
struct Regular {
    regex: Regex,
    shape: Shape,
    /// How many of its nodes are inlined copies.
    copied: usize,
    said: Option<Arc<str>>,
    /// Whether nothing may be appended to it in a sequence.
    closed: bool,
}

/// The properties of an expression that decide where it may be inlined.
#[derive(Clone, Copy, Default)]
struct Shape {
    size: usize,
    depth: usize,
    /// Whether it contains a large set.
    large: bool,
    /// Whether it contains a long repetition of a large set.
    wide: bool,
}

impl Shape {
    /// The shape of a node with these children.
    fn around(parts: impl Iterator<Item = Shape>) -> Shape {
        parts.fold(Shape { size: 1, depth: 1, large: false, wide: false }, |all, part| Shape {
            size: all.size + part.size,
            depth: all.depth.max(part.depth + 1),
            large: all.large || part.large,
            wide: all.wide || part.wide,
        })
    }

    fn repeated(self, max: Option<u32>) -> Shape {
        let often = max.is_none_or(|max| max >= WIDE_COUNT);
        Shape { wide: self.wide || self.large && often, ..Shape::around([self].into_iter()) }
    }

    /// The shape of a leaf. Its depth counts as 1: its reader has bounded it.
    fn of(regex: &Regex) -> Shape {
        let mut shape = Shape { size: 0, depth: 1, large: false, wide: false };
        let mut open = vec![(regex, false)];
        while let Some((regex, often)) = open.pop() {
            shape.size += 1;
            match regex {
                Regex::Nothing | Regex::Empty | Regex::Computed(_) => {}
                Regex::Set(set) => {
                    let large = set.len() >= WIDE_SET;
                    shape.large |= large;
                    shape.wide |= large && often;
                }
                Regex::Automaton(dfa) => shape.size += dfa.len() / 16,
                Regex::Text(text) => shape.size += text.len() / 16,
                Regex::Concat(parts) | Regex::Or(parts) | Regex::And(parts) => {
                    open.extend(parts.iter().map(|part| (part, often)));
                }
                Regex::Not(_) => shape = Shape { large: true, wide: true, ..shape },
                Regex::Repeat { of, max, .. } => {
                    open.push((of, often || max.is_none_or(|max| max >= WIDE_COUNT)));
                }
            }
        }
        shape
    }
}

/// Regular parts that become one lexeme.
#[derive(Default)]
struct Run {
    parts: Vec<Regular>,
    copied: usize,
    /// Whether one of them has the maximum depth.
    deep: bool,
}

impl Run {
    fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether one more part may join these.
    fn fits(&self, more: &Regular) -> bool {
        let flat = !self.deep && more.shape.depth < MAX_DEEP;
        self.is_empty() || flat && self.copied + more.copied <= MAX_COPIED
    }

    fn push(&mut self, part: Regular) {
        self.copied += part.copied;
        self.deep |= part.shape.depth >= MAX_DEEP;
        self.parts.push(part);
    }

    /// Concatenates the parts and empties the run.
    fn concat(&mut self) -> Regular {
        let closed = self.parts.last().is_some_and(|last| last.closed);
        self.join(Regex::Concat, closed, " ")
    }

    /// Unites the parts and empties the run.
    fn or(&mut self) -> Regular {
        let closed = self.parts.iter().any(|part| part.closed);
        self.join(Regex::Or, closed, " or ")
    }

    fn join(&mut self, all: fn(Vec<Regex>) -> Regex, closed: bool, between: &str) -> Regular {
        let mut run = std::mem::take(self).parts;
        if run.len() == 1 {
            return run.remove(0);
        }
        let words: Option<Vec<&str>> = run.iter().map(|part| part.said.as_deref()).collect();
        let words = words.filter(|words| (1..=6).contains(&words.len()));
        Regular {
            said: words.map(|words| words.join(between).into()).filter(|said: &Arc<str>| said.len() <= 120),
            shape: Shape::around(run.iter().map(|part| part.shape)),
            copied: run.iter().map(|part| part.copied).sum(),
            closed,
            regex: all(run.into_iter().map(|part| part.regex).collect()),
        }
    }
}

/// A lowered part of a rule.
enum Lowered {
    Regular(Regular),
    Node(LoweredId),
}

/// A node whose children are being lowered.
struct Frame<'a> {
    node: &'a RuleBody,
    done: Vec<Lowered>,
}

/// The state of the lowering.
struct Lowering<'a> {
    exprs: &'a mut Exprs,
    json: Option<&'a mut (dyn ValueSource + 'static)>,
    embedded: &'a mut Embedded,
    out: LoweredRules,
    /// The rules that are inlined.
    inlined: Vec<Option<Regular>>,
    /// The rules that were referred to before they were lowered: a node refers to each of them.
    awaited: Vec<bool>,
    /// How many nodes were inlined in total.
    copied: usize,
    rule: RuleId,
}

/// Lowers the rules that the start rule needs.
///
/// # Errors
/// [`ErrorKind::Constraint`] for a rule that does not exist and for JSON without its source;
/// [`ErrorKind::Limit`] for what is too deep or too large; and the errors of compiling lexemes and schemas.
pub(super) fn lower(
    rules: &Rules,
    exprs: &mut Exprs,
    json: Option<&mut (dyn ValueSource + 'static)>,
    embedded: &mut Embedded,
) -> Result<LoweredRules> {
    let order = callees_first(rules)?;
    let out = LoweredRules {
        nodes: Vec::new(),
        roots: vec![None; rules.rules.len()],
        names: rules.rules.iter().map(|rule| rule.name.clone()).collect(),
        token_sets: TokenSets::default(),
    };
    let mut lowering = Lowering {
        exprs,
        json,
        embedded,
        out,
        inlined: vec![None; rules.rules.len()],
        awaited: vec![false; rules.rules.len()],
        copied: 0,
        rule: RuleId(0),
    };
    for rule in order {
        lowering.rule = rule;
        let part =
            lowering.tree(&rules.rules[rule.index()].body).map_err(|error| match &error.place[..] {
                "" => match written_name(&rules.rules[rule.index()].name) {
                    Some(name) => error.at(format!("rule {name:?}")),
                    None => error,
                },
                _ => error,
            })?;
        let marks = &rules.rules[rule.index()].marks;
        if marks.concern_tokens() {
            match marks.max_tokens {
                Some(most) => lowering.counted(rule, part, most)?,
                None => lowering.out.roots[rule.index()] = Some(lowering.materialise(part)?),
            }
            if let Some(temperature) = marks.temperature {
                lowering.temper(rule, temperature);
            }
            continue;
        }
        match part {
            Lowered::Regular(regular) if rule != rules.start && regular.shape.size <= MAX_COPIED => {
                lowering.inlined[rule.index()] = Some(regular);
                // A rule whose reference to itself was dropped, such as `a{0}`, is regular after all.
                if lowering.awaited[rule.index()] {
                    lowering.root(rule)?;
                }
            }
            part => lowering.out.roots[rule.index()] = Some(lowering.materialise(part)?),
        }
    }
    Ok(lowering.out)
}

impl<'a> Lowering<'a> {
    /// Lowers a rule's body, leaves first.
    fn tree(&mut self, body: &RuleBody) -> Result<Lowered> {
        let mut stack = vec![Frame { node: body, done: Vec::new() }];
        loop {
            let frame = stack.last_mut().expect("the root returns");
            let child = match frame.node {
                RuleBody::Seq(parts) | RuleBody::Alt(parts) => parts.get(frame.done.len()),
                RuleBody::Repeat { of, .. } => Some(&**of).filter(|_| frame.done.is_empty()),
                _ => None,
            };
            if let Some(node) = child {
                if stack.len() >= MAX_NESTED {
                    return Err(Error::new(
                        ErrorKind::Limit,
                        format!("more than {MAX_NESTED} levels of groups"),
                    )
                    .help("name the inner groups: rules may refer to each other without a limit"));
                }
                stack.push(Frame { node, done: Vec::new() });
                continue;
            }
            let Frame { node, done } = stack.pop().expect("it was there just now");
            let part = self.node(node, done)?;
            match stack.last_mut() {
                Some(above) => above.done.push(part),
                None => return Ok(part),
            }
        }
    }

    /// Lowers a node whose children are lowered.
    fn node(&mut self, node: &RuleBody, done: Vec<Lowered>) -> Result<Lowered> {
        Ok(match node {
            RuleBody::Lexeme(regex) => Lowered::Regular(leaf(regex.clone())),
            RuleBody::Ref(rule) => self.reference(*rule)?,
            RuleBody::Seq(_) => self.sequence(done)?,
            RuleBody::Alt(_) => self.alternatives(done)?,
            RuleBody::Repeat { min, max, .. } => {
                let of = done.into_iter().next().expect("a repetition has one child");
                self.repetition(of, *min, *max)?
            }
            RuleBody::Tokens(set) => {
                let number = self.out.token_sets.number(set);
                Lowered::Node(self.push(LoweredKind::Tokens(number), None))
            }
            RuleBody::Json(schema) => {
                let Some(json) = &mut self.json else {
                    return Err(Error::new(ErrorKind::Constraint, "JSON schemas are not read here"));
                };
                let state = json.root(schema, &mut self.out.token_sets, self.exprs)?;
                let may_be_empty = json.may_be_empty(schema, self.exprs)?;
                self.embedded_texts(LoweredKind::Json(state), state.is_some(), may_be_empty)?
            }
            RuleBody::Both(both) => {
                if has_temperatures(&both.rules.rules) {
                    let message = "a rule with a temperature inside of an intersection";
                    return Err(Error::new(ErrorKind::Constraint, message)
                        .help("give the temperature to a rule around the intersection"));
                }
                let json = self.json.as_ref().map(|json| json.fresh());
                let (start, may_be_empty) = self.embedded.root(both, self.exprs, json)?;
                self.embedded_texts(LoweredKind::Embedded(start), start.is_some(), may_be_empty)?
            }
        })
    }

    /// The texts of another source, the empty one included where it is one.
    fn embedded_texts(&mut self, kind: LoweredKind, has_texts: bool, may_be_empty: bool) -> Result<Lowered> {
        if may_be_empty && !has_texts {
            return Ok(Lowered::Regular(leaf(Regex::Empty)));
        }
        let texts = Lowered::Node(self.push(kind, None));
        if !may_be_empty {
            return Ok(texts);
        }
        self.alternatives(vec![texts, Lowered::Regular(leaf(Regex::Empty))])
    }

    fn reference(&mut self, rule: RuleId) -> Result<Lowered> {
        let Some(regular) = &self.inlined[rule.index()] else {
            self.awaited[rule.index()] = true;
            return Ok(Lowered::Node(self.push(LoweredKind::Ref(rule), None)));
        };
        let size = regular.shape.size;
        if self.copied + size <= MAX_COPIES {
            self.copied += size;
            let (said, closed) = (self.said(rule, regular), regular.shape.wide);
            return Ok(Lowered::Regular(Regular { copied: size, said, closed, ..regular.clone() }));
        }
        self.root(rule)?;
        Ok(Lowered::Node(self.push(LoweredKind::Ref(rule), None)))
    }

    /// A rule in words: its name, if its author gave it one.
    fn said(&self, rule: RuleId, of: &Regular) -> Option<Arc<str>> {
        written_name(&self.out.names[rule.index()]).map(Arc::from).or_else(|| of.said.clone())
    }

    /// Gives an inlined rule a node of its own, for references that are nodes.
    fn root(&mut self, rule: RuleId) -> Result<()> {
        if let (Some(regular), None) = (&self.inlined[rule.index()], self.out.roots[rule.index()]) {
            let whole = Regular { said: self.said(rule, regular), ..regular.clone() };
            self.out.roots[rule.index()] = Some(self.lexeme(whole)?);
        }
        Ok(())
    }

    /// Gives a rule that counts tokens its node.
    fn counted(&mut self, rule: RuleId, part: Lowered, most: u32) -> Result<()> {
        let name = &self.out.names[rule.index()];
        let Lowered::Regular(regular) = part else {
            let message = "`max_tokens` of a rule that is no regular expression";
            return Err(Error::new(ErrorKind::Constraint, message)
                .at(written_name(name).map(|name| format!("rule {name:?}")).unwrap_or_default())
                .help("give it to rules of texts, classes and patterns"));
        };
        let said = self.said(rule, &regular);
        let expr = self.exprs.compile(&regular.regex, Encoding::Utf8)?;
        self.out.roots[rule.index()] = Some(self.push(LoweredKind::Counted(expr, most), said));
        Ok(())
    }

    /// Gives a rule that has its node a temperature.
    fn temper(&mut self, rule: RuleId, temperature: f32) {
        let root = self.out.roots[rule.index()].expect("it was made just now");
        let said = self.out.nodes[root.index()].said.clone();
        self.out.roots[rule.index()] = Some(self.push(LoweredKind::Tempered(root, temperature), said));
    }

    fn sequence(&mut self, parts: Vec<Lowered>) -> Result<Lowered> {
        let mut nodes = Vec::new();
        let mut run = Run::default();
        for part in parts {
            match part {
                Lowered::Regular(regular) => {
                    if run.parts.last().is_some_and(|last| last.closed) || !run.fits(&regular) {
                        nodes.push(self.lexeme(run.concat())?);
                    }
                    run.push(regular);
                }
                Lowered::Node(node) => {
                    if !run.is_empty() {
                        nodes.push(self.lexeme(run.concat())?);
                    }
                    nodes.push(node);
                }
            }
        }
        if nodes.is_empty() {
            return Ok(Lowered::Regular(run.concat()));
        }
        if !run.is_empty() {
            nodes.push(self.lexeme(run.concat())?);
        }
        Ok(Lowered::Node(self.several(nodes, LoweredKind::Seq)))
    }

    fn alternatives(&mut self, parts: Vec<Lowered>) -> Result<Lowered> {
        let mut nodes = Vec::new();
        let mut run = Run::default();
        for part in parts {
            match part {
                Lowered::Regular(regular) => {
                    if !run.fits(&regular) {
                        nodes.push(self.lexeme(run.or())?);
                    }
                    run.push(regular);
                }
                Lowered::Node(node) => nodes.push(node),
            }
        }
        if nodes.is_empty() {
            return Ok(Lowered::Regular(run.or()));
        }
        if !run.is_empty() {
            nodes.push(self.lexeme(run.or())?);
        }
        Ok(Lowered::Node(self.several(nodes, LoweredKind::Alt)))
    }

    fn repetition(&mut self, of: Lowered, min: u32, max: Option<u32>) -> Result<Lowered> {
        if max.is_some_and(|max| max < min) {
            return Ok(Lowered::Regular(leaf(Regex::Nothing)));
        }
        if max == Some(0) {
            return Ok(Lowered::Regular(leaf(Regex::Empty)));
        }
        if (min, max) == (1, Some(1)) {
            return Ok(of);
        }
        let of = match of {
            Lowered::Regular(of) => {
                // A repetition of a repetition that is one repetition is as deep as before.
                let merged = is_one_count(&of.regex, min, max);
                if !merged && of.shape.depth >= MAX_DEEP {
                    self.lexeme(of)?
                } else {
                    let repeated = of.shape.repeated(max);
                    return Ok(Lowered::Regular(Regular {
                        shape: if merged { Shape { wide: repeated.wide, ..of.shape } } else { repeated },
                        regex: of.regex.repeat(min, max),
                        copied: of.copied,
                        said: None,
                        closed: false,
                    }));
                }
            }
            Lowered::Node(node) => node,
        };
        if let LoweredKind::Repeat { of: inner, min: least, max: most } = self.out.nodes[of.index()].body {
            if let Some((min, max)) = nested_counts((least, most), (min, max)) {
                self.out.nodes[of.index()].body = LoweredKind::Repeat { of: inner, min, max };
                return Ok(Lowered::Node(of));
            }
        }
        Ok(Lowered::Node(self.push(LoweredKind::Repeat { of, min, max }, None)))
    }

    /// The part as a node.
    fn materialise(&mut self, part: Lowered) -> Result<LoweredId> {
        match part {
            Lowered::Regular(regular) => self.lexeme(regular),
            Lowered::Node(node) => Ok(node),
        }
    }

    fn lexeme(&mut self, regular: Regular) -> Result<LoweredId> {
        let expr = self.exprs.compile(&regular.regex, Encoding::Utf8)?;
        Ok(self.push(LoweredKind::Lexeme(expr), regular.said))
    }

    /// Several nodes as one, or the only node.
    fn several(&mut self, nodes: Vec<LoweredId>, body: fn(Vec<LoweredId>) -> LoweredKind) -> LoweredId {
        match nodes[..] {
            [node] => node,
            _ => self.push(body(nodes), None),
        }
    }

    fn push(&mut self, body: LoweredKind, said: Option<Arc<str>>) -> LoweredId {
        self.out.nodes.push(LoweredNode { body, rule: self.rule, said });
        LoweredId::new(self.out.nodes.len() - 1)
    }
}

/// Whether `regex` is a repetition that is still one when it is repeated.
fn is_one_count(regex: &Regex, min: u32, max: Option<u32>) -> bool {
    matches!(regex, Regex::Repeat { min: least, max: most, .. } if nested_counts((*least, *most), (min, max)).is_some())
}

/// A leaf, with its text as description if it is short.
fn leaf(regex: Regex) -> Regular {
    let said = match &regex {
        Regex::Text(text) if text.len() <= 60 => Some(format!("{text:?}").into()),
        _ => None,
    };
    Regular { shape: Shape::of(&regex), regex, copied: 0, said, closed: false }
}

/// The rules that the start rule needs, callees first; mutually recursive rules in any order.
fn callees_first(rules: &Rules) -> Result<Vec<RuleId>> {
    let mut order = Vec::new();
    let mut seen = vec![false; rules.rules.len()];
    let mut stack: Vec<(RuleId, Vec<RuleId>)> = Vec::new();
    let mut next = Some(rules.start);
    loop {
        if let Some(rule) = next {
            let Some(entry) = rules.rules.get(rule.index()) else {
                return Err(Error::new(
                    ErrorKind::Constraint,
                    format!("rule number {} does not exist", rule.0),
                )
                .help(format!("there are {} rules, numbered from 0", rules.rules.len())));
            };
            if !std::mem::replace(&mut seen[rule.index()], true) {
                stack.push((rule, references(&entry.body)));
            }
        }
        let Some((rule, left)) = stack.last_mut() else {
            return Ok(order);
        };
        next = left.pop();
        if next.is_none() {
            order.push(*rule);
            stack.pop();
        }
    }
}

/// The rules that a body refers to, in reverse order.
fn references(body: &RuleBody) -> Vec<RuleId> {
    let mut found = Vec::new();
    let mut open = vec![body];
    while let Some(node) = open.pop() {
        match node {
            RuleBody::Ref(rule) => found.push(*rule),
            RuleBody::Seq(parts) | RuleBody::Alt(parts) => open.extend(parts),
            RuleBody::Repeat { of, .. } => open.push(of),
            RuleBody::Lexeme(_) | RuleBody::Tokens(_) | RuleBody::Json(_) | RuleBody::Both(_) => {}
        }
    }
    found.reverse();
    found
}
