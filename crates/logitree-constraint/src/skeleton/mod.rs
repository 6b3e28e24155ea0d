//! Skeletons: whole responses of fixed text and values, whose spans begin and end by themselves.
//!
//! ```text
//! JSON form -> spans -> layout -> compile -> a grammar: what is allowed
//!                          \---> program -> tracker: which span is active, where spans begin and end
//! ```
//!
//! [`CompiledSkeleton::bind`] joins the two in a matcher. A value is written as JSON: with quotes outside of a JSON string of the
//! fixed text, as a part of its content inside of one.

mod compile;
mod layout;
mod matcher;
mod place;
pub mod plan;
mod program;
mod recognise;
mod spans;
mod tracker;

use std::sync::Arc;

pub use layout::SpanInfo;
pub use matcher::SpanProgress;
pub use program::MAX_SWITCH_ENUMS;
pub use spans::{Skeleton, Span, SpanKind, MAX_ENUM_VALUES, MAX_FORM_BYTES, MAX_SPANS};
pub use tracker::{ActiveSpan, MarkKind, SpanMark, Tracker};

use super::binding::{kept, Key};
use super::form::written;
use super::token_tree::{DescriptorTree, TokenTree};
use super::{BoundGrammar, Constraint, GrammarLimits, Matcher};
use crate::{Error, ErrorKind, Result, TokenId};
use compile::{TokenTexts, ValueTokens};
use layout::{Layout, Part, ValueOf};
use logitree_grammar::ast::Grammar;
use logitree_tokens::vocabulary::Vocabulary;
use matcher::SkeletonMatcher;
use program::Program;
use serde_json::{json, Value};

/// Most leaves of the token trees of one skeleton.
const MAX_LEAVES: usize = 8_192;

/// What a skeleton is generated with besides the vocabulary.
#[derive(Debug, Clone, Default)]
pub struct SkeletonOptions {
    /// Token trees whose paths are those of spans: there only their token lists are allowed.
    pub tree: Option<Arc<TokenTree>>,
    /// The tokens of each of [`CompiledSkeleton::runs`]; `None`: any that spell it. Empty: all of them.
    pub run_tokens: Vec<Option<Vec<TokenId>>>,
}

/// A skeleton whose spans are resolved. It knows no vocabulary.
#[derive(Debug, Clone)]
pub struct CompiledSkeleton {
    /// The form that it was made from, by which it is compared.
    form: Arc<str>,
    layout: Arc<Layout>,
    program: Arc<Program>,
    grammar: Grammar,
    /// What it is generated with as a constraint.
    options: SkeletonOptions,
}

impl Skeleton {
    /// Resolves the spans.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] and [`ErrorKind::Constraint`] with the span's place for what cannot be honoured;
    /// [`ErrorKind::Limit`] past the limits of this module.
    pub fn compile(&self) -> Result<CompiledSkeleton> {
        let layout = Layout::new(self)?;
        let program = program::program(&layout)?;
        let grammar = compile::grammar(&layout, &TokenTexts::default())?;
        let form = self.to_json().to_string().into();
        let options = SkeletonOptions::default();
        Ok(CompiledSkeleton { form, layout: Arc::new(layout), program, grammar, options })
    }
}

impl CompiledSkeleton {
    /// What is known of each span, by its number: those of the outermost list by position, then the nested ones.
    pub fn spans(&self) -> &[SpanInfo] {
        &self.layout.spans
    }

    /// The runs of fixed text in the order of the form, nested ones included, and whether each is in the outermost list.
    pub fn runs(&self) -> &[(String, bool)] {
        &self.layout.runs
    }

    /// The grammar of the whole text, without token trees and plans.
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// As a constraint that is generated with these options.
    #[must_use]
    pub fn with(self, options: SkeletonOptions) -> CompiledSkeleton {
        CompiledSkeleton { options, ..self }
    }

    /// A tracker at the beginning of a text.
    pub fn tracker(&self) -> Tracker {
        Tracker::new(&self.program)
    }

    /// The skeleton over a vocabulary, which keeps it: equal arguments give the same one.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if a path of the token tree is no span's, if none of its leaves spells a value, or if the
    /// tokens of a run do not spell it; those of [`BoundGrammar::new`].
    pub fn bind(
        &self,
        vocabulary: &Arc<Vocabulary>,
        options: &SkeletonOptions,
    ) -> Result<Arc<BoundSkeleton>> {
        kept(vocabulary, self.key_with(options), |vocabulary| self.bind_anew(vocabulary, options))
    }

    fn key_with(&self, options: &SkeletonOptions) -> Key {
        let tree = options.tree.as_ref().map_or(0, |tree| Arc::as_ptr(tree) as usize);
        Key::new::<CompiledSkeleton>(Arc::clone(&self.form), &(tree, &options.run_tokens))
    }

    fn bind_anew(&self, vocabulary: &Arc<Vocabulary>, options: &SkeletonOptions) -> Result<BoundSkeleton> {
        let limits = GrammarLimits::default();
        let grammar = if options.tree.is_none() && options.run_tokens.is_empty() {
            BoundGrammar::new(self.grammar.rules()?, vocabulary, None, limits)?
        } else {
            let mut texts =
                TokenTexts { runs: self.run_tokens(vocabulary, options)?, ..TokenTexts::default() };
            if let Some(tree) = &options.tree {
                self.leaves(tree, vocabulary, &mut texts)?;
            }
            BoundGrammar::new(compile::grammar(&self.layout, &texts)?.rules()?, vocabulary, None, limits)?
        };
        Ok(BoundSkeleton { grammar, program: Arc::clone(&self.program), _tree: options.tree.clone() })
    }

    fn run_tokens(
        &self,
        vocabulary: &Vocabulary,
        options: &SkeletonOptions,
    ) -> Result<Vec<Option<Vec<TokenId>>>> {
        let given = options.run_tokens.len();
        if given != 0 && given != self.runs().len() {
            let message = format!("tokens of {given} runs, and the skeleton has {}", self.runs().len());
            return Err(Error::new(ErrorKind::Constraint, message).help("make the plan from this skeleton"));
        }
        for (at, ((text, _), tokens)) in self.runs().iter().zip(&options.run_tokens).enumerate() {
            let Some(tokens) = tokens else { continue };
            let place = format!("runs[{at}].token_ids");
            let spelled = spelled(tokens, vocabulary).map_err(|error| error.at(place.as_str()))?;
            if spelled != text.as_bytes() {
                let spelled = String::from_utf8_lossy(&spelled).into_owned();
                let message = format!("the tokens of the run {text:?} spell {spelled:?} in this vocabulary");
                let error = Error::new(ErrorKind::Constraint, message).at(place);
                return Err(error.help("make the plan with this model's tokenizer, without special tokens"));
            }
        }
        Ok(options.run_tokens.clone())
    }

    /// The token lists of the values of each span that has a descriptor.
    fn leaves(&self, tree: &TokenTree, vocabulary: &Vocabulary, texts: &mut TokenTexts) -> Result<()> {
        tree.check_range(vocabulary.len())?;
        let mut left = MAX_LEAVES;
        for descriptor in tree.descriptors() {
            let mut found = false;
            self.each_enum(&self.layout.parts, &mut |span, values| {
                if self.spans()[span as usize].path == descriptor.path() {
                    found = true;
                    let leaves = leaves_of(descriptor, values, vocabulary, &mut left)?;
                    texts.leaves.insert(span, leaves);
                }
                Ok(())
            })?;
            if !found {
                let message = format!("no enum of the skeleton has the path {:?}", descriptor.path());
                let mut paths: Vec<&str> = Vec::new();
                self.each_enum(&self.layout.parts, &mut |span, _| {
                    paths.push(&self.spans()[span as usize].path);
                    Ok(())
                })?;
                paths.truncate(20);
                let error = Error::new(ErrorKind::Constraint, message);
                return Err(error.help(format!("its enums: {paths:?}")));
            }
        }
        Ok(())
    }

    fn each_enum(&self, parts: &[Part], each: &mut dyn FnMut(u32, &[String]) -> Result<()>) -> Result<()> {
        for part in parts {
            match part {
                Part::Value { span, of: ValueOf::Enum(texts) } => each(*span, texts)?,
                Part::Array { items, .. } => self.each_enum(items, each)?,
                Part::Switch { cases, .. } => {
                    cases.iter().try_for_each(|case| self.each_enum(case, each))?;
                }
                Part::Value { .. } | Part::Run(_) => {}
            }
        }
        Ok(())
    }
}

/// The bytes of some tokens.
fn spelled(tokens: &[TokenId], vocabulary: &Vocabulary) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for &token in tokens {
        vocabulary.check(token).map_err(|error| Error { kind: ErrorKind::Constraint, ..error })?;
        if !vocabulary.kind(token).is_text() || vocabulary.token_bytes(token).is_empty() {
            let message = format!("token {token} is no text");
            return Err(Error::new(ErrorKind::Constraint, message));
        }
        bytes.extend_from_slice(vocabulary.token_bytes(token));
    }
    Ok(bytes)
}

/// The leaves that spell a value as it is written, with its quotes or without them.
fn leaves_of(
    descriptor: &DescriptorTree,
    values: &[String],
    vocabulary: &Vocabulary,
    left: &mut usize,
) -> Result<Vec<ValueTokens>> {
    if descriptor.leaf_count() > *left {
        let message = format!("the token trees have more than {MAX_LEAVES} leaves");
        return Err(Error::new(ErrorKind::Limit, message).at(format!("path {:?}", descriptor.path())));
    }
    *left -= descriptor.leaf_count();
    let mut leaves = Vec::new();
    let mut failed = None;
    let by_text: rustc_hash::FxHashMap<&[u8], u32> =
        values.iter().zip(0..).map(|(text, at)| (text.as_bytes(), at)).collect();
    descriptor.for_each_leaf(|_, tokens| match spelled(tokens, vocabulary) {
        Ok(bytes) => {
            let quoted = [b"\"", &bytes[..], b"\""].concat();
            let (value, is_quoted) = (by_text.get(&bytes[..]), by_text.get(&quoted[..]));
            leaves.extend(value.map(|&value| ValueTokens { value, tokens: tokens.to_vec(), quoted: false }));
            leaves.extend(is_quoted.map(|&value| ValueTokens {
                value,
                tokens: tokens.to_vec(),
                quoted: true,
            }));
        }
        Err(error) => failed = Some(error),
    });
    match failed {
        Some(error) => Err(error.at(format!("path {:?}", descriptor.path()))),
        None => Ok(leaves),
    }
}

/// A skeleton bound to a vocabulary: where matchers come from.
pub struct BoundSkeleton {
    grammar: BoundGrammar,
    program: Arc<Program>,
    /// Its address is the key.
    _tree: Option<Arc<TokenTree>>,
}

impl BoundSkeleton {
    /// A matcher at the beginning of a text.
    ///
    /// # Errors
    /// Those of [`BoundGrammar::matcher`].
    pub fn matcher(&self) -> Result<Box<dyn Matcher>> {
        let vocabulary = self.grammar.vocabulary();
        let tracker = Tracker::new(&self.program);
        Ok(Box::new(SkeletonMatcher::new(self.grammar.matcher()?, vocabulary, tracker)))
    }

    /// The vocabulary it is bound to.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.grammar.vocabulary()
    }
}

impl Constraint for CompiledSkeleton {
    /// # Errors
    /// Those of [`CompiledSkeleton::bind`].
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        self.bind(vocabulary, &self.options)?.matcher()
    }

    fn key(&self) -> Option<Key> {
        Some(self.key_with(&self.options))
    }

    fn form(&self) -> Result<Value> {
        let SkeletonOptions { tree, run_tokens } = &self.options;
        let tree = tree.as_ref().map(|tree| tree.to_json()).transpose()?;
        let fields = [
            ("skeleton", serde_json::from_str(&self.form).expect("it was written as JSON")),
            ("tree", json!(tree)),
            ("run_tokens", json!((!run_tokens.is_empty()).then_some(run_tokens))),
        ];
        Ok(written("skeleton", fields))
    }
}

impl Constraint for Skeleton {
    /// # Errors
    /// Those of [`Skeleton::compile`] and [`CompiledSkeleton::bind`].
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        self.compile()?.matcher(vocabulary)
    }

    fn form(&self) -> Result<Value> {
        Ok(written("skeleton", [("skeleton", self.to_json())]))
    }
}
