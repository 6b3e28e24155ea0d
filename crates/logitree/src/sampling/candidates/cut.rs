//! Finds where a running sum of exponentials falls among ranked candidates without sorting them: a sample tells between
//! which ranks it is, one pass sums what ranks higher and collects what is between.
//!
//! The slow version is the walk over the sorted candidates, to which every search returns where the sample misleads.

use super::{Candidates, Form, Order};
use crate::simd::{self, BLOCK};
use crate::TokenId;

/// Below this sum of exponentials few candidates hold the weight, and these are sorted faster.
const SPREAD: f64 = 300.0;

/// About how many candidates are sampled.
const SAMPLE: usize = 1024;

/// How many standard deviations of the sample the searched ranks reach to either side.
const SURE: f64 = 3.5;

/// More candidates than this are spread over buckets before any are sorted.
const FEW: usize = 512;
const BUCKETS: usize = 256;

/// What candidates are ranked by, the highest first; equal ones keep their order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rank {
    /// Their logits.
    Best,
    /// The nearness of their logits to this.
    Nearest(f64),
}

/// A place in the ranking.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// The rank of the last candidate before it.
    rank: f32,
    /// The position of that candidate.
    pub at: usize,
    /// Whether candidates after it have the same rank.
    tied: bool,
}

impl Rank {
    /// Writes the rank of each of `xs`.
    fn write(self, xs: &[f32], ranks: &mut [f32]) {
        match self {
            Rank::Best => ranks.copy_from_slice(xs),
            Rank::Nearest(centre) => simd::nearness(xs, centre, ranks),
        }
    }
}

impl Candidates<'_> {
    /// Where the running sum of exponentials, which is `weight` over all, reaches `target` in order of rank; `None`
    /// where sorting finds it faster.
    pub(super) fn cut(&mut self, rank: Rank, target: f64, weight: f64) -> Option<Cut> {
        let share = target / weight;
        if self.is_short() || weight < SPREAD || !(share > 0.0 && share < 1.0) {
            return None;
        }
        let (mut keys, mut values) = (self.take_scratch(), std::mem::take(&mut self.values));
        let (low, high) = self.bracket(rank, share, &mut keys);
        let above = self.between(rank, (low, high), &mut keys, &mut values);
        let mut exponentials = std::mem::take(&mut self.probabilities);
        exponentials.resize(values.len(), 0.0);
        simd::exps(&values, self.max(), &mut exponentials);
        self.has_probabilities = false;
        let found = (target > above).then(|| find(&keys, &exponentials, target - above)).flatten();
        (self.keys, self.values, self.probabilities) = (keys, values, exponentials);
        found
    }

    /// The ranks between which the running sum very likely reaches `share` of the weight, the lowest first.
    fn bracket(&self, rank: Rank, share: f64, sample: &mut Vec<u64>) -> (f32, f32) {
        let blocks = self.len().div_ceil(BLOCK);
        let each = (SAMPLE / blocks).clamp(1, BLOCK / 2);
        let mut buffer = [0.0; BLOCK];
        for n in 0..blocks {
            let block = self.block(n, &mut buffer);
            let (mut some, mut ranks) = ([0.0; BLOCK], [0.0; BLOCK]);
            for (i, x) in some[..each].iter_mut().enumerate() {
                // Another place in each block, so that no period of the ids shows.
                *x = block[(n * 89 + i * BLOCK / each) % block.len()];
            }
            rank.write(&some[..each], &mut ranks[..each]);
            let both = some[..each].iter().zip(&ranks[..each]);
            sample.extend(both.map(|(x, &rank)| simd::descending_key(rank, x.to_bits())));
        }
        sample.sort_unstable();
        let max = self.max();
        let weigh = |key: &u64| f64::from(simd::exp(f32::from_bits(*key as u32) - max));
        let (sum, squares) = sample.iter().map(weigh).fold((0.0, 0.0), |(s, q), e| (s + e, q + e * e));
        let room = SURE * (share * (1.0 - share) * squares).sqrt() / sum + 2.0 * squares / (sum * sum);
        let (mut running, mut low, mut high) = (0.0, f32::MIN, f32::INFINITY);
        for key in sample.iter() {
            running += weigh(key) / sum;
            let rank = simd::from_key(*key).0;
            if running <= share - room {
                high = rank;
            }
            if running >= share + room {
                low = rank.max(f32::MIN);
                break;
            }
        }
        (low, high)
    }

    /// The sum of exponentials of what ranks above `high`. Collects the rest that ranks at least `low`: keys of rank and
    /// position in order of position, and logits.
    fn between(
        &self,
        rank: Rank,
        (low, high): (f32, f32),
        keys: &mut Vec<u64>,
        values: &mut Vec<f32>,
    ) -> f64 {
        keys.clear();
        values.clear();
        let (max, mut above) = (self.max(), 0.0);
        let (mut ranks, mut upper, mut lower) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        self.for_each_block(|n, block| {
            let (ranks, start) = (&mut ranks[..block.len()], n * BLOCK);
            rank.write(block, ranks);
            simd::split(block, ranks, high, &mut upper, &mut lower);
            above += simd::sum_exp(&upper[..block.len()], max);
            let known = keys.len();
            simd::collect_keys(&lower[..block.len()], low, start as TokenId, keys);
            values.extend(keys[known..].iter().map(|&key| block[key as u32 as usize - start]));
        });
        above
    }

    /// Keeps what ranks up to the cut, to be put into the order of rank later; tells whether these are `least` or more,
    /// otherwise nothing is changed.
    pub(super) fn keep_to_cut(&mut self, rank: Rank, cut: Cut, least: usize) -> bool {
        let (mut places, mut values) = (Vec::new(), std::mem::take(&mut self.values));
        if self.form != Form::List {
            places = std::mem::take(&mut self.ids);
        }
        places.clear();
        values.clear();
        let below = cut.rank.next_down();
        let (mut ranks, mut upper, mut lower) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        self.for_each_block(|n, block| {
            let (ranks, known) = (&mut ranks[..block.len()], places.len());
            rank.write(block, ranks);
            simd::split(block, ranks, below, &mut upper, &mut lower);
            let (upper, start) = (&upper[..block.len()], n * BLOCK);
            simd::collect_reached(upper, f32::MIN, start as TokenId, &mut places, &mut values);
            if cut.tied && start + block.len() > cut.at {
                let mut kept = known;
                for i in known..places.len() {
                    let at = places[i] as usize;
                    if at <= cut.at || ranks[at - start] > cut.rank {
                        (places[kept], values[kept]) = (places[i], values[i]);
                        kept += 1;
                    }
                }
                places.truncate(kept);
                values.truncate(kept);
            }
        });
        let enough = places.len() >= least;
        if !enough {
            self.values = values;
            if self.form != Form::List {
                self.ids = places;
            }
            return false;
        }
        if self.form == Form::List {
            places.iter_mut().for_each(|place| *place = self.ids[*place as usize]);
        }
        self.keep_listed(places, values);
        self.best_first = false;
        self.order = match rank {
            Rank::Best => Order::Later,
            Rank::Nearest(centre) => Order::Nearest(centre),
        };
        if self.is_short() {
            self.sort_now();
        }
        true
    }
}

/// The cut at which the running sum of the keys' exponentials reaches `target`; `None` if all of them do not.
fn find(keys: &[u64], exponentials: &[f32], target: f64) -> Option<Cut> {
    let weighed = || keys.iter().copied().zip(exponentials.iter().map(|&e| f64::from(e)));
    let highest = simd::from_key(*keys.iter().min()?).0;
    let lowest = simd::from_key(*keys.iter().max()?).0;
    let scale = (BUCKETS - 1) as f32 / (highest - lowest);
    let (mut running, mut some) = (0.0, Vec::new());
    if keys.len() > FEW && scale.is_finite() && scale > 0.0 {
        let bucket = |key: u64| ((highest - simd::from_key(key).0) * scale) as usize % BUCKETS;
        let mut sums = [0.0; BUCKETS];
        weighed().for_each(|(key, e)| sums[bucket(key)] += e);
        let reaching = sums.iter().position(|sum| {
            let reaches = running + sum >= target;
            running += if reaches { 0.0 } else { *sum };
            reaches
        })?;
        some.extend(weighed().filter(|&(key, _)| bucket(key) == reaching));
    } else {
        some.extend(weighed());
    }
    some.sort_unstable_by_key(|&(key, _)| key);
    let reaches = |&(_, e): &(u64, f64)| {
        running += e;
        running >= target
    };
    // Added in another order the sum may round to less than the target: the last of the bucket reaches it then.
    let last = some.iter().position(reaches).or((keys.len() > some.len()).then(|| some.len() - 1))?;
    let (rank, at) = simd::from_key(some[last].0);
    let tied = some.get(last + 1).is_some_and(|&(key, _)| simd::from_key(key).0 == rank);
    Some(Cut { rank, at: at as usize, tied })
}
