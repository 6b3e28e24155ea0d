//! A reasoning block running for one sequence, and the constraint after it, whose matcher is kept in step.

use std::sync::Arc;

use super::plan::{Phase, Plan, ReasoningStart, State};
use crate::finder::START;
use crate::sequence::Scratch;
use crate::{AfterEnd, Matcher, Sequence, States};
use crate::{Result, TokenId};
use logitree_tokens::mask::{insert_bit, insert_bits, remove_bits, words_for, AllowedTokens};

/// A matcher over a [`Plan`].
pub(super) type ReasoningMatcher = Sequence<ReasoningStates>;

/// The states of a [`Plan`], and the matcher of what comes after, which is in step with them.
#[derive(Clone)]
pub(super) struct ReasoningStates {
    plan: Arc<Plan>,
    then: Option<Then>,
    sets: Scratch<Sets>,
}

/// What is lent as the allowed tokens.
#[derive(Default)]
struct Sets {
    /// All ids but those in `cleared`, which are being put back; empty before it is needed.
    words: Vec<u32>,
    cleared: Vec<TokenId>,
    few: Vec<TokenId>,
    /// The state whose own tokens are the `few`, or the `words` where those are empty.
    of: Option<State>,
    /// The ids of the answer and those of a begin.
    either: Vec<u32>,
}

/// The matcher of what comes after, and how many tokens it had taken before it came here.
#[derive(Clone)]
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
        if tokens.is_empty() {
            return self.matcher.rollback(self.taken());
        }
        let mut again = self.matcher.fork();
        again.rollback(self.taken())?;
        tokens.iter().try_for_each(|&token| again.accept(token))?;
        self.matcher = again;
        Ok(())
    }
}

impl ReasoningMatcher {
    /// At birth, with the matcher of what comes after where it is now.
    pub fn new(plan: Arc<Plan>, at: ReasoningStart, then: Option<Box<dyn Matcher>>) -> Self {
        let then = then.map(|matcher| Then { born: matcher.accepted(), matcher });
        let birth = plan.birth(at);
        Sequence::begin(ReasoningStates { plan, then, sets: Scratch::default() }, birth)
    }
}

/// Whether the matcher of what comes after may have a say.
fn is_spoken(at: &State) -> bool {
    matches!(at.phase, Phase::Outside { .. } | Phase::Opening { answer: true, .. } | Phase::Answer)
}

impl ReasoningStates {
    /// The node from which a begin may continue beside the answer.
    fn beginning(&self, at: &State) -> Option<u32> {
        match at.phase {
            Phase::Outside { .. } if self.plan.may_begin(at.had) => Some(START),
            Phase::Opening { node, .. } => Some(node),
            _ => None,
        }
    }

    /// The allowed tokens where nothing else has a say.
    fn own(&mut self, at: &State) -> AllowedTokens<'_> {
        if self.sets.0.of.replace(*at) != Some(*at) {
            self.find_few(at);
            if self.sets.0.few.is_empty() {
                self.find_all_but_banned(at);
            }
        }
        let Sets { few, words, .. } = &self.sets.0;
        if few.is_empty() {
            AllowedTokens::Mask(words)
        } else {
            AllowedTokens::Ids(few)
        }
    }

    /// Finds the allowed tokens where it is a few tokens of the reasoning block's own.
    fn find_few(&mut self, at: &State) {
        let few = &mut self.sets.0.few;
        few.clear();
        match at.phase {
            Phase::Opening { node, answer: false } => few.extend(self.plan.begins.next(node)),
            Phase::Closing { node } => few.extend(self.plan.ends.next(node)),
            Phase::Forced { at } => few.push(self.plan.forced[at as usize]),
            Phase::Inside { .. } => few.extend_from_slice(self.plan.completing(at.phase)),
            _ => {}
        }
    }

    /// Finds all ids but the banned ones.
    fn find_all_but_banned(&mut self, at: &State) {
        let size = self.plan.vocabulary.len();
        let Sets { words, cleared, .. } = &mut self.sets.0;
        if words.is_empty() {
            words.resize(words_for(size), 0);
            AllowedTokens::All.write(size, words);
        }
        insert_bits(words, cleared);
        self.plan.banned(*at, cleared);
        if self.then.is_some() {
            cleared.extend_from_slice(self.plan.vocabulary.end_tokens());
        }
        remove_bits(words, cleared);
    }

    /// The state after a token where the answer has not begun and may, or a begin: both continue as far as they can.
    fn choose(&mut self, at: &State, token: TokenId) -> Result<Option<State>> {
        let had = at.had;
        let opened = self.beginning(at).and_then(|node| self.plan.begins.child(node, token));
        let node = match opened {
            Some(node) if !self.plan.options.whole => return Ok(Some(self.plan.opening(node, false, had))),
            Some(node) if self.plan.begins.is_found(node) => {
                if let Some(then) = &mut self.then {
                    then.restart(&[])?;
                }
                return Ok(Some(self.plan.opening(node, false, had)));
            }
            opened => opened,
        };
        let Some(then) = &mut self.then else { return Ok(Some(*at)) };
        Ok(match (then.matcher.take(token)?, node) {
            (true, None) => Some(State { phase: Phase::Answer, had }),
            (true, Some(node)) => Some(self.plan.opening(node, true, had)),
            (false, Some(node)) => {
                then.restart(&[])?;
                Some(self.plan.opening(node, false, had))
            }
            (false, None) => None,
        })
    }
}

impl States for ReasoningStates {
    type At = State;

    fn vocabulary_size(&self) -> usize {
        self.plan.vocabulary.len()
    }

    /// Without an answer to come, the text is free and never over.
    fn after_end(&self) -> &AfterEnd {
        self.then.as_ref().map_or(&AfterEnd::Free, |then| then.matcher.after_end())
    }

    fn is_accepting(&self, at: &State) -> bool {
        match at.phase {
            Phase::Off => true,
            Phase::Outside { .. } if self.then.is_none() => true,
            _ => self.speaker(at).is_some_and(Matcher::is_accepting),
        }
    }

    fn is_finished(&self, at: &State) -> bool {
        self.speaker(at).is_some_and(Matcher::is_finished)
    }

    fn allowed<'a>(&'a mut self, at: &'a State) -> Result<AllowedTokens<'a>> {
        if at.phase == Phase::Off {
            return Ok(AllowedTokens::All);
        }
        if self.speaker(at).is_none() {
            return Ok(self.own(at));
        }
        let beginning = self.beginning(at);
        let Some(then) = &mut self.then else { return Ok(AllowedTokens::All) };
        let allowed = then.matcher.allowed()?;
        let Some(node) = beginning else { return Ok(allowed) };
        let tags = self.plan.begins.next(node);
        let Sets { few, either, of, .. } = &mut self.sets.0;
        if let AllowedTokens::Ids(own) = allowed {
            *of = None;
            few.clear();
            few.extend(own.iter().copied().chain(tags));
            few.sort_unstable();
            few.dedup();
            return Ok(AllowedTokens::Ids(few));
        }
        if allowed == AllowedTokens::All {
            return Ok(allowed);
        }
        let size = self.plan.vocabulary.len();
        either.resize(words_for(size), 0);
        allowed.write(size, either);
        tags.for_each(|id| insert_bit(either, id));
        Ok(AllowedTokens::Mask(either))
    }

    fn next(&mut self, at: &State, token: TokenId) -> Result<Option<State>> {
        if at.phase == Phase::Answer {
            let taken = self.then.as_mut().map_or(Ok(true), |then| then.matcher.take(token))?;
            return Ok(taken.then_some(*at));
        }
        if is_spoken(at) && self.then.is_some() {
            return self.choose(at, token);
        }
        if !self.allowed(at)?.contains(token) {
            return Ok(None);
        }
        Ok(Some(match self.plan.step(*at, token) {
            State { phase: Phase::Off, had } if self.then.is_some() => State { phase: Phase::Answer, had },
            next => next,
        }))
    }

    fn back(&mut self, to: &State, left: &mut [State]) -> Result<()> {
        let Some(then) = &mut self.then else { return Ok(()) };
        match to.phase {
            Phase::Answer => then.matcher.rollback(left.len()),
            Phase::Opening { node, answer: true } => then.restart(&self.plan.begins.path(node)),
            _ => then.restart(&[]),
        }
    }

    fn speaker(&self, at: &State) -> Option<&dyn Matcher> {
        self.then.as_ref().filter(|_| is_spoken(at)).map(|then| &*then.matcher)
    }

    fn speaker_mut(&mut self, at: &State) -> Option<&mut dyn Matcher> {
        self.then.as_mut().filter(|_| is_spoken(at)).map(|then| &mut *then.matcher as &mut dyn Matcher)
    }

    fn forced(&mut self, at: &State, out: &mut Vec<TokenId>) -> Result<bool> {
        match &mut self.then {
            Some(then) if at.phase == Phase::Answer => then.matcher.forced(out).map(|()| true),
            _ => Ok(false),
        }
    }

    fn is_free(&self, at: &State) -> bool {
        match at.phase {
            Phase::Off => true,
            Phase::Outside { .. } | Phase::Inside { .. } if self.then.is_none() => true,
            Phase::Answer => self.speaker(at).is_some_and(Matcher::is_free),
            _ => false,
        }
    }

    fn bias(&mut self, at: &State) -> Result<Option<(TokenId, f32)>> {
        let own = self.plan.bias(*at);
        match &mut self.then {
            Some(then) if own.is_none() && at.phase == Phase::Answer => then.matcher.bias(),
            _ => Ok(own),
        }
    }

    fn expected(&self, at: &State) -> Vec<String> {
        let mut expected = self.speaker(at).map(Matcher::expected).unwrap_or_default();
        match at.phase {
            Phase::Opening { .. } => expected.push("the rest of a reasoning block's begin".to_string()),
            Phase::Closing { .. } | Phase::Forced { .. } => {
                expected.push("the end of the reasoning block".to_string())
            }
            Phase::Inside { .. } if !self.plan.completing(at.phase).is_empty() => {
                expected.push("the rest of a character".to_string());
            }
            Phase::Inside { .. } => expected.push("a reasoning block, or its end".to_string()),
            Phase::Outside { .. } if self.then.is_none() => expected.push("any text".to_string()),
            Phase::Outside { .. } if self.beginning(at).is_some() => {
                expected.push("a reasoning block".to_string())
            }
            _ => {}
        }
        expected
    }

    fn expected_after(&mut self, at: &State, bytes: &[u8]) -> Result<Vec<String>> {
        match &mut self.then {
            Some(then) if at.phase == Phase::Answer => then.matcher.expected_after(bytes),
            _ => Ok(Vec::new()),
        }
    }

    fn accepted_prefix(&mut self, at: &State, bytes: &[u8]) -> Result<usize> {
        if let Some(speaker) = self.speaker_mut(at) {
            return speaker.accepted_prefix(bytes);
        }
        if !matches!(self.own(at), AllowedTokens::Ids(_)) {
            return Ok(bytes.len());
        }
        let vocabulary = &self.plan.vocabulary;
        let text = self.sets.0.few.iter().filter(|&&id| vocabulary.kind(id).is_text());
        let alike =
            |&id: &TokenId| bytes.iter().zip(vocabulary.token_bytes(id)).take_while(|(a, b)| a == b).count();
        Ok(text.map(alike).max().unwrap_or(0))
    }
}
