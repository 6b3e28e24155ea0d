//! Masks: which token ids are allowed, as a set.
//!
//! Dense masks are 32-bit words, least significant bit first (the layout of XGrammar, llguidance, vLLM and SGLang);
//! sparse ones are ascending ids, so that a step costs by the allowed tokens, not by the vocabulary.

mod allowed;
mod apply;
mod bits;
mod set;

pub use allowed::AllowedTokens;
pub use apply::{apply, apply_rows, apply_to_copy, AllowedLogits, Logit};
pub use bits::{
    bit, count, ids, insert_bit, insert_bit_if, insert_bits, is_empty, remove_bit, remove_bits, Ids,
};
pub use set::{ChangedWords, MaskBuffer, TokenSet};

/// Number of 32-bit words that hold a mask of `n` token ids.
pub const fn words_for(n: usize) -> usize {
    n.div_ceil(32)
}
