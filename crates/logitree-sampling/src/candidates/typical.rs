//! Finds the candidates whose surprisal is nearest to the entropy, without sorting the others.

use super::cut::Rank;
use super::{Candidates, Form, Order};
use crate::distribution::Weight;
use logitree_tokens::simd;

/// How far from the entropy the first search goes, in nats; each further search goes 1.5 times as far.
const FIRST_LOOK: f64 = 1.0;

impl Candidates<'_> {
    /// Keeps the fewest candidates whose surprisal is nearest to the entropy that hold more than `share` (0 to 1) of
    /// the weight, and at least `least` (or all); nearest first, equal ones in their order.
    pub(crate) fn keep_typical(&mut self, share: f64, least: usize) {
        self.settle_nearest();
        let weight = Weight::of(self);
        let (max, centre, mass) = (weight.max, weight.log_sum() - weight.entropy(), weight.sum * share);
        // More than the share, not as much.
        if let Some(cut) = self.cut(Rank::Nearest(centre), mass.next_up(), weight.sum) {
            if self.keep_to_cut(Rank::Nearest(centre), cut, least) {
                return;
            }
        }
        let mut keys = self.take_scratch();
        let mut look = FIRST_LOOK;
        loop {
            let all = look > 400.0;
            keys.clear();
            if all {
                self.collect_all(&mut keys);
            } else {
                self.collect_at_least((centre - look) as f32, &mut keys);
                keys.retain(|&key| (centre - f64::from(simd::from_key(key).0)).abs() <= look);
            }
            self.read_keys(&keys);
            let reached =
                keys.len() >= least && simd::sum_exp(&self.scratch.values, max) > mass * (1.0 + 1e-12);
            if all || reached {
                break;
            }
            look *= 1.5;
        }
        self.keep_nearest(keys, centre, mass, least);
    }

    /// Sorts all by nearness to `centre`.
    pub(super) fn sort_by_nearness(&mut self, centre: f64) {
        let mut keys = self.take_scratch();
        let mut at = 0;
        self.for_each_logit(|x| {
            keys.push(by_distance(centre, x, at));
            at += 1;
        });
        simd::sort_keys(&mut keys, &mut self.scratch.spare);
        self.rearrange(keys);
    }

    /// Keeps, of the keys by position, those nearest to `centre` until their weight is above `mass`.
    fn keep_nearest(&mut self, keys: Vec<u64>, centre: f64, mass: f64, least: usize) {
        let max = self.max();
        let mut nearest = std::mem::take(&mut self.scratch.nearest);
        nearest.clear();
        nearest
            .extend(keys.iter().zip(0u64..).map(|(&key, at)| by_distance(centre, simd::from_key(key).0, at)));
        simd::sort_keys(&mut nearest, &mut self.scratch.spare);
        self.scratch.values.clear();
        self.scratch.values.extend(nearest.iter().map(|&n| simd::from_key(keys[n as u32 as usize]).0));
        let mut exponentials = std::mem::take(&mut self.probabilities);
        exponentials.resize(self.scratch.values.len(), 0.0);
        simd::exps(&self.scratch.values, max, &mut exponentials);
        let mut running = 0.0;
        let kept = exponentials.iter().zip(1..).find_map(|(&e, kept): (_, usize)| {
            running += f64::from(e);
            (running > mass && kept >= least).then_some(kept)
        });
        nearest.truncate(kept.unwrap_or(nearest.len()));
        for n in &mut nearest {
            let (x, at) = simd::from_key(keys[*n as u32 as usize]);
            let id = if self.form == Form::List { self.ids[at as usize] } else { at };
            *n = simd::descending_key(x, id);
        }
        self.probabilities = exponentials;
        // Swapped, so that neither is allocated again.
        (self.scratch.keys, self.scratch.nearest) = (nearest, keys);
        self.take_keys();
        self.best_first = false;
        self.order = Order::None;
    }
}

/// A key of the distance from `centre` and a number: non-negative floats sort as their bits do.
fn by_distance(centre: f64, x: f32, number: u64) -> u64 {
    let distance = (centre - f64::from(x)).abs() as f32;
    u64::from(distance.to_bits()) << 32 | number
}
