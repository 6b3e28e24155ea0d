//! The intersection for one sequence, found out where the sequence goes.

use std::sync::{Arc, OnceLock};

use super::peers::Peers;
use super::position::WalkPosition;
use super::search::{Fuel, Places, SearchBase};
use crate::catalogue::{
    add_end, check_snapshot, damaged, CatalogueSnapshot, Continuations, ItemWalk, WalkState,
};
use crate::constraint::{AfterEnd, Matcher, Sequence, States};
use crate::mask::AllowedTokens;
use crate::{Error, ErrorKind, Result, TokenId};

/// A matcher over the items of a prefix tree that peers allow too.
///
/// Forks share what they find out: make one, and fork it for each sequence.
pub type IntersectionMatcher = Sequence<SharedItems>;

/// What all forks of a matcher found.
#[derive(Default)]
struct Found {
    places: Places,
    /// What may follow at the beginning.
    first: OnceLock<Arc<Continuations>>,
}

/// The states of a tree, beside the peers after the same tokens.
#[derive(Clone)]
pub struct SharedItems {
    snapshot: CatalogueSnapshot,
    end: Option<TokenId>,
    after: AfterEnd,
    vocabulary_size: usize,
    peers: Peers,
    fuel: u64,
    found: Arc<Found>,
    position: WalkPosition,
}

/// The position of a sequence in the tree.
#[derive(Clone)]
pub struct At {
    state: WalkState,
    /// Whether an item ends here that the peers allow.
    is_item: bool,
    /// Whether nothing may follow.
    is_over: bool,
    /// What may follow, the end token included, once it was asked for.
    allowed: OnceLock<Arc<Continuations>>,
}

impl At {
    fn new(state: WalkState, is_item: bool, is_over: bool) -> At {
        At { state, is_item, is_over, allowed: OnceLock::new() }
    }
}

impl ItemWalk {
    /// At the beginning of an item that `peers` allow too, which is their current state. With an end token every item ends
    /// with it; without, an item is over with its last token, and then come those in `after`. `fuel` is the number of steps
    /// that one question may take, such as [`Intersection::FUEL`](super::Intersection::FUEL).
    ///
    /// # Errors
    /// As [`ItemWalk::sequence`]; [`ErrorKind::Constraint`] if there is no peer, or if the peers allow no item;
    /// [`ErrorKind::Limit`] if that takes more than the fuel to find out.
    pub fn sequence_with(
        &self,
        peers: Vec<Box<dyn Matcher>>,
        vocabulary_size: usize,
        after: &[TokenId],
        fuel: u64,
    ) -> Result<IntersectionMatcher> {
        let ItemWalk { snapshot, end } = self.clone();
        check_snapshot(&snapshot, end, vocabulary_size)?;
        let mut peers = Peers::new(peers)?;
        let (found, mut position) = (Arc::new(Found::default()), WalkPosition::default());
        let base = SearchBase { snapshot: &snapshot, places: &found.places, end };
        let at = At::new(snapshot.root(), false, false);
        if !base.reaches(at.state, &mut peers, &mut position, &mut Fuel::new(fuel))? {
            let message = "no item of the prefix tree is allowed by what it is intersected with";
            return Err(Error::new(ErrorKind::Constraint, message)
                .help("an item counts if the peers take all its tokens and are complete after them"));
        }
        peers.back_to(0)?;
        let after = AfterEnd::tokens(end.as_slice(), after);
        let items = SharedItems { snapshot, end, after, vocabulary_size, peers, fuel, found, position };
        Ok(Sequence::begin(items, at))
    }
}

impl SharedItems {
    /// Whether an allowed item continues with `token` to `state`.
    fn allows(&mut self, token: TokenId, state: WalkState, fuel: &mut Fuel) -> Result<bool> {
        let base = SearchBase { snapshot: &self.snapshot, places: &self.found.places, end: self.end };
        base.allows((token, state), &mut self.peers, &mut self.position, fuel)
    }

    /// What may follow here.
    fn look(&mut self, at: &At) -> Result<Arc<Continuations>> {
        if let Some(allowed) = at.allowed.get() {
            return Ok(Arc::clone(allowed));
        }
        let is_first = self.peers.taken() == 0;
        if let Some(first) = self.found.first.get().filter(|_| is_first) {
            return Ok(Arc::clone(first));
        }
        let (mut all, mut allowed) = (Continuations::default(), Continuations::default());
        self.snapshot.children(at.state, &mut all)?;
        let mut fuel = Fuel::new(self.fuel);
        for (token, state) in all.tokens.into_iter().zip(all.states) {
            if self.allows(token, state, &mut fuel)? {
                allowed.tokens.push(token);
                allowed.states.push(state);
            }
        }
        if at.is_item {
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
        Ok(allowed)
    }

    /// Where `token` leads, if it is allowed.
    fn step(&mut self, at: &At, token: TokenId) -> Result<Option<WalkState>> {
        if let Some(allowed) = at.allowed.get() {
            let place = allowed.tokens.binary_search(&token);
            return Ok(place.ok().and_then(|place| allowed.states.get(place)).copied());
        }
        if let Some(state) = self.snapshot.step(at.state, token)? {
            let mut fuel = Fuel::new(self.fuel);
            if self.allows(token, state, &mut fuel)? {
                return Ok(Some(state));
            }
        }
        Ok((at.is_item && self.end == Some(token)).then_some(WalkState::FINISHED))
    }

    /// The place at `state`, to which the peers' last token leads.
    fn enter(&mut self, state: WalkState) -> Result<At> {
        let mut here = Continuations::default();
        self.snapshot.children(state, &mut here)?;
        let is_item = here.is_item && self.peers.are_complete(self.end)?;
        Ok(At::new(state, is_item, is_item && self.end.is_none() && here.tokens.is_empty()))
    }
}

impl States for SharedItems {
    type At = At;

    const TEXT: &'static str = "item";

    fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    fn after_end(&self) -> &AfterEnd {
        &self.after
    }

    fn is_accepting(&self, at: &At) -> bool {
        at.state == WalkState::FINISHED || at.is_item && self.end.is_none()
    }

    fn is_finished(&self, at: &At) -> bool {
        at.is_over
    }

    fn allowed<'a>(&'a mut self, at: &'a At) -> Result<AllowedTokens<'a>> {
        let allowed = self.look(at)?;
        Ok(AllowedTokens::Ids(&at.allowed.get_or_init(|| allowed).tokens))
    }

    fn next(&mut self, at: &At, token: TokenId) -> Result<Option<At>> {
        match self.step(at, token)? {
            None => Ok(None),
            // The peers do not take the end token.
            Some(WalkState::FINISHED) => Ok(Some(At::new(WalkState::FINISHED, true, true))),
            Some(state) => {
                let before = self.peers.taken();
                if !self.peers.take(token)? {
                    return Err(damaged("a place that two ways lead to"));
                }
                let entered = self.enter(state);
                if entered.is_err() {
                    self.peers.back_to(before)?;
                }
                entered.map(Some)
            }
        }
    }

    fn back(&mut self, _to: &At, left: &mut [At]) -> Result<()> {
        let taken = left.iter().filter(|at| at.state != WalkState::FINISHED).count();
        self.peers.back_to(self.peers.taken() - taken)
    }

    fn is_allowed(&mut self, at: &At, token: TokenId) -> Result<Option<bool>> {
        Ok(Some(self.step(at, token)?.is_some()))
    }

    fn is_ready(&self, at: &At) -> bool {
        at.allowed.get().is_some() && self.peers.are_ready()
    }
}
