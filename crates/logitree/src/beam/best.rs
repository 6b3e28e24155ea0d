//! The best so many candidates, and what a logit must reach to become one of them. It refuses to know where they come
//! from.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Candidate;

/// A row's score with one more token. + 0.0 makes -0.0 equal to 0.0.
#[inline]
pub(super) fn score(before: f64, logit: f32, weight: f32) -> f64 {
    before + (f64::from(logit) + f64::from(weight)) + 0.0
}

/// The greater one is the worse: lower score, then later row, then higher token.
impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.row.cmp(&other.row)).then(self.token.cmp(&other.token))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Candidate {}

/// The best so far; the worst of them is on top.
pub(super) struct Best {
    width: usize,
    heap: BinaryHeap<Candidate>,
}

impl Best {
    pub fn new(width: usize) -> Best {
        Best { width, heap: BinaryHeap::new() }
    }

    /// Takes the candidate if it is one of the best.
    #[inline]
    pub fn take(&mut self, candidate: Candidate) {
        if candidate.score == f64::NEG_INFINITY || self.width == 0 {
            return;
        }
        if self.heap.len() < self.width {
            self.heap.push(candidate);
        } else if let Some(mut worst) = self.heap.peek_mut() {
            if candidate < *worst {
                *worst = candidate;
            }
        }
    }

    /// What a candidate must reach.
    #[inline]
    pub fn worst(&self) -> f64 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.width => worst.score,
            _ => f64::NEG_INFINITY,
        }
    }

    /// No candidate of a row with this score and a logit below this is one of the best.
    pub fn limit(&self, before: f64) -> f32 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.width => {
                // Rounded down twice: sums of doubles are not exact, and neither is the way to a float.
                let exact = worst.score - before;
                let below = exact - (worst.score.abs() + before.abs() + exact.abs()) * 1e-15;
                let float = below as f32;
                if f64::from(float) > below {
                    float.next_down()
                } else {
                    float
                }
            }
            _ => f32::NEG_INFINITY,
        }
    }

    /// Appends the best, the first of them first.
    pub fn finish(self, out: &mut Vec<Candidate>) {
        out.extend(self.heap.into_sorted_vec());
    }
}
