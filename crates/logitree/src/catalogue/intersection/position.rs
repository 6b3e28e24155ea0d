//! The position down a prefix tree, with what is still to be tried at each place of it: a stack instead of calls, so
//! that a long item costs no more than its tokens.

use crate::catalogue::{damaged, CatalogueSnapshot, Continuations, WalkState, MAX_LENGTH};
use crate::{Result, TokenId};

struct Place {
    state: WalkState,
    /// Where its continuations begin among all open ones.
    from: usize,
    /// The next of them.
    next: usize,
}

/// Places from the one where the walk began to the one where it is.
#[derive(Default)]
pub(super) struct WalkPosition {
    places: Vec<Place>,
    /// The continuations of all places, in order.
    open: Continuations,
    scratch: Continuations,
}

/// Maximum number of continuations of all places of the tree together: each leads to a place of its own, which a token of an item
/// stands for. An index that was made to lead round in a circle has more.
pub(super) fn most(snapshot: &CatalogueSnapshot) -> u64 {
    snapshot.index().header().tokens.saturating_add(snapshot.added_nodes() as u64)
}

impl Clone for WalkPosition {
    /// At no place: a copy does not take the walk with it.
    fn clone(&self) -> Self {
        WalkPosition::default()
    }
}

impl WalkPosition {
    /// Number of places.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// At no place.
    pub fn clear(&mut self) {
        self.places.clear();
        self.open.clear();
    }

    /// Advances to `state`; whether an item ends there.
    ///
    /// # Errors
    /// As [`CatalogueSnapshot::children`]; [`crate::ErrorKind::Payload`] if no item is as long as this.
    pub fn enter(&mut self, snapshot: &CatalogueSnapshot, state: WalkState) -> Result<bool> {
        if self.places.len() > MAX_LENGTH {
            return Err(damaged("a place deeper than the longest item"));
        }
        let from = self.open.tokens.len();
        snapshot.append(state, &mut self.open, &mut self.scratch)?;
        if self.open.tokens.len() as u64 > most(snapshot) {
            return Err(damaged("more places than tokens"));
        }
        self.places.push(Place { state, from, next: from });
        Ok(self.open.is_item)
    }

    /// Number of continuations of the last place.
    pub fn width(&self) -> usize {
        self.places.last().map_or(0, |place| self.open.tokens.len() - place.from)
    }

    /// The next position on from the last place; `None` if all were given.
    pub fn next(&mut self) -> Option<(TokenId, WalkState)> {
        let place = self.places.last_mut()?;
        let at = place.next;
        let found = (*self.open.tokens.get(at)?, *self.open.states.get(at)?);
        place.next += 1;
        Some(found)
    }

    /// Leaves the last place.
    pub fn leave(&mut self) -> Option<WalkState> {
        let place = self.places.pop()?;
        self.open.truncate(place.from);
        Some(place.state)
    }

    /// The places, in order.
    pub fn states(&self) -> impl Iterator<Item = WalkState> + '_ {
        self.places.iter().map(|place| place.state)
    }
}
