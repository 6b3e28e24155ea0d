//! Exponentials of what stands below a maximum. The file refuses to know what they are summed for.

use super::width::widest;
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
    /// Divides each exponential by their sum, within 6e-8 relative of the exact quotient.
    normalise, normalise_at = normalise_body(es: &mut [f32], sum: f64) -> ()
}

#[inline(always)]
fn exp_body(x: f32) -> f32 {
    exp_below(0.0 - x)
}

#[inline(always)]
pub(super) fn exps_body(xs: &[f32], max: f32, out: &mut [f32]) {
    // + 0.0 makes -0.0 to 0.0: then max - x is never -0.0.
    let max = max + 0.0;
    let n = xs.len().min(out.len());
    let (lines, rest) = xs[..n].as_chunks::<LANES>();
    let (outs, out_rest) = out[..n].as_chunks_mut::<LANES>();
    for (line, out) in lines.iter().zip(outs) {
        for i in 0..LANES {
            out[i] = exp_below(max - line[i]);
        }
    }
    if !rest.is_empty() {
        let mut line = [f32::NEG_INFINITY; LANES];
        line[..rest.len()].copy_from_slice(rest);
        for x in &mut line {
            *x = exp_below(max - *x);
        }
        out_rest.copy_from_slice(&line[..rest.len()]);
    }
}

#[inline(always)]
fn normalise_body(es: &mut [f32], sum: f64) {
    let factor = 1.0 / sum;
    for e in es {
        *e = (f64::from(*e) * factor) as f32;
    }
}

/// exp(-z) for z from 0 to 87, relative error below 1.2e-7; 0 for every other z, be it negative, infinite or NaN.
#[inline(always)]
pub(super) fn exp_below(z: f32) -> f32 {
    // 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let rounded = z.mul_add(-std::f32::consts::LOG2_E, ROUND);
    let k = rounded - ROUND;
    // -z - k ln 2, with ln 2 in two parts: the first product is exact.
    let r = (-k).mul_add(0.693_145_75, -z);
    let r = (-k).mul_add(1.428_606_8e-6, r);
    let p = 1.378_059_4e-3f32;
    let p = p.mul_add(r, 8.373_124_5e-3);
    let p = p.mul_add(r, 4.166_953_6e-2);
    let p = p.mul_add(r, 1.666_647_2e-1);
    let p = p.mul_add(r, 4.999_998_5e-1);
    let p = p.mul_add(r, 1.0);
    let p = p.mul_add(r, 1.0);
    // 2^k by adding k to the exponent.
    let e = f32::from_bits(p.to_bits().wrapping_add(rounded.to_bits() << 23));
    // As bits, what is not from 0 to 87 is above 87.
    if z.to_bits() <= 87.0f32.to_bits() {
        e
    } else {
        0.0
    }
}
