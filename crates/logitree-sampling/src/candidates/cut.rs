//! Finds where a running sum of exponentials falls among ranked candidates without sorting them: a sample narrows it
//! down to a range of ranks, one pass sums what ranks higher and collects what is between.
//!
//! The slow version is the walk over the sorted candidates, to which every search returns where the sample misleads.

use super::{Candidates, Form, Order};
use logitree_tokens::simd::{self, BLOCK};
use logitree_tokens::TokenId;

/// Below this sum of exponentials few candidates hold the weight, and these are sorted faster.
const SPREAD: f64 = 300.0;

/// About how many candidates are sampled.
const SAMPLE: usize = 1024;

/// How many standard deviations of the sample the searched ranks reach to either side.
const SURE: f64 = 2.8;

/// More candidates than this are spread over 256 buckets before any are sorted.
const FEW: usize = 512;

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

/// Candidates between two ranks, in order of position.
#[derive(Debug, Clone, Default)]
pub(super) struct Between {
    places: Vec<TokenId>,
    ranks: Vec<f32>,
    /// Empty where these are the ranks.
    logits: Vec<f32>,
    buckets: Vec<u8>,
}

impl Rank {
    /// The ranks of `xs`, which are at most a block.
    fn of<'a>(self, xs: &'a [f32], room: &'a mut [f32; BLOCK]) -> &'a [f32] {
        match self {
            Rank::Best => xs,
            Rank::Nearest(centre) => {
                simd::nearness(xs, centre, room);
                &room[..xs.len()]
            }
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
        let mut found = std::mem::take(&mut self.scratch.between);
        let between = self.bracket(rank, share);
        let above = self.look_between(rank, between, &mut found);
        let mut exponentials = std::mem::take(&mut self.probabilities);
        exponentials.resize(found.places.len(), 0.0);
        let logits = if rank == Rank::Best { &found.ranks } else { &found.logits };
        simd::exps(logits, self.max(), &mut exponentials);
        self.has_probabilities = false;
        let cut = (target > above).then(|| found.reach(&exponentials, target - above)).flatten();
        (self.scratch.between, self.probabilities) = (found, exponentials);
        cut
    }

    /// The ranks between which the running sum very likely reaches `share` of the weight, the lowest first.
    fn bracket(&mut self, rank: Rank, share: f64) -> (f32, f32) {
        let blocks = self.len().div_ceil(BLOCK);
        let each = (SAMPLE / blocks).clamp(1, BLOCK / 2);
        let mut sample = self.take_scratch();
        let (mut buffer, mut ranks, mut some) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        for n in 0..blocks {
            let block = self.block(n, &mut buffer);
            for (i, x) in some[..each].iter_mut().enumerate() {
                // Another place in each block, so that no period of the ids shows.
                *x = block[(n * 89 + i * BLOCK / each) % block.len()];
            }
            let both = some[..each].iter().zip(rank.of(&some[..each], &mut ranks));
            sample.extend(both.map(|(x, &rank)| simd::descending_key(rank, x.to_bits())));
        }
        simd::sort_keys(&mut sample, &mut self.scratch.spare);
        self.scratch.values.clear();
        self.scratch.values.extend(sample.iter().map(|&key| f32::from_bits(key as u32)));
        let mut exponentials = std::mem::take(&mut self.probabilities);
        exponentials.resize(sample.len(), 0.0);
        simd::exps(&self.scratch.values, self.max(), &mut exponentials);
        let weights = exponentials.iter().map(|&e| f64::from(e));
        let (sum, squares) = weights.clone().fold((0.0, 0.0), |(s, q), e| (s + e, q + e * e));
        let room = SURE * (share * (1.0 - share) * squares).sqrt() / sum + 2.0 * squares / (sum * sum);
        let (mut running, mut low, mut high) = (0.0, f32::MIN, f32::INFINITY);
        for (&key, e) in sample.iter().zip(weights) {
            running += e / sum;
            let rank = simd::from_key(key).0;
            if running <= share - room {
                high = rank;
            }
            if running >= share + room {
                low = rank.max(f32::MIN);
                break;
            }
        }
        (self.scratch.keys, self.probabilities) = (sample, exponentials);
        (low, high)
    }

    /// The sum of exponentials of what ranks above `high`. Finds the rest that ranks at least `low`.
    fn look_between(&self, rank: Rank, (low, high): (f32, f32), found: &mut Between) -> f64 {
        found.clear();
        let (max, mut above) = (self.max(), 0.0);
        let (mut room, mut upper, mut lower) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        self.for_each_block(|n, block| {
            let start = n * BLOCK;
            simd::split(block, rank.of(block, &mut room), high, &mut upper, &mut lower);
            above += simd::sum_exp(&upper[..block.len()], max);
            let known = found.places.len();
            let lower = &lower[..block.len()];
            simd::collect_reached(lower, low, start as TokenId, &mut found.places, &mut found.ranks);
            if rank != Rank::Best {
                found.logits.extend(found.places[known..].iter().map(|&at| block[at as usize - start]));
            }
        });
        above
    }

    /// Keeps what ranks up to the cut, to be put into the order of rank later, if these are `least` or more. Returns
    /// whether they are; otherwise nothing is changed.
    pub(super) fn keep_to_cut(&mut self, rank: Rank, cut: Cut, least: usize) -> bool {
        let (mut places, mut values) = (Vec::new(), std::mem::take(&mut self.scratch.values));
        if self.form != Form::List {
            places = std::mem::take(&mut self.ids);
        }
        places.clear();
        values.clear();
        let below = cut.rank.next_down();
        let (mut room, mut upper, mut lower) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        self.for_each_block(|n, block| {
            let (ranks, known) = (rank.of(block, &mut room), places.len());
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
            self.scratch.values = values;
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

impl Between {
    fn clear(&mut self) {
        self.places.clear();
        self.ranks.clear();
        self.logits.clear();
    }

    /// The cut at which the running sum of the exponentials reaches `target`; `None` if all of them do not.
    fn reach(&mut self, exponentials: &[f32], target: f64) -> Option<Cut> {
        let (mut running, mut some) = (0.0, Vec::new());
        let key =
            |at: usize| (simd::descending_key(self.ranks[at], self.places[at]), f64::from(exponentials[at]));
        let highest = simd::max(&self.ranks);
        let lowest = self.ranks.iter().fold(f32::INFINITY, |low, &x| if x < low { x } else { low });
        let scale = 255.0 / (highest - lowest);
        if self.places.len() > FEW && scale.is_finite() && scale > 0.0 {
            self.buckets.resize(self.places.len(), 0);
            simd::buckets(&self.ranks, highest, scale, &mut self.buckets);
            let mut sums = [0.0; 256];
            self.buckets.iter().zip(exponentials).for_each(|(&to, &e)| sums[usize::from(to)] += f64::from(e));
            let reaching = sums.iter().position(|sum| {
                let reaches = running + sum >= target;
                running += if reaches { 0.0 } else { *sum };
                reaches
            })?;
            for (chunk, start) in self.buckets.chunks(64).zip((0..).step_by(64)) {
                if chunk.iter().fold(false, |any, &to| any | (usize::from(to) == reaching)) {
                    let here = chunk.iter().zip(start..).filter(|(&to, _)| usize::from(to) == reaching);
                    some.extend(here.map(|(_, at)| key(at)));
                }
            }
        } else {
            some.extend((0..self.places.len()).map(key));
        }
        some.sort_unstable_by_key(|&(key, _)| key);
        let reaches = |&(_, e): &(u64, f64)| {
            running += e;
            running >= target
        };
        // Added in another order the sum may round to less than the target: the last of the bucket reaches it then.
        let in_bucket = some.len() < self.places.len();
        let last = some.iter().position(reaches).or(in_bucket.then(|| some.len() - 1))?;
        let (rank, at) = simd::from_key(some[last].0);
        let tied = some.get(last + 1).is_some_and(|&(key, _)| simd::from_key(key).0 == rank);
        Some(Cut { rank, at: at as usize, tied })
    }
}
