//! Maxima: of a slice, and of each block of one, with a check for NaN and infinities.

use super::dispatch::widest;
use super::floats::{from_bf16, from_f16};
use super::{Floats, BLOCK, LANES};

widest! {
    /// Writes the maximum of each [`BLOCK`] of `xs` to `maxima` (as many as there are blocks, the last may be
    /// short), and whether every element is below +inf, that is neither NaN nor +inf. Maxima ignore NaN.
    block_maxima, block_maxima_at = block_maxima_body(xs: Floats<'_>, maxima: &mut [f32]) -> bool
}

widest! {
    /// Appends to `maxima` the maximum of the marked ones of each 16 of `xs`, as many as are whole: -inf where none is
    /// marked; NaN is ignored. `marks` has a bit for each, the lowest first.
    marked_maxima, marked_maxima_at = marked_maxima_body(xs: &[f32], marks: &[u8], maxima: &mut Vec<f32>) -> ()
}

#[inline(always)]
fn marked_maxima_body(xs: &[f32], marks: &[u8], maxima: &mut Vec<f32>) {
    let (lines, marks) = (xs.as_chunks::<LINE>().0, marks.as_chunks::<2>().0);
    for (line, &marks) in lines.iter().zip(marks) {
        let (marks, mut lanes) = (u32::from(u16::from_le_bytes(marks)), [f32::NEG_INFINITY; LINE]);
        for (at, lane) in lanes.iter_mut().enumerate() {
            let x = if marks >> at & 1 == 1 { line[at] } else { f32::NEG_INFINITY };
            *lane = if x > f32::NEG_INFINITY { x } else { f32::NEG_INFINITY };
        }
        maxima.push(highest(lanes));
    }
}

widest! {
    /// As [`block_maxima`] of the elements whose bit in `words` is set; the others are not looked at. `words` reach as far
    /// as `xs`. How many are above -inf; `None` if one is NaN or +inf.
    allowed_maxima, allowed_maxima_at = allowed_maxima_body(xs: &[f32], words: &[u32], maxima: &mut [f32]) -> Option<usize>
}

#[inline(always)]
fn allowed_maxima_body(xs: &[f32], words: &[u32], maxima: &mut [f32]) -> Option<usize> {
    let (mut good, mut alive) = (true, 0usize);
    let blocks = xs.chunks(BLOCK).zip(words.chunks(BLOCK / 32));
    for ((block, words), out) in blocks.zip(maxima) {
        let (lines, rest) = block.as_chunks::<32>();
        let (mut best, mut bad) = ([f32::NEG_INFINITY; 32], [false; 32]);
        let mut counts = [0u32; 32];
        for (line, &word) in lines.iter().zip(words) {
            for i in 0..32 {
                let x = if word >> i & 1 == 1 { line[i] } else { f32::NEG_INFINITY };
                best[i] = if x > best[i] { x } else { best[i] };
                bad[i] |= x.is_nan();
                counts[i] = counts[i].wrapping_add(u32::from(x > f32::NEG_INFINITY));
            }
        }
        let (mut top, mut is_bad) = (highest(best), bad.iter().fold(false, |any, &bad| any | bad));
        for (&x, i) in rest.iter().zip(0..32) {
            if words.get(lines.len()).is_some_and(|word| word >> i & 1 == 1) {
                top = if x > top { x } else { top };
                is_bad |= x.is_nan();
                alive += usize::from(x > f32::NEG_INFINITY);
            }
        }
        alive += counts.iter().fold(0u32, |sum, &count| sum.wrapping_add(count)) as usize;
        *out = top;
        good &= !is_bad && top < f32::INFINITY;
    }
    good.then_some(alive)
}

widest! {
    /// The maximum; NaN is ignored, -inf if there is nothing else.
    max, max_at = max_body(xs: &[f32]) -> f32
}

widest! {
    /// A bound that at least `k` of `xs` reach (`k` is 1 to their number), and few more if their values differ. There is no
    /// NaN among them.
    bound_of_best, bound_of_best_at = bound_of_best_body(xs: &[f32], k: usize) -> f32
}

/// Halves the range of floats, in the order of their bits, in which the `k`-th highest lies.
#[inline(always)]
fn bound_of_best_body(xs: &[f32], k: usize) -> f32 {
    // Its own inverse, but for the type.
    let flipped = |bits: i32| bits ^ ((bits >> 31) as u32 >> 1) as i32;
    let rank = |x: f32| i64::from(flipped(x.to_bits() as i32));
    let value = |rank: i64| f32::from_bits(flipped(rank as i32) as u32);
    // At least `k` reach the lower end, fewer the upper one.
    let (mut low, mut high) = (rank(min_body(xs)), rank(max_body(xs)) + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let least = value(middle);
        let reached = count_at_least(xs, least);
        if reached < k {
            high = middle;
        } else {
            low = middle;
            if reached <= k + k / 4 {
                break;
            }
        }
    }
    value(low)
}

#[inline(always)]
fn count_at_least(xs: &[f32], least: f32) -> usize {
    let mut counts = [0u32; LANES];
    let (lines, rest) = xs.as_chunks::<LANES>();
    for line in lines {
        for i in 0..LANES {
            counts[i] = counts[i].wrapping_add(u32::from(line[i] >= least));
        }
    }
    let all = counts.iter().fold(0u32, |sum, &count| sum.wrapping_add(count));
    all as usize + rest.iter().filter(|&&x| x >= least).count()
}

#[inline(always)]
fn min_body(xs: &[f32]) -> f32 {
    let mut best = [f32::INFINITY; LANES];
    let (lines, rest) = xs.as_chunks::<LANES>();
    for line in lines {
        for i in 0..LANES {
            best[i] = if line[i] < best[i] { line[i] } else { best[i] };
        }
    }
    best.iter().chain(rest).fold(f32::INFINITY, |least, &x| if x < least { x } else { least })
}

#[inline(always)]
fn block_maxima_body(xs: Floats<'_>, maxima: &mut [f32]) -> bool {
    match xs {
        Floats::F32(xs) => f32_maxima(xs, maxima),
        Floats::F16(xs) => narrow_maxima(xs, maxima, 0x7c00, from_f16),
        Floats::Bf16(xs) => narrow_maxima(xs, maxima, 0x7f80, from_bf16),
    }
}

/// Blocks that are fetched ahead of the one that is read: what the machine fetches by itself ends at each page.
const AHEAD: usize = 6;
/// Floats of a cache line.
const LINE: usize = 16;

#[inline(always)]
fn f32_maxima(xs: &[f32], maxima: &mut [f32]) -> bool {
    let (blocks, rest) = xs.as_chunks::<BLOCK>();
    let (mut good, mut negative) = (true, false);
    for ((at, block), out) in blocks.iter().enumerate().zip(maxima.iter_mut()) {
        if let Some(ahead) = blocks.get(at + AHEAD) {
            (0..BLOCK).step_by(LINE).for_each(|at| super::prefetch(ahead, at));
        }
        // A block of known length needs no code for what is over.
        let (top, below) = f32_maximum(block, &mut negative);
        *out = top;
        good &= below;
    }
    if let Some(out) = maxima.get_mut(blocks.len()).filter(|_| !rest.is_empty()) {
        let (top, below) = f32_maximum(rest, &mut negative);
        *out = top;
        good &= below;
    }
    good
}

/// The maximum, and whether all are below +inf. It is found among the bits: read as integers, floats above zero
/// order as they do, and floats below zero the other way round. `negative` is a guess, whether all are below zero,
/// and is corrected: the right one saves a pass.
#[inline(always)]
fn f32_maximum(block: &[f32], negative: &mut bool) -> (f32, bool) {
    const INFINITY: i32 = f32::INFINITY.to_bits() as i32;
    const BELOW_ALL: u32 = f32::NEG_INFINITY.to_bits();
    if *negative {
        let (mut low, mut high) = (i32::MAX, i32::MIN);
        for x in block {
            low = low.min(x.to_bits() as i32);
            high = high.max(x.to_bits() as i32);
        }
        if high <= BELOW_ALL as i32 {
            return (f32::from_bits(low as u32), true);
        }
    }
    let (mut high, mut far) = (i32::MIN, 0);
    for x in block {
        high = high.max(x.to_bits() as i32);
        far = far.max(x.to_bits());
    }
    *negative = high < 0;
    // NaN sorts above +inf, or below -inf.
    if high > INFINITY || far > BELOW_ALL {
        return (max_body(block), false);
    }
    if high < 0 {
        for x in block {
            high = high.min(x.to_bits() as i32);
        }
    }
    (f32::from_bits(high as u32), high < INFINITY)
}

/// As [`f32_maxima`] for numbers of 16 bits.
#[inline(always)]
fn narrow_maxima(xs: &[u16], maxima: &mut [f32], infinity: i16, value: fn(u16) -> f32) -> bool {
    let (blocks, rest) = xs.as_chunks::<BLOCK>();
    let mut good = true;
    for (block, out) in blocks.iter().zip(maxima.iter_mut()) {
        let (top, below) = narrow_maximum(block, infinity);
        *out = value(top);
        good &= below;
    }
    if let Some(out) = maxima.get_mut(blocks.len()).filter(|_| !rest.is_empty()) {
        let (top, below) = narrow_maximum(rest, infinity);
        *out = value(top);
        good &= below;
    }
    good
}

/// The bits of the maximum, and whether all are below +inf, whose bits are `infinity`.
#[inline(always)]
fn narrow_maximum(block: &[u16], infinity: i16) -> (u16, bool) {
    let (mut top, mut low) = (i16::MIN, i16::MAX);
    for &bits in block {
        let key = narrow_key(bits);
        top = top.max(key);
        low = low.min(key);
    }
    // NaN sorts above +inf, or below -inf.
    let nan = top > infinity || low < !infinity;
    if nan {
        top = !infinity;
        for &bits in block {
            let key = narrow_key(bits);
            top = if key <= infinity { top.max(key) } else { top };
        }
    }
    (narrow_key(top as u16) as u16, !nan && top < infinity)
}

/// The bits of a number as an integer that orders as the number does; its own inverse.
#[inline(always)]
fn narrow_key(bits: u16) -> i16 {
    let bits = bits as i16;
    bits ^ (bits >> 15 & i16::MAX)
}

#[inline(always)]
fn max_body(xs: &[f32]) -> f32 {
    let mut best = [f32::NEG_INFINITY; LANES];
    let lines = xs.chunks_exact(LANES);
    let rest = lines.remainder();
    for line in lines {
        for i in 0..LANES {
            best[i] = if line[i] > best[i] { line[i] } else { best[i] };
        }
    }
    rest.iter().fold(highest(best), |top, &x| if x > top { x } else { top })
}

/// The highest lane, found by halves.
#[inline(always)]
fn highest<const N: usize>(mut lanes: [f32; N]) -> f32 {
    let mut half = N / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = if lanes[i + half] > lanes[i] { lanes[i + half] } else { lanes[i] };
        }
        half /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::dispatch::Width;
    use half::{bf16, f16};
    use proptest::prelude::*;

    fn naive(xs: &[f32]) -> f32 {
        xs.iter().copied().fold(f32::NEG_INFINITY, |top, x| if x > top { x } else { top })
    }

    /// Block lengths of all kinds; all of one sign at times; what may not be there at times.
    fn floats() -> impl Strategy<Value = Vec<f32>> {
        let odd = prop::sample::select(vec![f32::NAN, -f32::NAN, f32::INFINITY]);
        let plain = || {
            prop_oneof![
                8 => -30f32..30f32, 1 => Just(f32::NEG_INFINITY), 1 => prop::sample::select(vec![0.0, -0.0, 1e-40, -1e-40])
            ]
        };
        prop_oneof![
            4 => prop::collection::vec(plain(), 0..1500),
            2 => prop::collection::vec(prop_oneof![9 => -30f32..-1f32, 1 => Just(f32::NEG_INFINITY)], 0..1500),
            2 => prop::collection::vec(prop_oneof![99 => plain(), 1 => odd], 0..1500),
        ]
    }

    proptest! {
        #[test]
        fn every_width_finds_the_naive_maxima(xs in floats()) {
            let f16s: Vec<u16> = xs.iter().map(|&x| f16::from_f32(x).to_bits()).collect();
            let bf16s: Vec<u16> = xs.iter().map(|&x| bf16::from_f32(x).to_bits()).collect();
            for floats in [Floats::F32(&xs), Floats::F16(&f16s), Floats::Bf16(&bf16s)] {
                let wide: Vec<f32> = (0..xs.len()).map(|i| floats.get(i).unwrap()).collect();
                let want: Vec<f32> = wide.chunks(BLOCK).map(naive).collect();
                let good = wide.iter().all(|&x| x < f32::INFINITY);
                for width in Width::all() {
                    let mut got = vec![7.0; want.len()];
                    prop_assert_eq!(block_maxima_at(width, floats, &mut got), good, "{:?}", width);
                    prop_assert_eq!(&got, &want, "{:?}", width);
                    prop_assert_eq!(max_at(width, &wide), naive(&wide), "{:?}", width);
                    let marks: Vec<u8> = (0..xs.len().div_ceil(8)).map(|at| (at * 37 % 256) as u8).collect();
                    let marked = |at: usize| marks[at / 8] >> (at % 8) & 1 == 1;
                    let only = |at: usize| (at..at + 16).filter(|&at| marked(at)).map(|at| wide[at]).collect::<Vec<_>>();
                    let slow: Vec<f32> = (0..xs.len() / 16).map(|line| naive(&only(line * 16))).collect();
                    let words: Vec<u32> = (0..xs.len().div_ceil(32))
                        .map(|at| [0, u32::MAX, 0x9e37_79b9, 0xfff7_ffff][at * 7 / 3 % 4].rotate_left(at as u32))
                        .collect();
                    let allowed: Vec<f32> = (wide.iter().enumerate())
                        .map(|(at, &x)| if words[at / 32] >> (at % 32) & 1 == 1 { x } else { f32::NEG_INFINITY })
                        .collect();
                    let mut got = vec![7.0; want.len()];
                    let good = allowed.iter().all(|&x| x < f32::INFINITY);
                    let alive = good.then(|| allowed.iter().filter(|&&x| x > f32::NEG_INFINITY).count());
                    prop_assert_eq!(allowed_maxima_at(width, &wide, &words, &mut got), alive, "{:?}", width);
                    prop_assert_eq!(got, allowed.chunks(BLOCK).map(naive).collect::<Vec<_>>(), "{:?}", width);
                    let mut fast = Vec::new();
                    marked_maxima_at(width, &wide, &marks, &mut fast);
                    prop_assert_eq!(fast, slow, "{:?}", width);
                }
            }
        }

        #[test]
        fn the_bound_of_the_best_is_reached_by_enough(
            xs in prop::collection::vec(
                prop_oneof![9 => -30f32..30f32, 1 => prop::sample::select(vec![f32::NEG_INFINITY, 0.0, -0.0, 7.0])], 1..700),
            k in 1usize..100,
        ) {
            let k = k.min(xs.len());
            let mut sorted = xs.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            for width in Width::all() {
                let bound = bound_of_best_at(width, &xs, k);
                let reached = xs.iter().filter(|&&x| x >= bound).count();
                let same = xs.iter().filter(|&&x| x == sorted[k - 1]).count();
                prop_assert!(reached >= k && reached <= k + k / 4 + same, "{reached} reach {bound}, {:?}", width);
            }
        }

        #[test]
        fn one_bad_element_is_seen(n in 1usize..1500, at in 0usize..1500, bad in 0usize..3, rest in -5f32..5f32) {
            let bad = [f32::NAN, -f32::NAN, f32::INFINITY][bad];
            let mut xs = vec![rest; n];
            xs[at % n] = bad;
            let bits: Vec<u16> = xs.iter().map(|&x| f16::from_f32(x).to_bits()).collect();
            let brain: Vec<u16> = xs.iter().map(|&x| bf16::from_f32(x).to_bits()).collect();
            for floats in [Floats::F32(&xs), Floats::F16(&bits), Floats::Bf16(&brain)] {
                for width in Width::all() {
                    prop_assert!(!block_maxima_at(width, floats, &mut vec![0.0; n.div_ceil(BLOCK)]));
                }
            }
        }
    }
}
