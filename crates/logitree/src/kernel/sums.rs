//! Sums of exponentials over blocks, in f64, and the place where a running sum reaches a target. The file refuses to
//! know what is drawn.

use super::exp::{exp_below, exps_body};
use super::floats::decode_body;
use super::width::widest;
use super::{Floats, BLOCK};

widest! {
    /// The sum of exp(x - max), see [`super::exps`]: that of [`block_sums`], added in order.
    sum_exp, sum_exp_at = sum_exp_body(xs: &[f32], max: f32) -> f64
}

widest! {
    /// The sum of exp(x - max), see [`super::exps`], and of exp(x - max) * (x - max).
    sum_exp_dot, sum_exp_dot_at = sum_exp_dot_body(xs: &[f32], max: f32) -> (f64, f64)
}

widest! {
    /// Writes the sum of exp(x - max) of each [`BLOCK`] of `xs` to `sums`.
    block_sums, block_sums_at = block_sums_body(xs: Floats<'_>, max: f32, sums: &mut [f64]) -> ()
}

widest! {
    /// As [`block_sums`], and the sum of exp(x - max) * (x - max) of each block to `dots`.
    block_sums_dot, block_sums_dot_at =
        block_sums_dot_body(xs: Floats<'_>, max: f32, sums: &mut [f64], dots: &mut [f64]) -> ()
}

widest! {
    /// The first index at which the running sum of exp(x - max) is at least `target` and the exponential is above 0;
    /// `None` if the sum of `block` does not reach it.
    pick, pick_at = pick_body(block: &[f32], max: f32, target: f64) -> Option<usize>
}

#[inline(always)]
fn sum_exp_body(xs: &[f32], max: f32) -> f64 {
    let mut sum = 0.0;
    for block in xs.chunks(BLOCK) {
        sum += block_sum(block, max);
    }
    sum
}

#[inline(always)]
fn sum_exp_dot_body(xs: &[f32], max: f32) -> (f64, f64) {
    let (mut sum, mut dot) = (0.0, 0.0);
    for block in xs.chunks(BLOCK) {
        let (s, d) = block_sum_dot(block, max);
        sum += s;
        dot += d;
    }
    (sum, dot)
}

#[inline(always)]
fn block_sums_body(xs: Floats<'_>, max: f32, sums: &mut [f64]) {
    let mut buffer = [0.0; BLOCK];
    for (sum, start) in sums.iter_mut().zip((0..xs.len()).step_by(BLOCK)) {
        *sum = block_sum(decoded(xs.slice(start, start + BLOCK), &mut buffer), max);
    }
}

#[inline(always)]
fn block_sums_dot_body(xs: Floats<'_>, max: f32, sums: &mut [f64], dots: &mut [f64]) {
    let mut buffer = [0.0; BLOCK];
    for ((sum, dot), start) in sums.iter_mut().zip(dots).zip((0..xs.len()).step_by(BLOCK)) {
        (*sum, *dot) = block_sum_dot(decoded(xs.slice(start, start + BLOCK), &mut buffer), max);
    }
}

#[inline(always)]
fn decoded<'b, 'a: 'b>(xs: Floats<'a>, buffer: &'b mut [f32; BLOCK]) -> &'b [f32] {
    match xs {
        Floats::F32(xs) => xs,
        narrow => {
            decode_body(narrow, buffer);
            &buffer[..narrow.len()]
        }
    }
}

#[inline(always)]
fn block_sum(block: &[f32], max: f32) -> f64 {
    let mut es = [0.0f32; BLOCK];
    exps_body(block, max, &mut es);
    es.iter().map(|&e| f64::from(e)).sum()
}

#[inline(always)]
fn block_sum_dot(block: &[f32], max: f32) -> (f64, f64) {
    let (mut sum, mut dot) = (0.0, 0.0);
    for &x in block {
        let e = exp_below(max + 0.0 - x);
        sum += f64::from(e);
        dot += if e > 0.0 { f64::from(e * (x - max)) } else { 0.0 };
    }
    (sum, dot)
}

#[inline(always)]
fn pick_body(block: &[f32], max: f32, target: f64) -> Option<usize> {
    let mut es = [0.0f32; BLOCK];
    let mut running = 0.0;
    for (part, first) in block.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
        exps_body(part, max, &mut es);
        for (&e, at) in es[..part.len()].iter().zip(first..) {
            running += f64::from(e);
            if running >= target && e > 0.0 {
                return Some(at);
            }
        }
    }
    None
}
