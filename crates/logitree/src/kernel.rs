//! Passes over slices of floats, compiled for the widest vectors the machine has (found at run time).
//!
//! Each pass is one plain loop, written in lanes so that the compiler vectorises it, and compiled three times:
//! AVX-512, AVX2, baseline. All three give the same bits where the result does not depend on the order of
//! additions, which is everywhere but in the sums. The file refuses to know what the numbers mean.
#![allow(unsafe_code)]

/// Elements a block: what [`block_maxima`] reduces to one number.
pub const BLOCK: usize = 256;

const LANES: usize = 32;

/// Defines a public function that runs `$body` compiled for the machine's widest vectors.
macro_rules! widest {
    ($(#[$doc:meta])* $name:ident = $body:ident($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        $(#[$doc])*
        pub fn $name($($arg: $ty),*) -> $ret {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512($($arg: $ty),*) -> $ret {
                    $body($($arg),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $ty),*) -> $ret {
                    $body($($arg),*)
                }
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    // SAFETY: the four features it is compiled for were just detected.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: AVX2 was just detected.
                    return unsafe { avx2($($arg),*) };
                }
            }
            $body($($arg),*)
        }
    };
}

widest! {
    /// Writes the maximum of each [`BLOCK`] of `xs` to `maxima` (as many as there are blocks, the last may be
    /// short) and tells whether every element is below +inf, that is neither NaN nor +inf. Maxima ignore NaN.
    block_maxima = block_maxima_body(xs: &[f32], maxima: &mut [f32]) -> bool
}

widest! {
    /// The maximum; NaN is ignored, -inf if there is nothing else.
    max = max_body(xs: &[f32]) -> f32
}

widest! {
    /// Appends to `keys` the [`descending_key`] of each element of `xs` that is `>= threshold`, numbered from
    /// `first`.
    collect_keys = collect_keys_body(xs: &[f32], threshold: f32, first: u32, keys: &mut Vec<u64>) -> ()
}

widest! {
    /// Over the finite elements: the sum of exp(x - max), and of exp(x - max) * (x - max). The exponential is
    /// good to 2e-7, sums are kept in f64.
    sum_exp = sum_exp_body(xs: &[f32], max: f32) -> (f64, f64)
}

#[inline(always)]
fn block_maxima_body(xs: &[f32], maxima: &mut [f32]) -> bool {
    let mut above = [0u32; LANES];
    for (block, out) in xs.chunks(BLOCK).zip(maxima) {
        let mut best = [f32::NEG_INFINITY; LANES];
        let lines = block.chunks_exact(LANES);
        let rest = lines.remainder();
        for line in lines {
            for i in 0..LANES {
                best[i] = if line[i] > best[i] { line[i] } else { best[i] };
                above[i] |= if line[i] < f32::INFINITY { 0 } else { u32::MAX };
            }
        }
        let mut top = highest(best);
        for &x in rest {
            top = if x > top { x } else { top };
            above[0] |= if x < f32::INFINITY { 0 } else { u32::MAX };
        }
        *out = top;
    }
    above.iter().all(|&a| a == 0)
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
fn highest(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = if lanes[i + half] > lanes[i] { lanes[i + half] } else { lanes[i] };
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn collect_keys_body(xs: &[f32], threshold: f32, first: u32, keys: &mut Vec<u64>) {
    for (line, base) in xs.chunks(LANES).zip((first..).step_by(LANES)) {
        let mut any = false;
        for &x in line {
            any |= x >= threshold;
        }
        if any {
            for (&x, id) in line.iter().zip(base..) {
                if x >= threshold {
                    keys.push(descending_key(x, id));
                }
            }
        }
    }
}

#[inline(always)]
fn sum_exp_body(xs: &[f32], max: f32) -> (f64, f64) {
    let (mut sum, mut dot) = ([0.0f64; LANES], [0.0f64; LANES]);
    // What is past the end of a short block stays at 0.
    let (mut es, mut ds) = ([0.0f32; BLOCK], [0.0f32; BLOCK]);
    for block in xs.chunks(BLOCK) {
        if block.len() < BLOCK {
            (es, ds) = ([0.0; BLOCK], [0.0; BLOCK]);
        }
        for ((&x, e), d) in block.iter().zip(&mut es).zip(&mut ds) {
            (*e, *d) = exp_term(x, max);
        }
        let (mut sums, mut dots) = ([0.0f32; LANES], [0.0f32; LANES]);
        for (e, d) in es.chunks_exact(LANES).zip(ds.chunks_exact(LANES)) {
            for i in 0..LANES {
                sums[i] += e[i];
                dots[i] += d[i];
            }
        }
        for i in 0..LANES {
            sum[i] += f64::from(sums[i]);
            dot[i] += f64::from(dots[i]);
        }
    }
    (sum.iter().sum(), dot.iter().sum())
}

/// exp(x - max) and exp(x - max) * (x - max), both 0 for a non-finite x.
#[inline(always)]
fn exp_term(x: f32, max: f32) -> (f32, f32) {
    let within = x > f32::NEG_INFINITY && x < f32::INFINITY;
    let y = if within { x - max } else { -100.0 };
    let e = exp_not_positive(y);
    (e, if e > 0.0 { e * y } else { 0.0 })
}

/// exp(x) for x <= 0, 0 below -87 (where f32 runs out); relative error below 2e-7. Never NaN for x <= 0.
#[inline(always)]
fn exp_not_positive(x: f32) -> f32 {
    // 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let within = if x > -87.0 { x } else { -87.0 };
    let rounded = within * std::f32::consts::LOG2_E + ROUND;
    let k = rounded - ROUND;
    // ln 2 in two parts, the first exact when multiplied by a small integer.
    let r = within - k * 0.693_359_4 + k * 2.121_944_4e-4;
    // Taylor to the seventh order: |r| <= ln2 / 2 leaves 5e-9 relative.
    let tail = 1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0)));
    let poly = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * tail)));
    let power = f32::from_bits(rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23);
    if x > -87.0 {
        poly * power
    } else {
        0.0
    }
}

/// A number that sorts ascending as `x` descends, and as `id` ascends where x is equal. Undone by [`from_key`].
#[inline(always)]
pub fn descending_key(x: f32, id: u32) -> u64 {
    // + 0.0 makes -0.0 equal to 0.0, as comparison has it.
    let bits = (x + 0.0).to_bits();
    let flipped = if bits >> 31 == 1 { bits } else { !(bits | 1 << 31) };
    u64::from(flipped) << 32 | u64::from(id)
}

/// The value (-0.0 has become 0.0) and the id of a key.
#[inline(always)]
pub fn from_key(key: u64) -> (f32, u32) {
    let flipped = (key >> 32) as u32;
    let bits = if flipped >> 31 == 1 { flipped } else { !flipped & !(1 << 31) };
    (f32::from_bits(bits), key as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_sort_descending_then_by_id_and_come_back() {
        let xs = [3.5f32, -0.0, 0.0, -1.0, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1e-40, -1e-40, 3.5];
        let mut keys: Vec<u64> = xs.iter().zip(0..).map(|(&x, i)| descending_key(x, i)).collect();
        for (i, &key) in keys.iter().enumerate() {
            assert_eq!(from_key(key), (xs[i], i as u32));
        }
        keys.sort_unstable();
        let mut plain: Vec<usize> = (0..xs.len()).collect();
        plain.sort_by(|&a, &b| xs[b].partial_cmp(&xs[a]).unwrap());
        let sorted: Vec<usize> = keys.iter().map(|&k| from_key(k).1 as usize).collect();
        assert_eq!(sorted, plain);
    }

    #[test]
    fn exponential_is_good_to_2e_7_and_ends_at_zero() {
        for i in 0..870_000 {
            let x = -(i as f32) * 1e-4;
            let exact = f64::from(x).exp();
            let off = (f64::from(exp_not_positive(x)) - exact).abs() / exact;
            assert!(off < 2e-7, "exp({x}) is off by {off}");
        }
        assert_eq!(exp_not_positive(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp_not_positive(-1e30), 0.0);
    }

    proptest! {
        #[test]
        fn wide_passes_equal_plain_ones(
            xs in prop::collection::vec(prop_oneof![8 => -30f32..30f32, 1 => Just(f32::NEG_INFINITY)], 0..1500),
            threshold in -30f32..30f32,
        ) {
            let mut maxima = vec![0.0; xs.len().div_ceil(BLOCK)];
            prop_assert!(block_maxima(&xs, &mut maxima));
            let mut plain = vec![0.0; maxima.len()];
            prop_assert!(block_maxima_body(&xs, &mut plain));
            prop_assert_eq!(&maxima, &plain);
            let naive = |ys: &[f32]| ys.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for (block, &m) in xs.chunks(BLOCK).zip(&maxima) {
                prop_assert_eq!(m, naive(block));
            }
            prop_assert_eq!(max(&xs), naive(&xs));
            let mut keys = Vec::new();
            collect_keys(&xs, threshold, 7, &mut keys);
            let expected: Vec<u64> = xs.iter().zip(7..).filter(|(x, _)| **x >= threshold)
                .map(|(&x, id)| descending_key(x, id)).collect();
            prop_assert_eq!(keys, expected);
            let top = naive(&xs);
            if top > f32::NEG_INFINITY {
                let (sum, dot) = sum_exp(&xs, top);
                let terms = xs.iter().filter(|x| x.is_finite()).map(|&x| f64::from(x) - f64::from(top));
                let (mut exact, mut exact_dot) = (0.0, 0.0);
                for t in terms {
                    exact += t.exp();
                    exact_dot += t * t.exp();
                }
                prop_assert!((sum - exact).abs() <= 1e-6 * exact, "{} {}", sum, exact);
                prop_assert!((dot - exact_dot).abs() <= 1e-6 * (1.0 + exact_dot.abs()), "{} {}", dot, exact_dot);
            }
        }

        #[test]
        fn one_bad_element_is_seen(n in 1usize..1500, at in 0usize..1500, infinite: bool) {
            let mut xs = vec![1.0f32; n];
            xs[at % n] = if infinite { f32::INFINITY } else { f32::NAN };
            let mut maxima = vec![0.0; n.div_ceil(BLOCK)];
            prop_assert!(!block_maxima(&xs, &mut maxima));
        }
    }
}
