//! Interned lists: equal lists have one number. Whole lists are compared, the hash only finds whom to compare with.
//!
//! Everything lies flat in one vector, so that a hundred thousand short lists are one allocation and are dropped as
//! one. It refuses to know what the lists mean.

use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::{Error, ErrorKind, Result};

/// No further list with the same hash.
const NONE: u32 = u32::MAX;

/// Lists of `T`, numbered from 0 (the empty list) in the order in which they were first seen.
pub(super) struct SliceInterner<T, I = u32> {
    ids: PhantomData<I>,
    data: Vec<T>,
    /// Where each list ends; it starts where the one before it ends.
    ends: Vec<u32>,
    /// Hash to the latest list that has it.
    heads: FxHashMap<u64, u32>,
    /// The list with the same hash that came before.
    before: Vec<u32>,
}

impl<T: Copy + Eq + Hash, I: From<u32> + Into<u32>> SliceInterner<T, I> {
    /// The empty list alone, as number 0.
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

    /// The list with this number.
    #[inline]
    pub(super) fn get(&self, id: I) -> &[T] {
        self.at(id.into() as usize)
    }

    #[inline]
    fn at(&self, id: usize) -> &[T] {
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.data[start..self.ends[id] as usize]
    }

    /// The number of `list`, if it was seen before.
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

    /// The number of `list`, a new one if there is none yet.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] past four thousand million entries.
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

    /// Bytes held, to within the spare room of the vectors.
    pub(super) fn byte_size(&self) -> usize {
        std::mem::size_of::<T>() * self.data.len() + 8 * self.ends.len() + 24 * self.heads.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value hashes alike, so that only whole comparison tells lists apart.
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
