//! Maxima: of a slice, and of each block of one, with a check for what may not be there. The file refuses to know
//! where the maximum stands.

use super::floats::decode_body;
use super::width::widest;
use super::{Floats, BLOCK, LANES};

widest! {
    /// Writes the maximum of each [`BLOCK`] of `xs` to `maxima` (as many as there are blocks, the last may be
    /// short) and tells whether every element is below +inf, that is neither NaN nor +inf. Maxima ignore NaN.
    block_maxima, block_maxima_at = block_maxima_body(xs: Floats<'_>, maxima: &mut [f32]) -> bool
}

widest! {
    /// The maximum; NaN is ignored, -inf if there is nothing else.
    max, max_at = max_body(xs: &[f32]) -> f32
}

#[inline(always)]
fn block_maxima_body(xs: Floats<'_>, maxima: &mut [f32]) -> bool {
    match xs {
        Floats::F32(xs) => f32_maxima(xs, maxima),
        narrow => {
            let mut buffer = [0.0; BLOCK];
            let mut good = true;
            for (out, start) in maxima.iter_mut().zip((0..narrow.len()).step_by(BLOCK)) {
                let block = narrow.slice(start, start + BLOCK);
                decode_body(block, &mut buffer);
                good &= f32_maxima(&buffer[..block.len()], std::slice::from_mut(out));
            }
            good
        }
    }
}

#[inline(always)]
fn f32_maxima(xs: &[f32], maxima: &mut [f32]) -> bool {
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
