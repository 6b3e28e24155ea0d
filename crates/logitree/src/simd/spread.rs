//! Passes that change a block or measure its spread.

use super::dispatch::widest;
use super::LANES;

widest! {
    /// Divides each element.
    divide, divide_at = divide_body(xs: &mut [f32], by: f32) -> ()
}

widest! {
    /// Sets to -inf what is below `least`.
    reject_below, reject_below_at = reject_below_body(xs: &mut [f32], least: f32) -> ()
}

widest! {
    /// Over the elements above -inf: how many, and the sum of their differences from `centre`.
    deviations, deviations_at = deviations_body(xs: &[f32], centre: f32) -> (usize, f64)
}

widest! {
    /// Over the elements above -inf: the sum of the squares of their differences from `centre`.
    squares, squares_at = squares_body(xs: &[f32], centre: f32) -> f64
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
fn deviations_body(xs: &[f32], centre: f32) -> (usize, f64) {
    let mut alive = [0u32; LANES];
    let sum = in_lanes(xs, |lane, x| {
        let counts = x > f32::NEG_INFINITY;
        alive[lane] += u32::from(counts);
        f64::from(if counts { x - centre } else { 0.0 })
    });
    (alive.iter().sum::<u32>() as usize, sum)
}

#[inline(always)]
fn squares_body(xs: &[f32], centre: f32) -> f64 {
    in_lanes(xs, |_, x| {
        let d = f64::from(if x > f32::NEG_INFINITY { x - centre } else { 0.0 });
        d * d
    })
}

/// The sum of `term` over all elements, kept in lanes that are added in order.
#[inline(always)]
fn in_lanes(xs: &[f32], mut term: impl FnMut(usize, f32) -> f64) -> f64 {
    let mut sums = [0.0f64; LANES];
    let lines = xs.chunks_exact(LANES);
    let rest = lines.remainder();
    for line in lines {
        for lane in 0..LANES {
            sums[lane] += term(lane, line[lane]);
        }
    }
    for (lane, &x) in rest.iter().enumerate() {
        sums[lane] += term(lane, x);
    }
    sums.iter().sum()
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
            let finite: Vec<f64> = xs.iter().filter(|x| x.is_finite()).map(|&x| f64::from(x - least)).collect();
            for width in Width::all() {
                let mut ys = xs.clone();
                divide_at(width, &mut ys, by);
                prop_assert!(ys.iter().zip(&xs).all(|(y, x)| *y == x / by));
                reject_below_at(width, &mut ys, least);
                let floored = |x: f32| if x < least { f32::NEG_INFINITY } else { x };
                prop_assert!(ys.iter().zip(&xs).all(|(y, x)| *y == floored(x / by)));
                let (n, sum) = deviations_at(width, &xs, least);
                prop_assert_eq!(n, finite.len());
                prop_assert!((sum - finite.iter().sum::<f64>()).abs() < 1e-9 * (1.0 + n as f64));
                let square = squares_at(width, &xs, least);
                let expected: f64 = finite.iter().map(|d| d * d).sum();
                prop_assert!((square - expected).abs() <= 1e-12 * (1.0 + expected));
            }
        }
    }
}
