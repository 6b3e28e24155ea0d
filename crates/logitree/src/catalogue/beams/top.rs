//! The best continuations of many rows.

use super::best::{score, BestCandidates};
use super::dense::{resolve, Best, DenseNode, Place};
use super::{BeamCandidate, BeamRows, ItemWalk};
use crate::catalogue::{Continuations, WalkState, WideNode};
use crate::{Result, TokenId};
use logitree_tokens::simd::{self, Floats, BLOCK};

/// What is used again and again.
#[derive(Default)]
struct BeamScratch {
    order: Vec<usize>,
    /// Continuations of all narrow nodes, row by row.
    children: Continuations,
    /// How far the children of each of those rows go, and which row it is.
    ends: Vec<(usize, usize)>,
    one: Continuations,
    /// Places in a line of logits that may be among the best.
    places: Vec<u32>,
    /// The best of a group.
    found: Vec<BeamCandidate<Place>>,
}

impl ItemWalk {
    /// The best `width` continuations of each group's rows, written over `out`: by group, then descending score, then row,
    /// then token. Fewer where there are fewer with a logit above -inf. A row that is finished, or whose score is -inf,
    /// has none; one that failed has the end token, at its own score.
    ///
    /// # Errors
    /// As [`ItemWalk::children`]; [`crate::ErrorKind::Logits`] for NaN or +inf among the logits that are looked at, or a
    /// allowed token without one; [`crate::ErrorKind::Sampling`] if columns differ in length or groups decrease.
    pub fn top(&self, rows: &BeamRows<'_>, width: usize, out: &mut Vec<BeamCandidate>) -> Result<()> {
        rows.check()?;
        out.clear();
        // The rows' places in the index are far apart: all are fetched before the first is needed.
        rows.states.iter().for_each(|&state| self.snapshot.prefetch(state));
        let (mut scratch, mut best) =
            (BeamScratch::default(), BestCandidates::new(width.min(possible(rows))));
        let mut from = 0;
        while from < rows.groups.len() {
            let of = &rows.groups[from..];
            let to = from + of.iter().take_while(|&&group| group == of[0]).count();
            let goes_on = |&row: &usize| {
                rows.states[row] != WalkState::FINISHED && rows.scores[row] > f64::NEG_INFINITY
            };
            // The best rows first, so that the others have much to reach.
            scratch.order.clear();
            scratch.order.extend((from..to).filter(goes_on));
            scratch.order.sort_by(|&a, &b| rows.scores[b].total_cmp(&rows.scores[a]));
            self.take_rows(rows, &mut best, &mut scratch, out)?;
            from = to;
        }
        Ok(())
    }

    /// One group's rows, the best first. The children of narrow nodes are gathered first, so that their logits are fetched
    /// together; the runs of wide ones come last, when there is much to reach.
    fn take_rows(
        &self,
        rows: &BeamRows<'_>,
        best: &mut Best,
        scratch: &mut BeamScratch,
        out: &mut Vec<BeamCandidate>,
    ) -> Result<()> {
        scratch.children.clear();
        scratch.ends.clear();
        scratch.ends.reserve(scratch.order.len());
        scratch.children.reserve(scratch.order.len());
        let mut runs = Vec::new();
        // Only the root of a catalogue that lost its last item has no continuation.
        let empty = self.snapshot.is_empty();
        for at in 0..scratch.order.len() {
            let row = scratch.order[at];
            if let Some(wide) = self.snapshot.wide(rows.states[row])?.filter(|_| !empty) {
                runs.extend(self.take_wide(rows, row, wide, best)?);
                continue;
            }
            let known = scratch.children.tokens.len();
            self.append(rows.states[row], &mut scratch.children, &mut scratch.one)?;
            let tokens = &scratch.children.tokens;
            tokens[known..].iter().for_each(|&token| rows.logits[row].prefetch(token as usize));
            scratch.ends.push((tokens.len(), row));
        }
        let children = &scratch.children;
        let mut from = 0;
        for &(to, row) in &scratch.ends {
            let line = match rows.logits[row] {
                Floats::F32(line) if rows.states[row] != WalkState::FAILED => line,
                _ => &[],
            };
            for at in from..to {
                let logit = match line.get(children.tokens[at] as usize) {
                    Some(&logit) if logit < f32::INFINITY => logit,
                    _ => self.logit(rows, row, children.tokens[at])?,
                };
                let weight = children.weights.get(at).copied().unwrap_or(0.0);
                take(rows, row, best, (children.tokens[at], children.states[at], logit, weight));
            }
            from = to;
        }
        self.take_runs(rows, &runs, best, &mut scratch.places)?;
        scratch.found.clear();
        best.finish(&mut scratch.found);
        resolve(&runs, &scratch.found, out)
    }

    /// A wide node: what was added to it and its end, and then its children, unless they are a run for later.
    fn take_wide<'s>(
        &self,
        rows: &BeamRows<'_>,
        row: usize,
        wide: WideNode<'s>,
        best: &mut Best,
    ) -> Result<Option<DenseNode<'s>>> {
        for (token, state, weight) in wide.added() {
            let logit = self.logit(rows, row, token)?;
            take(rows, row, best, (token, state, logit, weight));
        }
        if let Some(end) = self.end.filter(|_| wide.is_item()) {
            // The end token continues an item that has it as its next token.
            if wide.step(end)?.is_none() {
                let logit = self.logit(rows, row, end)?;
                take(rows, row, best, (end, WalkState::FINISHED, logit, 0.0));
            }
        }
        let n = wide.children.len();
        if n == 0 {
            return Ok(None);
        }
        if wide.children.marks().is_empty() || wide.span().1 as usize >= rows.logits[row].len() {
            return self.take_each(rows, row, &wide, best).map(|()| None);
        }
        Ok(Some(DenseNode { row, wide }))
    }

    /// Continuations that lie far apart, or that have weights.
    fn take_each(&self, rows: &BeamRows<'_>, row: usize, wide: &WideNode<'_>, best: &mut Best) -> Result<()> {
        let n = wide.children.len();
        let line = match rows.logits[row] {
            Floats::F32(line) if !wide.children.is_weighted() => line,
            _ => return (0..n).try_for_each(|at| self.take_child(rows, row, wide, at, best)),
        };
        let mut places = Vec::new();
        for from in (0..n).step_by(BLOCK) {
            let tokens = wide.children.tokens(from..(from + BLOCK).min(n));
            places.clear();
            simd::reaching_among(line, tokens, best.limit(rows.scores[row]), &mut places);
            for &place in &places {
                self.take_child(rows, row, wide, from + place as usize, best)?;
            }
        }
        Ok(())
    }

    fn take_child(
        &self,
        rows: &BeamRows<'_>,
        row: usize,
        wide: &WideNode<'_>,
        at: usize,
        best: &mut Best,
    ) -> Result<()> {
        let token = wide.children.token(at);
        let logit = match self.logit(rows, row, token) {
            Ok(logit) => logit,
            // What was removed need not have a logit.
            Err(_) if wide.state(at)?.is_none() => return Ok(()),
            Err(error) => return Err(error),
        };
        let weight = wide.children.weight(at).unwrap_or(0.0);
        if best.wants(score(rows.scores[row], logit, weight)) {
            if let Some(state) = wide.state(at)? {
                take(rows, row, best, (token, state, logit, weight));
            }
        }
        Ok(())
    }
}

/// An upper bound of continuations: each has a logit of its own, except the end of a row that failed.
pub(super) fn possible(rows: &BeamRows<'_>) -> usize {
    rows.logits.iter().fold(0, |sum, row| row.len().max(1).saturating_add(sum))
}

#[inline]
fn take(rows: &BeamRows<'_>, row: usize, best: &mut Best, way: (TokenId, WalkState, f32, f32)) {
    let (token, state, logit, weight) = way;
    let score = score(rows.scores[row], logit, weight);
    best.take(BeamCandidate { row: row as u32, token, score, state: Place::Known(state) });
}
