//! Prefix trees: a large set of items, each a sequence of tokens, of which only those that exist may be generated.
//!
//! An index holds the items as rows in ascending order, one behind the other, with how many tokens each row shares
//! with the row before it. That is the whole tree: a node is the first row under it and its depth, the node's rows
//! end where fewer tokens are shared, and a child begins where exactly as many are. Reading that takes few cache
//! lines, so it is how nodes of up to [`NARROW`] rows are walked. Wider nodes have a record with their children as
//! one ascending list. A tree of twenty million items of eight tokens needs 17 bytes an item for its rows, and no
//! pointers.
//!
//! - [`Segment`] is one index, in memory or in a file that is mapped ([`head`] tells its bytes).
//! - [`build`] sorts rows, in bounded memory, and writes an index.
//! - [`PrefixTree`] is an index that changes: rows that were removed are a set of bits, items that were added a small
//!   tree over it. A [`Snapshot`] is the tree at one moment; its states stay good for as long as it lives. A
//!   [`Selection`] is how others make one of some of its items.
//!
//! The room refuses to know logits, vocabularies, and what an item is beside its tokens and its number.

pub mod build;
mod children;
pub mod head;
mod live;
mod narrow;
mod overlay;
mod pages;
mod segment;
mod selection;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
mod tree;

pub use children::Children;
pub(crate) use pages::damaged;
pub use segment::Segment;
pub use selection::Selection;
pub use snapshot::Snapshot;
pub(crate) use snapshot::WideNode;
pub use state::State;
pub use tree::PrefixTree;

/// Rows of a node that is walked row by row; wider ones have a record.
pub const NARROW: usize = 64;

/// Tokens of an item at most.
pub const MAX_LENGTH: usize = 4096;

/// Rows of an index at most: what a state's number has room for.
pub const MAX_ROWS: u64 = 1 << 40;

/// The largest token that an item may hold.
pub const MAX_TOKEN: u32 = i32::MAX as u32;
