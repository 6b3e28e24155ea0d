//! Sums of exponentials over blocks, in f64.

use super::dispatch::{at_width, widest, Width};
use super::exp::{exps_and_dots_of_line, exps_of_line, padded, top};
use super::floats::decode_at;
use super::{Floats, BLOCK, LANES};

/// The sum of exp(x - max), see [`super::exps`]: that of [`block_sums`], added in order.
pub fn sum_exp(xs: &[f32], max: f32) -> f64 {
    sum_exp_at(Width::best(), xs, max)
}

/// Writes the sum of exp(x - max) of each [`BLOCK`] of `xs` to `sums`.
pub fn block_sums(xs: Floats<'_>, max: f32, sums: &mut [f64]) {
    block_sums_at(Width::best(), xs, max, sums);
}

widest! {
    /// The sum of exp(x - max), see [`super::exps`], and of exp(x - max) * (x - max). They are not added in pairs of
    /// f32 first, as those of [`sum_exp`] are: an entropy near 0 is what is left of the sum above 1.
    sum_exp_dot, sum_exp_dot_at = sum_exp_dot_body(xs: &[f32], max: f32) -> (f64, f64)
}

/// Pairs a line.
const PAIRS: usize = LANES / 2;

/// Elements whose exponentials were added in pairs, in f64: half a block.
type Pairs = Aligned<[f64; BLOCK / 2]>;

/// At the edge of a cache line, as no vector in it then lies across two.
#[repr(align(64))]
struct Aligned<T>(T);

at_width! {
    whole_sums_at = whole_sums_body, avx512 whole_sums_512(blocks: &[[f32; BLOCK]], top: f32, sums: &mut [f64]) -> ()
}

at_width! {
    rest_sum_at = rest_sum_body(rest: &[f32], top: f32) -> f64
}

fn sum_exp_at(width: Width, xs: &[f32], max: f32) -> f64 {
    let (top, mut sum, mut sums) = (top(max), 0.0, [0.0; 32]);
    let (blocks, rest) = xs.as_chunks::<BLOCK>();
    for blocks in blocks.chunks(sums.len()) {
        whole_sums_at(width, blocks, top, &mut sums);
        for s in &sums[..blocks.len()] {
            sum += s;
        }
    }
    if rest.is_empty() {
        return sum;
    }
    sum + rest_sum_at(width, rest, top)
}

fn block_sums_at(width: Width, xs: Floats<'_>, max: f32, sums: &mut [f64]) {
    let top = top(max);
    if let Floats::F32(xs) = xs {
        return f32_sums(width, xs, top, sums);
    }
    // A few blocks at a time, which the fastest cache holds.
    let mut decoded = Aligned([0.0; 8 * BLOCK]);
    let starts = (0..xs.len()).step_by(decoded.0.len());
    for (sums, start) in sums.chunks_mut(decoded.0.len() / BLOCK).zip(starts) {
        let part = xs.slice(start, start + decoded.0.len());
        let wide = &mut decoded.0[..part.len()];
        decode_at(width, part, wide);
        f32_sums(width, wide, top, sums);
    }
}

fn f32_sums(width: Width, xs: &[f32], top: f32, sums: &mut [f64]) {
    let (blocks, rest) = xs.as_chunks::<BLOCK>();
    whole_sums_at(width, blocks, top, sums);
    if let Some(sum) = sums.get_mut(blocks.len()).filter(|_| !rest.is_empty()) {
        *sum = rest_sum_at(width, rest, top);
    }
}

#[inline(always)]
fn sum_exp_dot_body(xs: &[f32], max: f32) -> (f64, f64) {
    let (top, mut pairs, mut dots) = (top(max), Aligned([0.0; BLOCK / 2]), Aligned([0.0; BLOCK / 2]));
    let (blocks, rest) = xs.as_chunks::<BLOCK>();
    let (mut sum, mut dot) = (0.0, 0.0);
    for block in blocks {
        let (s, d) = block_sum_dot(block, top, &mut pairs, &mut dots);
        (sum, dot) = (sum + s, dot + d);
    }
    if !rest.is_empty() {
        let (s, d) = block_sum_dot(&padded(rest), top, &mut pairs, &mut dots);
        (sum, dot) = (sum + s, dot + d);
    }
    (sum, dot)
}

#[inline(always)]
fn whole_sums_body(blocks: &[[f32; BLOCK]], top: f32, sums: &mut [f64]) {
    let mut pairs = Aligned([0.0; BLOCK / 2]);
    for (block, sum) in blocks.iter().zip(sums) {
        for (line, pairs) in block.as_chunks::<LANES>().0.iter().zip(pairs.0.as_chunks_mut::<PAIRS>().0) {
            line_pairs(line, top, pairs);
        }
        *sum = total(&pairs);
    }
}

/// As [`whole_sums_body`], with the lanes of a sum held in two vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt")]
#[allow(unsafe_code)] // vector loads and stores
fn whole_sums_512(blocks: &[[f32; BLOCK]], top: f32, sums: &mut [f64]) {
    use std::arch::x86_64::*;
    let (mut low, mut high) = (_mm512_setzero_pd(), _mm512_setzero_pd());
    let mut sums = sums.iter_mut();
    // One loop over all lines: the compiler would unroll one over a block's, and run out of registers.
    for (line, n) in blocks.as_flattened().as_chunks::<LANES>().0.iter().zip(1usize..) {
        let mut es = [0.0f32; LANES];
        exps_of_line(line, top, &mut es);
        let (first, second) = es.split_at(PAIRS);
        // SAFETY: either half is 16 f32s; the loads are unaligned ones.
        let (first, second) = unsafe { (_mm512_loadu_ps(first.as_ptr()), _mm512_loadu_ps(second.as_ptr())) };
        let pairs = _mm512_add_ps(first, second);
        low = _mm512_add_pd(low, _mm512_cvtps_pd(_mm512_castps512_ps256(pairs)));
        high = _mm512_add_pd(high, _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(pairs)));
        if n % (BLOCK / LANES) == 0 {
            let mut lanes = [0.0; PAIRS / 2];
            // SAFETY: there are eight f64s; the store is an unaligned one.
            unsafe { _mm512_storeu_pd(lanes.as_mut_ptr(), _mm512_add_pd(low, high)) };
            let Some(sum) = sums.next() else { return };
            *sum = across(lanes);
            (low, high) = (_mm512_setzero_pd(), _mm512_setzero_pd());
        }
    }
}

/// The sum of a short block: as if it ended with what has no exponential.
#[inline(always)]
fn rest_sum_body(rest: &[f32], top: f32) -> f64 {
    let mut pairs = Aligned([0.0; BLOCK / 2]);
    let (lines, rest) = rest.as_chunks::<LANES>();
    let (done, open) = pairs.0.as_chunks_mut::<PAIRS>().0.split_at_mut(lines.len());
    for (line, pairs) in lines.iter().zip(done) {
        line_pairs(line, top, pairs);
    }
    if let Some(pairs) = open.first_mut().filter(|_| !rest.is_empty()) {
        line_pairs(&padded(rest), top, pairs);
    }
    total(&pairs)
}

/// Adds the halves of a line's exponentials onto each other, in f32: one rounding, of the size of theirs.
#[inline(always)]
fn line_pairs(line: &[f32; LANES], top: f32, pairs: &mut [f64; PAIRS]) {
    let mut es = [0.0; LANES];
    exps_of_line(line, top, &mut es);
    for i in 0..PAIRS {
        pairs[i] = f64::from(es[i] + es[i + PAIRS]);
    }
}

/// `pairs` and `dot_pairs` are overwritten.
#[inline(always)]
fn block_sum_dot(block: &[f32; BLOCK], top: f32, pairs: &mut Pairs, dot_pairs: &mut Pairs) -> (f64, f64) {
    let outs = pairs.0.as_chunks_mut::<PAIRS>().0.iter_mut().zip(dot_pairs.0.as_chunks_mut::<PAIRS>().0);
    for (line, (pairs, dot_pairs)) in block.as_chunks::<LANES>().0.iter().zip(outs) {
        let (mut es, mut ds) = ([0.0; LANES], [0.0; LANES]);
        exps_and_dots_of_line(line, top, &mut es, &mut ds);
        for i in 0..PAIRS {
            pairs[i] = f64::from(es[i]) + f64::from(es[i + PAIRS]);
            dot_pairs[i] = f64::from(ds[i]) + f64::from(ds[i + PAIRS]);
        }
    }
    (total(pairs), total(dot_pairs))
}

/// The sum, added in one order whatever the width: in each lane line after line, then across the lanes.
#[inline(always)]
fn total(pairs: &Pairs) -> f64 {
    let mut lanes = [0.0; PAIRS];
    for i in 0..PAIRS {
        let mut sum = 0.0;
        for line in pairs.0.as_chunks::<PAIRS>().0 {
            sum += line[i];
        }
        lanes[i] = sum;
    }
    let mut halves = [0.0; PAIRS / 2];
    for i in 0..PAIRS / 2 {
        halves[i] = lanes[i] + lanes[i + PAIRS / 2];
    }
    across(halves)
}

#[inline(always)]
fn across([a, b, c, d, e, f, g, h]: [f64; PAIRS / 2]) -> f64 {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::exp;
    use half::{bf16, f16};
    use proptest::prelude::*;

    /// The order in which a block's terms are added, word for word.
    fn naive_total(terms: &[f32], pair: fn(f32, f32) -> f64) -> f64 {
        let at = |i: usize| terms.get(i).copied().unwrap_or(0.0);
        let mut lanes = [0.0f64; 16];
        for line in 0..8 {
            for (i, lane) in lanes.iter_mut().enumerate() {
                *lane += pair(at(line * 32 + i), at(line * 32 + i + 16));
            }
        }
        let mut n = 8;
        while n > 0 {
            for i in 0..n {
                lanes[i] += lanes[i + n];
            }
            n /= 2;
        }
        lanes[0]
    }

    fn naive_exps(xs: &[f32], max: f32) -> Vec<f32> {
        xs.iter().map(|x| if x.is_finite() { exp(x - max) } else { 0.0 }).collect()
    }

    fn naive_sums(xs: &[f32], max: f32) -> Vec<f64> {
        xs.chunks(BLOCK).map(|block| naive_total(&naive_exps(block, max), |a, b| f64::from(a + b))).collect()
    }

    fn naive_sum_dot(xs: &[f32], max: f32) -> (f64, f64) {
        let dot = |x: &f32| if x.is_finite() && max - x <= 87.0 { exp(x - max) * (x - max) } else { 0.0 };
        let total = |terms: Vec<f32>| naive_total(&terms, |a, b| f64::from(a) + f64::from(b));
        let blocks = xs
            .chunks(BLOCK)
            .map(|block| (total(naive_exps(block, max)), total(block.iter().map(dot).collect())));
        blocks.fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    fn logits() -> impl Strategy<Value = Vec<f32>> {
        let one = prop_oneof![12 => -30f32..30f32, 1 => Just(f32::NEG_INFINITY), 1 => -200f32..30f32];
        prop::collection::vec(one, 1..1500)
    }

    fn highest(xs: &[f32]) -> f32 {
        xs.iter().copied().fold(f32::NEG_INFINITY, f32::max)
    }

    #[test]
    fn only_finite_elements_count() {
        let odd = [1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN, 0.0];
        for width in Width::all() {
            let e = f64::from(exp(-1.0));
            assert_eq!(sum_exp_dot_at(width, &odd, 1.0), (1.0 + e, -e), "{width:?}");
            assert_eq!(sum_exp_at(width, &odd, 1.0), 1.0 + e);
            assert_eq!(sum_exp_at(width, &[f32::NEG_INFINITY; 300], f32::NEG_INFINITY), 0.0);
            assert_eq!((sum_exp_at(width, &[], 0.0), sum_exp_dot_at(width, &[], 0.0)), (0.0, (0.0, 0.0)));
        }
    }

    proptest! {
        #[test]
        fn every_width_gives_the_bits_of_the_naive_sums(xs in logits()) {
            let max = highest(&xs);
            let (sums, sum_dot) = (naive_sums(&xs, max), naive_sum_dot(&xs, max));
            let whole = sums.iter().fold(0.0, |a, b| a + b);
            for width in Width::all() {
                let mut got = vec![7.0; sums.len()];
                block_sums_at(width, Floats::F32(&xs), max, &mut got);
                prop_assert_eq!(&got, &sums, "{:?}", width);
                prop_assert_eq!(sum_exp_at(width, &xs, max), whole, "{:?}", width);
                prop_assert_eq!(sum_exp_dot_at(width, &xs, max), sum_dot, "{:?}", width);
            }
        }

        #[test]
        fn narrow_floats_sum_as_what_they_mean(xs in logits()) {
            for brain in [false, true] {
                let bits: Vec<u16> = xs.iter()
                    .map(|&x| if brain { bf16::from_f32(x).to_bits() } else { f16::from_f32(x).to_bits() }).collect();
                let floats = if brain { Floats::Bf16(&bits) } else { Floats::F16(&bits) };
                let wide: Vec<f32> = (0..bits.len()).map(|i| floats.get(i).unwrap()).collect();
                let max = highest(&wide);
                for width in Width::all() {
                    let mut got = vec![7.0; wide.len().div_ceil(BLOCK)];
                    block_sums_at(width, floats, max, &mut got);
                    prop_assert_eq!(&got, &naive_sums(&wide, max), "{:?}", width);
                }
            }
        }

        #[test]
        fn sums_are_near_the_exact_ones(xs in logits()) {
            let max = highest(&xs);
            prop_assume!(max > f32::NEG_INFINITY);
            let terms = xs.iter().filter(|x| x.is_finite()).map(|&x| f64::from(x) - f64::from(max));
            let (mut exact, mut exact_dot) = (0.0, 0.0);
            for t in terms {
                exact += t.exp();
                exact_dot += t * t.exp();
            }
            let (sum, dot) = sum_exp_dot(&xs, max);
            prop_assert!((sum - exact).abs() <= 1e-6 * exact, "{} {}", sum, exact);
            prop_assert!((dot - exact_dot).abs() <= 1e-6 * (1.0 + exact_dot.abs()), "{} {}", dot, exact_dot);
        }
    }
}
