//! Exponentials of differences to a maximum.

use super::dispatch::widest;
use super::LANES;

widest! {
    /// exp(x) for x <= 0: bit for bit what the passes make of it. 0 for what is positive or NaN.
    exp, exp_at = exp_body(x: f32) -> f32
}

widest! {
    /// Writes exp(x - max) of each element of `xs` to `out`, as many as the shorter of the two has. 0 for an x that
    /// is NaN, infinite, above `max` or more than 87 below it.
    exps, exps_at = exps_body(xs: &[f32], max: f32, out: &mut [f32]) -> ()
}

widest! {
    /// Divides each exponential by `sum`, within 6e-8 relative of the exact quotient where that is no subnormal.
    normalise, normalise_at = normalise_body(es: &mut [f32], sum: f64) -> ()
}

#[inline(always)]
fn exp_body(x: f32) -> f32 {
    exp_below(0.0 - x).0
}

#[inline(always)]
fn exps_body(xs: &[f32], max: f32, out: &mut [f32]) {
    let top = top(max);
    let n = xs.len().min(out.len());
    let (lines, rest) = xs[..n].as_chunks::<LANES>();
    let (outs, out_rest) = out[..n].as_chunks_mut::<LANES>();
    for (line, out) in lines.iter().zip(outs) {
        exps_of_line(line, top, out);
    }
    if !rest.is_empty() {
        let mut line = [0.0; LANES];
        exps_of_line(&padded(rest), top, &mut line);
        out_rest.copy_from_slice(&line[..rest.len()]);
    }
}

/// What the elements are taken from: + 0.0 makes -0.0 to 0.0, and then no difference is -0.0.
#[inline(always)]
pub(super) fn top(max: f32) -> f32 {
    max + 0.0
}

/// A line or a block that begins with `rest` (not longer) and ends with what has no exponential.
#[inline(always)]
pub(super) fn padded<const N: usize>(rest: &[f32]) -> [f32; N] {
    let mut line = [f32::NEG_INFINITY; N];
    line[..rest.len()].copy_from_slice(rest);
    line
}

#[inline(always)]
pub(super) fn exps_of_line(line: &[f32; LANES], top: f32, es: &mut [f32; LANES]) {
    for i in 0..LANES {
        es[i] = exp_below(top - line[i]).0;
    }
}

/// As [`exps_of_line`], and each exponential times its exponent.
#[inline(always)]
pub(super) fn exps_and_dots_of_line(
    line: &[f32; LANES],
    top: f32,
    es: &mut [f32; LANES],
    ds: &mut [f32; LANES],
) {
    for i in 0..LANES {
        let z = top - line[i];
        let (e, within) = exp_below(z);
        es[i] = e;
        ds[i] = if within { e * -z } else { 0.0 };
    }
}

#[inline(always)]
fn normalise_body(es: &mut [f32], sum: f64) {
    let factor = 1.0 / sum;
    for e in es {
        *e = (f64::from(*e) * factor) as f32;
    }
}

/// exp(-z) for z from 0 to 87, and whether z is there; 0 for every other z, be it negative, infinite or NaN. The
/// relative error is below 8e-8.
#[inline(always)]
fn exp_below(z: f32) -> (f32, bool) {
    // 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let rounded = z.mul_add(-std::f32::consts::LOG2_E, ROUND);
    let k = rounded - ROUND;
    // r = -z - k ln 2: exact with the f32 nearest to ln 2, then what that has too much.
    let r = k.mul_add(-std::f32::consts::LN_2, -z);
    let r = k.mul_add(1.904_654_3e-9, r);
    // The coefficients of least relative error for |r| <= ln 2 / 2, the first two held at 1; they leave 3.1e-9.
    let p = 1.381_459_9e-3f32;
    let p = p.mul_add(r, 8.368_717e-3);
    let p = p.mul_add(r, 4.166_839e-2);
    let p = p.mul_add(r, 1.666_652_1e-1);
    let p = p.mul_add(r, 4.999_999_4e-1);
    let p = p.mul_add(r, 1.0);
    let p = p.mul_add(r, 1.0);
    // 2^k by adding k to the exponent.
    let e = f32::from_bits(p.to_bits().wrapping_add(rounded.to_bits() << 23));
    // As bits, what is not from 0 to 87 is above 87.
    let within = z.to_bits() <= 87.0f32.to_bits();
    (if within { e } else { 0.0 }, within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::dispatch::Width;
    use proptest::prelude::*;

    #[test]
    fn exponential_is_near_the_exact_one_and_ends_at_zero() {
        let (mut worst, mut sum, mut n) = (0.0f64, 0.0, 0);
        // Every 501st z from 1e-4 to 87.
        for bits in (1e-4f32.to_bits()..=87.0f32.to_bits()).step_by(501) {
            let x = -f32::from_bits(bits);
            let off = f64::from(exp(x)) / f64::from(x).exp() - 1.0;
            (worst, sum, n) = (worst.max(off.abs()), sum + off, n + 1);
        }
        assert!(worst < 8e-8, "off by {worst}");
        assert!((sum / f64::from(n)).abs() < 3e-9, "off by {sum} in {n}");
        assert_eq!((exp(0.0), exp(-0.0)), (1.0, 1.0));
        for x in [f32::NEG_INFINITY, -1e30, -87.1, 1e-30, f32::INFINITY, f32::NAN, -f32::NAN] {
            assert_eq!(exp(x).to_bits(), 0, "{x}");
        }
        assert!(exp(-87.0) > 0.0);
    }

    #[test]
    fn what_is_not_below_the_maximum_has_no_exponential() {
        let xs = [-0.0, 0.0, 1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0];
        for max in [0.0, -0.0] {
            let mut out = [7.0; 7];
            exps(&xs, max, &mut out);
            assert_eq!(out, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, exp(-1.0)]);
        }
        let mut out = [7.0; 2];
        exps(&xs, f32::NEG_INFINITY, &mut out);
        assert_eq!(out, [0.0; 2]);
    }

    proptest! {
        #[test]
        fn every_width_gives_the_bits_of_one_by_one(
            xs in prop::collection::vec(
                prop_oneof![8 => -90f32..=0f32, 1 => Just(f32::NEG_INFINITY), 1 => -1e-6f32..=0f32], 0..300),
            max in -30f32..30f32,
            sum in 1f64..1e5,
        ) {
            let xs: Vec<f32> = xs.iter().map(|x| x + max).filter(|&x| x <= max).collect();
            let want: Vec<u32> = xs.iter().map(|x| exp_at(Width::all()[0], x - max).to_bits()).collect();
            for width in Width::all() {
                let mut got = vec![7.0; xs.len() + 1];
                exps_at(width, &xs, max, &mut got);
                prop_assert_eq!(got.pop(), Some(7.0));
                prop_assert_eq!(got.iter().map(|e| e.to_bits()).collect::<Vec<_>>(), want.clone(), "{:?}", width);
                for (&x, &bits) in xs.iter().zip(&want) {
                    prop_assert_eq!(exp_at(width, x - max).to_bits(), bits, "{:?}", width);
                }
                normalise_at(width, &mut got, sum);
                for (&p, &bits) in got.iter().zip(&want) {
                    let exact = f64::from(f32::from_bits(bits)) / sum;
                    prop_assert!((f64::from(p) - exact).abs() <= 6e-8 * exact + 1e-45);
                }
            }
        }
    }
}
