//! A list of many entries that are not moved when it grows, so that no new entry takes long.

use std::ops::Index;

/// Entries of one chunk. The first one grows to this size.
const CHUNK: usize = 1 << 12;

/// A list that only grows.
///
/// ```
/// use logitree_automata::Chunks;
///
/// let mut words = Chunks::default();
/// words.push("one");
/// words.push("two");
/// assert_eq!((words.len(), words[1]), (2, "two"));
/// ```
#[derive(Debug, Clone)]
pub struct Chunks<T> {
    /// All but the last are full.
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks { chunks: Vec::new(), len: 0 }
    }
}

impl<T> Chunks<T> {
    /// Adds an entry at the end.
    pub fn push(&mut self, entry: T) {
        match self.chunks.last_mut().filter(|last| last.len() < CHUNK) {
            Some(last) => last.push(entry),
            None => {
                let mut next = if self.len == 0 { Vec::new() } else { Vec::with_capacity(CHUNK) };
                next.push(entry);
                self.chunks.push(next);
            }
        }
        self.len += 1;
    }

    /// How many entries there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The entries in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Index<usize> for Chunks<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.chunks[at / CHUNK][at % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_where_they_are() {
        let mut list = Chunks::default();
        assert!(list.is_empty());
        for n in 0..3 * CHUNK + 5 {
            assert_eq!(list.len(), n);
            list.push(n.to_string());
        }
        let place: *const String = &list[CHUNK + 1];
        for n in list.len()..5 * CHUNK {
            list.push(n.to_string());
        }
        assert!((0..5 * CHUNK).all(|n| list[n] == n.to_string()));
        assert!(std::ptr::eq(place, &list[CHUNK + 1]), "it was moved");
        assert!(list.iter().eq((0..5 * CHUNK).map(|n| &list[n])));
    }
}
