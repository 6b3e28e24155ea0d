//! Interns lists in one flat vector: equal lists have one id. A hundred thousand short lists are one
//! allocation.

use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::{Error, ErrorKind, Result};

/// No other list with the same hash.
const NONE: u32 = u32::MAX;

/// Lists of `T`, with ids from 0 (the empty list) in order of first occurrence.
pub(super) struct SliceInterner<T, I = u32> {
    ids: PhantomData<I>,
    data: Vec<T>,
    /// Where each list ends; it starts where the previous one ends.
    ends: Vec<u32>,
    /// Hash to the latest list with it.
    heads: FxHashMap<u64, u32>,
    /// The previous list with the same hash.
    before: Vec<u32>,
}

impl<T: Copy + Eq + Hash, I: From<u32> + Into<u32>> SliceInterner<T, I> {
    /// Only the empty list, with id 0.
    pub(super) fn new() -> SliceInterner<T, I> {
        let mut interner = SliceInterner {
            ids: PhantomData,
            data: Vec::new(),
            ends: vec![0],
            heads: FxHashMap::default(),
            before: vec![NONE],
        };
        interner.heads.insert(FxBuildHasher.hash_one::<&[T]>(&[]), 0);
        interner
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
        let mut id = *self.heads.get(&FxBuildHasher.hash_one(list))?;
        while self.at(id as usize) != list {
            id = self.before[id as usize];
            if id == NONE {
                return None;
            }
        }
        Some(id.into())
    }

    /// The id of `list`, a new one if needed.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] past 2^32 entries.
    pub(super) fn intern(&mut self, list: &[T]) -> Result<I> {
        if let Some(id) = self.find(list) {
            return Ok(id);
        }
        let (Ok(id), Ok(end)) = (u32::try_from(self.ends.len()), u32::try_from(self.data.len() + list.len()))
        else {
            return Err(Error::new(ErrorKind::Limit, "the grammar's machine is full"));
        };
        self.data.extend_from_slice(list);
        self.ends.push(end);
        let before = self.heads.insert(FxBuildHasher.hash_one(list), id);
        self.before.push(before.unwrap_or(NONE));
        Ok(id.into())
    }

    /// Approximate size in bytes, without spare capacity.
    pub(super) fn byte_size(&self) -> usize {
        std::mem::size_of::<T>() * self.data.len() + 8 * self.ends.len() + 24 * self.heads.len()
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
