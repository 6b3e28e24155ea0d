//! Grammars put together by hand: texts of every syntax, joined by sequence, choice, repetition and recursion.
//!
//! A part knows what it was made from, so that it can be written down, compared and read again ([`Part::written`]); its
//! rules are made when they are asked for ([`Part::rules`]). Parts are shared, never copied: a part that stands in many
//! places becomes one rule.
//!
//! It refuses to know vocabularies.

mod assemble;
mod source;
mod written;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::rules::{Node, Rules};
use crate::{Error, ErrorKind, Result};

pub use source::{Source, TagPart};

/// How deep parts may stand inside each other. A sequence of short sequences counts once, and so does a choice of choices.
pub const MOST_NESTED: usize = 200;

/// Longer sequences and choices stay what they are inside others: to join one more to them costs no more than this.
const MOST_FLATTENED: usize = 256;

/// A grammar, or a part of one. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Part(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    what: What,
    /// How many parts stand inside each other, this one included.
    depth: usize,
}

/// What a part was made from.
#[derive(Debug)]
pub enum What {
    /// A text of some syntax, and the rules it was read into.
    Leaf(Source, Arc<Rules>),
    /// One after the other.
    Seq(Vec<Part>),
    /// Any of these.
    Alt(Vec<Part>),
    /// At least `min` times and at most `max` times; `None` is without end.
    Repeat {
        /// What is repeated.
        of: Part,
        /// How often at least.
        min: u32,
        /// How often at most.
        max: Option<u32>,
    },
    /// A part that may name itself.
    Recursive(Part, Me),
    /// The recursive part of this name.
    Me(Me),
}

/// The name of a recursive part: equal to its clones only.
#[derive(Debug, Clone)]
pub struct Me(Arc<u8>);

impl Part {
    fn new(what: What) -> Result<Part> {
        let inside = match &what {
            What::Leaf(source, _) => source.parts().map(|part| part.0.depth).max().unwrap_or(0),
            What::Me(_) => 0,
            What::Seq(parts) | What::Alt(parts) => parts.iter().map(|part| part.0.depth).max().unwrap_or(0),
            What::Repeat { of, .. } | What::Recursive(of, _) => of.0.depth,
        };
        if inside == MOST_NESTED {
            let message = format!("grammars stand more than {MOST_NESTED} deep inside each other");
            let help = "write long chains as one sequence or choice, or as a GBNF text";
            return Err(Error::new(ErrorKind::Limit, message).help(help));
        }
        Ok(Part(Arc::new(Inner { what, depth: inside + 1 })))
    }

    /// Reads a source.
    ///
    /// # Errors
    /// Those of the syntax's reader.
    pub fn read(source: Source) -> Result<Part> {
        let rules = source.rules()?;
        Part::new(What::Leaf(source, Arc::new(rules)))
    }

    /// This text.
    ///
    /// # Errors
    /// None: the signature is that of the others.
    pub fn literal(text: impl Into<String>) -> Result<Part> {
        Part::read(Source::Literal(text.into()))
    }

    /// One after the other; short sequences among them are taken apart.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] past [`MOST_NESTED`].
    pub fn seq(parts: impl IntoIterator<Item = Part>) -> Result<Part> {
        let inner = |what: &What| match what {
            What::Seq(inner) => Some(inner.clone()),
            _ => None,
        };
        Part::new(What::Seq(flat(parts, inner)))
    }

    /// Any of these; short choices among them are taken apart.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] past [`MOST_NESTED`].
    pub fn alt(parts: impl IntoIterator<Item = Part>) -> Result<Part> {
        let inner = |what: &What| match what {
            What::Alt(inner) => Some(inner.clone()),
            _ => None,
        };
        Part::new(What::Alt(flat(parts, inner)))
    }

    /// At least `min` times and at most `max` times.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the most is less than the least; [`ErrorKind::Limit`] past [`MOST_NESTED`].
    pub fn repeat(&self, min: u32, max: Option<u32>) -> Result<Part> {
        if let Some(max) = max.filter(|&max| max < min) {
            let message = format!("repeated at least {min} times and at most {max} times");
            return Err(
                Error::new(ErrorKind::Constraint, message).help("the most is not less than the least")
            );
        }
        Part::new(What::Repeat { of: self.clone(), min, max })
    }

    /// The part that `body` makes of its own name.
    ///
    /// # Errors
    /// Those of `body`; [`ErrorKind::Limit`] past [`MOST_NESTED`].
    pub fn recursive<E: From<Error>>(body: impl FnOnce(Part) -> Result<Part, E>) -> Result<Part, E> {
        let me = Me(Arc::new(0));
        let body = body(Part::new(What::Me(me.clone()))?)?;
        Ok(Part::new(What::Recursive(body, me))?)
    }

    /// What it was made from.
    pub fn what(&self) -> &What {
        &self.0.what
    }

    /// The rules of the whole.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the name of a recursive part stands outside of it.
    pub fn rules(&self) -> Result<Arc<Rules>> {
        match &self.0.what {
            What::Leaf(_, rules) => Ok(Arc::clone(rules)),
            _ => assemble::rules(self).map(Arc::new),
        }
    }

    /// What of its schemas was dropped, because their options told to be lenient; each once.
    pub fn warnings(&self) -> Vec<&str> {
        let mut seen = FxHashSet::default();
        let mut found = Vec::new();
        let mut todo = vec![self];
        while let Some(part) = todo.pop() {
            if !seen.insert(part.address()) {
                continue;
            }
            match part.what() {
                What::Leaf(source, rules) => {
                    if let (Source::JsonSchema { .. }, Node::Json(schema)) = (source, &rules.rules[0].body) {
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
    fn inside(&self) -> &[Part] {
        match &self.0.what {
            What::Leaf(..) | What::Me(_) => &[],
            What::Seq(parts) | What::Alt(parts) => parts,
            What::Repeat { of, .. } | What::Recursive(of, _) => std::slice::from_ref(of),
        }
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

impl Me {
    fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

/// The parts, those in the place of which `inner` gives others taken apart.
fn flat(parts: impl IntoIterator<Item = Part>, inner: impl Fn(&What) -> Option<Vec<Part>>) -> Vec<Part> {
    let mut flat = Vec::new();
    for part in parts {
        match inner(&part.0.what) {
            Some(inner) if inner.len() <= MOST_FLATTENED => flat.extend(inner),
            _ => flat.push(part),
        }
    }
    flat
}
