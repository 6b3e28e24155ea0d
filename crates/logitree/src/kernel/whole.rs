//! Passes over a row of floats of any kind, block by block, with nothing allocated and nothing decoded but the
//! block at hand. The file refuses to know what the row is.

use super::{max, sum_exp_dot, Floats, BLOCK};

/// The highest finite element, and the sums of exp(x - highest) and of exp(x - highest) * (x - highest) over the
/// finite ones; `None` if there is no finite one.
pub fn finite_sums(xs: Floats<'_>) -> Option<(f64, f64, f64)> {
    let mut buffer = [0.0; BLOCK];
    let mut highest = f32::NEG_INFINITY;
    for i in 0..xs.len().div_ceil(BLOCK) {
        let block = xs.block(i, &mut buffer);
        let top = max(block);
        highest = highest.max(if top == f32::INFINITY { finite_max(block) } else { top });
    }
    if highest == f32::NEG_INFINITY {
        return None;
    }
    let (mut sum, mut dot) = (0.0, 0.0);
    for i in 0..xs.len().div_ceil(BLOCK) {
        let (s, d) = sum_exp_dot(xs.block(i, &mut buffer), highest);
        sum += s;
        dot += d;
    }
    Some((f64::from(highest), sum, dot))
}

fn finite_max(block: &[f32]) -> f32 {
    block.iter().filter(|x| x.is_finite()).fold(f32::NEG_INFINITY, |m, &x| m.max(x))
}

/// log(sum(exp(xs))) over the finite elements; -inf if there are none. Never overflows.
pub fn log_sum_exp(xs: Floats<'_>) -> f64 {
    finite_sums(xs).map_or(f64::NEG_INFINITY, |(max, sum, _)| max + sum.ln())
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
        assert!((log_sum_exp(Floats::F32(&floats)) - plain).abs() < 1e-6);
    }

    #[test]
    fn only_finite_elements_count() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!(log_sum_exp(Floats::F32(&[nan, inf, 3.0, -inf])), 3.0);
        assert_eq!(finite_sums(Floats::F32(&[nan, inf, -inf])), None);
        assert_eq!(log_sum_exp(Floats::F16(&[])), f64::NEG_INFINITY);
    }
}
