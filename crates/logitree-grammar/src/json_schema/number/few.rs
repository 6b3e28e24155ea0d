//! Short lists without memory of their own: states of numbers hold several, and are copied at every byte.

use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

/// A list whose first `N` entries are stored in place.
#[derive(Debug, Clone)]
pub(super) struct Few<T, const N: usize> {
    placed: [T; N],
    count: usize,
    /// All entries, if they are more.
    more: Vec<T>,
}

impl<T: Copy + Default, const N: usize> Few<T, N> {
    pub fn new() -> Few<T, N> {
        Few { placed: [T::default(); N], count: 0, more: Vec::new() }
    }

    pub fn push(&mut self, entry: T) {
        if self.more.is_empty() && self.count < N {
            self.placed[self.count] = entry;
            self.count += 1;
            return;
        }
        if self.more.is_empty() {
            self.more.extend_from_slice(&self.placed);
            // Places that are not used are alike.
            (self.placed, self.count) = ([T::default(); N], 0);
        }
        self.more.push(entry);
    }

    /// Keeps the entries for which `keep` is true, in their order.
    pub fn retain_mut(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        if self.is_empty() {
            return;
        }
        let mut kept = Few::new();
        for entry in self.iter_mut() {
            if keep(entry) {
                kept.push(*entry);
            }
        }
        *self = kept;
    }
}

impl<T: Copy + Default, const N: usize> FromIterator<T> for Few<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Few<T, N> {
        let mut made = Few::new();
        entries.into_iter().for_each(|entry| made.push(entry));
        made
    }
}

impl<T, const N: usize> Deref for Few<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        if self.more.is_empty() {
            &self.placed[..self.count]
        } else {
            &self.more
        }
    }
}

impl<T, const N: usize> DerefMut for Few<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.more.is_empty() {
            &mut self.placed[..self.count]
        } else {
            &mut self.more
        }
    }
}

impl<T: PartialEq, const N: usize> PartialEq for Few<T, N> {
    fn eq(&self, other: &Few<T, N>) -> bool {
        **self == **other
    }
}

impl<T: Eq, const N: usize> Eq for Few<T, N> {}

impl<T: Hash, const N: usize> Hash for Few<T, N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_as_a_list() {
        for count in 0..6u32 {
            let (mut few, mut list): (Few<u32, 2>, Vec<u32>) = ((0..count).collect(), (0..count).collect());
            assert_eq!(*few, list[..]);
            few.iter_mut().chain(&mut list).for_each(|entry| *entry += 1);
            for bit in [0, 1] {
                few.retain_mut(|entry| (*entry >> bit) % 2 == 1);
                list.retain(|entry| (*entry >> bit) % 2 == 1);
                assert_eq!(*few, list[..]);
                assert_eq!(few, list.iter().copied().collect());
            }
        }
    }
}
