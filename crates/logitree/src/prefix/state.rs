//! Places in a prefix tree as numbers of 64 bits, so that a thousand beams are one array. It refuses to know what
//! stands at a place.

/// A place in a prefix tree: a node of one snapshot, or one of two that belong to none. Never negative for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State(pub i64);

/// What a state's number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The node of so many tokens whose first row is this: a narrow one.
    Rows { row: u64, depth: u32 },
    /// The wide node with this record.
    Wide(u64),
    /// The node of the overlay with this number.
    Over(u64),
    /// Behind an end, or a token that was not legal.
    Nowhere,
}

const KIND: u32 = 56;
const DEPTH: u32 = 16;

impl State {
    /// The item is over: its end token came.
    pub const FINISHED: State = State(-1);
    /// A token came that no item has there: only the end token may follow.
    pub const FAILED: State = State(-2);

    pub(super) fn rows(row: u64, depth: u32) -> State {
        State((row << DEPTH) as i64 | i64::from(depth))
    }

    /// The first row of a narrow node.
    #[inline]
    pub(super) fn row(self) -> u64 {
        (self.0 as u64) >> DEPTH
    }

    pub(super) fn wide(record: u64) -> State {
        State(1 << KIND | record as i64)
    }

    pub(super) fn over(node: usize) -> State {
        State(2 << KIND | node as i64)
    }

    #[inline]
    pub(super) fn place(self) -> Place {
        let low = (self.0 & ((1 << KIND) - 1)) as u64;
        match self.0 >> KIND {
            0 => Place::Rows { row: low >> DEPTH, depth: (low & ((1 << DEPTH) - 1)) as u32 },
            1 => Place::Wide(low),
            2 => Place::Over(low),
            _ => Place::Nowhere,
        }
    }
}
