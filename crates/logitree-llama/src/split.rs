//! Splits an array of candidates into ids and logits, eight at a time where the machine has AVX2.
//!
//! The plain loop is the naive version, and the tests compare the two.
#![allow(unsafe_code)] // reads candidates with vector instructions

use crate::candidates::TokenData;

/// Copies the logits to `out`; whether the candidate at each position has that id. `out` must be as long as `candidates`;
/// where it is shorter or longer, only the common part is copied.
pub(crate) fn split(candidates: &[TokenData], out: &mut [f32]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the machine has AVX2.
        return unsafe { wide(candidates, out) };
    }
    plain(candidates, 0, out)
}

/// As [`split`], for candidates that begin at position `from`.
fn plain(candidates: &[TokenData], from: i32, out: &mut [f32]) -> bool {
    let mut strange = 0;
    for ((out, candidate), at) in out.iter_mut().zip(candidates).zip(from..) {
        strange |= candidate.id ^ at;
        *out = candidate.logit;
    }
    strange == 0
}

/// Eight candidates are three vectors of eight numbers: of the 24, the ids lie in lanes 0, 3, 6 of the first, 1, 4, 7 of
/// the second and 2, 5 of the third, the logits one lane later. No two ids share a lane, so that blending the three
/// vectors collects them, and one permutation puts them in order; the same for the logits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide(candidates: &[TokenData], out: &mut [f32]) -> bool {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_blend_epi32, _mm256_loadu_si256, _mm256_or_si256,
        _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_setr_epi32, _mm256_setzero_si256,
        _mm256_storeu_si256, _mm256_testz_si256, _mm256_xor_si256,
    };
    let count = candidates.len().min(out.len());
    let (eights, rest) = candidates[..count].as_chunks::<8>();
    let (outs, out_rest) = out[..count].as_chunks_mut::<8>();
    let order_of_ids = _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5);
    let order_of_logits = _mm256_setr_epi32(1, 4, 7, 2, 5, 0, 3, 6);
    let mut at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mut strange = _mm256_setzero_si256();
    for (eight, out) in eights.iter().zip(outs) {
        let from = eight.as_ptr().cast::<__m256i>();
        // SAFETY: eight candidates of three 4-byte fields are 96 bytes, three vectors, all of them numbers.
        let [a, b, c] = unsafe {
            [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)), _mm256_loadu_si256(from.add(2))]
        };
        let ids = _mm256_blend_epi32::<0b0010_0100>(_mm256_blend_epi32::<0b1001_0010>(a, b), c);
        let logits = _mm256_blend_epi32::<0b0100_1001>(_mm256_blend_epi32::<0b0010_0100>(a, b), c);
        let (ids, logits) = (
            _mm256_permutevar8x32_epi32(ids, order_of_ids),
            _mm256_permutevar8x32_epi32(logits, order_of_logits),
        );
        // SAFETY: eight floats are one vector.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), logits) };
        strange = _mm256_or_si256(strange, _mm256_xor_si256(ids, at));
        at = _mm256_add_epi32(at, _mm256_set1_epi32(8));
    }
    plain(rest, (count - rest.len()) as i32, out_rest) && _mm256_testz_si256(strange, strange) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_equal_the_plain_loop() {
        for count in (0..40).chain([1_000, 1_003]) {
            let ordered: Vec<TokenData> = (0..count)
                .map(|id| TokenData { id, logit: (id * 7 % 13) as f32 - 0.5, p: id as f32 })
                .collect();
            for strange in [None, Some(0), Some(count / 2), Some(count - 1)] {
                let mut candidates = ordered.clone();
                if let Some(candidate) = strange.and_then(|at| candidates.get_mut(usize::try_from(at).ok()?))
                {
                    candidate.id = -1;
                }
                for room in [count as usize, count as usize / 3, count as usize + 5] {
                    let (mut fast, mut slow) = (vec![9.0; room], vec![9.0; room]);
                    let in_place = split(&candidates, &mut fast);
                    assert_eq!(in_place, plain(&candidates, 0, &mut slow), "{count} {strange:?} {room}");
                    assert_eq!(fast, slow, "{count} {strange:?} {room}");
                }
            }
        }
    }

    #[test]
    fn strange_bits_are_copied_as_they_are() {
        let bits = [f32::NAN.to_bits(), 0x7f80_0001, 0xffff_ffff, f32::INFINITY.to_bits(), 0x8000_0000, 1];
        let candidates: Vec<TokenData> = (0..24)
            .map(|id| TokenData { id, logit: f32::from_bits(bits[id as usize % bits.len()]), p: f32::NAN })
            .collect();
        let mut out = vec![0.0; candidates.len()];
        assert!(split(&candidates, &mut out));
        assert!(out
            .iter()
            .zip(&candidates)
            .all(|(copy, candidate)| copy.to_bits() == candidate.logit.to_bits()));
    }
}
