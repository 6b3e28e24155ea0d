//! The items of a prefix tree that other constraints allow too, without dead ends: a token is allowed only if a whole
//! item that all allow is below it.
//!
//! An item counts if each of the peers takes all its tokens and is complete after them, or after the end token that
//! follows them. What is over takes nothing more: its allowed tokens is everything then, but that is not its language.
//!
//! The slow version feeds every item to the peers, token by token, and builds a tree of those that pass. The step away
//! from it is to walk the tree and the peers together, depth first: what one of them refuses is not looked at below.
//! [`intersect`] walks all of it, once, and gives a tree that anything can be done with; [`IntersectionMatcher`]
//! looks for one item below each token when it is asked what is allowed, and remembers what it found.

mod eager;
mod matcher;
mod peers;
mod position;
mod search;

use std::sync::Arc;

use super::ItemWalk;
use crate::constraint::{Constraint, Matcher};
use crate::vocabulary::Vocabulary;
use crate::Result;

pub use eager::intersect;
pub use matcher::IntersectionMatcher;

/// The constraint that the output is an item that other constraints allow too.
#[derive(Clone)]
pub struct Intersection {
    /// The items, and the token that ends one.
    pub walk: ItemWalk,
    /// The other constraints; at least one.
    pub peers: Vec<Arc<dyn Constraint>>,
    /// Steps that one question may take, such as [`Intersection::FUEL`].
    pub fuel: u64,
}

impl Intersection {
    /// Steps that one question may take, where nothing else is said.
    pub const FUEL: u64 = 1 << 20;
}

impl Constraint for Intersection {
    /// # Errors
    /// Those of the peers and of [`ItemWalk::sequence_with`].
    fn matcher(&self, vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        let peers = self.peers.iter().map(|peer| peer.matcher(vocabulary)).collect::<Result<_>>()?;
        let after = vocabulary.end_tokens();
        Ok(Box::new(self.walk.sequence_with(peers, vocabulary.len(), after, self.fuel)?))
    }
}
