//! Masks on logits: logits of ids that are not in the mask become minus infinity, in place; nothing else is
//! written, so NaN payloads and negative zeros of allowed ids survive.

use super::{words_for, AllowedTokens};
use crate::{simd, Error, ErrorKind, Result};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}

/// The number types that logits come in: `f32`, [`half::f16`], [`half::bf16`].
pub trait Logit: sealed::Sealed + Copy {
    /// Minus infinity.
    const BANNED: Self;

    #[doc(hidden)]
    fn ban(words: &[u32], logits: &mut [Self]);
}

impl Logit for f32 {
    const BANNED: f32 = f32::NEG_INFINITY;

    fn ban(words: &[u32], logits: &mut [f32]) {
        simd::ban_f32(words, logits);
    }
}

impl Logit for half::f16 {
    const BANNED: half::f16 = half::f16::NEG_INFINITY;

    fn ban(words: &[u32], logits: &mut [half::f16]) {
        use half::slice::HalfFloatSliceExt;
        simd::ban_u16(words, logits.reinterpret_cast_mut(), Self::BANNED.to_bits());
    }
}

impl Logit for half::bf16 {
    const BANNED: half::bf16 = half::bf16::NEG_INFINITY;

    fn ban(words: &[u32], logits: &mut [half::bf16]) {
        use half::slice::HalfFloatSliceExt;
        simd::ban_u16(words, logits.reinterpret_cast_mut(), Self::BANNED.to_bits());
    }
}

/// Bans every id of `logits` whose bit in `words` is not set, and every id past the words' end.
///
/// # Errors
/// [`ErrorKind::Logits`], with nothing written, if the mask allows an id in a word past those that the logits
/// reach. Bits of the last reached word that stand for no logit are not looked at (an all-ones word is full).
pub fn apply<L: Logit>(words: &[u32], logits: &mut [L]) -> Result<()> {
    let reached = words_for(logits.len()).min(words.len());
    if let Some(word) = words[reached..].iter().position(|word| *word != 0) {
        let at = reached + word;
        return Err(too_short(at * 32 + words[at].trailing_zeros() as usize, logits.len()));
    }
    let covered = (reached * 32).min(logits.len());
    let (covered, past) = logits.split_at_mut(covered);
    L::ban(&words[..reached], covered);
    past.fill(L::BANNED);
    Ok(())
}

fn too_short(id: usize, len: usize) -> Error {
    Error::new(ErrorKind::Logits, format!("the mask allows id {id}, and there are {len} logits"))
        .help("logits and mask are of different vocabularies")
}

/// [`apply`], row by row: row `i` of `logits` (each `per_row` long) under row `i` of `words` (each
/// `words_per_row` long), or under the only row of `words`.
///
/// # Errors
/// [`ErrorKind::Logits`] if the logits are not whole rows; [`ErrorKind::Mask`] if the words are not whole rows or
/// neither one row nor as many as the logits; and as [`apply`], saying the row (rows before it are done).
pub fn apply_rows<L: Logit>(
    words: &[u32],
    words_per_row: usize,
    logits: &mut [L],
    per_row: usize,
) -> Result<()> {
    let rows = |kind, len: usize, each: usize, what| {
        if each == 0 || !len.is_multiple_of(each) {
            return Err(Error::new(kind, format!("{len} {what} are not rows of {each}")));
        }
        Ok(len / each)
    };
    let logit_rows = rows(ErrorKind::Logits, logits.len(), per_row, "logits")?;
    let mask_rows = rows(ErrorKind::Mask, words.len(), words_per_row, "words")?;
    if mask_rows != 1 && mask_rows != logit_rows {
        let message = format!("{mask_rows} rows of mask for {logit_rows} rows of logits");
        return Err(Error::new(ErrorKind::Mask, message).help("give one row, or one for each"));
    }
    for (row, logits) in logits.chunks_exact_mut(per_row).enumerate() {
        let at = if mask_rows == 1 { 0 } else { row * words_per_row };
        apply(&words[at..at + words_per_row], logits).map_err(|error| error.at(format!("row {row}")))?;
    }
    Ok(())
}

impl AllowedTokens<'_> {
    /// Bans every id of `logits` that is not allowed.
    ///
    /// # Errors
    /// As [`apply`]; an allowed id past the logits' end is one, with nothing written.
    pub fn apply<L: Logit>(&self, logits: &mut [L]) -> Result<()> {
        match self {
            AllowedTokens::All => Ok(()),
            AllowedTokens::Mask(words) => apply(words, logits),
            AllowedTokens::Ids(ids) => {
                if let Some(&id) = ids.last().filter(|id| **id as usize >= logits.len()) {
                    return Err(too_short(id as usize, logits.len()));
                }
                let kept: Vec<L> = ids.iter().map(|&id| logits[id as usize]).collect();
                logits.fill(L::BANNED);
                for (&id, logit) in ids.iter().zip(kept) {
                    logits[id as usize] = logit;
                }
                Ok(())
            }
        }
    }
}
