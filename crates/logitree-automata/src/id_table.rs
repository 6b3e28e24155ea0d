//! A hash table of ids of entries that are kept elsewhere. It grows a few places at a time, so that no insertion takes
//! long, and it never hashes an entry again.

/// How many places of the table before it was enlarged are moved with each new id.
const MOVED_EACH: usize = 16;
/// The number of places of the first table.
const FIRST_PLACES: usize = 16;

/// A hash table of ids, for entries in a list of their own.
///
/// ```
/// use logitree_automata::IdTable;
///
/// let words = ["one", "two"];
/// let hash = |word: &str| word.len() as u64;
/// let mut ids = IdTable::default();
/// ids.insert(hash("one"), 0);
/// ids.insert(hash("two"), 1);
/// assert_eq!(ids.find(hash("two"), |id| words[id as usize] == "two"), Some(1));
/// assert_eq!(ids.find(hash("six"), |id| words[id as usize] == "six"), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct IdTable {
    /// A power of two of places, at most half of them taken: half of a hash above an id plus one, or 0.
    places: Box<[u64]>,
    /// The table before it was enlarged, from which places are being moved; they stay in it as well.
    before: Box<[u64]>,
    /// How many places of `before` were moved.
    moved: usize,
    len: usize,
}

impl IdTable {
    /// The id with this hash for which `is_same` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is_same: impl FnMut(u32) -> bool) -> Option<u32> {
        let hash = mixed(hash);
        let found = find_in(&self.places, hash, &mut is_same);
        if found.is_some() || self.before.is_empty() {
            return found;
        }
        find_in(&self.before, hash, &mut is_same)
    }

    /// Adds an id that is not in it, below `u32::MAX`.
    pub fn insert(&mut self, hash: u64, id: u32) {
        debug_assert!(id < u32::MAX);
        if 2 * self.len >= self.places.len() {
            self.enlarge();
        }
        if !self.before.is_empty() {
            self.move_places(MOVED_EACH);
        }
        self.len += 1;
        put(&mut self.places, u64::from(mixed(hash)) << 32 | (u64::from(id) + 1));
    }

    /// Doubles the places. Those of the table before are moved before the new one is full: one with each new id would do.
    fn enlarge(&mut self) {
        self.move_places(usize::MAX);
        let length = (2 * self.places.len()).max(FIRST_PLACES);
        self.before = std::mem::replace(&mut self.places, vec![0; length].into());
        self.moved = 0;
    }

    fn move_places(&mut self, most: usize) {
        let end = self.moved.saturating_add(most).min(self.before.len());
        for &place in &self.before[self.moved..end] {
            if place != 0 {
                put(&mut self.places, place);
            }
        }
        self.moved = end;
        if end == self.before.len() {
            self.before = Box::default();
            self.moved = 0;
        }
    }
}

/// The half of a hash that is kept, whatever bits of it differ.
#[inline]
fn mixed(hash: u64) -> u32 {
    (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

#[inline]
fn find_in(places: &[u64], hash: u32, is_same: &mut impl FnMut(u32) -> bool) -> Option<u32> {
    let last = places.len().checked_sub(1)?;
    let mut at = hash as usize & last;
    while places[at] != 0 {
        let id = places[at] as u32 - 1;
        if (places[at] >> 32) as u32 == hash && is_same(id) {
            return Some(id);
        }
        at = (at + 1) & last;
    }
    None
}

#[inline]
fn put(places: &mut [u64], place: u64) {
    let last = places.len() - 1;
    let mut at = (place >> 32) as usize & last;
    while places[at] != 0 {
        at = (at + 1) & last;
    }
    places[at] = place;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_list_has_while_it_grows() {
        for hash in [|n: u64| n, |n: u64| n % 7, |n: u64| n << 40, |n: u64| n / 3] {
            let (mut ids, mut entries) = (IdTable::default(), Vec::new());
            for n in 0..1_500_u64 {
                let entry = n * 5;
                let same = |entries: &[u64], entry: u64| entries.iter().position(|&known| known == entry);
                for asked in [entry, entry / 2, entry / 10 * 5, entry + 1] {
                    let found = ids.find(hash(asked), |id| entries[id as usize] == asked);
                    assert_eq!(found.map(|id| id as usize), same(&entries, asked));
                }
                ids.insert(hash(entry), entries.len() as u32);
                entries.push(entry);
            }
        }
    }

    #[test]
    fn moves_all_places_before_the_next_growth() {
        let mut ids = IdTable::default();
        for n in 0..100_000_u64 {
            let is_full = 2 * ids.len >= ids.places.len();
            assert!(!is_full || ids.before.is_empty());
            ids.insert(n, n as u32);
        }
        assert!((0..100_000_u64).all(|n| ids.find(n, |id| u64::from(id) == n) == Some(n as u32)));
    }
}
