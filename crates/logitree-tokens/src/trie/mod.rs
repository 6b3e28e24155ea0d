//! The vocabulary's bytes as a trie, laid out depth-first, and the walks over it.
//!
//! ```text
//! tokens: 0 "a"  1 "ab"  2 "b"          node   0   1   2   3
//!                                       byte       a   b   b
//!          root                         size   4   2   1   1
//!          ├─ a 0                       depth  0   1   2   1
//!          │  └─ b 1                    token      0   1   2
//!          └─ b 2
//! ```
//!
//! A node's first child is the next node; its next sibling is `size` nodes later. So refusing a byte is
//! `p += size`, allowing it is `p += 1`, and no walk recurses. Ids are in the order of their bytes, so every
//! subtree owns one run of them.

mod below;
mod build;
mod cursor;
mod dump;
mod explore;
mod node;
mod sweep;
mod table;
mod walk;

#[doc(hidden)] // masks of grammars
pub use below::Below;
pub use cursor::{Children, Node};
pub use dump::DumpOptions;
#[doc(hidden)] // masks of grammars
pub use explore::Explorer;
pub use node::{MAX_DEPTH, MAX_NODES};
#[doc(hidden)] // masks of grammars
pub use table::Loops;
pub use table::{StateNumber, Table, TableStack};

use crate::TokenId;
use node::Packed;
use sweep::Outline;

/// Surplus slots after the vocabulary's last word, assigned in turn to the nodes where no token ends, so that setting a
/// bit never waits for the previous one.
const BOGUS_SLOTS: usize = 2048;

/// A recogniser over bytes with a stack of states, one per byte consumed.
///
/// A walk leaves it as it found it: every byte pushed is popped again. If `push` says `true` without pushing, or
/// `pop` forgets another number of bytes, masks are wrong, but nothing else breaks.
pub trait Recognizer {
    /// Tries one more byte: on `true` it is pushed, on `false` nothing changed.
    fn push(&mut self, byte: u8) -> bool;
    /// Forgets the last `n` bytes pushed. `n` may be 0, and never exceeds what was pushed.
    fn pop(&mut self, n: usize);
}

/// The text tokens of one vocabulary as a byte trie. Immutable. A node takes 12 bytes: 8
/// that the walks read, and 4 that lead to its ids.
pub struct TokenTrie {
    /// Depth-first; `nodes[0]` is the root.
    nodes: Box<[Packed]>,
    /// `ids[before[p]..before[p + 1]]` end in node `p`.
    before: Box<[u32]>,
    /// Every text token's id, in the order of their bytes, then of their numbers.
    ids: Box<[TokenId]>,
    /// (id in the node, other id with the same bytes), for all other ids.
    twins: Box<[(TokenId, TokenId)]>,
    /// `first[b]` is the root's first child with a byte of `b` or more.
    first: Box<[u32; 257]>,
    outline: Outline,
    max_depth: usize,
    vocabulary_size: usize,
}

impl TokenTrie {
    /// Number of ids in the trie: the vocabulary's text tokens that are not empty.
    pub fn token_count(&self) -> usize {
        self.ids.len()
    }

    /// Number of nodes, the root included.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Length of the longest token in bytes.
    pub fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// Number of ids of the vocabulary, those outside the trie included: masks cover all of them.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// Bytes of memory the trie holds.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.nodes)
            + size_of_val(&*self.before)
            + size_of_val(&*self.ids)
            + size_of_val(&*self.twins)
            + size_of_val(&*self.first)
            + self.outline.memory()
    }
}

impl std::fmt::Debug for TokenTrie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenTrie")
            .field("tokens", &self.ids.len())
            .field("nodes", &self.nodes.len())
            .field("max_depth", &self.max_depth)
            .finish()
    }
}
