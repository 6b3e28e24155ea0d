//! One sequence: matcher, chain, history, stop conditions and trace. The matcher decides which tokens are allowed, the
//! chain which one is picked.
//!
//! The naive step that [`Decoder::step`] must equal: write the allowed tokens as a dense mask, set every banned logit
//! of a copy to -inf, add what is steered and then the matcher's bias to the rest, run the chain over the whole copy,
//! accept the token everywhere. The tests hold them equal.

pub mod batch;
mod record;
mod region;
mod span_chains;
mod step;
mod stop;

pub use region::{Then, MAX_REGION_TOKENS};
pub use stop::{Finish, Stop};

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::constraint::{Matcher, SpanProgress};
use crate::mask::AllowedTokens;
use crate::sampling::{Adapt, Chain, Floats, Setting, Steering};
use crate::trace::{Likelihoods, Source, Step};
use crate::vocabulary::Vocabulary;
use crate::{Error, ErrorKind, Result, TokenId};
use record::{few, micros};
use region::Regions;
use span_chains::SpanChains;

/// Decodes one sequence.
///
/// Tokens enter in three ways: [`step`](Decoder::step) picks one from logits, [`take_forced`](Decoder::take_forced)
/// takes the forced tokens, [`accept`](Decoder::accept) takes one from outside. A forced token advances
/// the chain exactly as a step with one allowed token would, so whether the caller skips forward passes never changes
/// what comes after.
pub struct Decoder {
    vocabulary: Arc<Vocabulary>,
    chain: Chain,
    /// The chains of single spans.
    span_chains: SpanChains,
    /// Tokens that the chain had accepted before it came here.
    accepted_before: usize,
    regions: Regions,
    stop: Stop,
    tokens: Vec<TokenId>,
    finish: Option<Finish>,
    trace: Option<Vec<Step>>,
    /// How many of the likeliest tokens each step lists.
    listing: Option<usize>,
    likelihoods: Option<Likelihoods>,
    mask_time: Duration,
    /// Warnings, each with the number of tokens after which it came.
    warnings: Vec<(usize, String)>,
}

impl Decoder {
    /// A decoder over `vocabulary`. A `matcher` given here constrains the whole output: when it is finished, so is
    /// the decoder.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the matcher was made for a larger vocabulary (a token tree built without one covers
    /// only the ids up to its largest).
    pub fn new(
        vocabulary: Arc<Vocabulary>,
        chain: Chain,
        matcher: Option<Box<dyn Matcher>>,
        stop: Stop,
    ) -> Result<Self> {
        if let Some(matcher) = &matcher {
            fits(&vocabulary, matcher.as_ref())?;
        }
        let mut decoder = Decoder {
            vocabulary,
            accepted_before: chain.accepted(),
            chain,
            span_chains: SpanChains::default(),
            regions: Regions::new(matcher),
            stop,
            tokens: Vec::new(),
            finish: None,
            trace: None,
            listing: None,
            likelihoods: None,
            mask_time: Duration::ZERO,
            warnings: Vec::new(),
        };
        decoder.finish = decoder.finish_now();
        Ok(decoder)
    }

    /// Turns the trace on or off. Off (the default) costs nothing; on, every step is recorded, at the price of a
    /// pass over the whole vocabulary. Turning it off forgets the record.
    pub fn set_trace(&mut self, on: bool) {
        self.trace = on.then(Vec::new);
    }

    /// The steps recorded since birth, reset or the start of tracing, less those rolled back.
    pub fn trace(&self) -> &[Step] {
        self.trace.as_deref().unwrap_or(&[])
    }

    /// Whether each step has its token's probability, and the `n` likeliest tokens. `None` (the default) costs nothing.
    pub fn list_likeliest(&mut self, n: Option<usize>) {
        self.listing = n;
        self.likelihoods = None;
    }

    /// How likely the last token was, where steps tell it and it came by a step.
    pub fn likelihoods(&self) -> Option<&Likelihoods> {
        self.likelihoods.as_ref()
    }

    /// Time that steps and forced tokens have spent on finding what is allowed, since birth; nothing where a step has it
    /// at once ([`Matcher::is_ready`]). Where the likeliest token is tried before the rest is looked at, that counts too.
    pub fn mask_time(&self) -> Duration {
        self.mask_time
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// The chain in its current state.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Lets `chain` pick the tokens that begin in these spans of a skeleton, by their numbers, in place of the decoder's own
    /// chain. Without it, enums, numbers and booleans take the likeliest token, and other spans the decoder's chain.
    /// Parameters and rules that are changed later are the decoder's chain's; steering is that of all.
    ///
    /// # Errors
    /// [`ErrorKind::State`] once tokens were accepted, a prompt's included.
    pub fn set_span_chain(&mut self, spans: &[u32], chain: Chain) -> Result<()> {
        if !self.tokens.is_empty() || self.chain.accepted() != self.accepted_before {
            return Err(Error::new(ErrorKind::State, "the chain of a span comes before the first token")
                .help("set it before prime(), or call reset() first"));
        }
        let mut chain = chain;
        chain.steer(self.chain.steering());
        self.span_chains.set(spans, chain);
        Ok(())
    }

    /// Where the running constraint is in the spans of a skeleton, and how many of the decoder's tokens come before the
    /// skeleton's first.
    pub fn spans(&self) -> Option<(usize, &SpanProgress)> {
        self.regions.spans()
    }

    /// Whether a chain calls the host program ([`Chain::is_foreign`]).
    pub fn is_foreign(&self) -> bool {
        self.chain.is_foreign() || self.span_chains.is_foreign()
    }

    /// Steers the chain from the next step on ([`Chain::steer`]).
    pub fn steer(&mut self, steering: &Steering) {
        self.span_chains.steer(steering);
        self.chain.steer(steering);
    }

    /// Lets a rule pick the chain's parameters for each step ([`Chain::adapt`]).
    ///
    /// # Errors
    /// Those of [`Chain::adapt`].
    pub fn adapt(&mut self, rule: Option<Box<dyn Adapt>>) -> Result<()> {
        self.chain.adapt(rule)
    }

    /// Changes parameters of the chain from the next step on ([`Chain::set_parameters`]).
    ///
    /// # Errors
    /// Those of [`Chain::set_parameters`].
    pub fn set_parameters(&mut self, settings: &[Setting]) -> Result<()> {
        self.chain.set_parameters(settings)
    }

    /// The tokens accepted so far (a primed prompt is not among them).
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Why decoding is over; `None` while it is not.
    pub fn finish(&self) -> Option<Finish> {
        self.finish
    }

    /// The running constraint, if any.
    pub fn matcher(&self) -> Option<&dyn Matcher> {
        self.regions.matcher()
    }

    /// The allowed next tokens; everything is allowed without a constraint.
    ///
    /// # Errors
    /// As [`Matcher::allowed`]; nothing has changed then.
    pub fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        self.regions.allowed()
    }

    /// Whether a step is a matter of microseconds: see [`Matcher::is_ready`].
    pub fn is_ready(&self) -> bool {
        self.matcher().is_none_or(Matcher::is_ready)
    }

    /// Warnings since the last call, oldest first (see [`MAX_REGION_TOKENS`]).
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.warnings.drain(..).map(|(_, warning)| warning).collect()
    }

    /// Whether there are warnings to take.
    pub fn has_warnings(&self) -> bool {
        !self.warnings.is_empty()
    }

    /// Counts the prompt's tokens in the chain's history (penalties), without touching the matcher.
    ///
    /// # Errors
    /// [`ErrorKind::State`] once tokens were accepted, [`ErrorKind::Token`] for an id outside the vocabulary.
    pub fn prime(&mut self, prompt: &[TokenId]) -> Result<()> {
        if !self.tokens.is_empty() {
            return Err(Error::new(ErrorKind::State, "a prompt comes before the first token")
                .help("call reset() first, or accept() for tokens that belong to the output"));
        }
        for &token in prompt {
            self.vocabulary.check(token)?;
        }
        for &token in prompt {
            self.chain.accept(token);
            self.span_chains.accept(token);
        }
        Ok(())
    }

    /// One step: the allowed tokens, the chain, the pick, and its acceptance. Logits are read, never written; those
    /// past the vocabulary's end (padding) are not looked at. With one allowed token no logit is looked at.
    ///
    /// # Errors
    /// [`ErrorKind::State`] when finished; [`ErrorKind::Logits`] for too few logits, NaN, or nothing to choose from
    /// (a steering that vetoes all that is allowed, too);
    /// [`ErrorKind::Sampling`] for a chain that picks nothing; [`ErrorKind::Limit`] as [`Matcher::allowed`]. The
    /// decoder's tokens are unchanged then.
    pub fn step<'l>(&mut self, logits: impl Into<Floats<'l>>) -> Result<TokenId> {
        let started = self.trace.is_some().then(Instant::now);
        self.check_running()?;
        let logits = self.own(logits.into())?;
        let stepped = match started {
            Some(started) => self.traced_step(logits, started),
            None => self.plain_step(logits),
        };
        if stepped.is_err() {
            self.chain.rewind();
            self.span_chains.rewind();
        }
        stepped
    }

    /// Appends to `out` the forced tokens, up to one that the steering vetoes (a step there is an
    /// error), changing nothing. Empty when finished or unconstrained.
    ///
    /// # Errors
    /// As [`Matcher::forced`]; nothing has changed then.
    pub fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        if self.finish.is_none() {
            let start = out.len();
            self.regions.forced(out)?;
            out.truncate(start.saturating_add(self.stop.left(self.tokens.len())));
            let vetoed = out[start..].iter().position(|&token| self.chain.vetoes(token));
            out.truncate(vetoed.map_or(out.len(), |at| start + at));
        }
        Ok(())
    }

    /// Whether what is steered bans `token`, which a caller who takes tokens from outside should ask.
    pub fn vetoes(&self, token: TokenId) -> bool {
        self.chain.vetoes(token)
    }

    /// Accepts the forced tokens and appends them to `out`. They need no forward pass of their own:
    /// evaluate them in the same batch as the token before them. Stops early where a stop condition is met.
    ///
    /// # Errors
    /// As [`Matcher::forced`], with nothing changed; any other error means that a matcher breaks its laws.
    pub fn take_forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        let start = out.len();
        let masking = self.matcher().is_some().then(Instant::now);
        self.forced(out)?;
        self.mask_time += masking.map_or(Duration::ZERO, |began| began.elapsed());
        for at in start..out.len() {
            let started = self.trace.is_some().then(Instant::now);
            let token = out[at];
            self.chain.forced();
            self.span_chains.forced();
            self.take(token)?;
            if let Some(started) = started {
                let only = Some(vec![token]);
                self.record(Step::plain(token, Source::Forced, 1, only, started));
            }
            if self.finish.is_some() {
                out.truncate(at + 1);
                break;
            }
        }
        Ok(())
    }

    /// Takes a token from outside.
    ///
    /// # Errors
    /// [`ErrorKind::State`] when finished, [`ErrorKind::Token`] if it is not allowed here or not in the vocabulary;
    /// with a trace, which records the allowed tokens, [`ErrorKind::Limit`] as [`Matcher::allowed`]. Nothing has
    /// changed then.
    pub fn accept(&mut self, token: TokenId) -> Result<()> {
        let started = self.trace.is_some().then(Instant::now);
        self.check_running()?;
        self.vocabulary.check(token)?;
        let Some(started) = started else {
            return self.take(token);
        };
        let allowed = self.regions.allowed()?;
        let mask_micros = micros(started);
        let (count, allowed_tokens) = (allowed.count(self.vocabulary.len()), few(allowed));
        self.take(token)?;
        let step = Step::plain(token, Source::External, count, allowed_tokens, started);
        self.record(Step { mask_micros, ..step });
        Ok(())
    }

    /// Forgets the last `n` tokens: matcher, chain (its draws too), history, trace and regions are as before them.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if fewer than `n` tokens were accepted; nothing has changed then.
    pub fn rollback(&mut self, n: usize) -> Result<()> {
        if n > self.tokens.len() {
            return Err(Error::new(
                ErrorKind::State,
                format!("rollback of {n} tokens, but only {} were accepted", self.tokens.len()),
            ));
        }
        let length = self.tokens.len() - n;
        self.regions.rollback(length)?;
        self.chain.rollback(n)?;
        self.span_chains.rollback(n)?;
        self.tokens.truncate(length);
        self.warnings.retain(|&(after, _)| after <= length);
        if let Some(trace) = &mut self.trace {
            trace.truncate(trace.len().saturating_sub(n));
        }
        self.likelihoods = None;
        self.finish = self.finish_now();
        Ok(())
    }

    /// An independent copy in the same state.
    pub fn fork(&self) -> Decoder {
        Decoder {
            vocabulary: Arc::clone(&self.vocabulary),
            chain: self.chain.clone(),
            span_chains: self.span_chains.clone(),
            accepted_before: self.accepted_before,
            regions: self.regions.fork(),
            stop: self.stop.clone(),
            tokens: self.tokens.clone(),
            finish: self.finish,
            trace: self.trace.clone(),
            listing: self.listing,
            likelihoods: self.likelihoods.clone(),
            mask_time: Duration::ZERO,
            warnings: Vec::new(),
        }
    }

    /// `n` decoders in this state whose chains draw as sequences of the seed, from their own on: several answers to one
    /// prompt. Where the chain's own is the first, they are what decoders with [`Chain::sequences`] would be, primed
    /// alike.
    ///
    /// # Errors
    /// [`ErrorKind::State`] once tokens were accepted: they were drawn by one of the sequences.
    pub fn sequences(&self, n: usize) -> Result<Vec<Decoder>> {
        if !self.tokens.is_empty() {
            return Err(Error::new(ErrorKind::State, "sequences begin before the first token")
                .help("call reset() first, or fork() for a copy that draws alike"));
        }
        let sequence = |at: usize| {
            let mut decoder = self.fork();
            let further = u32::try_from(at).unwrap_or(u32::MAX);
            decoder.chain.shift_sequence(further);
            decoder.span_chains.shift_sequence(further);
            decoder
        };
        Ok((0..n).map(sequence).collect())
    }

    /// Back to birth: no tokens, the chain (its seed and draws too) and the matcher (if any) as they were when the
    /// decoder was made, constraints activated since then gone, nothing steered.
    pub fn reset(&mut self) {
        self.regions.reset();
        match self.chain.accepted() - self.accepted_before {
            _ if self.accepted_before == 0 => self.chain.reset(),
            // Cannot fail: so many were accepted here.
            n => drop(self.chain.rollback(n)),
        }
        self.chain.steer(&Steering::default());
        self.span_chains.reset();
        self.tokens.clear();
        self.warnings.clear();
        self.likelihoods = None;
        if let Some(trace) = &mut self.trace {
            trace.clear();
        }
        self.finish = self.finish_now();
    }

    /// Constrains what comes next by `matcher`, in place of the constraint that runs now, until [`Decoder::clear`].
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if the matcher was made for a larger vocabulary, [`ErrorKind::State`] when
    /// decoding is over for a reason that a new constraint does not change.
    pub fn activate(&mut self, matcher: Box<dyn Matcher>, then: Then) -> Result<()> {
        fits(&self.vocabulary, matcher.as_ref())?;
        if self.finish != Some(Finish::Constraint) {
            self.check_running()?;
        }
        self.regions.activate(self.tokens.len(), matcher, then);
        self.finish = self.finish_now();
        Ok(())
    }

    /// Ends whatever was activated: what comes next is under the constraint that the decoder was made with, which has seen
    /// all tokens, or free without one. If nothing was activated, nothing happens.
    ///
    /// # Errors
    /// [`ErrorKind::Token`] if the decoder's own constraint does not allow what the activated one wrote, and what else its
    /// matcher may fail with. The activated constraint stays then.
    pub fn clear(&mut self) -> Result<()> {
        self.regions.clear(&self.tokens)?;
        self.finish = self.finish_now();
        Ok(())
    }

    /// Takes a token that the chain or the caller chose: matcher first, because it alone may refuse.
    fn take(&mut self, token: TokenId) -> Result<()> {
        self.regions.accept(token)?;
        self.chain.accept(token);
        self.span_chains.accept(token);
        self.tokens.push(token);
        self.likelihoods = None;
        if let Some(warning) = self.regions.expire(&self.tokens) {
            self.warnings.push((self.tokens.len(), warning));
        }
        self.finish = self.finish_now();
        Ok(())
    }

    fn finish_now(&self) -> Option<Finish> {
        if self.regions.is_over() {
            return Some(Finish::Constraint);
        }
        self.stop.check(&self.vocabulary, &self.tokens, self.regions.is_inside(self.tokens.len()))
    }

    fn check_running(&self) -> Result<()> {
        match self.finish {
            None => Ok(()),
            Some(finish) => Err(Error::new(
                ErrorKind::State,
                format!("decoding is over ({}) after {} tokens", finish.name(), self.tokens.len()),
            )
            .help("call reset(), rollback(n) or activate(matcher) first")),
        }
    }

    /// The logits of the vocabulary's own tokens.
    fn own<'l>(&self, logits: Floats<'l>) -> Result<Floats<'l>> {
        let size = self.vocabulary.len();
        if logits.len() < size {
            let message = format!("{} logits for a vocabulary of {size} tokens", logits.len());
            return Err(Error::new(ErrorKind::Logits, message)
                .help("pass the last position's logits of the model that this vocabulary belongs to"));
        }
        Ok(logits.slice(0, size))
    }

    fn record(&mut self, step: Step) {
        if let Some(trace) = &mut self.trace {
            trace.push(step);
        }
    }
}

fn fits(vocabulary: &Vocabulary, matcher: &dyn Matcher) -> Result<()> {
    if matcher.vocabulary_size() <= vocabulary.len() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Constraint,
        format!(
            "the constraint was built for {} tokens, the vocabulary has {}",
            matcher.vocabulary_size(),
            vocabulary.len()
        ),
    )
    .help("build the constraint with the vocabulary of the model that decodes"))
}
