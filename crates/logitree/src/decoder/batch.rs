//! Steps many decoders in one call, in parallel where there is enough work. A finished row gets end tokens, whatever
//! its logits are.
//!
//! The slow version is a loop of [`Decoder::step`]. A row's result depends only on its decoder and its logits, not on
//! the number of rows, their order or the number of threads.

use super::Decoder;
use crate::mask::{insert_bit, words_for};
use crate::sampling::Floats;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::threads;

/// A row's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The token.
    pub token: TokenId,
    /// Whether it only fills the row of a decoder that is finished.
    pub is_padding: bool,
}

/// Each row's token or error.
pub type Rows = Vec<Result<Taken>>;

impl Taken {
    fn new(token: TokenId) -> Taken {
        Taken { token, is_padding: false }
    }

    fn padding(token: TokenId) -> Taken {
        Taken { token, is_padding: true }
    }
}

/// One step of each decoder with its row of logits, in at most `most` threads (0: as many as there are cores). A
/// decoder that is finished gives `end`, and its logits are not looked at. A row that has an error is as it was before;
/// the others have taken their token.
///
/// # Errors
/// [`ErrorKind::Sampling`] if there are not as many rows as decoders; then nothing has changed. Those of a row are
/// [`Decoder::step`]'s.
pub fn step(decoders: &mut [&mut Decoder], logits: &[Floats<'_>], end: TokenId, most: usize) -> Result<Rows> {
    as_many("rows of logits", logits.len(), decoders.len())?;
    let running = |(decoder, row): (&&mut Decoder, &Floats<'_>)| match decoder.finish() {
        None => threads::cost_of_logits(row.len()),
        Some(_) => 0,
    };
    let cost = decoders.iter().zip(logits).map(running).fold(0, u64::saturating_add);
    let step = |(decoder, row): (&mut &mut Decoder, &Floats<'_>)| match decoder.finish() {
        None => decoder.step(*row).map(Taken::new),
        Some(_) => Ok(Taken::padding(end)),
    };
    Ok(threads::map(decoders.iter_mut().zip(logits), most, cost, step))
}

/// Each decoder takes its token from outside. A decoder that is finished takes only one of `ends`, which changes
/// nothing. A row that has an error is as it was before; the others have taken their token.
///
/// # Errors
/// [`ErrorKind::Sampling`] if there are not as many tokens as decoders; then nothing has changed. Those of a row are
/// [`Decoder::accept`]'s, and [`ErrorKind::State`] for a finished row with another token.
pub fn accept(decoders: &mut [&mut Decoder], tokens: &[TokenId], ends: &[TokenId]) -> Result<Rows> {
    as_many("tokens", tokens.len(), decoders.len())?;
    let accept = |(decoder, &token): (&mut &mut Decoder, &TokenId)| match decoder.finish() {
        None => decoder.accept(token).map(|()| Taken::new(token)),
        Some(_) if ends.contains(&token) => Ok(Taken::padding(token)),
        Some(finish) => {
            let message = format!("token {token} for a row that is over ({})", finish.name());
            Err(Error::new(ErrorKind::State, message)
                .help("a finished row accepts end tokens only: its mask has no other"))
        }
    };
    Ok(decoders.iter_mut().zip(tokens).map(accept).collect())
}

/// All rows' tokens; or, where a row has an error, that of the first, with the row in its place (`row 3`), and all
/// decoders as they were before the call that gave `rows`.
///
/// # Errors
/// That of the row.
pub fn all_or_none(decoders: &mut [&mut Decoder], rows: Rows) -> Result<Vec<TokenId>> {
    if rows.iter().any(Result::is_err) {
        let taken = |row: &Result<Taken>| row.as_ref().is_ok_and(|taken| !taken.is_padding);
        for (decoder, _) in decoders.iter_mut().zip(&rows).filter(|(_, row)| taken(row)) {
            decoder.rollback(1)?;
        }
    }
    threads::all(rows.into_iter().map(|row| row.map(|taken| taken.token)))
}

/// Writes what each decoder may take next over its row of words; where it is finished, `ends` alone.
///
/// # Errors
/// [`ErrorKind::Mask`] if there are not as many rows as decoders, or if a row is too short for the vocabulary; else
/// those of [`Decoder::allowed`], with the row in their place. All rows are 0 then: nothing is allowed.
pub fn masks(decoders: &mut [&mut Decoder], mut rows: Vec<&mut [u32]>, ends: &[TokenId]) -> Result<()> {
    if rows.len() != decoders.len() {
        let message = format!("{} rows of masks for {} decoders", rows.len(), decoders.len());
        return Err(Error::new(ErrorKind::Mask, message).help("give one row for each decoder"));
    }
    let masks = decoders.iter_mut().zip(&mut rows).map(|(decoder, words)| mask(decoder, words, ends));
    let written = threads::all(masks);
    if written.is_err() {
        rows.iter_mut().for_each(|words| words.fill(0));
    }
    written.map(drop)
}

/// Each decoder accepts its forced tokens, all decoders or none; returns them.
///
/// # Errors
/// Those of [`Decoder::forced`], with the row in their place; nothing has changed then.
pub fn take_forced(decoders: &mut [&mut Decoder]) -> Result<Vec<Vec<TokenId>>> {
    let mut run = Vec::new();
    threads::all(decoders.iter_mut().map(|decoder| decoder.forced(&mut run)))?;
    let take = |decoder: &mut &mut Decoder| {
        let mut run = Vec::new();
        decoder.take_forced(&mut run).map(|()| run)
    };
    decoders.iter_mut().map(take).collect()
}

fn mask(decoder: &mut Decoder, words: &mut [u32], ends: &[TokenId]) -> Result<()> {
    let size = decoder.vocabulary().len();
    let least = words_for(size);
    if words.len() < least {
        let message = format!("the mask has {} words, and the vocabulary needs {least}", words.len());
        return Err(
            Error::new(ErrorKind::Mask, message).help("give one word for each 32 token ids, rounded up")
        );
    }
    words.fill(0);
    if decoder.finish().is_none() {
        decoder.allowed()?.write(size, &mut words[..least]);
        return Ok(());
    }
    ends.iter().filter(|&&end| (end as usize) < size).for_each(|&end| insert_bit(words, end));
    Ok(())
}

fn as_many(what: &str, given: usize, decoders: usize) -> Result<()> {
    if given == decoders {
        return Ok(());
    }
    let message = format!("{given} {what} for {decoders} decoders");
    Err(Error::new(ErrorKind::Sampling, message).help("give one for each decoder"))
}
