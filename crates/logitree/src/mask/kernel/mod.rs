//! The loops that touch every word of a mask, for the machine's vector width. Each must equal [`scalar`] bit for bit;
//! the tests below compare them.

mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

/// Which implementation to use. The fast ones exist only where the machine was asked and has what they need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)] // named in the sealed trait `Logit`
pub struct Kernel(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(x86::HasAvx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(x86::HasAvx512),
}

/// The fastest kernel of this machine, found out once.
pub(super) fn best() -> Kernel {
    static BEST: OnceLock<Kernel> = OnceLock::new();
    *BEST.get_or_init(|| all().pop().unwrap_or(Kernel(Kind::Scalar)))
}

/// Every kernel that this machine can run, the slowest first.
pub(super) fn all() -> Vec<Kernel> {
    #[allow(unused_mut)] // machines other than x86-64 have one only
    let mut all = vec![Kernel(Kind::Scalar)];
    #[cfg(target_arch = "x86_64")]
    {
        all.extend(x86::HasAvx2::detect().map(|has| Kernel(Kind::Avx2(has))));
        all.extend(x86::HasAvx512::detect().map(|has| Kernel(Kind::Avx512(has))));
    }
    all
}

impl Kernel {
    /// Number of set bits.
    pub(super) fn count(self, words: &[u32]) -> usize {
        match self.0 {
            Kind::Scalar => scalar::count(words),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(has) => has.count(words),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(has) => has.count(words),
        }
    }

    /// Minus infinity wherever the bit is 0. `words` reach as far as `logits`, and no further than their last word.
    pub(super) fn ban_f32(self, words: &[u32], logits: &mut [f32]) {
        match self.0 {
            Kind::Scalar => scalar::ban(words, logits, f32::NEG_INFINITY),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(has) => has.ban_f32(words, logits),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(has) => has.ban_f32(words, logits),
        }
    }

    /// `banned` wherever the bit is 0; as [`Kernel::ban_f32`] for the bits of 16-bit numbers.
    pub(super) fn ban_u16(self, words: &[u32], logits: &mut [u16], banned: u16) {
        match self.0 {
            Kind::Scalar => scalar::ban(words, logits, banned),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(has) => has.ban_u16(words, logits, banned),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(has) => has.ban_u16(words, logits, banned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of every density, from a seed; whole runs of zeros and ones among them.
    fn words(n: usize, seed: u64) -> Vec<u32> {
        let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as u32
        };
        (0..n)
            .map(|_| match seed % 5 {
                0 => 0,
                1 => u32::MAX,
                2 => draw(),
                3 => draw() | draw() | draw() | draw() | draw() | draw() | draw(),
                _ => [0, u32::MAX, u32::MAX, u32::MAX, draw()][draw() as usize % 5],
            })
            .collect()
    }

    #[test]
    fn every_kernel_equals_the_scalar_one() {
        let kernels = all();
        for len in (0usize..70).chain([511, 512, 513, 1000, 1023, 1024, 1025, 2085]) {
            for (offset, seed) in [(0, 0), (1, 1), (2, 2), (3, 3), (5, 4), (0, 9), (1, 7), (7, 12), (0, 14)] {
                let words = words(offset + len.div_ceil(32), seed);
                let words = &words[offset..];
                // NaNs with payloads, negative zeros, infinities and ordinary numbers
                let bits: Vec<u32> = (0..offset + len)
                    .map(|i| [0x7fc0_1234, 0x8000_0000, 0x7f80_0000, 0x3f80_0000][i % 4] + i as u32)
                    .collect();
                let floats = || bits.iter().map(|b| f32::from_bits(*b)).collect::<Vec<_>>();
                let halves = || bits.iter().map(|b| *b as u16).collect::<Vec<_>>();
                let (mut want32, mut want16) = (floats(), halves());
                scalar::ban(words, &mut want32[offset..], f32::NEG_INFINITY);
                scalar::ban(words, &mut want16[offset..], 0xfc00);
                for kernel in &kernels {
                    let (mut got32, mut got16) = (floats(), halves());
                    kernel.ban_f32(words, &mut got32[offset..]);
                    kernel.ban_u16(words, &mut got16[offset..], 0xfc00);
                    let same = got32.iter().map(|x| x.to_bits()).eq(want32.iter().map(|x| x.to_bits()));
                    assert!(same, "{kernel:?} f32, length {len}, offset {offset}, seed {seed}");
                    assert_eq!(got16, want16, "{kernel:?} u16, length {len}, offset {offset}, seed {seed}");
                    assert_eq!(kernel.count(words), scalar::count(words), "{kernel:?} length {len}");
                }
            }
        }
    }

    #[test]
    fn the_scalar_kernel_by_hand() {
        let nan = f32::from_bits(0x7fc0_1234);
        let mut logits = [1.0, nan, nan, -0.0, 5.0];
        scalar::ban(&[0b01010], &mut logits, f32::NEG_INFINITY);
        let want = [f32::NEG_INFINITY, nan, f32::NEG_INFINITY, -0.0, f32::NEG_INFINITY];
        assert_eq!(logits.map(f32::to_bits), want.map(f32::to_bits));
        assert_eq!(scalar::count(&[0b01010, u32::MAX]), 34);
    }
}
