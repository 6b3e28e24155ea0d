//! One step of many decoders.
#![allow(unsafe_code)] // exported names

use std::ffi::c_void;

use logitree::decoder::batch;
use logitree::{Decoder, Floats};

use crate::decoder::LogitreeDecoder;
use crate::handles::{exclusive, Exclusive};
use crate::library::LOGITREE_NO_TOKEN;
use crate::memory::{export, In, Out};
use crate::status::{argument, Failure, Outcome};
use crate::LogitreeStatus;

/// The decoders of a batch, for this call alone.
fn lock_all(list: In<*mut LogitreeDecoder>, count: usize) -> Outcome<Vec<Exclusive<LogitreeDecoder>>> {
    let each = list.slice(count)?.iter().enumerate();
    each.map(|(row, &handle)| exclusive(handle).map_err(|failed| failed.within(&format!("row {row}"))))
        .collect()
}

/// Rows of `width` logits, `stride` apart.
pub(crate) fn rows<'l>(
    logits: In<c_void>,
    dtype: u32,
    count: usize,
    width: usize,
    stride: usize,
) -> Outcome<Vec<Floats<'l>>> {
    let all = logits.floats(dtype, extent(count, width, stride, "logits")?)?;
    Ok((0..count).map(|row| all.slice(row * stride, row * stride + width)).collect())
}

/// How many elements rows take.
fn extent(count: usize, width: usize, stride: usize, name: &str) -> Outcome<usize> {
    if count > 1 && stride < width {
        return Err(argument(format!("rows of {width} elements that begin {stride} apart"), name));
    }
    let whole = count.saturating_sub(1).checked_mul(stride).and_then(|n| n.checked_add(width));
    whole
        .map(|n| if count == 0 { 0 } else { n })
        .ok_or_else(|| argument(format!("{name} is too large"), name))
}

export! {
    /// Steps each decoder with its row of logits, in up to `threads` threads (0: one for each core).
    ///
    /// Row i of the logits begins at `logits + i * stride` and has `width` of them, of the type `dtype`. Each decoder's token is written to
    /// `tokens[i]`; one that is finished gets `end_token`, and its logits are not read. `statuses`: NULL, then all rows
    /// take their token or none; or an array in which each row's own status is written: a row with an error is as it
    /// was and its token is LOGITREE_NO_TOKEN. The first row's error is returned in both cases.
    ///
    /// Pointers: `count` handles may be read at `decoders`, the rows at `logits`; `count` ids may be written at
    /// `tokens` and, if it is not NULL, `count` statuses at `statuses`.
    fn logitree_batch_step(
        decoders: In<*mut LogitreeDecoder>,
        count: usize,
        logits: In<c_void>,
        dtype: u32,
        width: usize,
        stride: usize,
        end_token: u32,
        threads: usize,
        tokens: Out<u32>,
        statuses: Out<LogitreeStatus>,
    ) {
        let own = if statuses.is_null() { 0 } else { count };
        let logits = rows(logits, dtype, count, width, stride)?;
        // As numbers: before they are written they may be any.
        let (tokens, statuses) = (tokens.slice(count)?, statuses.cast::<i32>().slice(own)?);
        let mut guards = lock_all(decoders, count)?;
        let mut each: Vec<&mut Decoder> = guards.iter_mut().map(|guard| &mut **guard).collect();
        let taken = batch::step(&mut each, &logits, end_token, threads)?;
        if statuses.is_empty() {
            tokens.copy_from_slice(&batch::all_or_none(&mut each, taken)?);
            return Ok(());
        }
        let mut first = None;
        for (row, taken) in taken.into_iter().enumerate() {
            let (token, status) = match taken {
                Ok(taken) => (taken.token, LogitreeStatus::Ok),
                Err(error) => {
                    let failed = Failure::from(error.within(&format!("row {row}")));
                    let status = failed.status;
                    first.get_or_insert(failed);
                    (LOGITREE_NO_TOKEN, status)
                }
            };
            (tokens[row], statuses[row]) = (token, status as i32);
        }
        first.map_or(Ok(()), Err)
    }

    /// Writes what each decoder may take next as a mask over its row of words; where it is finished, `end_token` alone.
    /// After an error all rows are 0.
    fn logitree_batch_masks(
        decoders: In<*mut LogitreeDecoder>,
        count: usize,
        words: Out<u32>,
        width: usize,
        stride: usize,
        end_token: u32,
    ) {
        let words = words.slice(extent(count, width, stride, "words")?)?;
        let mut guards = lock_all(decoders, count)?;
        if width == 0 && count > 0 {
            return Err(argument("rows of no words", "width"));
        }
        let mut each: Vec<&mut Decoder> = guards.iter_mut().map(|guard| &mut **guard).collect();
        let rows = words.chunks_mut(stride.max(1)).map(|row| &mut row[..width]).collect();
        Ok(batch::masks(&mut each, rows, &[end_token])?)
    }

    /// Accepts each decoder's forced tokens, all decoders or none: evaluate them in one batch with the token before
    /// them. Row i's tokens are written at `tokens + i * stride`,
    /// and their number to `counts[i]`. With too little room nothing is accepted and `counts` says how much is needed.
    fn logitree_batch_take_forced(
        decoders: In<*mut LogitreeDecoder>,
        count: usize,
        tokens: Out<u32>,
        stride: usize,
        counts: Out<usize>,
    ) {
        let tokens = tokens.slice(extent(count, stride, stride, "tokens")?)?;
        let (mut guards, counts) = (lock_all(decoders, count)?, counts.slice(count)?);
        let mut fits = true;
        for (row, guard) in guards.iter_mut().enumerate() {
            let mut run = Vec::new();
            guard.forced(&mut run).map_err(|error| Failure::from(error.within(&format!("row {row}"))))?;
            counts[row] = run.len();
            fits &= run.len() <= stride;
        }
        if !fits {
            let most = counts.iter().max().copied().unwrap_or(0);
            let message = format!("a row has {most} forced tokens, and room for {stride}");
            return Err(crate::status::failure(LogitreeStatus::ErrorBuffer, message));
        }
        let mut each: Vec<&mut Decoder> = guards.iter_mut().map(|guard| &mut **guard).collect();
        for (row, run) in batch::take_forced(&mut each)?.into_iter().enumerate() {
            tokens[row * stride..row * stride + run.len()].copy_from_slice(&run);
            counts[row] = run.len();
        }
        Ok(())
    }
}
