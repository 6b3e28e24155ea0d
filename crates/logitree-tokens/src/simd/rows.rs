//! Passes over a row of floats of any kind, without allocation: one block is decoded at a time.

use super::{block_maxima, block_sums, max, sum_exp_dot, Floats, BLOCK};

/// Blocks whose maxima or sums are held at once.
const PART: usize = 64;

/// `xs` in parts of at most [`PART`] blocks.
fn parts(xs: Floats<'_>) -> impl Iterator<Item = (Floats<'_>, usize)> {
    let starts = (0..xs.len()).step_by(PART * BLOCK);
    starts.map(move |start| {
        let part = xs.slice(start, start + PART * BLOCK);
        (part, part.len().div_ceil(BLOCK))
    })
}

/// The highest finite element; -inf if there is none.
fn highest_finite(xs: Floats<'_>) -> f32 {
    let mut highest = f32::NEG_INFINITY;
    let mut maxima = [0.0; PART];
    for (part, blocks) in parts(xs) {
        if block_maxima(part, &mut maxima[..blocks]) {
            highest = highest.max(max(&maxima[..blocks]));
        } else {
            let finite = (0..part.len()).filter_map(|at| part.get(at)).filter(|x| x.is_finite());
            highest = finite.fold(highest, f32::max);
        }
    }
    highest
}

/// The highest finite element, and the sums of exp(x - highest) and of exp(x - highest) * (x - highest) over the
/// finite ones; `None` if there is no finite one.
pub fn finite_sums(xs: Floats<'_>) -> Option<(f64, f64, f64)> {
    let highest = highest_finite(xs);
    if highest == f32::NEG_INFINITY {
        return None;
    }
    let mut buffer = [0.0; BLOCK];
    let (mut sum, mut dot) = (0.0, 0.0);
    for i in 0..xs.len().div_ceil(BLOCK) {
        let (s, d) = sum_exp_dot(xs.block(i, &mut buffer), highest);
        sum += s;
        dot += d;
    }
    Some((f64::from(highest), sum, dot))
}

/// log(sum(exp(xs))) over the finite elements; -inf if there are none. Never overflows.
pub fn log_sum_exp(xs: Floats<'_>) -> f64 {
    let highest = highest_finite(xs);
    if highest == f32::NEG_INFINITY {
        return f64::NEG_INFINITY;
    }
    let mut sums = [0.0; PART];
    let mut sum = 0.0;
    for (part, blocks) in parts(xs) {
        block_sums(part, highest, &mut sums[..blocks]);
        sum += sums[..blocks].iter().sum::<f64>();
    }
    f64::from(highest) + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    #[test]
    fn all_kinds_of_a_row_give_the_same_sums_as_the_plain_formula() {
        let bits: Vec<u16> =
            (0..700).map(|i| bf16::from_f32((i % 97) as f32 / 16.0 - 3.0).to_bits()).collect();
        let floats: Vec<f32> = bits.iter().map(|&b| bf16::from_bits(b).to_f32()).collect();
        let halves: Vec<u16> = floats.iter().map(|&x| f16::from_f32(x).to_bits()).collect();
        let expected = finite_sums(Floats::F32(&floats));
        assert_eq!(finite_sums(Floats::Bf16(&bits)), expected);
        assert_eq!(finite_sums(Floats::F16(&halves)), expected);
        let plain = floats.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
        for kind in [Floats::F32(&floats), Floats::Bf16(&bits), Floats::F16(&halves)] {
            assert!((log_sum_exp(kind) - plain).abs() < 1e-6, "{} {plain}", log_sum_exp(kind));
        }
        let (max, sum, _) = expected.unwrap();
        assert!((max + sum.ln() - plain).abs() < 1e-6);
    }

    #[test]
    fn only_finite_elements_count() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!(log_sum_exp(Floats::F32(&[nan, inf, 3.0, -inf])), 3.0);
        assert_eq!(finite_sums(Floats::F32(&[nan, inf, -inf])), None);
        assert_eq!(log_sum_exp(Floats::F16(&[])), f64::NEG_INFINITY);
    }
}
