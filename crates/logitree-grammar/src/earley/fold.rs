//! Rules into pieces: what is regular and small becomes one lexeme, the rest stays as it is. It refuses to know states
//! and bytes.
//!
//! A rule is regular if nothing in it refers back to it. Its expression is copied to where it is referred to, as long
//! as the copies stay small. A rule that ends in a long stretch of almost any characters (a string) stays a lexeme of
//! its own inside a sequence: what is left of it is then the same everywhere, and so is what is known of it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::expr::{Encoding, Exprs};
use super::super::regex::Regex;
use super::super::rules::{Node, RuleId, Rules, TokenSet};
use super::pieces::{Body, Piece, PieceId, Pieces};
use super::Values;
use crate::{Error, ErrorKind, Result};

/// Most nodes that are copied into one lexeme.
const MOST_COPIED: usize = 2_000;
/// Most nodes that are copied in all.
const MOST_COPIES: usize = 1_000_000;
/// How deep a lexeme that is put together may be.
const MOST_DEEP: usize = 64;
/// A set of so many characters is almost any.
const WIDE_SET: usize = 64;
/// So many of them are a long stretch.
const WIDE_COUNT: u32 = 16;
/// How deep rules may be nested in themselves, as their text stands.
const MOST_NESTED: usize = 10_000;

/// A regular language that may still grow.
#[derive(Clone)]
struct Regular {
    regex: Regex,
    shape: Shape,
    /// How many of its nodes were copied from other rules.
    copied: usize,
    said: Option<Arc<str>>,
    /// Whether nothing joins it from behind in a sequence.
    closed: bool,
}

/// What of an expression decides where it may go.
#[derive(Clone, Copy, Default)]
struct Shape {
    size: usize,
    depth: usize,
    /// Whether a large set is in it.
    large: bool,
    /// Whether a large set is repeated often in it.
    wide: bool,
}

impl Shape {
    /// The shape of what holds these.
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

    /// The shape of a leaf, with its own depth not counted: whoever read it limited that.
    fn of(regex: &Regex) -> Shape {
        let mut shape = Shape { size: 0, depth: 1, large: false, wide: false };
        let mut open = vec![(regex, false)];
        while let Some((regex, often)) = open.pop() {
            shape.size += 1;
            match regex {
                Regex::Nothing | Regex::Empty => {}
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
    /// Whether one of them is as deep as may be.
    deep: bool,
}

impl Run {
    fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether one more may be put together with these.
    fn fits(&self, more: &Regular) -> bool {
        let flat = !self.deep && more.shape.depth < MOST_DEEP;
        self.is_empty() || flat && self.copied + more.copied <= MOST_COPIED
    }

    fn push(&mut self, part: Regular) {
        self.copied += part.copied;
        self.deep |= part.shape.depth >= MOST_DEEP;
        self.parts.push(part);
    }

    /// One after the other. Leaves nothing.
    fn concat(&mut self) -> Regular {
        let closed = self.parts.last().is_some_and(|last| last.closed);
        self.join(Regex::Concat, closed, " ")
    }

    /// Any of these. Leaves nothing.
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

/// A part of a rule.
enum Part {
    Regular(Regular),
    Piece(PieceId),
}

/// A node whose children are being looked at.
struct Frame<'a> {
    node: &'a Node,
    done: Vec<Part>,
}

/// What reading rules into pieces needs.
struct Folder<'a> {
    exprs: &'a mut Exprs,
    json: Option<&'a mut (dyn Values + 'static)>,
    out: Pieces,
    sets: FxHashMap<TokenSet, u32>,
    /// The rules that are copied to where they are referred to.
    folded: Vec<Option<Regular>>,
    /// How many nodes were copied in all.
    copied: usize,
    rule: RuleId,
}

/// The pieces of the rules that the start needs.
///
/// # Errors
/// [`ErrorKind::Constraint`] for a rule that is not there and for JSON without its source, [`ErrorKind::Limit`] for what
/// is too deep or too large, and what compiling lexemes and schemas says.
pub(super) fn fold(
    rules: &Rules,
    exprs: &mut Exprs,
    json: Option<&mut (dyn Values + 'static)>,
) -> Result<Pieces> {
    let order = callees_first(rules)?;
    let out = Pieces {
        pieces: Vec::new(),
        roots: vec![None; rules.rules.len()],
        names: rules.rules.iter().map(|rule| rule.name.clone()).collect(),
        token_sets: Vec::new(),
    };
    let folded = vec![None; rules.rules.len()];
    let mut folder = Folder { exprs, json, out, sets: FxHashMap::default(), folded, copied: 0, rule: 0 };
    for rule in order {
        folder.rule = rule;
        let part = folder.tree(&rules.rules[rule].body).map_err(|error| match &error.place[..] {
            "" => error.at(format!("rule {:?}", rules.rules[rule].name)),
            _ => error,
        })?;
        match part {
            Part::Regular(regular) if rule != rules.start && regular.shape.size <= MOST_COPIED => {
                folder.folded[rule] = Some(regular);
            }
            part => folder.out.roots[rule] = Some(folder.piece(part)?),
        }
    }
    Ok(folder.out)
}

impl<'a> Folder<'a> {
    /// A rule's body, leaves first.
    fn tree(&mut self, body: &Node) -> Result<Part> {
        let mut stack = vec![Frame { node: body, done: Vec::new() }];
        loop {
            let frame = stack.last_mut().expect("the root returns");
            let child = match frame.node {
                Node::Seq(parts) | Node::Alt(parts) => parts.get(frame.done.len()),
                Node::Repeat { of, .. } => Some(&**of).filter(|_| frame.done.is_empty()),
                _ => None,
            };
            if let Some(node) = child {
                if stack.len() >= MOST_NESTED {
                    return Err(Error::new(
                        ErrorKind::Limit,
                        format!("more than {MOST_NESTED} levels of groups"),
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

    /// A node whose children are known.
    fn node(&mut self, node: &Node, done: Vec<Part>) -> Result<Part> {
        Ok(match node {
            Node::Lexeme(regex) => Part::Regular(leaf(regex.clone())),
            Node::Ref(rule) => self.reference(*rule)?,
            Node::Seq(_) => self.sequence(done)?,
            Node::Alt(_) => self.alternatives(done)?,
            Node::Repeat { min, max, .. } => {
                let of = done.into_iter().next().expect("a repetition has one child");
                self.repetition(of, *min, *max)?
            }
            Node::Tokens(set) => {
                let next = self.out.token_sets.len() as u32;
                let number = *self.sets.entry(set.clone()).or_insert(next);
                if number == next {
                    self.out.token_sets.push(set.clone());
                }
                Part::Piece(self.push(Body::Tokens(number), None))
            }
            Node::Json(schema) => {
                let Some(json) = &mut self.json else {
                    return Err(Error::new(ErrorKind::Constraint, "JSON schemas are not read here"));
                };
                let state = json.root(schema, self.exprs)?;
                Part::Piece(self.push(Body::Json(state), None))
            }
        })
    }

    fn reference(&mut self, rule: RuleId) -> Result<Part> {
        let Some(regular) = &self.folded[rule] else {
            return Ok(Part::Piece(self.push(Body::Ref(rule), None)));
        };
        let name: Arc<str> = self.out.names[rule].as_str().into();
        let size = regular.shape.size;
        if self.copied + size <= MOST_COPIES {
            self.copied += size;
            let (said, closed) = (Some(name), regular.shape.wide);
            return Ok(Part::Regular(Regular { copied: size, said, closed, ..regular.clone() }));
        }
        if self.out.roots[rule].is_none() {
            let whole = Regular { said: Some(name), ..regular.clone() };
            self.out.roots[rule] = Some(self.lexeme(whole)?);
        }
        Ok(Part::Piece(self.push(Body::Ref(rule), None)))
    }

    fn sequence(&mut self, parts: Vec<Part>) -> Result<Part> {
        let mut pieces = Vec::new();
        let mut run = Run::default();
        for part in parts {
            match part {
                Part::Regular(regular) => {
                    if run.parts.last().is_some_and(|last| last.closed) || !run.fits(&regular) {
                        pieces.push(self.lexeme(run.concat())?);
                    }
                    run.push(regular);
                }
                Part::Piece(piece) => {
                    if !run.is_empty() {
                        pieces.push(self.lexeme(run.concat())?);
                    }
                    pieces.push(piece);
                }
            }
        }
        if pieces.is_empty() {
            return Ok(Part::Regular(run.concat()));
        }
        if !run.is_empty() {
            pieces.push(self.lexeme(run.concat())?);
        }
        Ok(Part::Piece(self.several(pieces, Body::Seq)))
    }

    fn alternatives(&mut self, parts: Vec<Part>) -> Result<Part> {
        let mut pieces = Vec::new();
        let mut run = Run::default();
        for part in parts {
            match part {
                Part::Regular(regular) => {
                    if !run.fits(&regular) {
                        pieces.push(self.lexeme(run.or())?);
                    }
                    run.push(regular);
                }
                Part::Piece(piece) => pieces.push(piece),
            }
        }
        if pieces.is_empty() {
            return Ok(Part::Regular(run.or()));
        }
        if !run.is_empty() {
            pieces.push(self.lexeme(run.or())?);
        }
        Ok(Part::Piece(self.several(pieces, Body::Alt)))
    }

    fn repetition(&mut self, of: Part, min: u32, max: Option<u32>) -> Result<Part> {
        if max.is_some_and(|max| max < min) {
            return Ok(Part::Regular(leaf(Regex::Nothing)));
        }
        if max == Some(0) {
            return Ok(Part::Regular(leaf(Regex::Empty)));
        }
        match of {
            of if (min, max) == (1, Some(1)) => Ok(of),
            Part::Regular(of) if of.shape.depth < MOST_DEEP => Ok(Part::Regular(Regular {
                regex: of.regex.repeat(min, max),
                shape: of.shape.repeated(max),
                copied: of.copied,
                said: None,
                closed: false,
            })),
            of => {
                let of = self.piece(of)?;
                Ok(Part::Piece(self.push(Body::Repeat { of, min, max }, None)))
            }
        }
    }

    /// A part as a piece.
    fn piece(&mut self, part: Part) -> Result<PieceId> {
        match part {
            Part::Regular(regular) => self.lexeme(regular),
            Part::Piece(piece) => Ok(piece),
        }
    }

    fn lexeme(&mut self, regular: Regular) -> Result<PieceId> {
        let expr = self.exprs.compile(&regular.regex, Encoding::Utf8)?;
        Ok(self.push(Body::Lexeme(expr), regular.said))
    }

    /// Several pieces, or the only one.
    fn several(&mut self, pieces: Vec<PieceId>, body: fn(Vec<PieceId>) -> Body) -> PieceId {
        match pieces[..] {
            [piece] => piece,
            _ => self.push(body(pieces), None),
        }
    }

    fn push(&mut self, body: Body, said: Option<Arc<str>>) -> PieceId {
        self.out.pieces.push(Piece { body, rule: self.rule, said });
        self.out.pieces.len() - 1
    }
}

/// What a grammar says in one word.
fn leaf(regex: Regex) -> Regular {
    let said = match &regex {
        Regex::Text(text) if text.len() <= 60 => Some(format!("{text:?}").into()),
        _ => None,
    };
    Regular { shape: Shape::of(&regex), regex, copied: 0, said, closed: false }
}

/// The rules that the start needs, each after those it refers to; where rules refer to each other, in any order.
fn callees_first(rules: &Rules) -> Result<Vec<RuleId>> {
    let mut order = Vec::new();
    let mut seen = vec![false; rules.rules.len()];
    let mut stack: Vec<(RuleId, Vec<RuleId>)> = Vec::new();
    let mut next = Some(rules.start);
    loop {
        if let Some(rule) = next {
            let Some(entry) = rules.rules.get(rule) else {
                return Err(Error::new(ErrorKind::Constraint, format!("rule number {rule} does not exist"))
                    .help(format!("there are {} rules, numbered from 0", rules.rules.len())));
            };
            if !std::mem::replace(&mut seen[rule], true) {
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

/// The rules that a body names, the last first.
fn references(body: &Node) -> Vec<RuleId> {
    let mut found = Vec::new();
    let mut open = vec![body];
    while let Some(node) = open.pop() {
        match node {
            Node::Ref(rule) => found.push(*rule),
            Node::Seq(parts) | Node::Alt(parts) => open.extend(parts),
            Node::Repeat { of, .. } => open.push(of),
            Node::Lexeme(_) | Node::Tokens(_) | Node::Json(_) => {}
        }
    }
    found.reverse();
    found
}
