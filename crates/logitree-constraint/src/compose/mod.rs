//! Constraints composed of others: one after the other, any of them, both of them, repeated, until a text, without words or
//! tokens, with so many tokens.
//!
//! ```text
//! grammars only               rules are joined, and the result is a grammar          join, regular
//! grammar and regular         rules that are intersected, and the result is a grammar
//! bytes only                  languages are joined or met, byte by byte              language
//! anything else               matchers take the same tokens                          threads, searched
//! ```
//!
//! A composition is *bytewise* where all of its parts are: grammars and recognisers. Neighbours that are both bytewise may
//! share a token, which holds the end of one and the beginning of the other. Every other border is a token boundary.
//!
//! The tokens that end the generation are no part of a part: they are allowed where the whole may end.

mod ban;
mod both;
mod counts;
pub(super) mod plan;
mod search;
pub(super) mod searched;
mod threads;

use std::slice;
use std::sync::{Arc, OnceLock};

use logitree_automata::stack::with_call_room;

use super::binding::{copied, recorded, Key, MAX_NESTED_BYTES};
use super::form::written;
use super::language::joined::Joined;
use super::language::product::Product;
use super::language::{LanguageMatcher, SharedLanguage};
use super::{BoundGrammar, Constraint, GrammarLimits, Matcher};
use crate::{interrupt, Error, ErrorKind, Result, TokenId};
use counts::TokenCount;
use logitree_grammar::ast::Grammar;
use logitree_grammar::rules::{RuleBody, RuleId, Rules};
use logitree_grammar::Regex;
use logitree_tokens::vocabulary::Vocabulary;
use serde_json::{json, Value};
use threads::ComposedMatcher;

pub use threads::MAX_THREADS;

/// Maximum nesting of compositions. A sequence of sequences counts once, and so does a choice of choices.
pub const MAX_NESTED: usize = 100;
/// Maximum nesting of compositions in JSON.
pub const MAX_WRITTEN: usize = 50;
/// Parts that a composition may have together.
pub const MAX_PARTS: usize = 1 << 16;

/// A constraint composed of others. Cheap to clone.
#[derive(Clone)]
pub struct Composition(Arc<Composed>);

struct Composed {
    kind: Kind,
    /// The depth of the tree, this one included.
    depth: usize,
    /// How many parts it is made of.
    parts: usize,
    /// What is compared; `None` within: a part cannot be.
    content: OnceLock<Option<Arc<[u8]>>>,
}

enum Kind {
    Grammar(Grammar),
    Other(Arc<dyn Constraint>),
    Then(Vec<Composition>),
    Either(Vec<Composition>),
    Repeat {
        of: Composition,
        min: u32,
        max: Option<u32>,
    },
    Both([Composition; 2]),
    /// A text, and what it ends with.
    Until([Composition; 2]),
    Ban {
        of: Composition,
        words: Vec<String>,
        tokens: Vec<Vec<TokenId>>,
    },
    Count(Composition, TokenCount),
}

/// A composition bound to a vocabulary, as far as its kind allows.
enum Bound {
    /// Rules, and the constraint of the same rules where it is known.
    Rules(Arc<Rules>, Option<Arc<dyn Constraint>>),
    Language(SharedLanguage),
    /// Parts over tokens, and their order: a part is a rule of its number.
    Tokens(RuleBody, Vec<Box<dyn Matcher>>),
}

impl Composition {
    fn new(kind: Kind) -> Result<Composition> {
        let inside: Vec<&Composition> = match &kind {
            Kind::Grammar(..) | Kind::Other(_) => Vec::new(),
            Kind::Then(parts) | Kind::Either(parts) => parts.iter().collect(),
            Kind::Repeat { of, .. } | Kind::Ban { of, .. } | Kind::Count(of, _) => vec![of],
            Kind::Both(both) | Kind::Until(both) => both.iter().collect(),
        };
        let depth = inside.iter().map(|part| part.0.depth).max().unwrap_or(0) + 1;
        let parts = inside.iter().fold(1usize, |sum, part| sum.saturating_add(part.0.parts));
        if depth > MAX_NESTED {
            let message = format!("compositions are nested more than {MAX_NESTED} deep");
            return Err(
                Error::new(ErrorKind::Limit, message).help("write long chains as one sequence or choice")
            );
        }
        if parts > MAX_PARTS {
            let message = format!("a composition has more than {MAX_PARTS} parts");
            return Err(Error::new(ErrorKind::Limit, message).help("write large choices as one grammar"));
        }
        Ok(Composition(Arc::new(Composed { kind, depth, parts, content: OnceLock::new() })))
    }

    /// A constraint of any kind, as a part.
    pub fn of(constraint: Arc<dyn Constraint>) -> Composition {
        Composition::leaf(Kind::Other(constraint))
    }

    /// A grammar as a part.
    pub fn grammar(node: Grammar) -> Composition {
        Composition::leaf(Kind::Grammar(node))
    }

    fn leaf(kind: Kind) -> Composition {
        Composition(Arc::new(Composed { kind, depth: 1, parts: 1, content: OnceLock::new() }))
    }

    /// One after the other. Sequences in it are flattened.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] without parts; [`ErrorKind::Limit`] past [`MAX_NESTED`] or [`MAX_PARTS`]: the same of
    /// all other compositions.
    pub fn then(parts: impl IntoIterator<Item = Composition>) -> Result<Composition> {
        let parts = flat(parts, |kind| match kind {
            Kind::Then(parts) => Some(parts),
            _ => None,
        })?;
        Composition::new(Kind::Then(parts))
    }

    /// Any of them. Choices in it are flattened.
    ///
    /// # Errors
    /// As [`Composition::then`].
    pub fn either(parts: impl IntoIterator<Item = Composition>) -> Result<Composition> {
        let parts = flat(parts, |kind| match kind {
            Kind::Either(parts) => Some(parts),
            _ => None,
        })?;
        Composition::new(Kind::Either(parts))
    }

    /// At least `min` and at most `max` times.
    ///
    /// # Errors
    /// As [`Composition::then`]; [`ErrorKind::Constraint`] if the maximum is less than the minimum.
    pub fn repeat(&self, min: u32, max: Option<u32>) -> Result<Composition> {
        if let Some(max) = max.filter(|&max| max < min) {
            let message = format!("repeated at least {min} times and at most {max} times");
            return Err(Error::new(ErrorKind::Constraint, message).help("give a max that is at least min"));
        }
        Composition::new(Kind::Repeat { of: self.clone(), min, max })
    }

    /// What both allow.
    ///
    /// # Errors
    /// As [`Composition::then`].
    pub fn both(&self, other: &Composition) -> Result<Composition> {
        Composition::new(Kind::Both([self.clone(), other.clone()]))
    }

    /// A text, then `stop`, which occurs at the end and nowhere before. A grammar `stop` must be regular.
    ///
    /// # Errors
    /// As [`Composition::then`].
    pub fn until(text: &Composition, stop: &Composition) -> Result<Composition> {
        Composition::new(Kind::Until([text.clone(), stop.clone()]))
    }

    /// The same without outputs whose text has one of `words` in it, or whose tokens have one of `tokens` in them.
    ///
    /// # Errors
    /// As [`Composition::then`]; [`ErrorKind::Constraint`] for an empty word or sequence.
    pub fn without(&self, words: Vec<String>, tokens: Vec<Vec<TokenId>>) -> Result<Composition> {
        if words.iter().any(String::is_empty) || tokens.iter().any(Vec::is_empty) {
            return Err(Error::new(ErrorKind::Constraint, "an empty word is banned")
                .help("it is in every output: leave it out"));
        }
        Composition::new(Kind::Ban { of: self.clone(), words, tokens })
    }

    /// The outputs of at least `n` tokens, those that end the generation not counted.
    ///
    /// # Errors
    /// As [`Composition::then`].
    pub fn at_least(&self, n: usize) -> Result<Composition> {
        Composition::new(Kind::Count(self.clone(), TokenCount::AtLeast(n)))
    }

    /// The outputs of at most `n` tokens, those that end the generation not counted.
    ///
    /// # Errors
    /// As [`Composition::then`].
    pub fn at_most(&self, n: usize) -> Result<Composition> {
        Composition::new(Kind::Count(self.clone(), TokenCount::AtMost(n)))
    }

    /// The kind, what was given, and the contents of the parts; none beyond [`MAX_NESTED_BYTES`].
    fn content(&self) -> Option<&Arc<[u8]>> {
        let make = || {
            let kind = std::mem::discriminant(&self.0.kind);
            let (given, parts) = match &self.0.kind {
                Kind::Grammar(node) => (recorded(&node.key()?), &[][..]),
                Kind::Other(constraint) => (recorded(&constraint.key()?), &[][..]),
                Kind::Then(parts) | Kind::Either(parts) => (Vec::new(), &parts[..]),
                Kind::Repeat { of, min, max } => (recorded(&(min, max)), slice::from_ref(of)),
                Kind::Both(both) | Kind::Until(both) => (Vec::new(), &both[..]),
                Kind::Ban { of, words, tokens } => (recorded(&(words, tokens)), slice::from_ref(of)),
                Kind::Count(of, count) => (recorded(count), slice::from_ref(of)),
            };
            let parts: Vec<_> = parts.iter().map(Composition::content).collect::<Option<_>>()?;
            let bytes = given.len() + parts.iter().map(|part| part.len()).sum::<usize>();
            if bytes > MAX_NESTED_BYTES {
                return None;
            }
            Some(recorded(&(kind, given, parts)).into())
        };
        self.0.content.get_or_init(make).as_ref()
    }

    fn bind(&self, vocabulary: &Arc<Vocabulary>) -> Result<Bound> {
        match &self.0.kind {
            Kind::Grammar(node) => Ok(Bound::Rules(node.rules()?, Some(Arc::new(node.clone())))),
            Kind::Other(constraint) => Ok(Bound::of(constraint.matcher(vocabulary)?)),
            Kind::Then(parts) => {
                let mut runs = sequence(parts, vocabulary)?;
                match runs.len() {
                    1 => Ok(runs.swap_remove(0)),
                    _ => arranged(runs, vocabulary, RuleBody::Seq)
                        .map(|(order, parts)| Bound::Tokens(order, parts)),
                }
            }
            Kind::Either(parts) => {
                let all = parts.iter().map(|part| part.bind(vocabulary)).collect::<Result<_>>()?;
                joined(all, vocabulary, RuleBody::Alt)
            }
            Kind::Repeat { of, min, max } => joined(vec![of.bind(vocabulary)?], vocabulary, |mut parts| {
                RuleBody::Repeat { of: Box::new(parts.swap_remove(0)), min: *min, max: *max }
            }),
            Kind::Both([a, b]) => both(a.bind(vocabulary)?, b.bind(vocabulary)?, vocabulary),
            Kind::Until([text, stop]) => until(text, stop, vocabulary),
            Kind::Ban { of, words, tokens } => {
                let bound = without_words(of.bind(vocabulary)?, words, vocabulary)?;
                if tokens.is_empty() {
                    return Ok(bound);
                }
                ban::without(bound.matcher(vocabulary)?, tokens, vocabulary).map(Bound::alone)
            }
            Kind::Count(of, count) => {
                let inner = of.bind(vocabulary)?.matcher(vocabulary)?;
                counts::counted(inner, *count, vocabulary).map(Bound::alone)
            }
        }
    }
}

/// A text, then the first text of `stop`.
fn until(text: &Composition, stop: &Composition, vocabulary: &Arc<Vocabulary>) -> Result<Bound> {
    let regular = stop.bind(vocabulary)?.rules().and_then(|rules| rules.regular());
    let Some(regular) = regular else {
        return Err(Error::new(ErrorKind::Constraint, "what text ends with is not a regular language")
            .help("give texts, or a grammar without recursion, tokens and schemas"));
    };
    let whole = Composition::then([text.clone(), stop.clone()])?.bind(vocabulary)?;
    both(whole, Bound::regular(first(regular)), vocabulary)
}

/// The texts in which no word occurs.
fn without_words(bound: Bound, words: &[String], vocabulary: &Arc<Vocabulary>) -> Result<Bound> {
    if words.is_empty() {
        return Ok(bound);
    }
    let words = Regex::or(words.iter().map(|word| Regex::text(word.as_str())));
    let anywhere = Regex::concat([Regex::anything(), words, Regex::anything()]);
    both(bound, Bound::regular(anywhere.not()), vocabulary)
}

/// The texts that end with a text of `stop` and have none before.
fn first(stop: Regex) -> Regex {
    let ends = Regex::concat([Regex::anything(), stop]);
    let more = Regex::Set(logitree_grammar::CharSet::all()).repeat(1, None);
    let earlier = Regex::concat([ends.clone(), more]);
    Regex::and([ends, earlier.not()])
}

/// The parts, flattened where `inner` gives a list.
fn flat(
    parts: impl IntoIterator<Item = Composition>,
    inner: impl Fn(&Kind) -> Option<&Vec<Composition>>,
) -> Result<Vec<Composition>> {
    let mut flat = Vec::new();
    for part in parts {
        match inner(&part.0.kind) {
            Some(inner) => flat.extend(inner.iter().cloned()),
            None => flat.push(part),
        }
    }
    if flat.is_empty() {
        return Err(
            Error::new(ErrorKind::Constraint, "a composition of nothing").help("give at least one part")
        );
    }
    Ok(flat)
}

/// The parts of a sequence, neighbours that are grammars or bytewise joined.
fn sequence(parts: &[Composition], vocabulary: &Arc<Vocabulary>) -> Result<Vec<Bound>> {
    let bounds = parts.iter().map(|part| part.bind(vocabulary)).collect::<Result<_>>()?;
    let runs = grouped(bounds, |bound| bound.rules().is_some(), vocabulary)?;
    let narrowed = runs.into_iter().map(|bound| bound.narrowed(vocabulary)).collect::<Result<_>>()?;
    grouped(narrowed, Bound::is_bytewise, vocabulary)
}

/// The parts of a sequence, neighbours of a kind joined.
fn grouped(
    parts: Vec<Bound>,
    is_kind: impl Fn(&Bound) -> bool,
    vocabulary: &Arc<Vocabulary>,
) -> Result<Vec<Bound>> {
    let mut runs: Vec<Vec<Bound>> = Vec::new();
    for bound in parts {
        match runs.last_mut() {
            Some(run) if is_kind(&bound) && is_kind(&run[0]) => run.push(bound),
            _ => runs.push(vec![bound]),
        }
    }
    let one = |mut run: Vec<Bound>| match run.len() {
        1 => Ok(run.swap_remove(0)),
        _ => joined(run, vocabulary, RuleBody::Seq),
    };
    runs.into_iter().map(one).collect()
}

/// Parts in an order: rules where all are rules, a language where all are bytewise, else parts over tokens.
fn joined(
    parts: Vec<Bound>,
    vocabulary: &Arc<Vocabulary>,
    order: impl FnOnce(Vec<RuleBody>) -> RuleBody,
) -> Result<Bound> {
    let rules: Option<Vec<Arc<Rules>>> = parts.iter().map(Bound::rules).collect();
    if let Some(rules) = rules {
        return Ok(Bound::Rules(Arc::new(Rules::joined(&rules, order)), None));
    }
    let parts = parts.into_iter().map(|part| part.narrowed(vocabulary)).collect::<Result<Vec<_>>>()?;
    if !parts.iter().all(Bound::is_bytewise) {
        return arranged(parts, vocabulary, order).map(|(order, parts)| Bound::Tokens(order, parts));
    }
    let languages: Vec<_> = parts.into_iter().map(|part| part.language(vocabulary)).collect::<Result<_>>()?;
    let order = order((0..languages.len()).map(|part| RuleBody::Ref(RuleId::new(part))).collect());
    Ok(Bound::Language(Arc::new(Joined::new(order, languages)?)))
}

/// Parts over tokens in an order.
fn arranged(
    parts: Vec<Bound>,
    vocabulary: &Arc<Vocabulary>,
    order: impl FnOnce(Vec<RuleBody>) -> RuleBody,
) -> Result<(RuleBody, Vec<Box<dyn Matcher>>)> {
    let (mut orders, mut all) = (Vec::new(), Vec::new());
    for bound in parts {
        let (inner, inside) = bound.tokens(vocabulary)?;
        orders.push(inner.shifted(all.len()));
        all.extend(inside);
    }
    Ok((order(orders), all))
}

/// What both allow.
fn both(a: Bound, b: Bound, vocabulary: &Arc<Vocabulary>) -> Result<Bound> {
    let regular = |bound: &Bound| bound.rules().and_then(|rules| rules.regular());
    if let (Some(a), Some(b)) = (regular(&a), regular(&b)) {
        return Ok(Bound::regular(Regex::and([a, b])));
    }
    let (a, b) = (a.narrowed(vocabulary)?, b.narrowed(vocabulary)?);
    for (rules, other) in [(&a, &b), (&b, &a)] {
        if let (Some(rules), Some(regex)) = (rules.rules(), regular(other)) {
            if let Some(bound) = intersected(&rules, regex, vocabulary)? {
                return Ok(bound);
            }
        }
    }
    if a.is_bytewise() && b.is_bytewise() {
        let product = Product::new(a.language(vocabulary)?, b.language(vocabulary)?)?;
        return Ok(Bound::Language(Arc::new(product)));
    }
    both::both(a.matcher(vocabulary)?, b.matcher(vocabulary)?, vocabulary).map(Bound::alone)
}

/// Rules and a regular language as rules; `None` where that takes more than the limits.
fn intersected(rules: &Arc<Rules>, regex: Regex, vocabulary: &Arc<Vocabulary>) -> Result<Option<Bound>> {
    let both = Arc::new(Rules::both(rules, regex));
    match BoundGrammar::new(Arc::clone(&both), vocabulary, None, GrammarLimits::default()) {
        Ok(grammar) => Ok(Some(Bound::Rules(both, Some(Arc::new(grammar))))),
        Err(error) if error.kind == ErrorKind::Limit && !interrupt::must_end() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Bound {
    /// A part over tokens, or the language of one that only looks at bytes.
    fn of(matcher: Box<dyn Matcher>) -> Bound {
        match matcher.bytewise() {
            Some(bytewise) => Bound::Language(bytewise.rest()),
            None => Bound::alone(matcher),
        }
    }

    fn alone(matcher: Box<dyn Matcher>) -> Bound {
        Bound::Tokens(RuleBody::Ref(RuleId(0)), vec![matcher])
    }

    fn regular(regex: Regex) -> Bound {
        Bound::Rules(Arc::new(Rules::lexeme(regex)), None)
    }

    fn rules(&self) -> Option<Arc<Rules>> {
        match self {
            Bound::Rules(rules, _) => Some(Arc::clone(rules)),
            _ => None,
        }
    }

    /// Rules that name or count tokens as the part over tokens that they are; anything else as it is.
    fn narrowed(self, vocabulary: &Arc<Vocabulary>) -> Result<Bound> {
        match &self {
            Bound::Rules(rules, _) if rules.depends_on_tokens() => {
                Ok(Bound::alone(self.matcher(vocabulary)?))
            }
            _ => Ok(self),
        }
    }

    fn is_bytewise(&self) -> bool {
        !matches!(self, Bound::Tokens(..))
    }

    fn matcher(self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        match self {
            Bound::Rules(_, Some(bound)) => bound.matcher(vocabulary),
            Bound::Rules(rules, None) => {
                BoundGrammar::new(rules, vocabulary, None, GrammarLimits::default())?.matcher()
            }
            Bound::Language(language) => Ok(Box::new(LanguageMatcher::new(language, vocabulary)?)),
            Bound::Tokens(RuleBody::Ref(_), mut parts) => Ok(parts.swap_remove(0)),
            Bound::Tokens(order, parts) => Ok(Box::new(ComposedMatcher::new(order, parts, vocabulary)?)),
        }
    }

    fn language(self, vocabulary: &Arc<Vocabulary>) -> Result<SharedLanguage> {
        if let Bound::Language(language) = self {
            return Ok(language);
        }
        self.matcher(vocabulary)?.bytewise().map(super::Bytewise::rest).ok_or_else(|| {
            Error::new(
                ErrorKind::Constraint,
                "a grammar with end tokens of its own cannot be joined inside tokens",
            )
        })
    }

    fn tokens(self, vocabulary: &Arc<Vocabulary>) -> Result<(RuleBody, Vec<Box<dyn Matcher>>)> {
        match self {
            Bound::Tokens(order, parts) => Ok((order, parts)),
            other => Ok((RuleBody::Ref(RuleId(0)), vec![other.matcher(vocabulary)?])),
        }
    }
}

impl From<Grammar> for Composition {
    fn from(node: Grammar) -> Composition {
        Composition::grammar(node)
    }
}

impl Constraint for Composition {
    /// # Errors
    /// Those of the parts; [`ErrorKind::Constraint`] if nothing can be written, or if what a text ends with is not
    /// regular; [`ErrorKind::Limit`] if that is not decided within the limits.
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        copied(vocabulary, self.key(), self, |vocabulary| {
            with_call_room(|| self.bind(vocabulary)?.matcher(vocabulary))
        })
    }

    fn key(&self) -> Option<Key> {
        match &self.0.kind {
            Kind::Grammar(node) => node.key(),
            Kind::Other(constraint) => constraint.key(),
            _ => Some(Key::new::<Composition>(Arc::clone(self.content()?), &())),
        }
    }

    /// # Errors
    /// Those of the parts; [`ErrorKind::Limit`] past [`MAX_WRITTEN`].
    fn form(&self) -> Result<Value> {
        if self.0.depth > MAX_WRITTEN {
            let message = format!("compositions nested more than {MAX_WRITTEN} deep have no JSON form");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let all = |parts: &[Composition]| parts.iter().map(Constraint::form).collect::<Result<Value>>();
        Ok(match &self.0.kind {
            Kind::Grammar(node) => node.form()?,
            Kind::Other(constraint) => constraint.form()?,
            Kind::Then(parts) => written("sequence", [("of", all(parts)?)]),
            Kind::Either(parts) => written("either", [("of", all(parts)?)]),
            Kind::Repeat { of, min, max } => {
                written("repeat", [("of", of.form()?), ("min", json!(min)), ("max", json!(max))])
            }
            Kind::Both(parts) => written("both", [("of", all(parts)?)]),
            Kind::Until([text, stop]) => written("until", [("of", text.form()?), ("stop", stop.form()?)]),
            Kind::Ban { of, words, tokens } => {
                written("ban", [("of", of.form()?), ("words", json!(words)), ("tokens", json!(tokens))])
            }
            Kind::Count(of, TokenCount::AtLeast(n)) => {
                written("at_least", [("of", of.form()?), ("n", json!(n))])
            }
            Kind::Count(of, TokenCount::AtMost(n)) => {
                written("at_most", [("of", of.form()?), ("n", json!(n))])
            }
        })
    }
}
