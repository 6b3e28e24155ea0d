//! What the samplers that llama.cpp lacks compute of a distribution: its weight, its entropy, its collision
//! probability, its best candidates, and all that reach a probability.
//!
//! Exponentials are the kernel's, accurate to 2e-7; their sums are f64.

use super::Candidates;
use logitree_tokens::simd::{self, BLOCK};

/// How far below the best logit the first search goes, in nats; each further search goes twice as far.
const FIRST_LOOK: f32 = 4.0;
/// How many logits `decide` gets in order at first; each further time 8 times as many.
const FIRST_SHOWN: usize = 256;
/// A search as far as this finds all that is above -inf.
const LAST_LOOK: f32 = 400.0;

/// Sums of exponentials over the candidates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight {
    /// The highest logit.
    pub max: f32,
    /// Sum of exp(logit - max).
    pub sum: f64,
    /// Sum of exp(logit - max) * (logit - max).
    dot: f64,
}

impl Weight {
    /// Weighs the candidates, in one pass.
    pub fn of(candidates: &Candidates<'_>) -> Self {
        let max = candidates.max();
        let (mut sum, mut dot) = (0.0, 0.0);
        candidates.for_each_block(|_, block| {
            let (s, d) = simd::sum_exp_dot(block, max);
            sum += s;
            dot += d;
        });
        Weight { max, sum, dot }
    }

    /// log(sum(exp(logit))), in nats.
    pub fn log_sum(&self) -> f64 {
        f64::from(self.max) + self.sum.ln()
    }

    /// The entropy, in nats; at least 0.
    pub fn entropy(&self) -> f64 {
        (self.sum.ln() - self.dot / self.sum).max(0.0)
    }
}

/// The probability that two draws agree, which is the sum of the squared probabilities, and how many candidates are
/// above -inf. With them log(sum(exp(logit))).
pub(super) fn collision(candidates: &Candidates<'_>) -> (f64, usize, f64) {
    let max = candidates.max();
    let (mut sum, mut squares, mut alive) = (0.0, 0.0, 0);
    let mut below = [0.0; BLOCK];
    candidates.for_each_block(|_, block| {
        let below = &mut below[..block.len()];
        for (b, &x) in below.iter_mut().zip(block) {
            *b = x - max;
            alive += usize::from(x > f32::NEG_INFINITY);
        }
        sum += simd::sum_exp(below, 0.0);
        below.iter_mut().for_each(|b| *b *= 2.0);
        squares += simd::sum_exp(below, 0.0);
    });
    (squares / (sum * sum), alive, f64::from(max) + sum.ln())
}

/// Keeps the candidates with a logit of at least `least`, in their order, and the best ones in any case.
pub(super) fn keep_from(candidates: &mut Candidates<'_>, least: f64) {
    let mut bar = least as f32;
    if f64::from(bar) < least {
        bar = bar.next_up();
    }
    candidates.keep_at_least(bar.min(candidates.max()));
}

/// Calls `decide` with the logits above -inf in descending order, the best few at first and more until it returns a
/// number, and with whether these are all; if they are and it returns `None`, the result is their number. With it comes
/// the last logit of so many.
pub(super) fn decide(
    candidates: &mut Candidates<'_>,
    decide: impl FnMut(&[f32], bool) -> Option<usize>,
) -> (usize, f32) {
    let mut seen = candidates.take_values();
    let n = decide_among(candidates, &mut seen, decide);
    let last = seen[n.max(1) - 1];
    candidates.return_values(seen);
    (n, last)
}

fn decide_among(
    candidates: &Candidates<'_>,
    seen: &mut Vec<f32>,
    mut decide: impl FnMut(&[f32], bool) -> Option<usize>,
) -> usize {
    let mut look = FIRST_LOOK;
    loop {
        let all = collect(candidates, look, seen);
        let mut shown = 0;
        while shown < seen.len() {
            shown = (shown * 8).max(FIRST_SHOWN).min(seen.len());
            if shown < seen.len() {
                seen.select_nth_unstable_by(shown - 1, descending);
            }
            seen[..shown].sort_unstable_by(descending);
            if let Some(n) = decide(&seen[..shown], all && shown == seen.len()) {
                return n;
            }
        }
        if all {
            return seen.len();
        }
        look *= 2.0;
    }
}

/// Collects the logits within `look` nats of the best, in their order; whether those are all above -inf.
fn collect(candidates: &Candidates<'_>, look: f32, seen: &mut Vec<f32>) -> bool {
    // Never -inf itself, which no sampler chooses.
    let least = if look < LAST_LOOK { (candidates.max() - look).max(f32::MIN) } else { f32::MIN };
    seen.clear();
    candidates.for_each_block(|_, block| seen.extend(block.iter().filter(|&&x| x >= least)));
    look >= LAST_LOOK || seen.len() == candidates.len()
}

fn descending(a: &f32, b: &f32) -> std::cmp::Ordering {
    b.total_cmp(a)
}

/// Keeps as many of the best candidates as [`decide`] finds, in their order; of equal ones the first.
pub(super) fn keep_best(candidates: &mut Candidates<'_>, mut keep: impl FnMut(&[f32]) -> Option<usize>) {
    let (n, lowest) = decide(candidates, |logits, _| keep(logits));
    candidates.require_order();
    if candidates.is_sorted() {
        return candidates.truncate(n);
    }
    candidates.keep_at_least(lowest);
    candidates.list();
    if candidates.len() <= n {
        return;
    }
    let mut keys = candidates.take_scratch();
    let logits = candidates.logits();
    let mut equal = n - logits.iter().filter(|&&x| x > lowest).count();
    keys.extend(logits.iter().zip(0u64..).filter_map(|(&x, at)| {
        let stays = x > lowest || equal > 0;
        equal -= usize::from(stays && x == lowest);
        stays.then_some(at)
    }));
    candidates.rearrange(keys);
}

/// The `k`-th highest logit (`k` at least 1), or the lowest one if there are fewer.
pub(super) fn kth(candidates: &mut Candidates<'_>, k: usize) -> f32 {
    if k <= 1 {
        return candidates.max();
    }
    candidates.best(k).last().copied().unwrap_or(f32::NEG_INFINITY)
}

/// The double that `x` is written as: 0.6 for the float nearest to 0.6. Where the original computes with doubles, a sum
/// that equals a bound there equals it here.
pub(super) fn as_written(x: f32) -> f64 {
    x.to_string().parse().unwrap_or(f64::from(x))
}
