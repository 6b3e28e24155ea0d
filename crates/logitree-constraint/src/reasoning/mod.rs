//! Reasoning blocks: what a model writes for itself between a begin and an end, kept within a budget of tokens, and the
//! constraint of what comes after. The states are RTP-LLM's (its ThinkModeLogitsProcessor): outside, inside, closing.
//! The naive version that it must equal recomputes the state from all tokens so far; `tests/it/constraint/reasoning.rs` holds it.
//!
//! ```text
//!             begin                  first token of an end          its last token
//! outside ────────────▶ inside ──────────────────────────▶ closing ───────────────▶ outside
//!                          └── budget spent, character whole ──▶ (message, first end) ──▶ outside
//! ```

mod chars;
mod checks;
mod matcher;
mod plan;
mod prompt;
mod tags;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::binding::{kept, recorded, Key, MAX_NESTED_BYTES};
use super::form::written;
use super::{Constraint, Matcher};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::vocabulary::Vocabulary;
use matcher::ReasoningMatcher;
use plan::Plan;
use serde_json::{json, Value};

pub use plan::ReasoningStart;
pub use tags::tag;

/// The most tokens that begins, ends and message may have together.
pub const MAX_TAG_TOKENS: usize = 4_096;

/// How a reasoning block looks and how long it may be.
#[derive(Debug, Clone, PartialEq)]
pub struct ReasoningOptions {
    /// Token sequences that each begin a reasoning block.
    pub begin: Vec<Vec<TokenId>>,
    /// Token sequences that each end it. The first is the one that is forced.
    pub end: Vec<Vec<TokenId>>,
    /// Tokens that are forced before the end where the budget is spent.
    pub message: Vec<TokenId>,
    /// The most tokens between begin and end, the rest of a character not counted; `None` is no limit. 0 switches
    /// thinking off: there is no constraint, and a block that the prompt began is closed at once.
    pub budget: Option<usize>,
    /// From how many tokens on the end is made likelier.
    pub soft: Option<usize>,
    /// By how much, in logits, at the last token of the budget. With `s` tokens reasoning block it is
    /// `ramp * (s + 1 - soft) / (budget - soft)` for `soft <= s < budget`.
    pub ramp: f32,
    /// The most reasoning blocks that may come, one that the prompt began included; `None` is any number.
    pub max_blocks: Option<usize>,
    /// Begins and ends count when they are complete, as llama.cpp has it, and a text that begins like one may continue differently.
    /// `false`, as RTP-LLM has it: the first token decides, and the rest is forced.
    pub whole: bool,
}

impl Default for ReasoningOptions {
    /// One reasoning block, no limit; begin and end must be given.
    fn default() -> Self {
        ReasoningOptions {
            begin: Vec::new(),
            end: Vec::new(),
            message: Vec::new(),
            budget: None,
            soft: None,
            ramp: 10.0,
            max_blocks: Some(1),
            whole: false,
        }
    }
}

/// A begin, an end or a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Tag {
    /// By its ids.
    Ids(Vec<TokenId>),
    /// The token with this text.
    Text(String),
}

impl Tag {
    fn resolve(&self, vocabulary: &Vocabulary) -> Result<Vec<TokenId>> {
        match self {
            Tag::Ids(ids) => Ok(ids.clone()),
            Tag::Text(text) => match tag(text.as_bytes(), vocabulary)? {
                Some(id) => Ok(vec![id]),
                None => {
                    let error = Error::new(ErrorKind::Constraint, format!("no token is {text:?}"));
                    Err(error.help("give the ids of its tokens"))
                }
            },
        }
    }

    fn form(&self) -> Value {
        match self {
            Tag::Ids(ids) => json!(ids),
            Tag::Text(text) => json!(text),
        }
    }
}

/// The constraint of a reasoning block within a budget, and of what comes after it.
#[derive(Clone)]
pub struct ReasoningBudget {
    /// What begins a block.
    pub begin: Vec<Tag>,
    /// What ends it. The first is the one that is forced.
    pub end: Vec<Tag>,
    /// What is forced before the end where the budget is spent.
    pub message: Option<Tag>,
    /// How long the block may be; begins, ends and message of it do not count.
    pub options: ReasoningOptions,
    /// Where in a block the output begins.
    pub start: ReasoningStart,
    /// The constraint of the output after the last block; `None`: any text.
    pub then: Option<Arc<dyn Constraint>>,
}

impl ReasoningBudget {
    fn content(&self) -> Vec<u8> {
        let ReasoningOptions { budget, soft, ramp, max_blocks, whole, .. } = &self.options;
        let tags = (&self.begin, &self.end, &self.message);
        recorded(&(tags, budget, soft, ramp.to_bits(), max_blocks, whole))
    }

    fn budget(&self, vocabulary: &Arc<Vocabulary>) -> Result<BoundReasoning> {
        let all = |tags: &[Tag]| tags.iter().map(|tag| tag.resolve(vocabulary)).collect::<Result<_>>();
        let message = self.message.as_ref().map_or(Ok(Vec::new()), |message| message.resolve(vocabulary))?;
        let (begin, end) = (all(&self.begin)?, all(&self.end)?);
        let options = ReasoningOptions { begin, end, message, ..self.options.clone() };
        BoundReasoning::new(options, vocabulary)
    }
}

impl Constraint for ReasoningBudget {
    /// # Errors
    /// [`ErrorKind::Constraint`] if a text is no token; those of [`BoundReasoning::new`], [`BoundReasoning::matcher`] and
    /// the constraint that follows.
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        let then = self.then.as_ref().map(|then| then.matcher(vocabulary)).transpose()?;
        let key = Key::new::<BoundReasoning>(self.content(), &());
        kept(vocabulary, key, |vocabulary| self.budget(vocabulary))?.matcher(self.start, then)
    }

    fn key(&self) -> Option<Key> {
        let then = match &self.then {
            None => None,
            Some(then) => Some(then.key().filter(|then| then.bytes() <= MAX_NESTED_BYTES)?),
        };
        Some(Key::new::<ReasoningBudget>(self.content(), &(self.start, then)))
    }

    fn form(&self) -> Result<Value> {
        let ReasoningOptions { budget, soft, ramp, max_blocks, whole, .. } = &self.options;
        let tags = |tags: &[Tag]| Value::from_iter(tags.iter().map(Tag::form));
        let then = self.then.as_ref().map(|then| then.form()).transpose()?;
        let start = match self.start {
            ReasoningStart::Outside => None,
            ReasoningStart::Inside => Some("inside"),
            ReasoningStart::Closing => Some("closing"),
        };
        let fields = [
            ("begin", tags(&self.begin)),
            ("end", tags(&self.end)),
            ("message", json!(self.message.as_ref().map(Tag::form))),
            ("budget", json!(budget)),
            ("soft", json!(soft)),
            ("ramp", json!(ramp)),
            ("whole", json!(whole)),
            ("start", json!(start)),
            ("then", json!(then)),
        ];
        let mut form = written("reasoning_budget", fields);
        // Null is no limit here.
        form["max_blocks"] = json!(max_blocks);
        Ok(form)
    }
}

/// [`ReasoningOptions`], checked and bound to a vocabulary. Cheap to clone; matchers share it.
#[derive(Debug, Clone)]
pub struct BoundReasoning {
    plan: Arc<Plan>,
}

impl BoundReasoning {
    /// Checks `thinking` and binds it.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if there is no begin or end, one is empty, has a token that is not in the vocabulary
    /// or ends the generation; if one of them or the message contains another (with `whole` a begin may end with another);
    /// or, without `whole`, if a begin and an end have the same first token; for a soft budget that is not below the budget, a ramp that is no number of 0 or
    /// more, or a vocabulary without other tokens. [`ErrorKind::Limit`] past [`MAX_TAG_TOKENS`].
    pub fn new(options: ReasoningOptions, vocabulary: &Arc<Vocabulary>) -> Result<BoundReasoning> {
        checks::check(&options, vocabulary)?;
        Ok(BoundReasoning { plan: Arc::new(Plan::new(options, vocabulary)) })
    }

    /// A matcher in the state `at`. What comes after the last reasoning block is `then`'s, from its first token on;
    /// the output is `then`'s alone where no reasoning block comes. Reasoning blocks come before it, not inside it:
    /// where they may be, its own tokens may too, and what has become a whole begin is a reasoning block. Inside a
    /// reasoning block no token may end the generation then.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if `then` is for a larger vocabulary, or if the prompt began a reasoning block
    /// although none may come, or thinking is off and `then` waits for its end.
    pub fn matcher(&self, at: ReasoningStart, then: Option<Box<dyn Matcher>>) -> Result<Box<dyn Matcher>> {
        let size = self.plan.vocabulary.len();
        if let Some(then) = then.as_ref().filter(|then| then.vocabulary_size() > size) {
            let message = format!(
                "the constraint after the reasoning block was built for {} tokens, the vocabulary has {size}",
                then.vocabulary_size()
            );
            return Err(Error::new(ErrorKind::Constraint, message)
                .help("build the constraint with the vocabulary of the model that decodes"));
        }
        if at != ReasoningStart::Outside && self.plan.options.max_blocks == Some(0) {
            return Err(Error::new(
                ErrorKind::Constraint,
                "the prompt began a reasoning block, and none may come",
            )
            .help("set max_blocks to 1 or more: the one that the prompt began counts"));
        }
        match then {
            Some(then) if self.plan.is_off() && at == ReasoningStart::Outside => Ok(then),
            then => Ok(Box::new(ReasoningMatcher::new(Arc::clone(&self.plan), at, then))),
        }
    }

    /// The state after a prompt: inside a reasoning block if its last begin has no end after it. A tag of ordinary
    /// tokens counts wherever its text occurs, in any tokens; a special token counts as itself.
    pub fn after(&self, prompt: &[TokenId]) -> ReasoningStart {
        prompt::after(&self.plan, prompt)
    }

    /// How many of `tokens`, which come from `at` on, are reasoning blocks; what follows is the answer.
    pub fn leading(&self, tokens: &[TokenId], at: ReasoningStart) -> usize {
        self.plan.leading(tokens, at)
    }

    /// Where `tokens` lead from `at`, with no constraint after the reasoning blocks, by RTP-LLM's names: "no", "in",
    /// "closing" or "after".
    pub fn state(&self, tokens: &[TokenId], at: ReasoningStart) -> &'static str {
        self.plan.name(tokens, at)
    }

    /// What was given.
    pub fn options(&self) -> &ReasoningOptions {
        &self.plan.options
    }

    /// The vocabulary it is bound to.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.plan.vocabulary
    }
}
