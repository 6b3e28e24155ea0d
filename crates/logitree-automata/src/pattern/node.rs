//! The syntax tree of a pattern: regular languages, with assertions as separate nodes.

use super::terms::{Id, Terms, EMPTY};
use crate::CharSet;

/// A node of the tree.
#[derive(Debug, Clone)]
pub(super) enum PatternNode {
    /// A language without assertions.
    Plain(Id),
    /// Concatenation.
    Concat(Vec<PatternNode>),
    /// Union.
    Or(Vec<PatternNode>),
    /// Repetition.
    Repeat { of: Box<PatternNode>, min: u32, max: Option<u32>, at: usize },
    /// An assertion. Its offset in the text is unique: no two assertions share one.
    Assert { what: Assertion, at: usize },
}

/// The kinds of assertion.
#[derive(Debug, Clone)]
pub(super) enum Assertion {
    /// `^`: nothing precedes, or one of these.
    Start(Option<CharSet>),
    /// `$`: nothing follows, or one of these.
    End(Option<CharSet>),
    /// `\b`: exactly one neighbour is in the set; `\B`: both or none.
    Word { word: CharSet, negated: bool },
    /// `(?=..)`, `(?!..)`.
    Ahead { body: Box<PatternNode>, negated: bool },
    /// `(?<=..)`, `(?<!..)`.
    Behind { body: Box<PatternNode>, negated: bool },
}

impl Assertion {
    /// The assertion's name in messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Assertion::Start(_) => "`^`",
            Assertion::End(_) => "`$`",
            Assertion::Word { negated: false, .. } => "`\\b`",
            Assertion::Word { negated: true, .. } => "`\\B`",
            Assertion::Ahead { .. } => "a lookahead",
            Assertion::Behind { .. } => "a lookbehind",
        }
    }

    /// Whether it constrains what follows.
    pub(super) fn looks_ahead(&self) -> bool {
        !matches!(self, Assertion::Start(_) | Assertion::Behind { .. })
    }
}

impl PatternNode {
    /// Concatenates; adjacent plain languages are merged.
    pub(super) fn concat(terms: &mut Terms, parts: Vec<PatternNode>) -> PatternNode {
        let mut joined = Vec::new();
        let mut run = Vec::new();
        for part in parts {
            match part {
                PatternNode::Plain(id) => run.push(id),
                other => {
                    if !run.is_empty() {
                        joined.push(PatternNode::Plain(terms.concat(&run)));
                        run.clear();
                    }
                    joined.push(other);
                }
            }
        }
        if !run.is_empty() {
            joined.push(PatternNode::Plain(terms.concat(&run)));
        }
        match joined.len() {
            0 => PatternNode::Plain(EMPTY),
            1 => joined.remove(0),
            _ => PatternNode::Concat(joined),
        }
    }

    /// Unites; plain languages are merged.
    pub(super) fn or(terms: &mut Terms, parts: Vec<PatternNode>) -> PatternNode {
        let mut plain = Vec::new();
        let mut others = Vec::new();
        for part in parts {
            match part {
                PatternNode::Plain(id) => plain.push(id),
                other => others.push(other),
            }
        }
        if !plain.is_empty() {
            others.insert(0, PatternNode::Plain(terms.or(&plain)));
        }
        match others.len() {
            1 => others.remove(0),
            _ => PatternNode::Or(others),
        }
    }

    /// Repeats.
    pub(super) fn repeat(
        terms: &mut Terms,
        of: PatternNode,
        min: u32,
        max: Option<u32>,
        at: usize,
    ) -> PatternNode {
        match of {
            PatternNode::Plain(id) => PatternNode::Plain(terms.repeat(id, min, max)),
            _ if max == Some(0) => PatternNode::Plain(EMPTY),
            of if (min, max) == (1, Some(1)) => of,
            of if min == 0 && of.is_zero_width() => PatternNode::Plain(EMPTY),
            of if of.is_zero_width() => of,
            of => PatternNode::Repeat { of: Box::new(of), min, max, at },
        }
    }

    /// Whether it matches only the empty string.
    fn is_zero_width(&self) -> bool {
        match self {
            PatternNode::Plain(id) => *id == EMPTY,
            PatternNode::Concat(parts) | PatternNode::Or(parts) => {
                parts.iter().all(PatternNode::is_zero_width)
            }
            PatternNode::Repeat { of, .. } => of.is_zero_width(),
            PatternNode::Assert { .. } => true,
        }
    }

    /// Every assertion outside of lookaheads and lookbehinds.
    pub(super) fn assertions(&self) -> Vec<(&Assertion, usize)> {
        let (mut found, mut open) = (Vec::new(), vec![self]);
        while let Some(node) = open.pop() {
            match node {
                PatternNode::Plain(_) => {}
                PatternNode::Concat(parts) | PatternNode::Or(parts) => open.extend(parts),
                PatternNode::Repeat { of, .. } => open.push(of),
                PatternNode::Assert { what, at } => found.push((what, *at)),
            }
        }
        found
    }
}
