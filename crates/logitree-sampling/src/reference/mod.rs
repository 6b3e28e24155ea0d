//! llama.cpp's candidates, step for step: the slow version that parity mode runs and that the fast paths must equal.
//!
//! One array of (id, logit, probability) in the order that llama.cpp's own array has, changed in place step by
//! step: f32 sums in order, libm's functions, and libstdc++'s order of equal elements. Source:
//! llama.cpp, src/llama-sampler.cpp, as in llama-cpp-python 0.3.36.

pub mod libstdcxx;

use super::Candidates;
use crate::{Error, ErrorKind, TokenId};

/// A sampler that llama.cpp has, as llama.cpp computes it.
pub trait Reference {
    /// The same as [`super::Sampler::apply`], step for step as llama.cpp does it.
    fn apply_reference(&mut self, array: &mut TokenArray);
}

/// One candidate.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TokenData {
    /// The token.
    pub id: TokenId,
    /// Its logit.
    pub logit: f32,
    /// Its probability, as of the last softmax.
    pub p: f32,
}

/// llama.cpp's `llama_token_data_array`.
#[derive(Debug, Clone, Default)]
pub struct TokenArray {
    /// The candidates, in order.
    pub data: Vec<TokenData>,
    /// llama.cpp's flag for descending order. Some samplers leave it set where the order no longer holds.
    pub sorted: bool,
    /// The position of the selected candidate.
    pub selected: Option<usize>,
    /// A sampler's error.
    pub fault: Option<Error>,
    scratch: Vec<TokenData>,
    buckets: Vec<u8>,
    /// Scratch of draws.
    pub cumulative: Vec<f64>,
}

/// Up to this many are sorted in place by `std::partial_sort`; more by buckets.
const BUCKETS: usize = 128;

impl TokenArray {
    /// Starts a step with these candidates, in their order.
    pub fn begin(&mut self, candidates: &Candidates<'_>) {
        self.data.clear();
        candidates.for_each(|id, logit| self.data.push(TokenData { id, logit, p: 0.0 }));
        self.sorted = false;
        self.selected = None;
        self.fault = None;
    }

    /// The highest logit, by llama.cpp's rule: the first if the array counts as sorted.
    pub fn max(&self) -> f32 {
        let first = self.data[0].logit;
        if self.sorted {
            return first;
        }
        self.data.iter().fold(first, |max, c| if max < c.logit { c.logit } else { max })
    }

    /// The same, or a fault if it is -inf: llama.cpp then computes NaN and picks the last candidate.
    pub fn finite_max(&mut self) -> Option<f32> {
        let max = self.max();
        if max == f32::NEG_INFINITY {
            let message = "llama.cpp computes NaN here: it holds a candidate at -inf to be the best";
            self.fault =
                Some(Error::new(ErrorKind::Logits, message).help(
                    "a sampler changed the logits of sorted candidates; use fast mode, or another order",
                ));
        }
        self.fault.is_none().then_some(max)
    }

    /// A fault if what is left has no probabilities: a logit is NaN or +inf, or none is above -inf.
    pub fn check(&mut self) {
        if self.data.iter().any(|c| c.logit.is_nan() || c.logit == f32::INFINITY) {
            self.check_sum(f64::NAN);
        } else if self.data.iter().all(|c| c.logit == f32::NEG_INFINITY) {
            self.sorted = false;
            self.finite_max();
        }
    }

    /// A fault if a sum of exponentials is NaN; whether it is a number. It may be infinite: llama.cpp's buckets put
    /// logits of 2^31 / 6.4 and more last, and then holds another to be the highest.
    pub fn check_sum(&mut self, sum: f64) -> bool {
        if sum.is_nan() {
            let message = "llama.cpp computes NaN here: a sampler left a logit that is NaN or +inf";
            let help = "use fast mode, which keeps logits finite, or parameters that are nearer to 1";
            self.fault = Some(Error::new(ErrorKind::Logits, message).help(help));
        }
        !sum.is_nan()
    }

    /// Computes `p`: f32 exponentials, their f32 sum in order, a division each. Sorts before if asked and needed.
    pub fn softmax(&mut self, sort: bool) {
        if sort && !self.sorted {
            self.sort_best(self.data.len());
        }
        let Some(max) = self.finite_max() else { return };
        let mut sum = 0.0f32;
        for c in &mut self.data {
            c.p = (c.logit - max).exp();
            sum += c.p;
        }
        if !self.check_sum(f64::from(sum)) {
            return;
        }
        for c in &mut self.data {
            c.p /= sum;
        }
    }

    /// Keeps the `k` (1 to all) best in descending order.
    pub fn sort_best(&mut self, k: usize) {
        if k <= BUCKETS {
            libstdcxx::partial_sort(&mut self.data, k, |a, b| a.logit > b.logit);
            self.data.truncate(k);
        } else {
            let ranked = self.ranked(k);
            self.scratch = std::mem::replace(&mut self.data, ranked);
            self.data.truncate(k);
        }
        self.sorted = true;
    }

    /// The best `k` (1 to all) in descending order, and some more, by 128 buckets of logits from -10 to 10 that
    /// are filled in order; each full one is sorted, the last in part. Give the list back by
    /// [`TokenArray::recycle`].
    pub fn ranked(&mut self, k: usize) -> Vec<TokenData> {
        let mut ranked = std::mem::take(&mut self.scratch);
        let mut sizes = [0usize; BUCKETS];
        self.buckets.clear();
        for c in &self.data {
            let bucket = bucket_of(c.logit);
            sizes[bucket as usize] += 1;
            self.buckets.push(bucket);
        }
        // Where each bucket begins, the best first, down to the one that brings the count to k.
        let mut starts = [0usize; BUCKETS];
        let (mut have, mut last) = (0, BUCKETS);
        while have < k && last > 0 {
            last -= 1;
            starts[last] = have;
            have += sizes[last];
        }
        ranked.clear();
        ranked.resize(have, TokenData::default());
        let mut next = starts;
        for (c, &bucket) in self.data.iter().zip(&self.buckets) {
            if bucket as usize >= last {
                ranked[next[bucket as usize]] = *c;
                next[bucket as usize] += 1;
            }
        }
        let before = |a: &TokenData, b: &TokenData| a.logit > b.logit;
        for bucket in last + 1..BUCKETS {
            libstdcxx::sort(&mut ranked[starts[bucket]..][..sizes[bucket]], before);
        }
        libstdcxx::partial_sort(&mut ranked[starts[last]..], k - starts[last], before);
        ranked
    }

    /// Takes a list of [`TokenArray::ranked`] back, to be used again.
    pub fn recycle(&mut self, list: Vec<TokenData>) {
        self.scratch = list;
    }

    /// Divides by the temperature; at or below 0 all but the first maximum become -inf.
    pub fn temper(&mut self, t: f32) {
        if t > 0.0 {
            self.data.iter_mut().for_each(|c| c.logit /= t);
            return;
        }
        let mut best = 0;
        for at in 1..self.data.len() {
            let worse = if self.data[at].logit > self.data[best].logit {
                std::mem::replace(&mut best, at)
            } else {
                at
            };
            self.data[worse].logit = f32::NEG_INFINITY;
        }
    }

    /// Keeps the `k` best, sorted; 0 or less keeps all as they are.
    pub fn top_k(&mut self, k: i32) {
        let Ok(k @ 1..) = usize::try_from(k) else { return };
        let k = k.min(self.data.len());
        if !self.sorted {
            self.sort_best(k);
        }
        self.data.truncate(k);
    }
}

/// The bucket of a logit. What is out of an int's range has the lowest, as the conversion on x86-64 has it.
fn bucket_of(logit: f32) -> u8 {
    let scaled = 6.4 * logit + 64.0;
    if (-2_147_483_648.0..2_147_483_648.0).contains(&scaled) {
        (scaled as i32).clamp(0, BUCKETS as i32 - 1) as u8
    } else {
        0
    }
}
