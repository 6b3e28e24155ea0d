//! Catalogues: large sets of items. Each is a sequence of tokens, and only items that exist may be generated.
//!
//! An index stores the items as rows in ascending order, one after the other, with the number of tokens that each row
//! shares with the row before it. That is the whole tree: a node is its first row and its depth, its rows end where fewer
//! tokens are shared, and a child begins where exactly as many are. Reading that takes few cache lines, so nodes of up to
//! 64 rows are walked that way. Wider nodes have a record with their children as one ascending list. Twenty million
//! items of eight tokens need 17 bytes an item for their rows, and no pointers.
//!
//! - [`ItemIndex`] is one index, in memory or in a mapped file (`format` has its bytes).
//! - [`CatalogueBuilder`] sorts rows in bounded memory and writes an index.
//! - [`Catalogue`] is an index that changes: removed rows are a set of bits, added items a small tree over it. A
//!   [`CatalogueSnapshot`] is the catalogue at one moment; its states are valid as long as it lives. A durable catalogue
//!   records its changes in a journal after the index, in the same file.
//! - [`CatalogueMatcher`] generates one item in one sequence; [`ItemWalk`] asks about many beams at once.
//! - [`intersect`] and [`IntersectionMatcher`] keep the items that other constraints allow too.

mod beams;
mod build;
mod continuations;
mod editor;
mod filtered;
mod format;
mod index;
mod intersection;
mod journal;
mod keys;
mod matcher;
mod narrow;
mod overlay;
mod row_set;
mod shared_vec;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
mod updatable;

pub use beams::{beam_top, Beam, BeamCandidate, BeamRows, ItemWalk};
pub use build::{BuildOptions, BuiltIndex, CatalogueBuilder, Progress};
pub use continuations::Continuations;
pub(crate) use filtered::SnapshotFilter;
pub(crate) use format::checksum::damaged;
pub use format::header::IndexHeader;
pub use index::ItemIndex;
pub use intersection::{intersect, Intersection, IntersectionMatcher};
pub use matcher::CatalogueMatcher;
use matcher::{add_end, check_snapshot};
pub use snapshot::CatalogueSnapshot;
pub(crate) use snapshot::WideNode;
pub use state::WalkState;
pub use updatable::{Catalogue, CatalogueTurn};

/// The most rows of a node that is walked row by row; wider nodes have a record.
pub(crate) const NARROW: usize = 64;

/// The most bytes of a key.
pub const MAX_KEY_BYTES: usize = 4096;

/// The most tokens of an item.
pub const MAX_LENGTH: usize = 4096;

/// The most rows of an index: a state's number has no room for more.
pub(crate) const MAX_ROWS: u64 = 1 << 40;

/// The largest token that an item may hold.
pub const MAX_TOKEN: u32 = i32::MAX as u32;
