//! Ranking: the best k candidates, the best that reach a probability mass, or all in order. Keys of (logit, id or
//! position) are collected from few blocks, from more until there are enough, and sorted.

use super::cut::Rank;
use super::{Candidates, Form, Order};
use logitree_tokens::simd::{self, BLOCK};
use logitree_tokens::TokenId;

/// How far below the best logit the first search goes, in nats; each further search goes 1.5 times as far.
const FIRST_LOOK: f32 = 4.0;

/// A weight below this part of the sum is lost in the sum's rounding.
const NOTHING: f64 = 1e-13;

impl Candidates<'_> {
    /// Keeps the `k` (at least 1) candidates with the highest logits, in descending order; equal logits keep
    /// their order. Sorted candidates are only cut.
    pub fn top(&mut self, k: usize) {
        let k = k.clamp(1, self.len().max(1));
        if self.order == Order::Sorted {
            return self.truncate(k);
        }
        let mut keys = self.take_scratch();
        self.collect_best(k, &mut keys);
        simd::sort_keys(&mut keys, &mut self.scratch.spare);
        self.keep_sorted(keys);
    }

    /// From now on the candidates are read in descending order. They are sorted when the order is first read; a draw
    /// that needs only the best does not read it.
    pub(crate) fn sort_later(&mut self) {
        if self.is_short() {
            self.sort();
        } else if self.order != Order::Sorted {
            self.order = Order::Later;
        }
    }

    /// Keeps the candidates with a logit `>= threshold`, read in descending order. Where the weight of those below is
    /// lost in rounding they are removed when the order is first read.
    pub(crate) fn keep_at_least_later(&mut self, threshold: f32) {
        let below = self.len() as f64 * f64::from(threshold - self.max()).exp();
        let late = !self.is_short() && self.order != Order::Sorted;
        if late && below < self.weight() * NOTHING {
            self.floor = threshold.max(self.floor);
        } else {
            self.keep_at_least(threshold);
        }
        self.sort_later();
    }

    /// Does the sort that was put off. The selected candidate stays selected.
    pub(super) fn sort_now(&mut self) {
        if !matches!(self.order, Order::Later | Order::Nearest(_)) {
            return;
        }
        let selected = self.selected.and_then(|at| self.id_at(at));
        if let Order::Nearest(centre) = self.order {
            self.sort_by_nearness(centre);
        } else {
            self.order = if self.form == Form::List { Order::None } else { Order::ById };
            self.sort();
            let floor = std::mem::replace(&mut self.floor, f32::NEG_INFINITY);
            self.truncate(self.logits.partition_point(|&x| x >= floor).max(1));
        }
        self.selected = selected.and_then(|id| self.ids.iter().position(|&i| i == id));
    }

    /// Does the sort that was put off if it is by nearness, which a change of the logits would change.
    pub(super) fn settle_nearest(&mut self) {
        if matches!(self.order, Order::Nearest(_)) {
            self.sort_now();
        }
    }

    /// Where the running sum of exponentials, best first, reaches `target`: a position in the present order.
    pub(super) fn ranked_position_of(&mut self, target: f64) -> usize {
        let weight = self.weight();
        if let Some(cut) = self.cut(Rank::Best, target, weight) {
            return cut.at;
        }
        let max = self.max();
        let mut keys = self.take_scratch();
        self.collect_until(&mut keys, |xs, _| simd::sum_exp(xs, max) >= target * (1.0 + 1e-12));
        simd::sort_keys(&mut keys, &mut self.scratch.spare);
        // Where the sum, added in this order, rounds to less than the target: the last that has a probability.
        let last = |c: &Self| c.probabilities.iter().rposition(|&e| e > 0.0).map_or(1, |at| at + 1);
        let kept = self.reach(&keys, target, 0).unwrap_or_else(|| last(self));
        let at = keys[kept - 1] as u32 as usize;
        self.scratch.keys = keys;
        at
    }

    /// How many of the sorted keys it takes for their exponentials to sum to `mass` and to be `least`.
    fn reach(&mut self, keys: &[u64], mass: f64, least: usize) -> Option<usize> {
        let max = self.max();
        self.read_keys(keys);
        let mut exponentials = std::mem::take(&mut self.probabilities);
        exponentials.resize(self.scratch.values.len(), 0.0);
        simd::exps(&self.scratch.values, max, &mut exponentials);
        let mut running = 0.0;
        let kept = exponentials.iter().zip(1..).find_map(|(&e, kept): (_, usize)| {
            running += f64::from(e);
            (running >= mass && kept >= least).then_some(kept)
        });
        self.probabilities = exponentials;
        self.has_probabilities = false;
        kept
    }

    /// The logits of the best `k` (at least 1, at most all), descending; nothing is changed.
    pub(crate) fn best(&mut self, k: usize) -> &[f32] {
        let mut keys = self.take_scratch();
        self.collect_best(k.clamp(1, self.len().max(1)), &mut keys);
        simd::sort_keys(&mut keys, &mut self.scratch.spare);
        self.read_keys(&keys);
        self.scratch.keys = keys;
        &self.scratch.values
    }

    /// Removes the best `n`, which are not all. The candidates are sorted, or will be sorted later.
    pub(crate) fn remove_best(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        if self.order == Order::Sorted {
            self.changed();
            self.ids.drain(..n);
            self.logits.drain(..n);
            return;
        }
        let mut keys = self.take_scratch();
        self.collect_best(n + 1, &mut keys);
        simd::sort_keys(&mut keys, &mut self.scratch.spare);
        let next = keys.pop().map_or(f32::NEG_INFINITY, |key| simd::from_key(key).0);
        keys.sort_unstable_by_key(|&key| key as u32);
        let weight = self.weight_without(&keys, next);
        self.list_in_order();
        let places = keys.iter().map(|&key| key as u32 as usize);
        let ends = places.clone().skip(1).chain([self.ids.len()]);
        for (gone, (at, end)) in places.zip(ends).enumerate() {
            self.ids.copy_within(at + 1..end, at - gone);
            self.logits.copy_within(at + 1..end, at - gone);
        }
        self.ids.truncate(self.ids.len() - n);
        self.logits.truncate(self.ids.len());
        self.changed();
        self.best_first = false;
        (self.weight, self.highest) = (weight, Some(next));
        self.scratch.keys = keys;
    }

    /// Collects the keys of the best `k`, by position, in any order.
    fn collect_best(&mut self, k: usize, keys: &mut Vec<u64>) {
        if self.form == Form::List || k == self.len() {
            self.collect_all(keys);
        } else if k <= self.maxima.iter().filter(|&&max| max > f32::NEG_INFINITY).count() {
            self.collect_top(k, keys);
        } else {
            self.collect_until(keys, |_, keys| keys.len() >= k);
        }
        if k < keys.len() {
            keys.select_nth_unstable(k);
            keys.truncate(k);
        }
    }

    /// Sorts all candidates in descending order of logit; equal logits keep their order.
    pub fn sort(&mut self) {
        self.top(self.len());
    }

    /// Keeps the fewest best candidates, sorted now or later, whose exponentials sum to `mass` or more, and at least
    /// `least` (or all).
    pub(super) fn top_by_mass(&mut self, mass: f64, least: usize) {
        let weight = self.weight();
        if let Some(cut) = self.cut(Rank::Best, mass, weight) {
            if self.keep_to_cut(Rank::Best, cut, least) {
                return;
            }
        }
        let max = self.max();
        let mut keys = self.take_scratch();
        // A little more than the mass, because the walk below may round differently.
        self.collect_until(&mut keys, |xs, keys| {
            keys.len() >= least && simd::sum_exp(xs, max) >= mass * (1.0 + 1e-12)
        });
        simd::sort_keys(&mut keys, &mut self.scratch.spare);
        let kept = self.reach(&keys, mass, least);
        keys.truncate(kept.unwrap_or(keys.len()));
        self.keep_sorted(keys);
    }

    /// Makes the list from sorted keys, whose low half is a position.
    fn keep_sorted(&mut self, mut keys: Vec<u64>) {
        if self.form == Form::List {
            for key in &mut keys {
                let at = simd::from_key(*key).1;
                *key = *key & !0xffff_ffff | u64::from(self.ids[at as usize]);
            }
        }
        self.scratch.keys = keys;
        self.take_keys();
        self.order = Order::Sorted;
        self.best_first = true;
    }

    /// Collects the key of every candidate, by position.
    pub(super) fn collect_all(&self, keys: &mut Vec<u64>) {
        let mut buffer = [0.0; BLOCK];
        for at in 0..self.len().div_ceil(BLOCK) {
            let block = self.block(at, &mut buffer);
            simd::collect_keys(block, f32::NEG_INFINITY, (at * BLOCK) as TokenId, keys);
        }
    }

    /// Collects the keys, by position, of at least the best candidates that make `enough` true of their logits
    /// and keys, or all.
    pub(super) fn collect_until(
        &mut self,
        keys: &mut Vec<u64>,
        mut enough: impl FnMut(&[f32], &[u64]) -> bool,
    ) {
        let max = self.max();
        let mut look = FIRST_LOOK;
        while look < 200.0 {
            keys.clear();
            self.collect_at_least(max - look, keys);
            self.read_keys(keys);
            if enough(&self.scratch.values, keys) || keys.len() == self.len() {
                return;
            }
            look *= 1.5;
        }
        keys.clear();
        self.collect_all(keys);
    }

    /// Reads the logits of the keys into `values`.
    pub(super) fn read_keys(&mut self, keys: &[u64]) {
        self.scratch.values.clear();
        self.scratch.values.extend(keys.iter().map(|&key| simd::from_key(key).0));
    }

    /// Collects the keys of at least the best `k` of the dense form in any order, `k` not above the number of blocks: what
    /// k block maxima reach, at least k elements reach.
    fn collect_top(&self, k: usize, keys: &mut Vec<u64>) {
        let bound = simd::bound_of_best(&self.maxima, k);
        let Some(logits) = self.unshaped() else { return self.collect_at_least(bound, keys) };
        simd::collect_keys_of_blocks(logits, &self.maxima, bound, keys);
        if !self.edits.is_empty() {
            // Both are by ascending position.
            let mut edits = self.edits.iter().peekable();
            keys.retain(|&key| {
                let at = key as u32;
                while edits.next_if(|edit| edit.0 < at).is_some() {}
                edits.peek().is_none_or(|edit| edit.0 != at)
            });
            let reached = self.edits.iter().filter(|edit| edit.1 >= bound);
            keys.extend(reached.map(|&(id, x)| simd::descending_key(x, id)));
        }
    }

    /// Collects the keys, by position, of the candidates that are `>= threshold`, in order.
    pub(super) fn collect_at_least(&self, threshold: f32, keys: &mut Vec<u64>) {
        if self.form == Form::List {
            return simd::collect_keys(&self.logits, threshold, 0, keys);
        }
        if let Some(logits) = self.unshaped().filter(|_| self.edits.is_empty()) {
            return simd::collect_keys_of_blocks(logits, &self.maxima, threshold, keys);
        }
        let mut buffer = [0.0; BLOCK];
        for (at, &max) in self.maxima.iter().enumerate() {
            if max >= threshold {
                let first = (at * BLOCK) as TokenId;
                simd::collect_keys(self.block(at, &mut buffer), threshold, first, keys);
            }
        }
    }

    /// Makes the list from the keys, whose low half is an id.
    pub(super) fn take_keys(&mut self) {
        self.ids.clear();
        self.logits.clear();
        self.ids.extend(self.scratch.keys.iter().map(|&key| simd::from_key(key).1));
        self.logits.extend(self.scratch.keys.iter().map(|&key| simd::from_key(key).0));
        self.edits.clear();
        self.shapes.clear();
        self.form = Form::List;
        self.changed();
    }

    /// Makes the list again from keys whose low half is a position in it, in the order of the keys; it counts as
    /// unsorted.
    pub(crate) fn rearrange(&mut self, mut keys: Vec<u64>) {
        for key in &mut keys {
            let at = *key as u32 as usize;
            *key = simd::descending_key(self.logits[at], self.ids[at]);
        }
        self.scratch.keys = keys;
        self.take_keys();
        self.best_first = false;
        self.order = Order::None;
    }

    /// The scratch of logits that samplers read; [`Candidates::return_values`] takes it back.
    pub(crate) fn take_values(&mut self) -> Vec<f32> {
        std::mem::take(&mut self.scratch.values)
    }

    /// Takes the scratch back.
    pub(crate) fn return_values(&mut self, values: Vec<f32>) {
        self.scratch.values = values;
    }

    /// The scratch that samplers sort in; [`Candidates::rearrange`] takes it back.
    pub(crate) fn take_scratch(&mut self) -> Vec<u64> {
        let mut keys = std::mem::take(&mut self.scratch.keys);
        keys.clear();
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logitree_tokens::mask::AllowedTokens;

    #[test]
    fn a_target_above_the_sum_is_reached_by_the_last_that_has_a_probability() {
        let mut logits: Vec<f32> = (0..2000).map(|i| (i % 100) as f32 / 10.0).collect();
        logits[7] = f32::NEG_INFINITY;
        logits[9] = -300.0;
        let mut c = Candidates::begin(Candidates::default(), &logits, AllowedTokens::All).unwrap();
        c.sort_later();
        let target = c.weight() * (1.0 + 1e-9);
        let last = c.ranked_position_of(target);
        assert_eq!(last, 1900);
        assert_eq!(c.ranked_position_of(0.0), 99);
    }
}
