//! The intersection for one sequence, found out where the sequence goes.

use std::sync::{Arc, OnceLock};

use super::history::{not_allowed, History};
use super::peers::Peers;
use super::position::WalkPosition;
use super::search::{Fuel, Places, SearchBase};
use crate::catalogue::{add_end, check_snapshot, damaged, CatalogueSnapshot, Continuations, WalkState};
use crate::constraint::{AfterEnd, Matcher};
use crate::mask::AllowedTokens;
use crate::vocabulary::Vocabulary;
use crate::{Error, ErrorKind, Result, TokenId};

/// Forced tokens that are given at once.
const FORCED: usize = 1000;

/// The position of a sequence in the tree.
#[derive(Clone)]
struct At {
    state: WalkState,
    /// Whether an item ends here that the peers allow.
    is_item: bool,
    /// Whether nothing may follow.
    is_over: bool,
    /// What may follow, the end token included, once it was asked for.
    allowed: Option<Arc<Continuations>>,
}

/// What all forks of a matcher found.
#[derive(Default)]
struct Found {
    places: Places,
    /// What may follow at the beginning.
    first: OnceLock<Arc<Continuations>>,
}

/// A matcher over the items of a prefix tree that peers allow too.
///
/// Forks share what they find out: make one, and fork it for each sequence.
pub struct IntersectionMatcher {
    snapshot: CatalogueSnapshot,
    end: Option<TokenId>,
    after: AfterEnd,
    vocabulary_size: usize,
    peers: Peers,
    fuel: u64,
    found: Arc<Found>,
    history: History<At>,
    at: At,
    position: WalkPosition,
}

impl IntersectionMatcher {
    /// Steps that one question may take, where nothing else is said.
    pub const FUEL: u64 = 1 << 20;

    /// At the beginning of an item, which is the peers' current state. With an end token every item ends with it;
    /// without, an item is over with its last token. `fuel` is the number of steps that one question may take.
    ///
    /// # Errors
    /// As [`crate::catalogue::ItemWalk::sequence`] of the tree without the peers; [`ErrorKind::Constraint`] if there is
    /// no other, or if the peers allow no item; [`ErrorKind::Limit`] if that takes more than the fuel to find out.
    pub fn new(
        snapshot: CatalogueSnapshot,
        peers: Vec<Box<dyn Matcher>>,
        end: Option<TokenId>,
        vocabulary_size: usize,
        fuel: u64,
    ) -> Result<IntersectionMatcher> {
        check_snapshot(&snapshot, end, vocabulary_size)?;
        let mut peers = Peers::new(peers)?;
        let (found, mut position) = (Arc::new(Found::default()), WalkPosition::default());
        let state = snapshot.root();
        let base = SearchBase { snapshot: &snapshot, places: &found.places, end };
        if !base.reaches(state, &mut peers, &mut position, &mut Fuel::new(fuel))? {
            let message = "no item of the prefix tree is allowed by what it is intersected with";
            return Err(Error::new(ErrorKind::Constraint, message)
                .help("an item counts if the peers take all its tokens and are complete after them"));
        }
        peers.back_to(0)?;
        let at = At { state, is_item: false, is_over: false, allowed: None };
        let history = History::default();
        let after = AfterEnd::tokens(end.as_slice(), &[]);
        Ok(IntersectionMatcher {
            snapshot,
            end,
            after,
            vocabulary_size,
            peers,
            fuel,
            found,
            history,
            at,
            position,
        })
    }

    /// The same, where the end tokens of `vocabulary` follow an item if no other does.
    #[must_use]
    pub fn followed_by(self, vocabulary: &Vocabulary) -> IntersectionMatcher {
        let after = AfterEnd::tokens(self.end.as_slice(), vocabulary.end_of_generation());
        IntersectionMatcher { after, ..self }
    }

    /// Whether an allowed item continues with `token` to `state`.
    fn allows(&mut self, token: TokenId, state: WalkState, fuel: &mut Fuel) -> Result<bool> {
        let base = SearchBase { snapshot: &self.snapshot, places: &self.found.places, end: self.end };
        let place = |error: Error| match error.kind {
            ErrorKind::Limit if error.place.is_empty() => {
                error.at(format!("token {} of the item", self.history.before_end()))
            }
            _ => error,
        };
        base.allows((token, state), &mut self.peers, &mut self.position, fuel).map_err(place)
    }

    /// What may follow here.
    fn look(&mut self) -> Result<Arc<Continuations>> {
        if let Some(allowed) = &self.at.allowed {
            return Ok(Arc::clone(allowed));
        }
        let is_first = self.history.before_end() == 0;
        if let Some(first) = self.found.first.get().filter(|_| is_first) {
            self.at.allowed = Some(Arc::clone(first));
            return Ok(Arc::clone(first));
        }
        let (mut all, mut allowed) = (Continuations::default(), Continuations::default());
        self.snapshot.children(self.at.state, &mut all)?;
        let mut fuel = Fuel::new(self.fuel);
        for (token, state) in all.tokens.into_iter().zip(all.states) {
            if self.allows(token, state, &mut fuel)? {
                allowed.tokens.push(token);
                allowed.states.push(state);
            }
        }
        if self.at.is_item {
            add_end(&mut allowed, self.end);
        }
        if allowed.tokens.is_empty() {
            // This place was entered because an item that all allow is below it.
            return Err(damaged("no item continues from a place of it"));
        }
        let allowed = Arc::new(allowed);
        if is_first {
            // Another fork may have been faster, with the same.
            let _ = self.found.first.set(Arc::clone(&allowed));
        }
        self.at.allowed = Some(Arc::clone(&allowed));
        Ok(allowed)
    }

    /// Where `token` leads, if it is allowed.
    fn next(&mut self, token: TokenId) -> Result<Option<WalkState>> {
        if let Some(allowed) = &self.at.allowed {
            let at = allowed.tokens.binary_search(&token);
            return Ok(at.ok().and_then(|at| allowed.states.get(at)).copied());
        }
        if let Some(state) = self.snapshot.step(self.at.state, token)? {
            let mut fuel = Fuel::new(self.fuel);
            if self.allows(token, state, &mut fuel)? {
                return Ok(Some(state));
            }
        }
        Ok((self.at.is_item && self.end == Some(token)).then_some(WalkState::FINISHED))
    }

    /// The place after `token`, which the peers take with it.
    fn enter(&mut self, token: TokenId, state: WalkState) -> Result<At> {
        if state == WalkState::FINISHED {
            return Ok(At { state, is_item: true, is_over: true, allowed: None });
        }
        if !self.peers.take(token)? {
            return Err(damaged("a place that two ways lead to"));
        }
        let mut here = Continuations::default();
        let looked = self.snapshot.children(state, &mut here);
        let is_item = looked.and_then(|()| Ok(here.is_item && self.peers.are_complete(self.end)?));
        match is_item {
            Ok(is_item) => {
                let is_over = is_item && self.end.is_none() && here.tokens.is_empty();
                Ok(At { state, is_item, is_over, allowed: None })
            }
            Err(error) => {
                self.peers.back_to(self.history.before_end())?;
                Err(error)
            }
        }
    }
}

impl Matcher for IntersectionMatcher {
    fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        if self.at.is_over {
            return self.after.allowed();
        }
        self.look()?;
        // An empty set is no token, never every token.
        Ok(AllowedTokens::Ids(self.at.allowed.as_ref().map_or(&[], |allowed| &allowed.tokens)))
    }

    fn is_allowed(&mut self, token: TokenId) -> Result<bool> {
        if self.at.is_over {
            return Ok(self.after.takes(token));
        }
        Ok(self.next(token)?.is_some())
    }

    fn accept(&mut self, token: TokenId) -> Result<()> {
        if self.take(token)? {
            return Ok(());
        }
        let accepted = self.accepted();
        if self.at.is_over {
            return Err(not_allowed(token, self.after.ids(), accepted, "item"));
        }
        Err(match &self.at.allowed {
            Some(allowed) => not_allowed(token, &allowed.tokens, accepted, "item"),
            None => Error::new(ErrorKind::Token, format!("token {token} is not allowed here"))
                .at(format!("token {accepted} of the item")),
        })
    }

    fn take(&mut self, token: TokenId) -> Result<bool> {
        if self.at.is_over {
            return Ok(self.history.take_past_end(&self.after, token));
        }
        let Some(state) = self.next(token)? else { return Ok(false) };
        let at = self.enter(token, state)?;
        self.history.push(std::mem::replace(&mut self.at, at));
        Ok(true)
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        let remaining = self.history.remaining(n)?;
        if remaining < self.history.before_end() {
            // The peers did not take the end token.
            self.peers.back_to(remaining)?;
        }
        if let Some(at) = self.history.rollback(n)? {
            self.at = at;
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn Matcher> {
        Box::new(IntersectionMatcher {
            snapshot: self.snapshot.clone(),
            end: self.end,
            after: self.after.clone(),
            vocabulary_size: self.vocabulary_size,
            peers: self.peers.fork(),
            fuel: self.fuel,
            found: Arc::clone(&self.found),
            history: self.history.clone(),
            at: self.at.clone(),
            position: WalkPosition::default(),
        })
    }

    fn reset(&mut self) {
        self.peers.reset();
        if let Some(first) = self.history.reset() {
            self.at = first;
        }
    }

    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        let mut run = Vec::new();
        let walked = (|| {
            while run.len() < FORCED && !self.is_accepting() {
                let allowed = self.look()?;
                let [only] = allowed.tokens[..] else { break };
                self.accept(only)?;
                run.push(only);
            }
            Ok(())
        })();
        self.rollback(run.len())?;
        walked.map(|()| out.append(&mut run))
    }

    fn is_accepting(&self) -> bool {
        self.at.state == WalkState::FINISHED || self.at.is_item && self.end.is_none()
    }

    fn is_finished(&self) -> bool {
        self.at.is_over
    }

    fn after_end(&self) -> &AfterEnd {
        &self.after
    }

    fn is_ready(&self) -> bool {
        self.at.is_over || self.at.allowed.is_some() && self.peers.are_ready()
    }

    fn accepted(&self) -> usize {
        self.history.accepted()
    }
}
