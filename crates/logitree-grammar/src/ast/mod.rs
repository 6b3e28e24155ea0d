//! The syntax tree of a grammar built by a program: texts of every syntax, joined by sequence, choice,
//! repetition and recursion.
//!
//! A node knows what it was made from, so it can be serialised, compared and read again
//! ([`Grammar::written`]). Its rules are made on demand ([`Grammar::rules`]). Nodes are shared, never
//! copied: a node that occurs several times becomes one rule.

mod assemble;
mod syntax;
mod written;

use std::sync::{Arc, OnceLock};

use logitree_automata::stack::with_room;
use rustc_hash::FxHashSet;

use super::rules::{RuleBody, Rules};
use crate::{Error, ErrorKind, Result};

pub use syntax::{Syntax, TagNode};
pub use written::recorded;

/// Maximum nesting of nodes. A sequence of short sequences counts once, and so does a choice of choices.
pub const MAX_NESTED: usize = 200;

/// Longer sequences and choices are not flattened into others, which bounds the cost of appending.
const MAX_FLATTENED: usize = 256;

/// A grammar, or a part of one. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Grammar(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kind: NodeKind,
    /// The depth of the tree, this node included.
    depth: usize,
    /// [`Grammar::written`], once it was asked for.
    written: OnceLock<Arc<str>>,
    /// [`Grammar::content`], once it was asked for.
    content: OnceLock<Arc<[u8]>>,
}

/// What a node was made from.
#[derive(Debug)]
pub enum NodeKind {
    /// A text of some syntax and the rules it was read into.
    Leaf(Syntax, Arc<Rules>),
    /// Concatenation.
    Seq(Vec<Grammar>),
    /// Union.
    Alt(Vec<Grammar>),
    /// At least `min` and at most `max` repetitions; `None` is unbounded.
    Repeat {
        /// What is repeated.
        of: Grammar,
        /// The minimum count.
        min: u32,
        /// The maximum count.
        max: Option<u32>,
    },
    /// A node that may refer to itself.
    Recursive(Grammar, RuleRef),
    /// A reference to a recursive node.
    RuleRef(RuleRef),
}

/// The reference to a recursive node: equal only to its clones.
#[derive(Debug, Clone)]
pub struct RuleRef(Arc<u8>);

impl Grammar {
    fn new(kind: NodeKind) -> Result<Grammar> {
        let inside = match &kind {
            NodeKind::Leaf(source, _) => source.parts().map(|part| part.0.depth).max().unwrap_or(0),
            NodeKind::RuleRef(_) => 0,
            NodeKind::Seq(parts) | NodeKind::Alt(parts) => {
                parts.iter().map(|part| part.0.depth).max().unwrap_or(0)
            }
            NodeKind::Repeat { of, .. } | NodeKind::Recursive(of, _) => of.0.depth,
        };
        if inside == MAX_NESTED {
            let message = format!("grammars are nested more than {MAX_NESTED} deep");
            let help = "write long chains as one sequence or choice, or as a GBNF text";
            return Err(Error::new(ErrorKind::Limit, message).help(help));
        }
        let (written, content) = (OnceLock::new(), OnceLock::new());
        Ok(Grammar(Arc::new(Inner { kind, depth: inside + 1, written, content })))
    }

    /// Reads a text.
    ///
    /// # Errors
    /// Those of the syntax's reader.
    pub fn read(source: Syntax) -> Result<Grammar> {
        let rules = with_room(|| source.rules())?;
        Grammar::new(NodeKind::Leaf(source, Arc::new(rules)))
    }

    /// A literal string.
    ///
    /// # Errors
    /// None; the signature matches the other constructors.
    pub fn literal(text: impl Into<String>) -> Result<Grammar> {
        Grammar::read(Syntax::Literal(text.into()))
    }

    /// Concatenation; short sequences are flattened.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] past [`MAX_NESTED`].
    pub fn seq(parts: impl IntoIterator<Item = Grammar>) -> Result<Grammar> {
        let inner = |what: &NodeKind| match what {
            NodeKind::Seq(inner) => Some(inner.clone()),
            _ => None,
        };
        Grammar::new(NodeKind::Seq(flat(parts, inner)))
    }

    /// Union; short choices are flattened.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] past [`MAX_NESTED`].
    pub fn alt(parts: impl IntoIterator<Item = Grammar>) -> Result<Grammar> {
        let inner = |what: &NodeKind| match what {
            NodeKind::Alt(inner) => Some(inner.clone()),
            _ => None,
        };
        Grammar::new(NodeKind::Alt(flat(parts, inner)))
    }

    /// At least `min` and at most `max` repetitions.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the maximum is less than the minimum; [`ErrorKind::Limit`] past
    /// [`MAX_NESTED`].
    pub fn repeat(&self, min: u32, max: Option<u32>) -> Result<Grammar> {
        if let Some(max) = max.filter(|&max| max < min) {
            let message = format!("repeated at least {min} times and at most {max} times");
            return Err(Error::new(ErrorKind::Constraint, message).help("give a max that is at least min"));
        }
        Grammar::new(NodeKind::Repeat { of: self.clone(), min, max })
    }

    /// The recursive node whose body `body` builds from a reference to it.
    ///
    /// # Errors
    /// Those of `body`; [`ErrorKind::Limit`] past [`MAX_NESTED`].
    pub fn recursive<E: From<Error>>(body: impl FnOnce(Grammar) -> Result<Grammar, E>) -> Result<Grammar, E> {
        let me = RuleRef(Arc::new(0));
        let body = body(Grammar::new(NodeKind::RuleRef(me.clone()))?)?;
        Ok(Grammar::new(NodeKind::Recursive(body, me))?)
    }

    /// What it was made from.
    pub fn kind(&self) -> &NodeKind {
        &self.0.kind
    }

    /// The rules of the whole tree.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if a reference to a recursive node occurs outside of it.
    pub fn rules(&self) -> Result<Arc<Rules>> {
        match &self.0.kind {
            NodeKind::Leaf(_, rules) => Ok(Arc::clone(rules)),
            _ => with_room(|| assemble::rules(self)).map(Arc::new),
        }
    }

    /// What lenient options dropped from its schemas, without duplicates.
    pub fn warnings(&self) -> Vec<&str> {
        let mut seen = FxHashSet::default();
        let mut found = Vec::new();
        let mut todo = vec![self];
        while let Some(part) = todo.pop() {
            if !seen.insert(part.address()) {
                continue;
            }
            match part.kind() {
                NodeKind::Leaf(source, rules) => {
                    if matches!(source, Syntax::JsonSchema { .. } | Syntax::Lark { .. }) {
                        rules.rules.iter().for_each(|rule| warned(&rule.body, &mut found));
                    }
                    todo.extend(source.parts());
                }
                _ => todo.extend(part.inside().iter().rev()),
            }
        }
        found
    }

    /// The children.
    fn inside(&self) -> &[Grammar] {
        match &self.0.kind {
            NodeKind::Leaf(..) | NodeKind::RuleRef(_) => &[],
            NodeKind::Seq(parts) | NodeKind::Alt(parts) => parts,
            NodeKind::Repeat { of, .. } | NodeKind::Recursive(of, _) => std::slice::from_ref(of),
        }
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

impl RuleRef {
    fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

/// Adds the warnings of the schemas in a rule that are not known yet.
fn warned<'r>(body: &'r RuleBody, found: &mut Vec<&'r str>) {
    match body {
        RuleBody::Json(schema) => {
            for warning in &schema.warnings {
                if !found.contains(&warning.as_str()) {
                    found.push(warning);
                }
            }
        }
        RuleBody::Seq(parts) | RuleBody::Alt(parts) => parts.iter().for_each(|part| warned(part, found)),
        RuleBody::Repeat { of, .. } => warned(of, found),
        RuleBody::Lexeme(_) | RuleBody::Ref(_) | RuleBody::Tokens(_) | RuleBody::Both(_) => {}
    }
}

/// The nodes, flattened where `inner` gives a list.
fn flat(
    parts: impl IntoIterator<Item = Grammar>,
    inner: impl Fn(&NodeKind) -> Option<Vec<Grammar>>,
) -> Vec<Grammar> {
    let mut flat = Vec::new();
    for part in parts {
        match inner(&part.0.kind) {
            Some(inner) if inner.len() <= MAX_FLATTENED => flat.extend(inner),
            _ => flat.push(part),
        }
    }
    flat
}
