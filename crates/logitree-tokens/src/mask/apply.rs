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
    let words = reaching(words, logits.len())?;
    let covered = (words.len() * 32).min(logits.len());
    let (covered, past) = logits.split_at_mut(covered);
    L::ban(words, covered);
    past.fill(L::BANNED);
    Ok(())
}

/// What a row of logits has among the allowed ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedLogits {
    /// A logit above minus infinity, and no NaN.
    Usable,
    /// Nothing above minus infinity.
    Banned,
    /// A NaN.
    Nan,
}

/// [`apply`] on a copy, in one pass, and what the copy has.
///
/// # Errors
/// As [`apply`]; and if `from` and `to` are not of one length.
pub fn apply_to_copy(words: &[u32], from: &[f32], to: &mut [f32]) -> Result<AllowedLogits> {
    if from.len() != to.len() {
        let message = format!("{} logits to be copied to {}", from.len(), to.len());
        return Err(Error::new(ErrorKind::Logits, message));
    }
    let words = reaching(words, from.len())?;
    let covered = (words.len() * 32).min(from.len());
    let (found, nan) = simd::copy_allowed(words, &from[..covered], &mut to[..covered]);
    to[covered..].fill(f32::NEG_INFINITY);
    Ok(match (nan, found) {
        (true, _) => AllowedLogits::Nan,
        (false, true) => AllowedLogits::Usable,
        (false, false) => AllowedLogits::Banned,
    })
}

/// The words that logits reach; those past them must be empty.
fn reaching(words: &[u32], logits: usize) -> Result<&[u32]> {
    let (reached, past) = words.split_at(words_for(logits).min(words.len()));
    if let Some(word) = past.iter().position(|word| *word != 0) {
        let id = (reached.len() + word) * 32 + past[word].trailing_zeros() as usize;
        return Err(too_short(id, logits));
    }
    Ok(reached)
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
