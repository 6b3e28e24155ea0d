//! Steps many decoders in one call, in parallel where there is enough work. A finished row gets end tokens, whatever
//! its logits are.
//!
//! The slow version is a loop of [`Decoder::step`]. A row's result depends only on its decoder and its logits, not on
//! the number of rows, their order or the number of threads.

use super::Decoder;
use crate::mask::words_for;
use crate::sampling::Floats;
use crate::{threads, Error, ErrorKind, Result, TokenId};

/// Logits that make a thread worth its start: some ten microseconds, in which 2^17 are looked at.
const PAYS: usize = 1 << 20;

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
    let mut rows = as_many("rows of logits", logits.len(), decoders.len())?;
    let running = |(decoder, row): (&&mut Decoder, &Floats<'_>)| match decoder.finish() {
        None => row.len(),
        Some(_) => 0,
    };
    let cost = decoders.iter().zip(logits).map(running).fold(0, usize::saturating_add);
    let worth = threads::most(most).min(decoders.len()).min(cost / PAYS);
    let items = decoders.iter_mut().zip(logits).zip(rows.iter_mut());
    threads::each(items, worth, |((decoder, row), result)| {
        *result = match decoder.finish() {
            None => decoder.step(*row).map(Taken::new),
            Some(_) => Ok(Taken::padding(end)),
        };
    });
    Ok(rows)
}

/// Each decoder takes its token from outside. A decoder that is finished takes only one of `ends`, which changes
/// nothing. A row that has an error is as it was before; the others have taken their token.
///
/// # Errors
/// [`ErrorKind::Sampling`] if there are not as many tokens as decoders; then nothing has changed. Those of a row are
/// [`Decoder::accept`]'s, and [`ErrorKind::State`] for a finished row with another token.
pub fn accept(decoders: &mut [&mut Decoder], tokens: &[TokenId], ends: &[TokenId]) -> Result<Rows> {
    let mut rows = as_many("tokens", tokens.len(), decoders.len())?;
    for ((decoder, &token), row) in decoders.iter_mut().zip(tokens).zip(&mut rows) {
        *row = match decoder.finish() {
            None => decoder.accept(token).map(|()| Taken::new(token)),
            Some(_) if ends.contains(&token) => Ok(Taken::padding(token)),
            Some(finish) => {
                let message = format!("token {token} for a row that is over ({})", finish.name());
                Err(Error::new(ErrorKind::State, message)
                    .help("a finished row accepts end tokens only: its mask has no other"))
            }
        };
    }
    Ok(rows)
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
    let named = |(at, row): (usize, Result<Taken>)| {
        row.map(|taken| taken.token).map_err(|error| error.within(&format!("row {at}")))
    };
    rows.into_iter().enumerate().map(named).collect()
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
    let written = decoders.iter_mut().zip(&mut rows).enumerate().try_for_each(|(at, (decoder, words))| {
        mask(decoder, words, ends).map_err(|error| error.within(&format!("row {at}")))
    });
    if written.is_err() {
        rows.iter_mut().for_each(|words| words.fill(0));
    }
    written
}

/// Each decoder accepts its forced tokens, all decoders or none; returns them.
///
/// # Errors
/// Those of [`Decoder::forced`], with the row in their place; nothing has changed then.
pub fn take_forced(decoders: &mut [&mut Decoder]) -> Result<Vec<Vec<TokenId>>> {
    let mut asked = Vec::new();
    for (at, decoder) in decoders.iter_mut().enumerate() {
        asked.clear();
        decoder.forced(&mut asked).map_err(|error| error.within(&format!("row {at}")))?;
    }
    let mut runs = Vec::with_capacity(decoders.len());
    for decoder in decoders {
        let mut run = Vec::new();
        decoder.take_forced(&mut run)?;
        runs.push(run);
    }
    Ok(runs)
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
    for &end in ends.iter().filter(|&&end| (end as usize) < size) {
        words[end as usize / 32] |= 1 << (end % 32);
    }
    Ok(())
}

fn as_many(what: &str, given: usize, decoders: usize) -> Result<Rows> {
    if given != decoders {
        let message = format!("{given} {what} for {decoders} decoders");
        return Err(Error::new(ErrorKind::Sampling, message).help("give one for each decoder"));
    }
    let mut rows = Vec::new();
    rows.resize_with(given, || Err(Error::new(ErrorKind::State, "the row was not reached")));
    Ok(rows)
}
