//! Sums of exponentials: the weight of all candidates, their probabilities, the candidate at which a draw falls.
//!
//! Short lists are summed in order with the system's exponential, as llama.cpp does; long ones in blocks of 256 with
//! the kernel's exponential, accurate to 2e-7, and f64 sums.

use super::cut::Rank;
use super::{Candidates, Form, Order};
use logitree_tokens::simd::{self, Moments, BLOCK};

/// Up to this many candidates are summed in order.
const SHORT: usize = 1024;

/// How near to the border of two candidates a draw is checked again: the kernel's sums differ from llama.cpp's by a few
/// 1e-9 of the weight where many candidates share it, and by some 1e-8 where few do, which have few borders.
const DOUBT: f64 = 5e-8;

impl Candidates<'_> {
    /// Whether sums are in order, as llama.cpp's are.
    pub(crate) fn is_short(&self) -> bool {
        self.len() <= SHORT
    }

    /// The sum of exp(logit - max) over all.
    pub(crate) fn weight(&mut self) -> f64 {
        if let Some(weight) = self.weight {
            return weight;
        }
        let max = self.max();
        self.highest = Some(max);
        let mut sums = std::mem::take(&mut self.sums);
        sums.clear();
        sums.resize(self.len().div_ceil(BLOCK), 0.0);
        if self.form == Form::Borrowed && self.shapes.is_empty() {
            simd::block_sums(self.base, max, &mut sums);
            let mut buffer = [0.0; BLOCK];
            let mut last = usize::MAX;
            for &(id, _) in &self.edits {
                let block = id as usize / BLOCK;
                if block != last {
                    sums[block] = simd::sum_exp(self.block(block, &mut buffer), max);
                    last = block;
                }
            }
        } else {
            // What is 87 or more below the best has no weight.
            self.for_each_block_reaching(max - 88.0, |at, block| sums[at] = simd::sum_exp(block, max));
        }
        let weight = sums.iter().sum();
        self.sums = sums;
        self.weight = Some(weight);
        weight
    }

    /// The weight of what is left without the candidates at these positions (the low halves of keys, ascending), `next`
    /// being the highest logit then; `None` where that must be summed again.
    pub(super) fn weight_without(&mut self, gone: &[u64], next: f32) -> Option<f64> {
        let (max, _) = (self.max(), self.weight?);
        // Farther below the best, what the sums left out as too small may count.
        if max - next > 10.0 || self.sums.is_empty() {
            return None;
        }
        let mut sums = std::mem::take(&mut self.sums);
        let place = |key: &u64| *key as u32 as usize;
        for some in gone.chunk_by(|a, b| place(a) / BLOCK == place(b) / BLOCK) {
            let at = place(&some[0]) / BLOCK;
            let mut buffer = [0.0; BLOCK];
            let mut left = [f32::NEG_INFINITY; BLOCK];
            let block = self.block(at, &mut buffer);
            left[..block.len()].copy_from_slice(block);
            some.iter().for_each(|key| left[place(key) % BLOCK] = f32::NEG_INFINITY);
            sums[at] = simd::sum_exp(&left, max);
        }
        let weight = sums.iter().sum::<f64>() * f64::from(max - next).exp();
        sums.clear();
        self.sums = sums;
        Some(weight)
    }

    /// log(sum(exp(logit))) over all, in nats; within 1e-7 of exact.
    pub fn log_sum(&mut self) -> f64 {
        f64::from(self.max()) + self.weight().ln()
    }

    /// The standard deviation of the logits above -inf; within 1e-9 of exact.
    pub(crate) fn deviation(&self) -> f64 {
        let about = |centre| {
            let mut moments = Moments::default();
            self.for_each_block(|_, block| simd::add_moments(block, centre, &mut moments));
            moments.mean_and_variance()
        };
        let (mean, variance) = about(0.0);
        // Logits so far from 0 that their squares differ in too few digits are measured about their mean.
        let exact = if variance > mean * mean * 1e-6 { variance } else { about(mean).1 };
        exact.max(0.0).sqrt()
    }

    /// The position, in order, at which the running sum of probabilities reaches `draw` (0 to 1). Where the draw is so
    /// close to the border of two candidates that the kernel's rounding could matter, the system's exponentials decide.
    pub(crate) fn position_of(&mut self, draw: f64) -> usize {
        let max = self.max();
        let (target, doubt) = (self.weight() * draw, self.weight() * DOUBT);
        if self.order == Order::Later {
            return self.ranked_position_of(target);
        }
        if let Order::Nearest(centre) = self.order {
            let weight = self.weight();
            if let Some(cut) = self.cut(Rank::Nearest(centre), target, weight) {
                return cut.at;
            }
            self.sort_now();
            self.weight();
        }
        if self.sums.is_empty() {
            self.weight = None;
            self.weight();
        }
        let mut running = 0.0;
        let mut found = None;
        for (at, &sum) in self.sums.iter().enumerate().filter(|(_, &sum)| sum > 0.0) {
            found = Some((at, running));
            running += sum;
            if running >= target {
                break;
            }
        }
        let Some((block, before)) = found else { return self.first_max() };
        let mut buffer = [0.0; BLOCK];
        let mut exponentials = [0.0; BLOCK];
        let logits = self.block(block, &mut buffer);
        simd::exps(logits, max, &mut exponentials);
        let (mut running, mut place) = (before, None);
        for (&e, at) in exponentials[..logits.len()].iter().zip(block * BLOCK..).filter(|(&e, _)| e > 0.0) {
            let below = running;
            running += f64::from(e);
            place = Some((below, at));
            if running >= target {
                break;
            }
        }
        match place {
            Some((below, at)) if target - below > doubt && running - target > doubt => at,
            _ => self.exact_position_of(draw),
        }
    }

    /// [`Candidates::position_of`] summed in order, with the system's exponential.
    fn exact_position_of(&self, draw: f64) -> usize {
        let max = self.max();
        let mut weight = 0.0f64;
        self.for_each_logit(|x| weight += f64::from((x - max).exp()));
        let (target, mut running, mut at, mut found) = (weight * draw, 0.0f64, 0, None);
        self.for_each_logit(|x| {
            let e = if found.is_some_and(|(_, reached)| reached) { 0.0 } else { (x - max).exp() };
            if e > 0.0 {
                running += f64::from(e);
                found = Some((at, running >= target));
            }
            at += 1;
        });
        found.map_or(0, |(at, _)| at)
    }

    /// Fills a buffer, of one probability for each candidate, with exp(logit - max) in order, and passes each to `f`.
    pub(crate) fn exponentials(&mut self, mut f: impl FnMut(f32)) -> &mut Vec<f32> {
        self.sort_now();
        let max = self.max();
        let mut p = std::mem::take(&mut self.probabilities);
        p.clear();
        p.reserve(self.len());
        self.for_each_logit(|x| {
            let e = (x - max).exp();
            f(e);
            p.push(e);
        });
        self.probabilities = p;
        self.has_probabilities = false;
        &mut self.probabilities
    }

    /// Declares that the buffer of [`Candidates::exponentials`] now holds probabilities.
    pub(crate) fn normalised(&mut self) {
        self.has_probabilities = true;
    }

    /// Computes the probabilities of what is left, if no sampler has: softmax with sums in f64.
    pub fn normalise(&mut self) {
        if self.has_probabilities || self.is_empty() {
            return;
        }
        if self.is_short() {
            let mut sum = 0.0;
            for p in self.exponentials(|e| sum += f64::from(e)) {
                *p = (f64::from(*p) / sum) as f32;
            }
        } else {
            let (max, weight) = (self.max(), self.weight());
            let mut p = std::mem::take(&mut self.probabilities);
            p.resize(self.len(), 0.0);
            self.for_each_block(|at, block| {
                simd::exps(block, max, &mut p[at * BLOCK..][..block.len()]);
            });
            simd::normalise(&mut p, weight);
            self.probabilities = p;
        }
        self.has_probabilities = true;
    }

    /// Keeps the fewest best candidates, sorted, that hold `share` (0 to 1) of the weight, and at least `least`.
    pub(crate) fn keep_share(&mut self, share: f64, least: usize) {
        let mass = self.weight() * share;
        if !self.is_sorted() {
            return self.top_by_mass(mass, least);
        }
        self.list();
        let max = self.max();
        let mut running = 0.0;
        let kept = self.logits.iter().zip(1..).find_map(|(&x, kept): (_, usize)| {
            running += f64::from(simd::exp(x - max));
            (running >= mass && kept >= least).then_some(kept)
        });
        self.truncate(kept.unwrap_or(self.len()));
    }
}
