//! What the tests of logitree's crates share, and its fuzz targets: vocabularies that can be checked by hand, slow versions
//! to compare with, random inputs, the laws of matchers, and the corpora of `testdata`.
//!
//! Only tests depend on it.

#[cfg(feature = "rules")]
pub mod automata;
#[cfg(feature = "matchers")]
pub mod bytes;
#[cfg(feature = "matchers")]
pub mod constraints;
pub mod corpus;
#[cfg(feature = "rules")]
pub mod gbnf_writer;
#[cfg(feature = "matchers")]
pub mod item_set;
#[cfg(feature = "matchers")]
pub mod item_set_questions;
#[cfg(feature = "matchers")]
pub mod laws;
#[cfg(feature = "matchers")]
pub mod plain;
#[cfg(feature = "rules")]
pub mod random_rules;
pub mod regexes;
#[cfg(feature = "rules")]
pub mod rule_oracle;
#[cfg(feature = "rules")]
pub mod rules;
#[cfg(feature = "samplers")]
pub mod samplers;
#[cfg(feature = "matchers")]
pub mod sequences;
#[cfg(feature = "matchers")]
pub mod texts;
#[cfg(feature = "matchers")]
pub mod vocabulary;

/// Pseudo-random logits from -8 to 8.8, the same for the same salt.
pub fn logits(salt: u32, size: usize) -> Vec<f32> {
    let mut x = salt.wrapping_mul(0x9e37_79b9) | 1;
    let next = |_| {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        (x >> 8) as f32 / 1e6 - 8.0
    };
    (0..size).map(next).collect()
}
