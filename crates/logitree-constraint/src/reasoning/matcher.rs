//! A reasoning block running for one sequence, and the constraint after it, whose matcher is kept in step.

use std::sync::Arc;

use super::plan::{Phase, Plan, ReasoningStart, State};
use crate::finder::START;
use crate::history::History;
use crate::{AfterEnd, Matcher, SpanProgress};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::{words_for, AllowedTokens};

/// Longer runs of forced tokens are given in pieces.
const MAX_FORCED: usize = 1_024;

/// A matcher over a [`Plan`].
pub(super) struct ReasoningMatcher {
    plan: Arc<Plan>,
    /// The tokens past the end are those of the answer after its first, which change the other matcher only.
    history: History<State>,
    state: State,
    then: Option<Then>,
    /// All ids but those in `cleared`, which are being put back; empty before it is needed.
    words: Vec<u32>,
    cleared: Vec<TokenId>,
    few: Vec<TokenId>,
    /// The ids of the answer and those of a begin.
    either: Vec<u32>,
}

/// The matcher of what comes after, and how many tokens it had taken before it came here.
struct Then {
    matcher: Box<dyn Matcher>,
    born: usize,
}

impl Then {
    fn taken(&self) -> usize {
        self.matcher.accepted() - self.born
    }

    /// As it was at birth but for `tokens`, which it has taken before.
    fn restart(&mut self, tokens: &[TokenId]) -> Result<()> {
        self.matcher.rollback(self.taken())?;
        tokens.iter().try_for_each(|&token| self.matcher.accept(token))
    }
}

impl ReasoningMatcher {
    pub fn new(plan: Arc<Plan>, at: ReasoningStart, then: Option<Box<dyn Matcher>>) -> Self {
        let then = then.map(|matcher| Then { born: matcher.accepted(), matcher });
        let state = plan.birth(at);
        ReasoningMatcher {
            plan,
            history: History::default(),
            state,
            then,
            words: Vec::new(),
            cleared: Vec::new(),
            few: Vec::new(),
            either: Vec::new(),
        }
    }

    /// The matcher that may have a say here.
    fn speaker(&self) -> Option<&dyn Matcher> {
        let has_a_say = matches!(
            self.state.phase,
            Phase::Outside { .. } | Phase::Opening { answer: true, .. } | Phase::Answer
        );
        self.then.as_ref().filter(|_| has_a_say).map(|then| then.matcher.as_ref())
    }

    /// The node from which a begin may continue beside the answer.
    fn beginning(&self) -> Option<u32> {
        match self.state.phase {
            Phase::Outside { .. } if self.plan.may_begin(self.state.had) => Some(START),
            Phase::Opening { node, .. } => Some(node),
            _ => None,
        }
    }

    /// Finds the allowed tokens where it is a few tokens of the reasoning block's own, in `few`.
    fn find_few(&mut self) -> bool {
        self.few.clear();
        match self.state.phase {
            Phase::Opening { node, answer: false } => self.few.extend(self.plan.begins.next(node)),
            Phase::Closing { node } => self.few.extend(self.plan.ends.next(node)),
            Phase::Forced { at } => self.few.push(self.plan.forced[at as usize]),
            Phase::Inside { .. } => self.few.extend_from_slice(self.plan.completing(self.state.phase)),
            _ => {}
        }
        !self.few.is_empty()
    }

    /// All ids but the banned ones.
    fn all_but_banned(&mut self) {
        let size = self.plan.vocabulary.len();
        if self.words.is_empty() {
            self.words.resize(words_for(size), 0);
            AllowedTokens::All.write(size, &mut self.words);
        }
        for &id in &self.cleared {
            self.words[id as usize / 32] |= 1 << (id % 32);
        }
        self.plan.banned(self.state, &mut self.cleared);
        if self.then.is_some() {
            self.cleared.extend_from_slice(self.plan.vocabulary.end_of_generation());
        }
        for &id in &self.cleared {
            self.words[id as usize / 32] &= !(1 << (id % 32));
        }
    }

    /// Takes a token where the answer has not begun and may, or a begin: both continue as far as they can.
    fn choose(&mut self, token: TokenId) -> Result<State> {
        let State { phase, had } = self.state;
        let opened = self.beginning().and_then(|node| self.plan.begins.child(node, token));
        let node = match opened {
            Some(node) if !self.plan.options.whole => return Ok(self.plan.opening(node, false, had)),
            Some(node) if self.plan.begins.is_found(node) => {
                if let Some(then) = &mut self.then {
                    then.restart(&[])?;
                }
                return Ok(self.plan.opening(node, false, had));
            }
            opened => opened,
        };
        let Some(then) = &mut self.then else { return Ok(State { phase, had }) };
        match (then.matcher.accept(token), node) {
            (Ok(()), None) => Ok(State { phase: Phase::Answer, had }),
            (Ok(()), Some(node)) => Ok(self.plan.opening(node, true, had)),
            (Err(error), Some(node)) if error.kind == ErrorKind::Token => {
                then.restart(&[])?;
                Ok(self.plan.opening(node, false, had))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Makes the other matcher what it was at `state`, which came before the answer's second token.
    fn restore(&mut self, state: State) -> Result<()> {
        let Some(then) = &mut self.then else { return Ok(()) };
        match state.phase {
            Phase::Opening { node, answer: true } => then.restart(&self.plan.begins.path(node)),
            _ => then.restart(&[]),
        }
    }

    fn refused(&self, token: TokenId) -> Error {
        Error::new(ErrorKind::Token, format!("token {token} is not allowed here"))
            .at(format!("token {} of the text", self.accepted()))
            .help(format!("expected: {}", self.expected().join("; or ")))
    }
}

impl Matcher for ReasoningMatcher {
    fn vocabulary_size(&self) -> usize {
        self.plan.vocabulary.len()
    }

    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        if self.is_finished() {
            return self.after_end().allowed();
        }
        if self.state.phase == Phase::Off {
            return Ok(AllowedTokens::All);
        }
        if self.speaker().is_none() {
            if self.find_few() {
                return Ok(AllowedTokens::Ids(&self.few));
            }
            self.all_but_banned();
            return Ok(AllowedTokens::Mask(&self.words));
        }
        let beginning = self.beginning();
        let Some(then) = &mut self.then else { return Ok(AllowedTokens::All) };
        let Some(node) = beginning else { return then.matcher.allowed() };
        let allowed = then.matcher.allowed()?;
        let tags = self.plan.begins.next(node);
        if let AllowedTokens::Ids(few) = allowed {
            self.few.clear();
            self.few.extend(few.iter().copied().chain(tags));
            self.few.sort_unstable();
            self.few.dedup();
            return Ok(AllowedTokens::Ids(&self.few));
        }
        if allowed == AllowedTokens::All {
            return Ok(allowed);
        }
        let size = self.plan.vocabulary.len();
        self.either.resize(words_for(size), 0);
        allowed.write(size, &mut self.either);
        tags.for_each(|id| self.either[id as usize / 32] |= 1 << (id % 32));
        Ok(AllowedTokens::Mask(&self.either))
    }

    fn accept(&mut self, token: TokenId) -> Result<()> {
        if self.state.phase == Phase::Answer {
            if let Some(then) = &mut self.then {
                then.matcher.accept(token)?;
            }
            self.history.push_past_end();
            return Ok(());
        }
        let next = match self.speaker() {
            Some(then) if then.is_finished() => {
                if let Some(then) = &mut self.then {
                    then.matcher.accept(token)?;
                }
                State { phase: Phase::Answer, ..self.state }
            }
            Some(_) => self.choose(token)?,
            None => {
                if !self.allowed()?.contains(token) {
                    return Err(self.refused(token));
                }
                match self.plan.step(self.state, token) {
                    State { phase: Phase::Off, had } if self.then.is_some() => {
                        State { phase: Phase::Answer, had }
                    }
                    next => next,
                }
            }
        };
        self.history.push(std::mem::replace(&mut self.state, next));
        Ok(())
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        let remaining = self.history.remaining(n)?;
        let late = n - (self.history.before_end() - remaining);
        if let Some(then) = self.then.as_mut().filter(|_| late > 0) {
            then.matcher.rollback(late)?;
        }
        if remaining < self.history.before_end() {
            self.restore(*self.history.state(remaining))?;
        }
        self.state = self.history.rollback(n)?.unwrap_or(self.state);
        Ok(())
    }

    fn fork(&self) -> Box<dyn Matcher> {
        let copy = |then: &Then| Then { matcher: then.matcher.fork(), born: then.born };
        Box::new(ReasoningMatcher {
            plan: Arc::clone(&self.plan),
            history: self.history.clone(),
            state: self.state,
            then: self.then.as_ref().map(copy),
            words: Vec::new(),
            cleared: Vec::new(),
            few: Vec::new(),
            either: Vec::new(),
        })
    }

    fn reset(&mut self) {
        // Cannot fail: so many were accepted.
        drop(self.rollback(self.accepted()));
    }

    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        if self.state.phase == Phase::Answer {
            return self.then.as_mut().map_or(Ok(()), |then| then.matcher.forced(out));
        }
        let (size, mut taken) = (self.plan.vocabulary.len(), 0);
        let mut run = Vec::new();
        let mut walk = |matcher: &mut Self| -> Result<()> {
            while run.len() < MAX_FORCED && !matcher.is_accepting() && !matcher.is_finished() {
                let only = match matcher.allowed()? {
                    AllowedTokens::Ids(&[only]) => only,
                    allowed @ AllowedTokens::Mask(words) if allowed.count(size) == 1 => {
                        logitree_tokens::mask::ids(words).next().unwrap_or_default()
                    }
                    _ => return Ok(()),
                };
                matcher.accept(only)?;
                taken += 1;
                run.push(only);
            }
            Ok(())
        };
        let walked = walk(self);
        self.rollback(taken)?;
        walked.map(|()| out.append(&mut run))
    }

    fn is_accepting(&self) -> bool {
        match self.state.phase {
            Phase::Off => true,
            Phase::Outside { .. } if self.then.is_none() => true,
            _ => self.speaker().is_some_and(Matcher::is_accepting),
        }
    }

    fn is_finished(&self) -> bool {
        self.speaker().is_some_and(Matcher::is_finished)
    }

    /// Without an answer to come, the text is free and never over.
    fn after_end(&self) -> &AfterEnd {
        self.then.as_ref().map_or(&AfterEnd::Free, |then| then.matcher.after_end())
    }

    fn is_free(&self) -> bool {
        match self.state.phase {
            Phase::Off => true,
            Phase::Outside { .. } | Phase::Inside { .. } if self.then.is_none() => true,
            Phase::Answer => self.speaker().is_some_and(Matcher::is_free),
            _ => false,
        }
    }

    fn spans(&self) -> Option<&SpanProgress> {
        self.speaker().and_then(Matcher::spans)
    }

    fn bias(&mut self) -> Result<Option<(TokenId, f32)>> {
        if let Some((token, by)) = self.plan.bias(self.state) {
            return Ok(self.is_allowed(token)?.then_some((token, by)));
        }
        match &mut self.then {
            Some(then) if self.state.phase == Phase::Answer => then.matcher.bias(),
            _ => Ok(None),
        }
    }

    fn expected(&self) -> Vec<String> {
        let mut expected = self.speaker().map(Matcher::expected).unwrap_or_default();
        match self.state.phase {
            Phase::Opening { .. } => expected.push("the rest of a reasoning block's begin".to_string()),
            Phase::Closing { .. } | Phase::Forced { .. } => {
                expected.push("the end of the reasoning block".to_string())
            }
            Phase::Inside { .. } if !self.plan.completing(self.state.phase).is_empty() => {
                expected.push("the rest of a character".to_string());
            }
            Phase::Inside { .. } => expected.push("a reasoning block, or its end".to_string()),
            Phase::Outside { .. } if self.then.is_none() => expected.push("any text".to_string()),
            Phase::Outside { .. } if self.beginning().is_some() => {
                expected.push("a reasoning block".to_string())
            }
            _ => {}
        }
        expected
    }

    fn expected_after(&mut self, bytes: &[u8]) -> Result<Vec<String>> {
        match &mut self.then {
            _ if bytes.is_empty() => Ok(self.expected()),
            Some(then) if self.state.phase == Phase::Answer => then.matcher.expected_after(bytes),
            _ => Ok(Vec::new()),
        }
    }

    fn taken(&mut self, bytes: &[u8]) -> Result<usize> {
        if self.speaker().is_some() {
            return self.then.as_mut().map_or(Ok(0), |then| then.matcher.taken(bytes));
        }
        if !self.find_few() {
            return Ok(bytes.len());
        }
        let vocabulary = &self.plan.vocabulary;
        let text = self.few.iter().filter(|&&id| vocabulary.kind(id).is_text());
        let alike =
            |&id: &TokenId| bytes.iter().zip(vocabulary.token_bytes(id)).take_while(|(a, b)| a == b).count();
        Ok(text.map(alike).max().unwrap_or(0))
    }

    fn is_ready(&self) -> bool {
        self.speaker().is_none_or(Matcher::is_ready)
    }

    fn accepted(&self) -> usize {
        self.history.accepted()
    }
}
