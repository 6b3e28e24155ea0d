//! AVX2 and AVX-512 kernels. A kernel's token can only be had from `detect`, so holding one proves that the
//! machine runs it. What is over after whole words goes to the plain version.
#![allow(unsafe_code)] // SIMD intrinsics; held equal to `scalar` by the tests in the parent module

use super::scalar;
use std::arch::x86_64::*;

/// Proof that AVX2 and POPCNT are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HasAvx2(());

/// Proof that AVX-512 F, BW, VL and VPOPCNTDQ are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HasAvx512(());

/// Words looked at together: a group that is all ones bans nothing and costs one look.
const GROUP: usize = 16;

impl HasAvx2 {
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")).then_some(HasAvx2(()))
    }

    pub(super) fn count(self, words: &[u32]) -> usize {
        // SAFETY: `self` proves the features.
        unsafe { count_popcnt(words) }
    }

    pub(super) fn ban_f32(self, words: &[u32], logits: &mut [f32]) {
        let whole = logits.len() / 32;
        // SAFETY: `self` proves the features.
        groups(words, logits, |words, logits| unsafe { ban_f32_avx2(words, logits) });
        scalar::ban(&words[whole..], &mut logits[whole * 32..], f32::NEG_INFINITY);
    }

    pub(super) fn ban_u16(self, words: &[u32], logits: &mut [u16], banned: u16) {
        let whole = logits.len() / 32;
        // SAFETY: `self` proves the features.
        groups(words, logits, |words, logits| unsafe { ban_u16_avx2(words, logits, banned) });
        scalar::ban(&words[whole..], &mut logits[whole * 32..], banned);
    }
}

impl HasAvx512 {
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vpopcntdq"))
        .then_some(HasAvx512(()))
    }

    pub(super) fn count(self, words: &[u32]) -> usize {
        // SAFETY: `self` proves the features.
        unsafe { count_vpopcnt(words) }
    }

    pub(super) fn ban_f32(self, words: &[u32], logits: &mut [f32]) {
        let whole = logits.len() / 32;
        // SAFETY: `self` proves the features.
        groups(words, logits, |words, logits| unsafe { ban_f32_avx512(words, logits) });
        scalar::ban(&words[whole..], &mut logits[whole * 32..], f32::NEG_INFINITY);
    }

    pub(super) fn ban_u16(self, words: &[u32], logits: &mut [u16], banned: u16) {
        let whole = logits.len() / 32;
        // SAFETY: `self` proves the features.
        groups(words, logits, |words, logits| unsafe { ban_u16_avx512(words, logits, banned) });
        scalar::ban(&words[whole..], &mut logits[whole * 32..], banned);
    }
}

/// Hands the groups of whole words that ban something to `ban`, with their logits: 32 for each word.
#[inline(always)]
fn groups<T>(words: &[u32], logits: &mut [T], ban: impl Fn(&[u32], &mut [T])) {
    let whole = logits.len() / 32;
    let words = words[..whole].chunks(GROUP);
    for (words, logits) in words.zip(logits[..whole * 32].chunks_mut(GROUP * 32)) {
        if words.iter().fold(u32::MAX, |all, word| all & word) != u32::MAX {
            ban(words, logits);
        }
    }
}

#[target_feature(enable = "popcnt")]
fn count_popcnt(words: &[u32]) -> usize {
    scalar::count(words)
}

#[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
fn count_vpopcnt(words: &[u32]) -> usize {
    scalar::count(words)
}

#[target_feature(enable = "avx2")]
fn ban_f32_avx2(words: &[u32], logits: &mut [f32]) {
    let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    let banned = _mm256_set1_ps(f32::NEG_INFINITY);
    for (word, logits) in words.iter().zip(logits.chunks_exact_mut(32)) {
        for (part, eight) in logits.chunks_exact_mut(8).enumerate() {
            let byte = _mm256_set1_epi32((word >> (part * 8)) as i32);
            let allowed = _mm256_cmpeq_epi32(_mm256_and_si256(byte, bits), bits);
            let at = eight.as_mut_ptr();
            // SAFETY: `eight` is eight f32s; loads and stores are unaligned ones.
            unsafe {
                let kept = _mm256_blendv_ps(banned, _mm256_loadu_ps(at), _mm256_castsi256_ps(allowed));
                _mm256_storeu_ps(at, kept);
            }
        }
    }
}

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
            // SAFETY: `sixteen` is sixteen u16s, 32 bytes; loads and stores are unaligned ones.
            unsafe {
                _mm256_storeu_si256(at, _mm256_blendv_epi8(banned, _mm256_loadu_si256(at), allowed));
            }
        }
    }
}

#[target_feature(enable = "avx512f")]
fn ban_f32_avx512(words: &[u32], logits: &mut [f32]) {
    let banned = _mm512_set1_ps(f32::NEG_INFINITY);
    for (word, logits) in words.iter().zip(logits.chunks_exact_mut(32)) {
        let (low, high) = (!*word as u16, (!*word >> 16) as u16);
        let at = logits.as_mut_ptr();
        // SAFETY: `logits` are 32 f32s; the stores are unaligned ones, and write 16 each at most.
        unsafe {
            _mm512_mask_storeu_ps(at, low, banned);
            _mm512_mask_storeu_ps(at.add(16), high, banned);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn ban_u16_avx512(words: &[u32], logits: &mut [u16], banned: u16) {
    let banned = _mm512_set1_epi16(banned as i16);
    for (word, logits) in words.iter().zip(logits.chunks_exact_mut(32)) {
        // SAFETY: `logits` are 32 u16s; the store is an unaligned one, and writes 32 at most.
        unsafe { _mm512_mask_storeu_epi16(logits.as_mut_ptr().cast(), !*word, banned) };
    }
}
