//! Answers that can be found again, within a bound: two generations; when the younger is full, the older is dropped.
//!
//! What is found in the older one is young again. What is forgotten is freed a few answers at a time: freeing thousands of
//! tables at once took as long as the longest masks.

use std::borrow::Borrow;
use std::collections::hash_map::IntoIter;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// About how many bytes an entry of a table takes beside its key and its value.
const ENTRY_BYTES: usize = 16;
/// How many forgotten answers each new one frees.
const FREED_AT_ONCE: usize = 16;

/// Answers by what was asked: at most `MOST`, or about so many bytes of them, both generations together. Any of them may be
/// forgotten at any time.
#[derive(Debug)]
pub struct Memo<K, V, const MOST: usize> {
    young: FxHashMap<K, (V, u32)>,
    old: FxHashMap<K, (V, u32)>,
    /// Not freed yet.
    forgotten: IntoIter<K, (V, u32)>,
    /// What the younger generation holds: answers, or bytes.
    size: usize,
}

impl<K, V, const MOST: usize> Default for Memo<K, V, MOST> {
    fn default() -> Self {
        let [young, old, forgotten] = [(); 3].map(|()| FxHashMap::default());
        Memo { young, old, forgotten: forgotten.into_iter(), size: 0 }
    }
}

impl<K: Eq + Hash, V: Clone, const MOST: usize> Memo<K, V, MOST> {
    /// The answer, if it is known.
    #[inline]
    pub fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some((known, _)) = self.young.get(key) {
            return Some(known.clone());
        }
        let (key, (known, size)) = self.old.remove_entry(key)?;
        self.insert(key, known.clone(), size);
        Some(known)
    }

    /// Keeps an answer, where the bound is a number of answers.
    pub fn keep(&mut self, key: K, value: V) -> V {
        self.insert(key, value.clone(), 1);
        value
    }

    /// Keeps an answer that holds about so many bytes elsewhere, where the bound is in bytes. One that is too large for a
    /// generation is not kept.
    pub fn keep_bytes(&mut self, key: K, value: V, bytes: usize) -> V {
        let bytes = bytes + size_of::<(K, V)>() + ENTRY_BYTES;
        if let (true, Ok(bytes)) = (bytes <= MOST / 2, u32::try_from(bytes)) {
            self.insert(key, value.clone(), bytes);
        }
        value
    }

    fn insert(&mut self, key: K, value: V, size: u32) {
        if self.size + size as usize > MOST / 2 {
            let old = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.forgotten = old.into_iter();
            self.size = 0;
        }
        if self.forgotten.len() > 0 {
            self.forgotten.by_ref().take(FREED_AT_ONCE).for_each(drop);
            if self.forgotten.len() == 0 {
                self.forgotten = FxHashMap::default().into_iter();
            }
        }
        self.size += size as usize;
        if let Some((_, before)) = self.young.insert(key, (value, size)) {
            self.size -= before as usize;
        }
    }
}

/// Numbers of states: at most `MOST` are known again, and no number is given twice.
#[derive(Debug)]
pub struct Numbers<K, const MOST: usize> {
    known: Memo<K, u64, MOST>,
    next: u64,
}

impl<K, const MOST: usize> Default for Numbers<K, MOST> {
    fn default() -> Self {
        Numbers { known: Memo::default(), next: 0 }
    }
}

impl<K: Eq + Hash, const MOST: usize> Numbers<K, MOST> {
    /// The number of a state: a new one where it is not known.
    pub fn number(&mut self, state: K) -> u64 {
        self.known.get(&state).unwrap_or_else(|| {
            self.next += 1;
            self.known.keep(state, self.next - 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_once() {
        let mut numbers: Numbers<u64, 200> = Numbers::default();
        let first: Vec<u64> = (0..100).map(|state| numbers.number(state)).collect();
        assert!((0..100).all(|state| numbers.number(state) == first[state as usize]));
        let mut all = first;
        all.extend((100..1_000).chain(0..100).map(|state| numbers.number(state)));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "the first hundred were forgotten");
    }

    #[test]
    fn what_is_used_stays_and_no_more_is_kept_than_there_is_room_for() {
        const MOST: usize = 200 * (16 + ENTRY_BYTES + 1_000);
        let mut bytes: Memo<u64, u64, MOST> = Memo::default();
        let mut answers: Memo<u64, u64, 200> = Memo::default();
        for key in 0..1_000 {
            assert_eq!((bytes.keep_bytes(key, key, 1_000), answers.keep(key, key)), (key, key));
            bytes.keep_bytes(key, key, 1_000);
            assert!(
                bytes.get(&0).is_some() && answers.get(&0).is_some(),
                "used at every key, forgotten at {key}"
            );
            assert!(
                bytes.young.len() + bytes.old.len() <= 200 && answers.young.len() + answers.old.len() <= 200
            );
            assert!(bytes.size <= MOST / 2 && bytes.forgotten.len() <= 100);
        }
        assert!((902..1_000).all(|key| bytes.get(&key) == Some(key) && answers.get(&key) == Some(key)));
        assert!(bytes.get(&1).is_none() && answers.get(&1).is_none());
        bytes.keep_bytes(1_000, 0, MOST);
        assert!(bytes.get(&1_000).is_none() && bytes.get(&999).is_some());
    }
}
