//! Grammars put together by hand: texts of every syntax, joined by sequence, choice, repetition and recursion.
//!
//! A part knows what it was made from, so that it can be written down, compared and read again ([`GrammarNode::written`]); its
//! rules are made when they are asked for ([`GrammarNode::rules`]). Parts are shared, never copied: a part that stands in many
//! places becomes one rule.
//!
//! It refuses to know vocabularies.

mod assemble;
mod syntax;
mod written;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::rules::{RuleBody, Rules};
use crate::{Error, ErrorKind, Result};

pub use syntax::{Syntax, TagNode};

/// How deep parts may stand inside each other. A sequence of short sequences counts once, and so does a choice of choices.
pub const MAX_NESTED: usize = 200;

/// Longer sequences and choices stay what they are inside others: to join one more to them costs no more than this.
const MAX_FLATTENED: usize = 256;

/// A grammar, or a part of one. Cheap to clone.
#[derive(Debug, Clone)]
pub struct GrammarNode(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kind: NodeKind,
    /// How many parts stand inside each other, this one included.
    depth: usize,
}

/// NodeKind a part was made from.
#[derive(Debug)]
pub enum NodeKind {
    /// A text of some syntax, and the rules it was read into.
    Leaf(Syntax, Arc<Rules>),
    /// One after the other.
    Seq(Vec<GrammarNode>),
    /// Any of these.
    Alt(Vec<GrammarNode>),
    /// At least `min` times and at most `max` times; `None` is without end.
    Repeat {
        /// NodeKind is repeated.
        of: GrammarNode,
        /// How often at least.
        min: u32,
        /// How often at most.
        max: Option<u32>,
    },
    /// A part that may name itself.
    Recursive(GrammarNode, RuleRef),
    /// The recursive part of this name.
    RuleRef(RuleRef),
}

/// The name of a recursive part: equal to its clones only.
#[derive(Debug, Clone)]
pub struct RuleRef(Arc<u8>);

impl GrammarNode {
    fn new(kind: NodeKind) -> Result<GrammarNode> {
        let inside = match &kind {
            NodeKind::Leaf(source, _) => source.parts().map(|part| part.0.depth).max().unwrap_or(0),
            NodeKind::RuleRef(_) => 0,
            NodeKind::Seq(parts) | NodeKind::Alt(parts) => {
                parts.iter().map(|part| part.0.depth).max().unwrap_or(0)
            }
            NodeKind::Repeat { of, .. } | NodeKind::Recursive(of, _) => of.0.depth,
        };
        if inside == MAX_NESTED {
            let message = format!("grammars stand more than {MAX_NESTED} deep inside each other");
            let help = "write long chains as one sequence or choice, or as a GBNF text";
            return Err(Error::new(ErrorKind::Limit, message).help(help));
        }
        Ok(GrammarNode(Arc::new(Inner { kind, depth: inside + 1 })))
    }

    /// Reads a source.
    ///
    /// # Errors
    /// Those of the syntax's reader.
    pub fn read(source: Syntax) -> Result<GrammarNode> {
        let rules = source.rules()?;
        GrammarNode::new(NodeKind::Leaf(source, Arc::new(rules)))
    }

    /// This text.
    ///
    /// # Errors
    /// None: the signature is that of the others.
    pub fn literal(text: impl Into<String>) -> Result<GrammarNode> {
        GrammarNode::read(Syntax::Literal(text.into()))
    }

    /// One after the other; short sequences among them are taken apart.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] past [`MAX_NESTED`].
    pub fn seq(parts: impl IntoIterator<Item = GrammarNode>) -> Result<GrammarNode> {
        let inner = |what: &NodeKind| match what {
            NodeKind::Seq(inner) => Some(inner.clone()),
            _ => None,
        };
        GrammarNode::new(NodeKind::Seq(flat(parts, inner)))
    }

    /// Any of these; short choices among them are taken apart.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] past [`MAX_NESTED`].
    pub fn alt(parts: impl IntoIterator<Item = GrammarNode>) -> Result<GrammarNode> {
        let inner = |what: &NodeKind| match what {
            NodeKind::Alt(inner) => Some(inner.clone()),
            _ => None,
        };
        GrammarNode::new(NodeKind::Alt(flat(parts, inner)))
    }

    /// At least `min` times and at most `max` times.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the most is less than the least; [`ErrorKind::Limit`] past [`MAX_NESTED`].
    pub fn repeat(&self, min: u32, max: Option<u32>) -> Result<GrammarNode> {
        if let Some(max) = max.filter(|&max| max < min) {
            let message = format!("repeated at least {min} times and at most {max} times");
            return Err(
                Error::new(ErrorKind::Constraint, message).help("the most is not less than the least")
            );
        }
        GrammarNode::new(NodeKind::Repeat { of: self.clone(), min, max })
    }

    /// The part that `body` makes of its own name.
    ///
    /// # Errors
    /// Those of `body`; [`ErrorKind::Limit`] past [`MAX_NESTED`].
    pub fn recursive<E: From<Error>>(
        body: impl FnOnce(GrammarNode) -> Result<GrammarNode, E>,
    ) -> Result<GrammarNode, E> {
        let me = RuleRef(Arc::new(0));
        let body = body(GrammarNode::new(NodeKind::RuleRef(me.clone()))?)?;
        Ok(GrammarNode::new(NodeKind::Recursive(body, me))?)
    }

    /// NodeKind it was made from.
    pub fn kind(&self) -> &NodeKind {
        &self.0.kind
    }

    /// The rules of the whole.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the name of a recursive part stands outside of it.
    pub fn rules(&self) -> Result<Arc<Rules>> {
        match &self.0.kind {
            NodeKind::Leaf(_, rules) => Ok(Arc::clone(rules)),
            _ => assemble::rules(self).map(Arc::new),
        }
    }

    /// NodeKind of its schemas was dropped, because their options told to be lenient; each once.
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
                    if let (Syntax::JsonSchema { .. }, RuleBody::Json(schema)) =
                        (source, &rules.rules[0].body)
                    {
                        found.extend(schema.warnings.iter().map(String::as_str));
                    }
                    todo.extend(source.parts());
                }
                _ => todo.extend(part.inside().iter().rev()),
            }
        }
        found
    }

    /// The parts right inside.
    fn inside(&self) -> &[GrammarNode] {
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

/// The parts, those in the place of which `inner` gives others taken apart.
fn flat(
    parts: impl IntoIterator<Item = GrammarNode>,
    inner: impl Fn(&NodeKind) -> Option<Vec<GrammarNode>>,
) -> Vec<GrammarNode> {
    let mut flat = Vec::new();
    for part in parts {
        match inner(&part.0.kind) {
            Some(inner) if inner.len() <= MAX_FLATTENED => flat.extend(inner),
            _ => flat.push(part),
        }
    }
    flat
}
