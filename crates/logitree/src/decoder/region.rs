//! Regions: which constraint runs from which token on. The decoder's own constraint runs before the first activation, and
//! again once the activated ones are cleared: it has seen all tokens then, theirs too. A rollback past an activation brings
//! the earlier constraint back.

use crate::constraint::skeleton::ActiveSpan;
use crate::constraint::{Matcher, SpanProgress};
use crate::mask::AllowedTokens;
use crate::{Error, Result, TokenId};

/// A constraint that is over but was not cleared is dropped this many tokens after its activation, with a warning: the
/// caller forgot it. One that is not over is never dropped, so that no token it forbids is accepted.
pub const MAX_REGION_TOKENS: usize = 500;

/// What happens when an activated constraint is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Decoding is over too.
    Stop,
    /// What follows is free, until the constraint is cleared.
    Continue,
}

struct Region {
    /// Number of tokens before it.
    start: usize,
    /// Tokens that its matcher had taken before it came here.
    taken_before: usize,
    matcher: Option<Box<dyn Matcher>>,
    then: Then,
    /// Whether the matcher is the decoder's own, or the decoder has none.
    is_own: bool,
}

impl Region {
    fn new(start: usize, matcher: Option<Box<dyn Matcher>>, then: Then, is_own: bool) -> Self {
        let taken_before = matcher.as_ref().map_or(0, |m| m.accepted());
        Region { start, taken_before, matcher, then, is_own }
    }

    fn is_finished(&self) -> bool {
        self.matcher.as_ref().is_some_and(|matcher| matcher.is_finished())
    }

    /// Takes back all but the first `keep` tokens that its matcher took here.
    fn keep(&mut self, keep: usize) -> Result<()> {
        let Some(matcher) = &mut self.matcher else { return Ok(()) };
        let surplus = matcher.accepted().saturating_sub(self.taken_before.saturating_add(keep));
        if surplus > 0 {
            matcher.rollback(surplus)?;
        }
        Ok(())
    }
}

/// The regions so far; the last one runs. The first starts at 0 and is never removed.
pub(super) struct Regions(Vec<Region>);

impl Regions {
    pub(super) fn new(matcher: Option<Box<dyn Matcher>>) -> Self {
        Regions(vec![Region::new(0, matcher, Then::Stop, true)])
    }

    fn current(&self) -> &Region {
        &self.0[self.0.len() - 1]
    }

    fn current_mut(&mut self) -> &mut Region {
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    pub(super) fn matcher(&self) -> Option<&dyn Matcher> {
        self.current().matcher.as_deref()
    }

    /// The matcher that has a say about the next token: none where free text follows a constraint that is over.
    fn speaker(&mut self) -> Option<&mut Box<dyn Matcher>> {
        let region = self.current_mut();
        let is_free =
            |matcher: &&mut Box<dyn Matcher>| region.then == Then::Continue && matcher.is_finished();
        region.matcher.as_mut().filter(|matcher| !is_free(matcher))
    }

    pub(super) fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        match self.speaker() {
            Some(matcher) => matcher.allowed(),
            None => Ok(AllowedTokens::All),
        }
    }

    /// More tokens than the allowed ones, where those take longer to find.
    pub(super) fn allowed_superset(&mut self) -> Result<Option<AllowedTokens<'_>>> {
        match self.speaker() {
            Some(matcher) => matcher.allowed_superset(),
            None => Ok(None),
        }
    }

    pub(super) fn is_allowed(&mut self, token: TokenId) -> Result<bool> {
        match self.speaker() {
            Some(matcher) => matcher.is_allowed(token),
            None => Ok(true),
        }
    }

    pub(super) fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        match &mut self.current_mut().matcher {
            Some(matcher) => matcher.forced(out),
            None => Ok(()),
        }
    }

    /// The running constraint's bias: a token and what is added to its logit.
    pub(super) fn bias(&mut self) -> Result<Option<(TokenId, f32)>> {
        match &mut self.current_mut().matcher {
            Some(matcher) if !matcher.is_finished() => matcher.bias(),
            _ => Ok(None),
        }
    }

    /// The temperature that the running constraint gives the next token.
    pub(super) fn temperature(&self) -> Option<f32> {
        self.matcher()?.temperature()
    }

    /// The span of a skeleton in which the next token begins.
    pub(super) fn active_span(&self) -> Option<ActiveSpan> {
        self.matcher()?.spans()?.active()
    }

    /// Where the running constraint is in a skeleton, and the number of tokens before the skeleton's.
    pub(super) fn spans(&self) -> Option<(usize, &SpanProgress)> {
        let region = self.current();
        let matcher = region.matcher.as_deref()?;
        let progress = matcher.spans()?;
        let taken = (region.start + matcher.accepted()).saturating_sub(region.taken_before);
        Some((taken.saturating_sub(progress.tokens()), progress))
    }

    /// A finished matcher accepts nothing: what follows it is not its own.
    pub(super) fn accept(&mut self, token: TokenId) -> Result<()> {
        match &mut self.current_mut().matcher {
            Some(matcher) if !matcher.is_finished() => matcher.accept(token),
            _ => Ok(()),
        }
    }

    /// The decoder's own constraint after `tokens`.
    ///
    /// # Errors
    /// Those of its matcher, if it does not allow what was written since it ran last.
    fn own_after(&self, tokens: &[TokenId]) -> Result<Region> {
        let last = self.0.iter().rposition(|region| region.is_own).unwrap_or(0);
        let mut own = self.0[last].matcher.as_ref().map(|matcher| matcher.fork());
        let left = self.0.get(last + 1).map_or(tokens.len(), |region| region.start);
        if let Some(matcher) = &mut own {
            for (at, &token) in tokens.iter().enumerate().skip(left) {
                if matcher.is_finished() {
                    break;
                }
                matcher.accept(token).map_err(|error| {
                    let what = "the decoder's own constraint does not allow what the activated one wrote";
                    Error::new(error.kind, format!("{what}: {}", error.message))
                        .at(format!("token {at} of the output"))
                        .help(
                            "activate what the own constraint allows there, or make the decoder without one",
                        )
                })?;
            }
        }
        Ok(Region::new(tokens.len(), own, Then::Stop, true))
    }

    /// Whether the running constraint is over and decoding with it.
    pub(super) fn is_over(&self) -> bool {
        self.current().then == Then::Stop && self.current().is_finished()
    }

    /// Whether the last of `length` tokens belongs to a constraint, the running one or the one that accepted it, and
    /// not to free text.
    pub(super) fn is_inside(&self, length: usize) -> bool {
        let unfinished =
            |region: &Region| region.matcher.as_ref().is_some_and(|m| !m.is_finished() && !m.is_free());
        unfinished(self.current())
            || self.0.iter().rfind(|region| region.start < length).is_some_and(unfinished)
    }

    pub(super) fn activate(&mut self, start: usize, matcher: Box<dyn Matcher>, then: Then) {
        self.0.push(Region::new(start, Some(matcher), then, false));
    }

    /// Back to the decoder's own constraint after `tokens`, whatever was activated since.
    ///
    /// # Errors
    /// As [`Regions::own_after`]; the running constraint stays then.
    pub(super) fn clear(&mut self, tokens: &[TokenId]) -> Result<()> {
        if !self.current().is_own {
            let own = self.own_after(tokens)?;
            self.0.push(own);
        }
        Ok(())
    }

    /// Drops a forgotten constraint (see [`MAX_REGION_TOKENS`]) and says so.
    pub(super) fn expire(&mut self, tokens: &[TokenId]) -> Option<String> {
        let region = self.current();
        let age = tokens.len() - region.start;
        if age < MAX_REGION_TOKENS || region.then == Then::Stop || !region.is_finished() {
            return None;
        }
        // What the own constraint does not allow was free text; it stays that, and `clear` says so.
        let free = || Region::new(tokens.len(), None, Then::Continue, false);
        let next = self.own_after(tokens).unwrap_or_else(|_| free());
        self.0.push(next);
        Some(format!(
            "a constraint activated {age} tokens ago is over but was never cleared; it is dropped now \
             (call clear() when the region ends)"
        ))
    }

    /// The state when there were `length` tokens. Matchers took the tokens between their region's start and the next
    /// one's, until they were finished.
    pub(super) fn rollback(&mut self, length: usize) -> Result<()> {
        while self.0.len() > 1 && self.current().start > length {
            self.0.pop();
        }
        let region = self.current_mut();
        region.keep(length - region.start)
    }

    pub(super) fn reset(&mut self) {
        self.0.truncate(1);
        let first = self.current_mut();
        match &mut first.matcher {
            Some(matcher) if first.taken_before == 0 => matcher.reset(),
            // Cannot fail: what it took here can be taken back (law 4).
            _ => drop(first.keep(0)),
        }
    }

    pub(super) fn fork(&self) -> Self {
        let copy = |region: &Region| Region {
            start: region.start,
            taken_before: region.taken_before,
            matcher: region.matcher.as_ref().map(|m| m.fork()),
            then: region.then,
            is_own: region.is_own,
        };
        Regions(self.0.iter().map(copy).collect())
    }
}
