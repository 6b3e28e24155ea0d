//! The best candidates so far, and the logit that a new one must reach.

use std::cmp::Ordering;

use super::BeamCandidate;
use crate::catalogue::WalkState;

/// A row's score with one more token. + 0.0 makes -0.0 equal to 0.0.
#[inline]
pub(super) fn score(before: f64, logit: f32, weight: f32) -> f64 {
    before + (f64::from(logit) + f64::from(weight)) + 0.0
}

/// Greater is worse: lower score, then later row, then higher token.
impl<S: PartialEq> Ord for BeamCandidate<S> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.row.cmp(&other.row)).then(self.token.cmp(&other.token))
    }
}

impl<S: PartialEq> PartialOrd for BeamCandidate<S> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<S: PartialEq> Eq for BeamCandidate<S> {}

/// A superset of the best candidates, with room for as many again: cutting it back now and then costs less than keeping
/// it sorted.
#[derive(Clone)]
pub(super) struct BestCandidates<S = WalkState> {
    width: usize,
    kept: Vec<BeamCandidate<S>>,
    /// What a candidate must reach: the score of the worst of the best at the last cut.
    worst: f64,
}

/// Candidates beyond the best that are kept at least, before they are cut back.
const ROOM: usize = 64;

/// Candidates for which there is room from the beginning, at most.
const MAX_INITIAL_CAPACITY: usize = 1 << 12;

impl<S: PartialEq> BestCandidates<S> {
    pub fn new(width: usize) -> BestCandidates<S> {
        let kept = Vec::with_capacity(width.saturating_mul(2).clamp(ROOM, MAX_INITIAL_CAPACITY));
        BestCandidates { width, kept, worst: f64::NEG_INFINITY }
    }

    /// How many are wanted.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether nothing is to be reached yet.
    pub fn wants_all(&self) -> bool {
        self.worst == f64::NEG_INFINITY
    }

    /// Says that as many candidates as are wanted will reach `score`.
    pub fn expect(&mut self, score: f64) {
        self.worst = self.worst.max(score);
    }

    /// Whether a candidate with this score may be one of the best.
    #[inline]
    pub fn wants(&self, score: f64) -> bool {
        score >= self.worst && score > f64::NEG_INFINITY
    }

    /// Takes the candidate, if it may be one of the best.
    #[inline]
    pub fn take(&mut self, candidate: BeamCandidate<S>) {
        if self.wants(candidate.score) && self.width > 0 {
            self.kept.push(candidate);
            if self.kept.len() >= self.width.saturating_add(self.width.max(ROOM)) {
                self.cut();
            }
        }
    }

    /// Leaves the best, in any order.
    #[cold]
    fn cut(&mut self) {
        if self.kept.len() > self.width {
            self.kept.select_nth_unstable(self.width - 1);
            self.kept.truncate(self.width);
            self.worst = self.kept.last().map_or(f64::NEG_INFINITY, |worst| worst.score);
        }
    }

    /// No candidate of a row with this score and a logit below this is one of the best.
    pub fn limit(&self, before: f64) -> f32 {
        if self.worst == f64::NEG_INFINITY {
            return f32::NEG_INFINITY;
        }
        // Rounded down twice: sums of doubles are not exact, and neither is the way to a float.
        let exact = self.worst - before;
        let below = exact - (self.worst.abs() + before.abs() + exact.abs()) * 1e-15;
        let float = below as f32;
        if f64::from(float) > below {
            float.next_down()
        } else {
            float
        }
    }

    /// Appends the best in order, and is empty again.
    pub fn finish(&mut self, out: &mut Vec<BeamCandidate<S>>) {
        self.cut();
        self.kept.sort_unstable();
        out.append(&mut self.kept);
        self.worst = f64::NEG_INFINITY;
    }
}
