//! Loops over the words of a mask: counting bits, and writing -inf where a bit is 0, in place or into a copy. At every
//! width they must equal the baseline, [`count_plain`] and [`ban_plain`], bit for bit; the tests below compare them.
//!
//! Logits are written in whole words, 32 at a time; the rest goes to the baseline. Of 16-bit numbers the bits are written.
#![allow(unsafe_code)] // intrinsics, and calls of functions compiled for features that were detected

use super::dispatch::{widest, Kind, Width};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Words that are tested together: a group that is all ones bans nothing and costs one comparison.
#[cfg(target_arch = "x86_64")]
const GROUP: usize = 16;

/// Number of set bits.
pub fn count(words: &[u32]) -> usize {
    count_at(Width::best(), words)
}

/// -inf wherever the bit is 0. `words` reach as far as `logits`, and no further than their last word.
pub fn ban_f32(words: &[u32], logits: &mut [f32]) {
    ban_f32_at(Width::best(), words, logits);
}

/// `banned` wherever the bit is 0; as [`ban_f32`] for the bits of 16-bit numbers.
pub fn ban_u16(words: &[u32], logits: &mut [u16], banned: u16) {
    ban_u16_at(Width::best(), words, logits, banned);
}

widest! {
    /// Copies `from` to `to`, with -inf wherever the bit is 0. `words` reach as far as both, and no further than their last
    /// word. Whether a copied number is above -inf, and whether one is NaN.
    copy_allowed, copy_allowed_at = copy_allowed_body(words: &[u32], from: &[f32], to: &mut [f32]) -> (bool, bool)
}

#[inline(always)]
fn copy_allowed_body(words: &[u32], from: &[f32], to: &mut [f32]) -> (bool, bool) {
    let (lines, rest) = from.as_chunks::<32>();
    let (to_lines, to_rest) = to.as_chunks_mut::<32>();
    let (mut above, mut nan) = ([false; 32], [false; 32]);
    for ((line, to), &word) in lines.iter().zip(to_lines).zip(words) {
        if word == 0 {
            *to = [f32::NEG_INFINITY; 32];
            continue;
        }
        for i in 0..32 {
            let x = if word >> i & 1 == 1 { line[i] } else { f32::NEG_INFINITY };
            to[i] = x;
            above[i] |= x > f32::NEG_INFINITY;
            nan[i] |= x.is_nan();
        }
    }
    for ((i, &x), to) in (0..32).zip(rest).zip(to_rest) {
        let is_allowed = words.get(lines.len()).is_some_and(|word| word >> i & 1 == 1);
        *to = if is_allowed { x } else { f32::NEG_INFINITY };
        above[0] |= *to > f32::NEG_INFINITY;
        nan[0] |= to.is_nan();
    }
    (above.contains(&true), nan.contains(&true))
}

fn count_at(width: Width, words: &[u32]) -> usize {
    match width.0 {
        Kind::Baseline => count_plain(words),
        // SAFETY: the width proves the features.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 { vpopcntdq: Some(_), .. } => unsafe { count_vpopcnt(words) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2(_) | Kind::Avx512 { .. } => unsafe { count_popcnt(words) },
    }
}

fn ban_f32_at(width: Width, words: &[u32], logits: &mut [f32]) {
    match width.0 {
        Kind::Baseline => ban_plain(words, logits, f32::NEG_INFINITY),
        // SAFETY: the width proves the features.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2(_) => groups(words, logits, f32::NEG_INFINITY, |words, logits| unsafe {
            ban_f32_avx2(words, logits);
        }),
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 { .. } => groups(words, logits, f32::NEG_INFINITY, |words, logits| unsafe {
            ban_f32_avx512(words, logits);
        }),
    }
}

fn ban_u16_at(width: Width, words: &[u32], logits: &mut [u16], banned: u16) {
    match width.0 {
        Kind::Baseline => ban_plain(words, logits, banned),
        // SAFETY: the width proves the features.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2(_) => groups(words, logits, banned, |words, logits| unsafe {
            ban_u16_avx2(words, logits, banned);
        }),
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 { .. } => groups(words, logits, banned, |words, logits| unsafe {
            ban_u16_avx512(words, logits, banned);
        }),
    }
}

/// The baseline of [`count`].
#[inline(always)]
fn count_plain(words: &[u32]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// The baseline of [`ban_f32`] and [`ban_u16`]; where the bit is 1 nothing is written.
fn ban_plain<T: Copy>(words: &[u32], logits: &mut [T], banned: T) {
    for (word, logits) in words.iter().zip(logits.chunks_mut(32)) {
        if *word == u32::MAX {
            continue;
        }
        for (bit, logit) in logits.iter_mut().enumerate() {
            if word >> bit & 1 == 0 {
                *logit = banned;
            }
        }
    }
}

/// Passes the groups of whole words that ban something to `ban`, with their logits, 32 for each word; the rest goes to
/// the baseline.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn groups<T: Copy>(words: &[u32], logits: &mut [T], banned: T, ban: impl Fn(&[u32], &mut [T])) {
    let whole = logits.len() / 32;
    let grouped = words[..whole].chunks(GROUP);
    for (words, logits) in grouped.zip(logits[..whole * 32].chunks_mut(GROUP * 32)) {
        if words.iter().fold(u32::MAX, |all, word| all & word) != u32::MAX {
            ban(words, logits);
        }
    }
    ban_plain(&words[whole..], &mut logits[whole * 32..], banned);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn count_popcnt(words: &[u32]) -> usize {
    count_plain(words)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
fn count_vpopcnt(words: &[u32]) -> usize {
    count_plain(words)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn ban_f32_avx2(words: &[u32], logits: &mut [f32]) {
    let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    let banned = _mm256_set1_ps(f32::NEG_INFINITY);
    for (word, logits) in words.iter().zip(logits.chunks_exact_mut(32)) {
        for (part, eight) in logits.chunks_exact_mut(8).enumerate() {
            let byte = _mm256_set1_epi32((word >> (part * 8)) as i32);
            let allowed = _mm256_cmpeq_epi32(_mm256_and_si256(byte, bits), bits);
            let at = eight.as_mut_ptr();
            // SAFETY: `eight` is eight f32s; loads and stores are unaligned.
            unsafe {
                let kept = _mm256_blendv_ps(banned, _mm256_loadu_ps(at), _mm256_castsi256_ps(allowed));
                _mm256_storeu_ps(at, kept);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn ban_u16_avx2(words: &[u32], logits: &mut [u16], banned: u16) {
    let bits =
        _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, i16::MIN);
    let banned = _mm256_set1_epi16(banned as i16);
    for (word, logits) in words.iter().zip(logits.chunks_exact_mut(32)) {
        for (part, sixteen) in logits.chunks_exact_mut(16).enumerate() {
            let half = _mm256_set1_epi16((word >> (part * 16)) as i16);
            let allowed = _mm256_cmpeq_epi16(_mm256_and_si256(half, bits), bits);
            let at = sixteen.as_mut_ptr().cast::<__m256i>();
            // SAFETY: `sixteen` is sixteen u16s, 32 bytes; loads and stores are unaligned.
            unsafe {
                _mm256_storeu_si256(at, _mm256_blendv_epi8(banned, _mm256_loadu_si256(at), allowed));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn ban_f32_avx512(words: &[u32], logits: &mut [f32]) {
    let banned = _mm512_set1_ps(f32::NEG_INFINITY);
    for (word, logits) in words.iter().zip(logits.chunks_exact_mut(32)) {
        let (low, high) = (!*word as u16, (!*word >> 16) as u16);
        let at = logits.as_mut_ptr();
        // SAFETY: `logits` are 32 f32s; the stores are unaligned and write 16 each at most.
        unsafe {
            _mm512_mask_storeu_ps(at, low, banned);
            _mm512_mask_storeu_ps(at.add(16), high, banned);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn ban_u16_avx512(words: &[u32], logits: &mut [u16], banned: u16) {
    let banned = _mm512_set1_epi16(banned as i16);
    for (word, logits) in words.iter().zip(logits.chunks_exact_mut(32)) {
        // SAFETY: `logits` are 32 u16s; the store is unaligned and writes 32 at most.
        unsafe { _mm512_mask_storeu_epi16(logits.as_mut_ptr().cast(), !*word, banned) };
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
    fn every_width_equals_the_baseline() {
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
                ban_plain(words, &mut want32[offset..], f32::NEG_INFINITY);
                ban_plain(words, &mut want16[offset..], 0xfc00);
                for width in Width::all() {
                    let (mut got32, mut got16) = (floats(), halves());
                    ban_f32_at(width, words, &mut got32[offset..]);
                    ban_u16_at(width, words, &mut got16[offset..], 0xfc00);
                    let same = got32.iter().map(|x| x.to_bits()).eq(want32.iter().map(|x| x.to_bits()));
                    assert!(same, "{width:?} f32, length {len}, offset {offset}, seed {seed}");
                    assert_eq!(got16, want16, "{width:?} u16, length {len}, offset {offset}, seed {seed}");
                    assert_eq!(count_at(width, words), count_plain(words), "{width:?} length {len}");
                    let mut copied = vec![7.0; len];
                    let found = copy_allowed_at(width, words, &floats()[offset..], &mut copied);
                    let want = &want32[offset..];
                    let same = copied.iter().map(|x| x.to_bits()).eq(want.iter().map(|x| x.to_bits()));
                    assert!(same, "{width:?} copy, length {len}, offset {offset}, seed {seed}");
                    let above = want.iter().any(|x| *x > f32::NEG_INFINITY);
                    assert_eq!(found, (above, want.iter().any(|x| x.is_nan())), "{width:?} length {len}");
                }
            }
        }
    }

    #[test]
    fn the_baseline_by_hand() {
        let nan = f32::from_bits(0x7fc0_1234);
        let mut logits = [1.0, nan, nan, -0.0, 5.0];
        ban_plain(&[0b01010], &mut logits, f32::NEG_INFINITY);
        let want = [f32::NEG_INFINITY, nan, f32::NEG_INFINITY, -0.0, f32::NEG_INFINITY];
        assert_eq!(logits.map(f32::to_bits), want.map(f32::to_bits));
        assert_eq!(count_plain(&[0b01010, u32::MAX]), 34);
    }
}
