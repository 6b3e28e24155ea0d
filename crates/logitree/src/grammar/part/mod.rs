//! Grammars put together by hand: texts of every syntax, joined by sequence, choice, repetition and recursion.
//!
//! A part knows what it was made from, so that it can be written down, compared and read again ([`Part::written`]); its
//! rules are made when they are asked for ([`Part::rules`]). Parts are shared, never copied: a part that stands in many
//! places becomes one rule.
//!
//! It refuses to know vocabularies.

mod assemble;
mod written;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::expr::Exprs;
use super::machine::Values;
use super::rules::{Node, Rule, Rules, TokenName, TokenSet};
use super::{gbnf, json, lark, pattern, Regex};
use crate::{Error, ErrorKind, Result};

/// How deep parts may stand inside each other. A sequence of short sequences counts once, and so does a choice of choices.
pub const MOST_NESTED: usize = 200;

/// Longer sequences and choices stay what they are inside others: to join one more to them costs no more than this.
const MOST_FLATTENED: usize = 256;

/// What compiling a lenient schema may cost while it is read: expressions, and steps of work.
const MOST_EXPRS: usize = 1 << 21;
const MOST_FUEL: u64 = 5_000_000;

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

/// A text of some syntax.
#[derive(Debug, Clone)]
pub enum Source {
    /// A regular expression; the whole text matches it.
    Regex(String),
    /// GBNF, from the rule `root`.
    Gbnf {
        /// The grammar.
        text: String,
        /// Where it starts.
        root: String,
    },
    /// Lark as llguidance reads it, from the rule `start`.
    Lark {
        /// The grammar.
        text: String,
        /// What its `@name` stand for.
        grammars: Vec<(String, Part)>,
    },
    /// A JSON Schema: a value that is valid under it, as the options write it.
    JsonSchema {
        /// The schema's document.
        text: String,
        /// How values are written, and how the document is read.
        options: json::Options,
        /// What it may refer to: URIs and the JSON found there.
        documents: Vec<(String, String)>,
    },
    /// This text.
    Literal(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// Any text.
    Anything,
    /// One whole token.
    Token(TokenName),
}

impl Part {
    fn new(what: What) -> Result<Part> {
        let inside = match &what {
            What::Leaf(Source::Lark { grammars, .. }, _) => {
                grammars.iter().map(|(_, part)| part.0.depth).max().unwrap_or(0)
            }
            What::Leaf(..) | What::Me(_) => 0,
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
        let rules = match &source {
            Source::Regex(text) => alone(Node::Lexeme(pattern::parse(text, &pattern::Options::WHOLE)?)),
            Source::Gbnf { text, root } => gbnf::parse_from(text, root)?,
            Source::Lark { text, grammars } => lark(text, grammars)?,
            Source::JsonSchema { text, options, documents } => {
                alone(Node::Json(schema(json::load(text, options, documents)?)?))
            }
            Source::Literal(text) => alone(Node::Lexeme(Regex::text(text))),
            Source::Choice(texts) => {
                alone(Node::Lexeme(Regex::or(texts.iter().map(|text| Regex::text(text.as_str())))))
            }
            Source::Anything => alone(Node::Lexeme(Regex::anything())),
            Source::Token(name) => {
                alone(Node::Tokens(TokenSet { tokens: vec![name.clone()], negated: false }))
            }
        };
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
                What::Leaf(Source::Lark { grammars, .. }, _) => {
                    todo.extend(grammars.iter().map(|(_, part)| part))
                }
                What::Leaf(Source::JsonSchema { .. }, rules) => {
                    if let [Rule { body: Node::Json(schema), .. }] = &rules.rules[..] {
                        found.extend(schema.warnings.iter().map(String::as_str));
                    }
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

/// The rules of a Lark text; schemas in it are written with the default options.
fn lark(text: &str, grammars: &[(String, Part)]) -> Result<Rules> {
    let own = |(name, part): &(String, Part)| Ok((name.clone(), Rules::clone(&*part.rules()?)));
    let grammars = grammars.iter().map(own).collect::<Result<BTreeMap<_, _>>>()?;
    let options = json::Options::default();
    let read = |text: &str| schema(json::load(text, &options, &[])?);
    lark::parse(text, &lark::Resources { grammars: &grammars, schema: &read })
}

/// The schema with all that is dropped of it named, where it is lenient: some is only found when it is compiled.
fn schema(read: json::Schema) -> Result<Arc<json::Schema>> {
    let mut schema = Arc::new(read);
    if schema.options.lenient {
        let mut exprs = Exprs::new(MOST_EXPRS);
        exprs.set_fuel(MOST_FUEL);
        let mut frames = json::Frames::new();
        frames.root(&schema, &mut exprs)?;
        let dropped: Vec<String> = frames.warnings().map(str::to_string).collect();
        drop(frames);
        Arc::make_mut(&mut schema).warnings.extend(dropped);
    }
    Ok(schema)
}

/// Rules of one body.
fn alone(body: Node) -> Rules {
    Rules { rules: vec![Rule { name: "root".into(), body }], start: 0 }
}
