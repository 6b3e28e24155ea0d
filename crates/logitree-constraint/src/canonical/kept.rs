//! Answers that are kept within a number of bytes.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// About how many bytes an entry of a table takes beside its key and its value.
const ENTRY_BYTES: usize = 8;

/// Answers by what was asked. Every answer can be found out again, so that it may be forgotten at any time.
pub(super) struct Kept<K, V> {
    all: FxHashMap<K, V>,
    bytes: usize,
    most: usize,
}

impl<K: Eq + Hash, V> Kept<K, V> {
    /// Keeps at most about `most` bytes.
    pub fn new(most: usize) -> Self {
        Kept { all: FxHashMap::default(), bytes: 0, most }
    }

    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.all.get(key)
    }

    /// Keeps an answer that holds about so many bytes elsewhere, the same for each answer to a question. Where there is no
    /// room, all others are forgotten; one that is too large alone is not kept.
    pub fn keep(&mut self, key: K, value: V, bytes: usize) {
        if let Some(known) = self.all.get_mut(&key) {
            *known = value;
            return;
        }
        let bytes = bytes + size_of::<(K, V)>() + ENTRY_BYTES;
        if bytes > self.most {
            return;
        }
        if self.bytes + bytes > self.most {
            self.all.clear();
            self.bytes = 0;
        }
        self.all.insert(key, value);
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut kept: Kept<u64, u64> = Kept::new(10 * (16 + ENTRY_BYTES + 100));
        for key in 0..10 {
            kept.keep(key, key, 100);
            kept.keep(key, key, 100);
        }
        assert!((0..10).all(|key| kept.get(&key) == Some(&key)));
        kept.keep(10, 10, 100);
        assert!((0..10).all(|key| kept.get(&key).is_none()) && kept.get(&10) == Some(&10));
        kept.keep(11, 11, 1 << 20);
        assert!(kept.get(&11).is_none() && kept.get(&10) == Some(&10) && kept.bytes <= kept.most);
    }
}
