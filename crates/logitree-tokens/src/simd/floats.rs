//! A slice of floats of one of three kinds, read as f32. Every value of the narrow kinds is an f32, so nothing is
//! lost.

use super::dispatch::widest;
use super::BLOCK;

/// Borrowed floats.
#[derive(Debug, Clone, Copy)]
pub enum Floats<'a> {
    /// IEEE binary32.
    F32(&'a [f32]),
    /// The bits of IEEE binary16.
    F16(&'a [u16]),
    /// The bits of bfloat16: the upper half of a binary32.
    Bf16(&'a [u16]),
}

impl<'a> Floats<'a> {
    /// How many there are.
    pub fn len(self) -> usize {
        match self {
            Floats::F32(xs) => xs.len(),
            Floats::F16(xs) | Floats::Bf16(xs) => xs.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Has the machine fetch element `i`, if there is one, because it will be read soon.
    #[inline(always)]
    pub fn prefetch(self, i: usize) {
        match self {
            Floats::F32(xs) => super::prefetch(xs, i),
            Floats::F16(xs) | Floats::Bf16(xs) => super::prefetch(xs, i),
        }
    }

    /// The one at `i`.
    #[inline]
    pub fn get(self, i: usize) -> Option<f32> {
        match self {
            Floats::F32(xs) => xs.get(i).copied(),
            Floats::F16(xs) => xs.get(i).map(|&bits| from_f16(bits)),
            Floats::Bf16(xs) => xs.get(i).map(|&bits| from_bf16(bits)),
        }
    }

    /// The ones from `start` (or the end) to `end` (or the end).
    #[inline(always)]
    pub fn slice(self, start: usize, end: usize) -> Floats<'a> {
        let end = end.min(self.len());
        let start = start.min(end);
        match self {
            Floats::F32(xs) => Floats::F32(&xs[start..end]),
            Floats::F16(xs) => Floats::F16(&xs[start..end]),
            Floats::Bf16(xs) => Floats::Bf16(&xs[start..end]),
        }
    }

    /// The `i`-th block of 256 of them, the last may be short, those after it are empty: borrowed if they are f32,
    /// else decoded into `buffer`.
    pub fn block<'b>(self, i: usize, buffer: &'b mut [f32; BLOCK]) -> &'b [f32]
    where
        'a: 'b,
    {
        let start = i.saturating_mul(BLOCK);
        match self.slice(start, start.saturating_add(BLOCK)) {
            Floats::F32(xs) => xs,
            narrow => {
                let out = &mut buffer[..narrow.len()];
                decode(narrow, out);
                out
            }
        }
    }
}

impl<'a> From<&'a [f32]> for Floats<'a> {
    fn from(xs: &'a [f32]) -> Self {
        Floats::F32(xs)
    }
}

impl<'a, const N: usize> From<&'a [f32; N]> for Floats<'a> {
    fn from(xs: &'a [f32; N]) -> Self {
        Floats::F32(xs)
    }
}

impl<'a> From<&'a Vec<f32>> for Floats<'a> {
    fn from(xs: &'a Vec<f32>) -> Self {
        Floats::F32(xs)
    }
}

widest! {
    /// Writes `xs` to `out`, as many as the shorter of the two has.
    decode, decode_at = decode_body(xs: Floats<'_>, out: &mut [f32]) -> ()
}

#[inline(always)]
pub(super) fn decode_body(xs: Floats<'_>, out: &mut [f32]) {
    match xs {
        Floats::F32(xs) => out.iter_mut().zip(xs).for_each(|(out, &x)| *out = x),
        Floats::F16(xs) => out.iter_mut().zip(xs).for_each(|(out, &bits)| *out = from_f16(bits)),
        Floats::Bf16(xs) => out.iter_mut().zip(xs).for_each(|(out, &bits)| *out = from_bf16(bits)),
    }
}

/// The value of binary16 `bits`; NaN stays NaN.
#[inline(always)]
pub(super) fn from_f16(bits: u16) -> f32 {
    // Sign, exponent and fraction where binary32 has them; the exponent's bias is 112 too low for there.
    let moved = (i32::from(bits as i16) << 13) as u32 & 0x8fff_e000;
    // A product by 2^112 moves the bias and is exact; the subnormal of one is a subnormal of the other before it.
    let scaled = f32::from_bits(moved) * f32::from_bits((127 + 112) << 23);
    // Infinity and NaN have all of the exponent's bits set, in both.
    let above = if scaled.abs() >= 65536.0 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled.to_bits() | above)
}

/// The value of bfloat16 `bits`.
#[inline(always)]
pub(super) fn from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::dispatch::Width;
    use half::{bf16, f16};

    #[test]
    fn every_pattern_is_decoded_as_the_half_crate_does() {
        let bits: Vec<u16> = (0..=u16::MAX).collect();
        let mut got = vec![0.0; bits.len()];
        for width in Width::all() {
            for (floats, want) in [
                (Floats::F16(&bits), bits.iter().map(|&b| f16::from_bits(b).to_f32()).collect::<Vec<_>>()),
                (Floats::Bf16(&bits), bits.iter().map(|&b| bf16::from_bits(b).to_f32()).collect()),
            ] {
                got.fill(7.0);
                decode_at(width, floats, &mut got);
                for (i, (&got, &want)) in got.iter().zip(&want).enumerate() {
                    let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
                    assert!(same, "{width:?}: {i:#06x} is {want}, not {got}");
                    let one = floats.get(i).unwrap();
                    assert!(one.to_bits() == got.to_bits(), "{i:#06x}: {one} alone, {got} in a row");
                }
            }
        }
    }

    #[test]
    fn blocks_are_cut_and_end() {
        let floats: Vec<f32> = (0..BLOCK + 3).map(|i| i as f32).collect();
        let bits: Vec<u16> = floats.iter().map(|&x| f16::from_f32(x).to_bits()).collect();
        for xs in [Floats::F32(&floats), Floats::F16(&bits)] {
            let mut buffer = [0.0; BLOCK];
            assert_eq!(xs.block(0, &mut buffer), &floats[..BLOCK]);
            assert_eq!(xs.block(1, &mut buffer), &floats[BLOCK..]);
            assert!(xs.block(2, &mut buffer).is_empty());
            assert!(xs.block(usize::MAX, &mut buffer).is_empty());
            assert_eq!((xs.len(), xs.is_empty()), (BLOCK + 3, false));
            assert_eq!((xs.get(257), xs.get(259)), (Some(257.0), None));
        }
    }
}
