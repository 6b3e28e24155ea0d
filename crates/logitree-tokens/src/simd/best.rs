//! The best few of many floats that are shown block by block.

use std::collections::BinaryHeap;

use super::keys::{descending_key, from_key};

/// The `most` highest finite floats of those that it was shown, with their numbers; of equal ones those with the lower
/// numbers. The naive version sorts all of them.
pub struct Best {
    most: usize,
    bar: f32,
    /// The greatest key is the worst that is kept.
    heap: BinaryHeap<u64>,
}

impl Best {
    /// An empty list that keeps at most `most`.
    pub fn new(most: usize) -> Best {
        let bar = if most == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Best { most, bar, heap: BinaryHeap::with_capacity(most.min(1 << 12) + 1) }
    }

    /// What is not above it cannot be among the best any more, as long as numbers ascend.
    pub fn bar(&self) -> f32 {
        self.bar
    }

    /// Shows one float.
    #[inline]
    pub fn add(&mut self, x: f32, id: u32) {
        if x > self.bar && x.is_finite() {
            self.heap.push(descending_key(x, id));
            if self.heap.len() > self.most {
                self.heap.pop();
            }
            if self.heap.len() == self.most {
                self.bar = self.heap.peek().map_or(self.bar, |&worst| from_key(worst).0);
            }
        }
    }

    /// The best, descending, equal ones by number.
    pub fn sorted(self) -> impl Iterator<Item = (f32, u32)> {
        self.heap.into_sorted_vec().into_iter().map(from_key)
    }
}
