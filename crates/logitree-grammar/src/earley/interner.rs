//! Interns lists in one flat vector: equal lists have one id. A hundred thousand short lists are one
//! allocation.

use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use logitree_automata::IdTable;
use rustc_hash::FxBuildHasher;

use crate::{Error, ErrorKind, Result};

/// Lists of `T`, with ids from 0 (the empty list) in order of first occurrence.
pub(super) struct SliceInterner<T, I = u32> {
    ids: PhantomData<I>,
    data: Vec<T>,
    /// Where each list ends; it starts where the previous one ends.
    ends: Vec<u32>,
    table: IdTable,
}

impl<T: Copy + Eq + Hash, I: From<u32> + Into<u32>> SliceInterner<T, I> {
    /// Only the empty list, with id 0.
    pub(super) fn new() -> SliceInterner<T, I> {
        SliceInterner { ids: PhantomData, data: Vec::new(), ends: vec![0], table: IdTable::default() }
    }

    /// The list with this id.
    #[inline]
    pub(super) fn get(&self, id: I) -> &[T] {
        self.at(id.into() as usize)
    }

    #[inline]
    fn at(&self, id: usize) -> &[T] {
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.data[start..self.ends[id] as usize]
    }

    /// The id of `list`, if it is interned.
    pub(super) fn find(&self, list: &[T]) -> Option<I> {
        if list.is_empty() {
            return Some(0.into());
        }
        self.find_by(FxBuildHasher.hash_one(list), list)
    }

    fn find_by(&self, hash: u64, list: &[T]) -> Option<I> {
        self.table.find(hash, |id| self.at(id as usize) == list).map(I::from)
    }

    /// The id of `list`, a new one if needed.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] past 2^32 entries.
    pub(super) fn intern(&mut self, list: &[T]) -> Result<I> {
        if list.is_empty() {
            return Ok(0.into());
        }
        let hash = FxBuildHasher.hash_one(list);
        if let Some(id) = self.find_by(hash, list) {
            return Ok(id);
        }
        let (Ok(id), Ok(end)) = (u32::try_from(self.ends.len()), u32::try_from(self.data.len() + list.len()))
        else {
            return Err(Error::new(ErrorKind::Limit, "the grammar's machine is full"));
        };
        self.data.extend_from_slice(list);
        self.ends.push(end);
        self.table.insert(hash, id);
        Ok(id.into())
    }

    /// Approximate size in bytes, without spare capacity.
    pub(super) fn byte_size(&self) -> usize {
        std::mem::size_of::<T>() * self.data.len() + 32 * self.ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value has the same hash, so that only comparison distinguishes lists.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Alike(u8);

    impl Hash for Alike {
        fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
    }

    #[test]
    fn equal_lists_have_one_number_whatever_they_hash_to() {
        let mut interner: SliceInterner<Alike> = SliceInterner::new();
        let lists: Vec<Vec<Alike>> =
            (0..50).map(|n| (0..n % 5).map(|i| Alike((n * 7 + i) as u8)).collect()).collect();
        let ids: Vec<u32> = lists.iter().map(|list| interner.intern(list).unwrap()).collect();
        for (a, x) in ids.iter().zip(&lists) {
            assert_eq!(interner.get(*a), &x[..]);
            for (b, y) in ids.iter().zip(&lists) {
                assert_eq!(a == b, x == y);
            }
        }
        assert_eq!(ids[0], 0);
        assert_eq!(interner.find(&[Alike(255), Alike(1)]), None);
    }
}
