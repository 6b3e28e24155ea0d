//! Beams along a catalogue: the allowed continuations of a thousand states at once, and the best of them, without reading
//! the rest of the vocabulary. [`beam_top`] is the same for beams under masks.
//!
//! The naive version gathers every child of every row, adds, sorts, and takes the first ([`ItemWalk::gather`] and a sort:
//! the tests hold [`ItemWalk::top`] to it). The optimisation: the children of a wide node are mostly a run of ids, so its
//! logits are scanned in memory order for those that reach the worst of the best so far, and only these are looked up.

mod best;
mod dense;
mod masked;
#[cfg(test)]
mod tests;
mod top;

pub use masked::{beam_top, Beam};

use crate::catalogue::{CatalogueSnapshot, Continuations, WalkState};
use crate::mask::{insert_bits, words_for};
use crate::sampling::bad_logit;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::simd::Floats;

/// A catalogue at one moment, and the token that ends an item: asked about many states at once.
#[derive(Clone)]
pub struct ItemWalk {
    /// The catalogue.
    pub snapshot: CatalogueSnapshot,
    /// The token that ends every item; `None`: an item ends by itself.
    pub end: Option<TokenId>,
}

/// One continuation of a beam.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BeamCandidate<S = WalkState> {
    /// The row that continues.
    pub row: u32,
    /// Its token.
    pub token: TokenId,
    /// The row's score, the token's logit and its weight together.
    pub score: f64,
    /// The state after the token.
    pub state: S,
}

/// The rows of a step.
#[derive(Clone, Copy)]
pub struct BeamRows<'a> {
    /// The state of each row.
    pub states: &'a [WalkState],
    /// The logits of its next token.
    pub logits: &'a [Floats<'a>],
    /// The score of each so far; -inf for a row that ends.
    pub scores: &'a [f64],
    /// The group of each: numbers that do not decrease.
    pub groups: &'a [u32],
}

impl BeamRows<'_> {
    fn check(&self) -> Result<()> {
        let n = self.states.len();
        for (what, len) in [
            ("rows of logits", self.logits.len()),
            ("scores", self.scores.len()),
            ("groups", self.groups.len()),
        ] {
            if len != n {
                let message = format!("{len} {what} for {n} states");
                return Err(Error::new(ErrorKind::Sampling, message).help("give one for each row"));
            }
        }
        if let Some(row) = self.groups.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(Error::new(ErrorKind::Sampling, "groups decrease")
                .at(format!("row {}", row + 1))
                .help("rows of one group are adjacent, and groups ascend"));
        }
        let bad = |score: &f64| score.is_nan() || *score == f64::INFINITY;
        if let Some(row) = self.scores.iter().position(bad) {
            let message = format!("the score {}", self.scores[row]);
            return Err(Error::new(ErrorKind::Logits, message).at(format!("row {row}")));
        }
        Ok(())
    }
}

impl ItemWalk {
    /// The continuations of `state`, the end token among them where an item ends, written over `out`. Where nothing
    /// follows, the end token alone.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] if the index is damaged there; [`ErrorKind::State`] if the state is not one of this tree.
    pub fn children(&self, state: WalkState, out: &mut Continuations) -> Result<()> {
        out.clear();
        self.append(state, out, &mut Continuations::default())
    }

    /// As [`ItemWalk::children`], appended to `out`.
    fn append(&self, state: WalkState, out: &mut Continuations, scratch: &mut Continuations) -> Result<()> {
        let from = out.tokens.len();
        self.snapshot.append(state, out, scratch)?;
        let Some(end) = self.end else { return Ok(()) };
        if out.is_item || out.tokens.len() == from {
            if let Err(at) = out.tokens[from..].binary_search(&end) {
                out.tokens.insert(from + at, end);
                out.states.insert(from + at, WalkState::FINISHED);
                if self.snapshot.index().header().weighted {
                    out.weights.insert(from + at, 0.0);
                }
            }
        }
        Ok(())
    }

    /// The state of each row after its token. A token that is not allowed leads to [`WalkState::FAILED`], after which only
    /// the end token may follow; the end token leads to [`WalkState::FINISHED`] from everywhere, and nothing leads out of
    /// that.
    ///
    /// # Errors
    /// As [`ItemWalk::children`]; [`ErrorKind::Sampling`] if there are not as many tokens as states.
    pub fn advance(&self, states: &mut [WalkState], tokens: &[TokenId]) -> Result<()> {
        if states.len() != tokens.len() {
            let message = format!("{} tokens for {} states", tokens.len(), states.len());
            return Err(Error::new(ErrorKind::Sampling, message).help("give one token a row"));
        }
        let next = |(state, &token): (&WalkState, &TokenId)| -> Result<WalkState> {
            if *state == WalkState::FINISHED {
                return Ok(WalkState::FINISHED);
            }
            Ok(match self.snapshot.step(*state, token)? {
                Some(next) => next,
                None if Some(token) == self.end => WalkState::FINISHED,
                None => WalkState::FAILED,
            })
        };
        let after = states.iter().zip(tokens).map(next).collect::<Result<Vec<WalkState>>>()?;
        states.copy_from_slice(&after);
        Ok(())
    }

    /// The allowed tokens of `state`, written over the words of a mask. With no end token, a row where nothing follows
    /// is empty.
    ///
    /// # Errors
    /// As [`ItemWalk::children`]; [`ErrorKind::Mask`] if a token does not fit the mask. Then nothing is written.
    pub fn mask(&self, state: WalkState, words: &mut [u32], scratch: &mut Continuations) -> Result<()> {
        self.children(state, scratch)?;
        if let Some(&last) = scratch.tokens.last() {
            if words_for(last as usize + 1) > words.len() {
                let message = format!("token {last} does not fit a mask of {} ids", words.len() * 32);
                return Err(Error::new(ErrorKind::Mask, message).help("the mask must cover the vocabulary"));
            }
        }
        words.fill(0);
        insert_bits(words, &scratch.tokens);
        Ok(())
    }

    /// [`ItemWalk::mask`] for each state and its row. Where one fails, all rows are 0: nothing is allowed.
    ///
    /// # Errors
    /// As [`ItemWalk::mask`], of the first row that fails, with the row in its place; [`ErrorKind::Mask`] if there are not
    /// as many rows as states, and nothing is written then.
    pub fn masks(&self, states: &[WalkState], rows: &mut [&mut [u32]]) -> Result<()> {
        if rows.len() != states.len() {
            let message = format!("{} rows of masks for {} states", rows.len(), states.len());
            return Err(Error::new(ErrorKind::Mask, message).help("give one row for each state"));
        }
        let mut scratch = Continuations::default();
        let mut each = states.iter().zip(&mut *rows).enumerate();
        let filled = each.try_for_each(|(row, (&state, words))| {
            self.mask(state, words, &mut scratch).map_err(|error| error.within(&format!("row {row}")))
        });
        if filled.is_err() {
            rows.iter_mut().for_each(|words| words.fill(0));
        }
        filled
    }

    /// Every continuation of every row whose logit is above -inf, by row and token.
    ///
    /// # Errors
    /// As [`ItemWalk::top`].
    pub fn gather(&self, rows: &BeamRows<'_>, out: &mut Vec<BeamCandidate>) -> Result<()> {
        rows.check()?;
        out.clear();
        let mut children = Continuations::default();
        for (row, &state) in rows.states.iter().enumerate() {
            if state == WalkState::FINISHED || rows.scores[row] == f64::NEG_INFINITY {
                continue;
            }
            self.children(state, &mut children)?;
            for (at, &token) in children.tokens.iter().enumerate() {
                let logit = self.logit(rows, row, token)?;
                let weight = children.weights.get(at).copied().unwrap_or(0.0);
                let score = best::score(rows.scores[row], logit, weight);
                if score > f64::NEG_INFINITY {
                    out.push(BeamCandidate { row: row as u32, token, score, state: children.states[at] });
                }
            }
        }
        Ok(())
    }

    /// The logit of an allowed token. A row that failed ends without a look at the logits.
    fn logit(&self, rows: &BeamRows<'_>, row: usize, token: TokenId) -> Result<f32> {
        if rows.states[row] == WalkState::FAILED {
            return Ok(0.0);
        }
        let logits = rows.logits[row];
        match logits.get(token as usize) {
            Some(logit) if logit.is_nan() || logit == f32::INFINITY => {
                Err(bad_logit([(logit, token)].into_iter()).within(&format!("row {row}")))
            }
            Some(logit) => Ok(logit),
            None => {
                let message = format!("id {token} is allowed, but there are {} logits", logits.len());
                Err(Error::new(ErrorKind::Logits, message)
                    .at(format!("row {row}"))
                    .help("the logits and the items must be of the same vocabulary"))
            }
        }
    }

    /// Whether what leads to `state` is an item, and whether more may follow it.
    ///
    /// # Errors
    /// As [`ItemWalk::children`].
    pub fn look(&self, state: WalkState, scratch: &mut Continuations) -> Result<(bool, bool)> {
        if let Some(wide) = self.snapshot.wide(state)? {
            if wide.is_whole() {
                return Ok((wide.is_item(), wide.children.len() > 0));
            }
        }
        self.snapshot.children(state, scratch)?;
        Ok((scratch.is_item, !scratch.tokens.is_empty()))
    }
}
