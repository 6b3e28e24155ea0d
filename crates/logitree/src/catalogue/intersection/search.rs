//! Whether one whole item below a place is allowed: a search for a witness.

use super::peers::Peers;
use super::position::WalkPosition;
use crate::catalogue::{CatalogueSnapshot, WalkState};
use crate::constraint::Completable;
use crate::{Error, ErrorKind, Result, TokenId};

/// Continuations that are read in a step.
const READ: usize = 64;

/// For places of one snapshot whether an item that all allow is there or below, at most for what two tables of 2^21 have
/// room for. A place says which tokens were read, so it determines the peers' states.
pub(super) type Places = Completable<WalkState, { 7 << 19 }>;

/// What a question may cost, in steps: a token that is offered to the peers, or 64 continuations that are read.
pub(super) struct Fuel {
    left: u64,
    given: u64,
}

impl Fuel {
    pub fn new(given: u64) -> Fuel {
        Fuel { left: given, given }
    }

    fn spend(&mut self, steps: u64) -> Result<()> {
        if let Some(left) = self.left.checked_sub(steps) {
            self.left = left;
            return Ok(());
        }
        let message = format!(
            "finding out what the prefix tree and the peers allow takes more than {} steps",
            self.given
        );
        Err(Error::new(ErrorKind::Limit, message)
            .help("intersect the whole catalogue once, for all sequences, or give more fuel"))
    }
}

/// The tree, and what is remembered of it.
#[derive(Clone, Copy)]
pub(super) struct SearchBase<'s> {
    pub snapshot: &'s CatalogueSnapshot,
    pub places: &'s Places,
    pub end: Option<TokenId>,
}

impl SearchBase<'_> {
    /// Whether an item after `token`, which leads to `state`, is allowed. The peers are before the token, also
    /// afterwards.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when the fuel is spent: what was found out is kept, so that asking again gets further, as
    /// long as there is room for it; those of the peers and of the tree.
    pub fn allows(
        &self,
        (token, state): (TokenId, WalkState),
        peers: &mut Peers,
        position: &mut WalkPosition,
        fuel: &mut Fuel,
    ) -> Result<bool> {
        if let Some(known) = self.places.get(&state) {
            return Ok(known);
        }
        fuel.spend(1)?;
        let before = peers.taken();
        let found = match peers.take(token) {
            Ok(true) => self.reaches(state, peers, position, fuel),
            Ok(false) => {
                self.places.keep(std::iter::once(state), false);
                Ok(false)
            }
            error => error,
        };
        peers.back_to(before)?;
        found
    }

    /// Whether an item at `state` or below it is allowed. The peers are there, and somewhere below it afterwards.
    ///
    /// # Errors
    /// As [`SearchBase::allows`].
    pub fn reaches(
        &self,
        state: WalkState,
        peers: &mut Peers,
        position: &mut WalkPosition,
        fuel: &mut Fuel,
    ) -> Result<bool> {
        let above = peers.taken();
        position.clear();
        let mut next = Some(state);
        loop {
            if let Some(state) = next.take() {
                let is_item = position.enter(self.snapshot, state)?;
                fuel.spend((position.width() / READ) as u64)?;
                if is_item && peers.are_complete(self.end)? {
                    break;
                }
            }
            match position.next() {
                Some((token, state)) => match self.places.get(&state) {
                    Some(true) => break,
                    Some(false) => {}
                    None => {
                        fuel.spend(1)?;
                        if peers.take(token)? {
                            next = Some(state);
                        } else {
                            self.places.keep(std::iter::once(state), false);
                        }
                    }
                },
                None => {
                    self.places.keep(position.leave().into_iter(), false);
                    if position.len() == 0 {
                        return Ok(false);
                    }
                    peers.back_to(above + position.len() - 1)?;
                }
            }
        }
        self.places.keep(position.states(), true);
        Ok(true)
    }
}
