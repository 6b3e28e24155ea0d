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
mod memo;
mod peers;
mod position;
mod search;

pub use eager::intersect;
pub use matcher::IntersectionMatcher;
