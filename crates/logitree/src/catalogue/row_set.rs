//! The set of present rows of an index: one bit a row, in chunks that copies share until one of them is changed.

use std::sync::Arc;

use super::shared_vec::SharedVec;

/// Words of a chunk.
const WORDS: usize = 512;
/// Rows of a chunk.
const ROWS: u64 = (WORDS * 64) as u64;

#[derive(Clone)]
enum Chunk {
    All,
    Some(Arc<Words>),
}

#[derive(Clone)]
struct Words {
    words: [u64; WORDS],
    /// One bit a word: whether any row of it is present.
    any: [u64; WORDS / 64],
}

/// The present rows.
#[derive(Clone)]
pub(super) struct RowSet {
    chunks: SharedVec<Chunk>,
    rows: u64,
    /// Number of present rows.
    count: u64,
}

impl RowSet {
    /// All of so many rows.
    pub fn all(rows: u64) -> RowSet {
        RowSet { chunks: SharedVec::filled(&Chunk::All, rows.div_ceil(ROWS) as usize), rows, count: rows }
    }

    /// None of so many rows. Absent rows take no memory.
    pub fn none(rows: u64) -> RowSet {
        let empty = Chunk::Some(Arc::new(Words::NONE));
        RowSet { chunks: SharedVec::filled(&empty, rows.div_ceil(ROWS) as usize), rows, count: 0 }
    }

    /// Number of present rows.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn contains(&self, row: u64) -> bool {
        match self.chunks.get((row / ROWS) as usize) {
            Some(Chunk::All) => row < self.rows,
            Some(Chunk::Some(words)) => {
                let at = (row % ROWS) as usize;
                words.words[at / 64] >> (at % 64) & 1 == 1
            }
            _ => false,
        }
    }

    /// Inserts or removes the row; returns whether that changed anything.
    pub fn set(&mut self, row: u64, there: bool) -> bool {
        if row >= self.rows || self.contains(row) == there {
            return false;
        }
        let Some(chunk) = self.chunks.get_mut((row / ROWS) as usize) else { return false };
        let filled = match chunk {
            Chunk::Some(_) => None,
            Chunk::All => {
                // Rows after the last are never present.
                let mut words = Words::NONE;
                let rows = (self.rows - row / ROWS * ROWS).min(ROWS) as usize;
                for (at, word) in words.words.iter_mut().enumerate().take(rows.div_ceil(64)) {
                    let rest = rows - at * 64;
                    *word = if rest >= 64 { u64::MAX } else { (1 << rest) - 1 };
                    words.any[at / 64] |= 1 << (at % 64);
                }
                Some(words)
            }
        };
        if let Some(filled) = filled {
            *chunk = Chunk::Some(Arc::new(filled));
        }
        if let Chunk::Some(words) = chunk {
            let words = Arc::make_mut(words);
            let at = (row % ROWS) as usize;
            words.words[at / 64] ^= 1 << (at % 64);
            let bit = 1 << (at / 64 % 64);
            if words.words[at / 64] == 0 {
                words.any[at / 64 / 64] &= !bit;
            } else {
                words.any[at / 64 / 64] |= bit;
            }
        }
        self.count = if there { self.count + 1 } else { self.count - 1 };
        true
    }

    /// Whether any row from `from` to before `to` is there.
    #[inline]
    pub fn any(&self, from: u64, to: u64) -> bool {
        let to = to.min(self.rows);
        if from >= to {
            return false;
        }
        if to - from == 1 {
            return self.contains(from);
        }
        let (first, last) = ((from / ROWS) as usize, ((to - 1) / ROWS) as usize);
        (first..=last).any(|at| match self.chunks.get(at) {
            None => false,
            Some(Chunk::All) => true,
            Some(Chunk::Some(words)) => {
                let start = at as u64 * ROWS;
                words.any((from.max(start) - start) as usize, (to - start).min(ROWS) as usize)
            }
        })
    }
}

/// A set whose rows are appended in order.
pub(super) struct RowSetBuilder {
    set: RowSet,
    /// The chunk that is not full yet.
    last: Words,
}

impl RowSetBuilder {
    pub fn new() -> RowSetBuilder {
        RowSetBuilder { set: RowSet { chunks: SharedVec::default(), rows: 0, count: 0 }, last: Words::NONE }
    }

    /// Appends a row.
    #[inline]
    pub fn push(&mut self, there: bool) {
        if there {
            let at = (self.set.rows % ROWS) as usize;
            self.last.words[at / 64] |= 1 << (at % 64);
            self.last.any[at / 64 / 64] |= 1 << (at / 64 % 64);
            self.set.count += 1;
        }
        self.set.rows += 1;
        if self.set.rows.is_multiple_of(ROWS) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.set.chunks.push(Chunk::Some(Arc::new(std::mem::replace(&mut self.last, Words::NONE))));
    }

    pub fn finish(mut self) -> RowSet {
        if !self.set.rows.is_multiple_of(ROWS) {
            self.flush();
        }
        self.set
    }
}

impl Words {
    const NONE: Words = Words { words: [0; WORDS], any: [0; WORDS / 64] };

    /// Whether any bit from `from` to before `to`, which is greater, is set.
    fn any(&self, from: usize, to: usize) -> bool {
        let (first, last) = (from / 64, (to - 1) / 64);
        let header = u64::MAX << (from % 64);
        let tail = u64::MAX >> (63 - (to - 1) % 64);
        if first == last {
            return self.words[first] & header & tail != 0;
        }
        self.words[first] & header != 0 || self.words[last] & tail != 0 || self.any_word(first + 1, last)
    }

    /// Whether any word from `from` to before `to` has a bit.
    fn any_word(&self, from: usize, to: usize) -> bool {
        if from >= to {
            return false;
        }
        let (first, last) = (from / 64, (to - 1) / 64);
        let header = u64::MAX << (from % 64);
        let tail = u64::MAX >> (63 - (to - 1) % 64);
        if first == last {
            return self.any[first] & header & tail != 0;
        }
        self.any[first] & header != 0
            || self.any[last] & tail != 0
            || self.any[first + 1..last].iter().any(|&word| word != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equal_to_a_vector_of_bools(
            full in any::<bool>(),
            by_set in any::<bool>(),
            rows in 1u64..100_000,
            changes in prop::collection::vec((any::<u64>(), any::<bool>(), 0u64..70_000), 0..200),
        ) {
            let mut live = if full { RowSet::all(rows) } else { RowSet::none(rows) };
            let mut plain = vec![full; rows as usize];
            if !full {
                plain.iter_mut().step_by(7).for_each(|there| *there = true);
                let mut builder = RowSetBuilder::new();
                for (row, &there) in (0..).zip(&plain) {
                    if by_set {
                        prop_assert_eq!(live.set(row, there), there);
                    } else {
                        builder.push(there);
                    }
                }
                if !by_set {
                    live = builder.finish();
                }
            }
            for (row, there, length) in changes {
                let row = row % rows;
                let copy = live.clone();
                prop_assert_eq!(live.set(row, there), plain[row as usize] != there);
                prop_assert_eq!(copy.contains(row), plain[row as usize]);
                plain[row as usize] = there;
                let to = (row + length).min(rows);
                prop_assert_eq!(live.any(row, to), plain[row as usize..to as usize].contains(&true));
                prop_assert_eq!(live.count(), plain.iter().filter(|&&there| there).count() as u64);
            }
            prop_assert!(!live.any(rows, rows + 5) && !live.set(rows, true));
        }
    }
}
