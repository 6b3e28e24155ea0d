//! States of a walk as numbers of 64 bits, so that a thousand beams are one array.

/// A state of a walk: a node of one snapshot (never negative), or one of two states that are not nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WalkState(pub i64);

/// The meaning of a state's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateKind {
    /// The node of so many tokens whose first row is this: a narrow one.
    Narrow { row: u64, depth: u32 },
    /// The wide node with this record.
    Wide(u64),
    /// The node of the overlay with this number.
    Added(u64),
    /// After an end, or after a token that was not allowed.
    Terminal,
}

const KIND: u32 = 56;
const DEPTH: u32 = 16;

impl WalkState {
    /// The item ended with its end token.
    pub const FINISHED: WalkState = WalkState(-1);
    /// A token that no item has there was accepted: only the end token may follow.
    pub const FAILED: WalkState = WalkState(-2);

    pub(super) fn narrow(row: u64, depth: u32) -> WalkState {
        WalkState((row << DEPTH) as i64 | i64::from(depth))
    }

    /// The first row of a narrow node.
    #[inline]
    pub(super) fn row(self) -> u64 {
        (self.0 as u64) >> DEPTH
    }

    pub(super) fn wide(record: u64) -> WalkState {
        WalkState(1 << KIND | record as i64)
    }

    pub(super) fn added(node: usize) -> WalkState {
        WalkState(2 << KIND | node as i64)
    }

    #[inline]
    pub(super) fn kind(self) -> StateKind {
        let low = (self.0 & ((1 << KIND) - 1)) as u64;
        match self.0 >> KIND {
            0 => StateKind::Narrow { row: low >> DEPTH, depth: (low & ((1 << DEPTH) - 1)) as u32 },
            1 => StateKind::Wide(low),
            2 => StateKind::Added(low),
            _ => StateKind::Terminal,
        }
    }
}
