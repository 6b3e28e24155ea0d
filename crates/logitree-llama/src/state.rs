//! One sampler of a llama.cpp chain: what it does with the candidates of a step, and with accepted tokens.
//!
//! It fails closed: after an error the only candidate is a token that ends the generation, until a reset. What went wrong
//! is in the record.

use std::sync::Arc;

use logitree::decoder::Then;
use logitree::{
    AllowedTokens, Chain, Constraint, Decoder, Error, ErrorKind, Matcher, OneOf, Result, Stop, TokenId,
    Vocabulary,
};

use crate::candidates::Candidates;
use crate::record::SamplerRecord;

/// What becomes of the allowed candidates.
pub enum Selection {
    /// The likeliest is selected, and the only candidate that is left: greedy over the allowed tokens.
    Greedy,
    /// The samplers after this one choose.
    Leave,
    /// This chain selects, with its own random numbers.
    Chain(Box<Chain>),
}

/// How a sampler behaves beside the constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplerOptions {
    /// When the constraint is over: end tokens alone are allowed ([`Then::Stop`]), or anything.
    pub then: Then,
    /// Whether tokens that are accepted before the first apply are output. Else they are a prompt: they count for the
    /// penalties of a chain, and the constraint does not see them.
    pub counts_first: bool,
    /// Whether candidates that are not allowed stay in the array, with a logit of -inf. Else they are removed, which costs
    /// less. Not looked at with a chain.
    pub in_place: bool,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        SamplerOptions { then: Then::Stop, counts_first: false, in_place: false }
    }
}

/// The state of one sampler.
pub struct SamplerState {
    vocabulary: Arc<Vocabulary>,
    options: SamplerOptions,
    work: Work,
    /// What is allowed after an error.
    end: TokenId,
    /// Whether there was an apply since the beginning.
    is_applied: bool,
    has_failed: bool,
    record: Arc<SamplerRecord>,
    logits: Vec<f32>,
}

enum Work {
    /// The constraint alone.
    Matcher { matcher: Box<dyn Matcher>, is_greedy: bool, in_place: bool },
    /// A chain, with a constraint or without.
    Decoder {
        decoder: Box<Decoder>,
        /// What the last apply picked; the decoder has it already.
        picked: Option<TokenId>,
    },
}

/// Whether the constraint has decided about the candidates.
enum Applied {
    Constrained { kept: usize },
    Free,
    Over,
}

impl SamplerState {
    /// A sampler at the beginning of an output; `matcher` is the constraint, which a chain may be without.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if no token ends the generation; [`ErrorKind::Constraint`] if there is neither a
    /// constraint nor a chain, or the matcher is for a larger vocabulary; [`ErrorKind::Sampling`] if the chain does
    /// not select.
    pub fn new(
        vocabulary: &Arc<Vocabulary>,
        matcher: Option<Box<dyn Matcher>>,
        selection: Selection,
        options: SamplerOptions,
    ) -> Result<SamplerState> {
        let ends = || vocabulary.end_tokens().first().copied();
        let Some(end) = vocabulary.end_of_turn().or_else(ends) else {
            let error = Error::new(ErrorKind::Vocabulary, "the vocabulary has no end-of-generation token");
            return Err(error.help("name one: it is what a sampler allows after an error"));
        };
        let size = vocabulary.len();
        if let Some(matcher) = matcher.as_ref().filter(|matcher| matcher.vocabulary_size() > size) {
            let built = matcher.vocabulary_size();
            let message = format!("the constraint was built for {built} tokens, the vocabulary has {size}");
            return Err(Error::new(ErrorKind::Constraint, message)
                .help("build the constraint with the vocabulary of the model that decodes"));
        }
        let work = match (selection, matcher) {
            (Selection::Chain(chain), matcher) => Work::chain(vocabulary, *chain, matcher, options.then)?,
            (selection, Some(matcher)) => {
                let is_greedy = matches!(selection, Selection::Greedy);
                Work::Matcher { matcher, is_greedy, in_place: options.in_place }
            }
            (_, None) => {
                let error = Error::new(ErrorKind::Constraint, "a sampler without constraint and chain");
                return Err(error.help("give a constraint, a chain, or both"));
            }
        };
        Ok(SamplerState {
            vocabulary: Arc::clone(vocabulary),
            options,
            work,
            end,
            is_applied: false,
            has_failed: false,
            record: Arc::default(),
            logits: Vec::new(),
        })
    }

    /// What the program may ask while a chain owns the sampler. Clones share it.
    pub fn record(&self) -> &Arc<SamplerRecord> {
        &self.record
    }

    /// The same sampler with a record of its own.
    #[must_use]
    pub fn with_record(self, record: Arc<SamplerRecord>) -> SamplerState {
        SamplerState { record, ..self }
    }

    /// An independent copy in the same state, with the same record.
    pub fn fork(&self) -> SamplerState {
        SamplerState {
            vocabulary: Arc::clone(&self.vocabulary),
            options: self.options,
            work: self.work.fork(),
            end: self.end,
            is_applied: self.is_applied,
            has_failed: self.has_failed,
            record: Arc::clone(&self.record),
            logits: Vec::new(),
        }
    }

    /// Back to the beginning; an error in the record stays there.
    pub fn reset(&mut self) {
        match &mut self.work {
            Work::Matcher { matcher, .. } => matcher.reset(),
            Work::Decoder { decoder, picked } => {
                decoder.reset();
                *picked = None;
            }
        }
        (self.is_applied, self.has_failed) = (false, false);
    }

    /// Keeps the allowed candidates and, if it is greedy or a chain, selects one. There must be a candidate.
    pub fn apply(&mut self, candidates: &mut Candidates<'_>) {
        self.is_applied = true;
        if self.has_failed {
            return self.close(candidates);
        }
        let before = candidates.size;
        match self.work.apply(candidates, &self.vocabulary, &mut self.logits) {
            Ok(Applied::Constrained { kept }) => self.record.count(before, kept),
            Ok(Applied::Free) => {}
            Ok(Applied::Over) => self.finish(candidates),
            Err(error) => {
                self.fail(error);
                self.close(candidates);
            }
        }
    }

    /// The constraint is over.
    fn finish(&mut self, candidates: &mut Candidates<'_>) {
        if self.options.then == Then::Continue {
            return;
        }
        candidates.keep(AllowedTokens::Ids(self.vocabulary.end_tokens()), self.vocabulary.len());
        match (&self.work, candidates.size) {
            (_, 0) => self.close(candidates),
            (Work::Matcher { is_greedy: false, .. }, _) => {}
            _ => candidates.select_largest(),
        }
    }

    /// Leaves the end token alone.
    fn close(&self, candidates: &mut Candidates<'_>) {
        if !candidates.data.is_empty() {
            candidates.select_only(candidates.find(self.end));
        }
    }

    /// Notes an error: from here on the end token alone is allowed.
    pub fn fail(&mut self, error: Error) {
        self.has_failed = true;
        self.record.fail(error);
    }

    /// Takes a token that the llama.cpp chain accepted.
    pub fn accept(&mut self, token: i32) {
        if self.has_failed {
            return;
        }
        let is_prompt = !self.is_applied && !self.options.counts_first;
        let taken = match TokenId::try_from(token) {
            Ok(token) => self.work.accept(token, is_prompt),
            Err(_) => Err(Error::new(ErrorKind::Token, format!("{token} is no token id"))),
        };
        if let Err(error) = taken {
            self.fail(error);
        }
    }
}

impl Work {
    fn chain(
        vocabulary: &Arc<Vocabulary>,
        chain: Chain,
        matcher: Option<Box<dyn Matcher>>,
        then: Then,
    ) -> Result<Work> {
        if !chain.samplers().last().is_some_and(|last| last.selects()) {
            let error = Error::new(ErrorKind::Sampling, "no sampler of the chain selects a token");
            return Err(error.help("end the chain with greedy or dist"));
        }
        let (first, later) = match then {
            Then::Stop => (matcher, None),
            Then::Continue => (None, matcher),
        };
        let mut decoder = Decoder::new(Arc::clone(vocabulary), chain, first, Stop::default())?;
        if let Some(matcher) = later {
            decoder.activate(matcher, Then::Continue)?;
        }
        Ok(Work::Decoder { decoder: Box::new(decoder), picked: None })
    }

    fn fork(&self) -> Work {
        match self {
            Work::Matcher { matcher, is_greedy, in_place } => {
                Work::Matcher { matcher: matcher.fork(), is_greedy: *is_greedy, in_place: *in_place }
            }
            Work::Decoder { decoder, picked } => {
                Work::Decoder { decoder: Box::new(decoder.fork()), picked: *picked }
            }
        }
    }

    fn apply(
        &mut self,
        candidates: &mut Candidates<'_>,
        vocabulary: &Vocabulary,
        logits: &mut Vec<f32>,
    ) -> Result<Applied> {
        match self {
            Work::Matcher { matcher, .. } if matcher.is_finished() => Ok(Applied::Over),
            Work::Matcher { matcher, is_greedy, in_place } => {
                if let Some((id, by)) = matcher.bias()? {
                    candidates.add(id, by);
                }
                let allowed = matcher.allowed()?;
                let kept = if *in_place {
                    candidates.mask(allowed, vocabulary.len())
                } else {
                    candidates.keep(allowed, vocabulary.len());
                    candidates.size
                };
                if kept == 0 {
                    let message = "the samplers before this one removed every allowed token";
                    return Err(Error::new(ErrorKind::Logits, message)
                        .help("put it before samplers that cut candidates, such as top_k"));
                }
                if !candidates.list().iter().any(|candidate| candidate.logit > f32::NEG_INFINITY) {
                    let message = "every allowed token has the logit -inf or NaN";
                    return Err(Error::new(ErrorKind::Logits, message)
                        .help("look at the model's logits, and at what changed them before this sampler"));
                }
                if *is_greedy {
                    candidates.select_largest();
                }
                Ok(Applied::Constrained { kept })
            }
            Work::Decoder { decoder, picked } => {
                if picked.take().is_some() {
                    // Applied twice: the same step again, with the same random numbers.
                    decoder.rollback(1)?;
                }
                if decoder.finish().is_some() {
                    return Ok(Applied::Over);
                }
                candidates.logits(vocabulary.len(), logits);
                let kept = match decoder.matcher() {
                    Some(matcher) if !matcher.is_finished() => {
                        Some(decoder.allowed()?.count(vocabulary.len()))
                    }
                    _ => None,
                };
                let token = decoder.step(logits.as_slice())?;
                *picked = Some(token);
                candidates.select_only(candidates.find(token));
                Ok(kept.map_or(Applied::Free, |kept| Applied::Constrained { kept }))
            }
        }
    }

    fn accept(&mut self, token: TokenId, is_prompt: bool) -> Result<()> {
        match self {
            Work::Matcher { .. } if is_prompt => Ok(()),
            Work::Matcher { matcher, .. } if matcher.is_finished() => Ok(()),
            Work::Matcher { matcher, .. } => matcher.accept(token),
            Work::Decoder { decoder, .. } if is_prompt => decoder.prime(&[token]),
            Work::Decoder { decoder, picked } => {
                match picked.take() {
                    Some(own) if own == token => return Ok(()),
                    // Another sampler chose differently.
                    Some(_) => decoder.rollback(1)?,
                    None if decoder.finish().is_some() => return Ok(()),
                    None => {}
                }
                decoder.accept(token)
            }
        }
    }
}

/// A sampler over three tokens that allows 0 and then 1: what a library's functions are tried with.
pub(crate) fn specimen() -> Result<SamplerState> {
    let tokens = ["a", "b", "</s>"].map(|text| logitree::Token {
        bytes: text.into(),
        kind: if text.len() == 1 { logitree::TokenKind::Normal } else { logitree::TokenKind::Control },
    });
    let about = logitree::VocabularyOptions { end_tokens: vec![2], ..logitree::VocabularyOptions::default() };
    let vocabulary = Arc::new(Vocabulary::new(tokens, about)?);
    let matcher = OneOf::new(["ab"]).matcher(&vocabulary)?;
    let options = SamplerOptions { counts_first: true, ..SamplerOptions::default() };
    SamplerState::new(&vocabulary, Some(matcher), Selection::Greedy, options)
}
