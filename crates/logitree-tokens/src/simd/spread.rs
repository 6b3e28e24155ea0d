//! Passes that change a block or measure its spread.

use super::dispatch::widest;
use super::exp::padded;
use super::{BLOCK, LANES};

widest! {
    /// Divides each element.
    divide, divide_at = divide_body(xs: &mut [f32], by: f32) -> ()
}

widest! {
    /// Sets to -inf what is below `least`.
    reject_below, reject_below_at = reject_below_body(xs: &mut [f32], least: f32) -> ()
}

/// Moments of the elements above -inf about a centre, kept in lanes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moments {
    count: [u32; LANES],
    sums: [f64; LANES],
    squares: [f64; LANES],
}

impl Moments {
    /// The mean's difference from the centre, and the variance. The variance is a difference of squares: good to
    /// 1e-15 of the mean's squared difference.
    pub fn mean_and_variance(&self) -> (f64, f64) {
        let count = f64::from(self.count.iter().sum::<u32>());
        let mean = self.sums.iter().sum::<f64>() / count;
        (mean, self.squares.iter().sum::<f64>() / count - mean * mean)
    }
}

widest! {
    /// Adds the elements above -inf to `moments` about `centre`.
    add_moments, add_moments_at = add_moments_body(xs: &[f32], centre: f64, moments: &mut Moments) -> ()
}

widest! {
    /// Writes minus the distance of each element of `xs` from `centre`, as many as the shorter of the two has.
    nearness, nearness_at = nearness_body(xs: &[f32], centre: f64, out: &mut [f32]) -> ()
}

widest! {
    /// Writes the elements of `xs` (at most a block) that rank above `high` to `upper`, and the ranks of the others to
    /// `lower`; -inf elsewhere.
    split, split_at =
        split_body(xs: &[f32], ranks: &[f32], high: f32, upper: &mut [f32; BLOCK], lower: &mut [f32; BLOCK]) -> ()
}

widest! {
    /// Writes `(highest - x) * scale` of each element of `xs` in whole numbers from 0 to 255, as many as the shorter of
    /// the two has.
    buckets, buckets_at = buckets_body(xs: &[f32], highest: f32, scale: f32, out: &mut [u8]) -> ()
}

#[inline(always)]
fn buckets_body(xs: &[f32], highest: f32, scale: f32, out: &mut [u8]) {
    for (&x, out) in xs.iter().zip(out) {
        // Adding 2^23 leaves the whole number in the low bits.
        let place = ((highest - x) * scale).clamp(0.0, 255.0) + 8_388_608.0;
        *out = place.to_bits() as u8;
    }
}

#[inline(always)]
fn nearness_body(xs: &[f32], centre: f64, out: &mut [f32]) {
    xs.iter().zip(out).for_each(|(&x, out)| *out = -((centre - f64::from(x)).abs() as f32));
}

#[inline(always)]
fn split_body(xs: &[f32], ranks: &[f32], high: f32, upper: &mut [f32; BLOCK], lower: &mut [f32; BLOCK]) {
    let outs = upper.iter_mut().zip(lower.iter_mut());
    for ((&x, &rank), (upper, lower)) in xs.iter().zip(ranks).zip(outs) {
        let is_above = rank > high;
        *upper = if is_above { x } else { f32::NEG_INFINITY };
        *lower = if is_above { f32::NEG_INFINITY } else { rank };
    }
}

#[inline(always)]
fn divide_body(xs: &mut [f32], by: f32) {
    xs.iter_mut().for_each(|x| *x /= by);
}

#[inline(always)]
fn reject_below_body(xs: &mut [f32], least: f32) {
    xs.iter_mut().for_each(|x| *x = if *x < least { f32::NEG_INFINITY } else { *x });
}

#[inline(always)]
fn add_moments_body(xs: &[f32], centre: f64, moments: &mut Moments) {
    let (lines, rest) = xs.as_chunks::<LANES>();
    let mut held = *moments;
    for line in lines {
        add_line(line, centre, &mut held);
    }
    if !rest.is_empty() {
        add_line(&padded(rest), centre, &mut held);
    }
    *moments = held;
}

#[inline(always)]
fn add_line(line: &[f32; LANES], centre: f64, to: &mut Moments) {
    for (i, &x) in line.iter().enumerate() {
        let counts = x > f32::NEG_INFINITY;
        let d = if counts { f64::from(x) - centre } else { 0.0 };
        to.count[i] += u32::from(counts);
        to.sums[i] += d;
        to.squares[i] += d * d;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::dispatch::Width;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_width_equals_the_plain_loop(
            xs in prop::collection::vec(prop_oneof![8 => -30f32..30f32, 1 => Just(f32::NEG_INFINITY)], 0..700),
            least in -30f32..30f32,
            by in 0.01f32..9.0,
        ) {
            let finite: Vec<f64> = xs.iter().filter(|x| x.is_finite()).map(|&x| f64::from(x) - f64::from(least)).collect();
            for width in Width::all() {
                let mut ys = xs.clone();
                divide_at(width, &mut ys, by);
                prop_assert!(ys.iter().zip(&xs).all(|(y, x)| *y == x / by));
                reject_below_at(width, &mut ys, least);
                let floored = |x: f32| if x < least { f32::NEG_INFINITY } else { x };
                prop_assert!(ys.iter().zip(&xs).all(|(y, x)| *y == floored(x / by)));
                let mut moments = Moments::default();
                xs.chunks(257).for_each(|part| add_moments_at(width, part, f64::from(least), &mut moments));
                prop_assert_eq!(moments.count.iter().sum::<u32>() as usize, finite.len());
                let (mean, variance) = moments.mean_and_variance();
                let n = finite.len() as f64;
                let exact = finite.iter().sum::<f64>() / n;
                let spread = finite.iter().map(|d| (d - exact).powi(2)).sum::<f64>() / n;
                if !finite.is_empty() {
                    prop_assert!((mean - exact).abs() < 1e-12 * (1.0 + exact.abs()));
                    prop_assert!((variance - spread).abs() < 1e-12 * (1.0 + exact * exact));
                }
            }
        }

        #[test]
        fn ranks_are_split_and_spread_as_one_by_one(
            xs in prop::collection::vec(prop_oneof![8 => -30f32..30f32, 1 => Just(f32::NEG_INFINITY)], 1..=BLOCK),
            centre in -30f64..30.0,
            high in -30f32..0.0,
        ) {
            for width in Width::all() {
                let mut ranks = vec![7.0; xs.len()];
                nearness_at(width, &xs, centre, &mut ranks);
                let (mut upper, mut lower, mut places) = ([7.0; BLOCK], [7.0; BLOCK], vec![7; xs.len()]);
                split_at(width, &xs, &ranks, high, &mut upper, &mut lower);
                buckets_at(width, &ranks, 0.0, 4.25, &mut places);
                for (i, &x) in xs.iter().enumerate() {
                    let rank = -((centre - f64::from(x)).abs() as f32);
                    prop_assert_eq!(ranks[i], rank);
                    let want = if rank > high { (x, f32::NEG_INFINITY) } else { (f32::NEG_INFINITY, rank) };
                    prop_assert_eq!((upper[i], lower[i]), want, "{:?}", width);
                    prop_assert_eq!(places[i], (-rank * 4.25).min(255.0).round_ties_even() as u8, "{:?}", width);
                }
            }
        }
    }
}
