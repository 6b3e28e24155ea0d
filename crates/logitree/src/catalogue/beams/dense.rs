//! The best children of dense nodes, whose children are many of the ids from a first to a last: their logits are scanned
//! once in memory order, and compared with what is to be reached, 64 at a time, only where a mark says that the id is a
//! child. What the best lead to is looked up at the end.

use super::best::{score, BestCandidates};
use super::{BeamCandidate, BeamRows, ItemWalk};
use crate::catalogue::{damaged, WalkState, WideNode};
use crate::{Result, TokenId};
use logitree_tokens::simd::{self, Floats, BLOCK};

/// The state after a candidate's token, or, before it is looked up, the run that it is a child of.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    Known(WalkState),
    ChildOf(u32),
}

/// The best so far.
pub(super) type Best = BestCandidates<Place>;

/// Logits that are compared before more is to be reached: so many of the first row, and up to so many later, when what is
/// to be reached rises slowly.
const AT_FIRST: usize = 64;
const AT_ONCE: usize = 4 * BLOCK;
/// Logits that are fetched ahead of those that are compared.
const AHEAD: usize = 2 * AT_ONCE;

/// A wide node whose children have marks.
pub(super) struct DenseNode<'s> {
    pub row: usize,
    pub wide: WideNode<'s>,
}

impl<'s> DenseNode<'s> {
    /// The logits from its first child's to its last one's.
    fn logits<'l>(&self, rows: &BeamRows<'l>) -> Floats<'l> {
        let (first, last) = self.wide.span();
        rows.logits[self.row].slice(first as usize, last as usize + 1)
    }
}

impl ItemWalk {
    /// The children of all runs, the best row first.
    pub(super) fn take_runs(
        &self,
        rows: &BeamRows<'_>,
        runs: &[DenseNode<'_>],
        best: &mut Best,
        places: &mut Vec<u32>,
    ) -> Result<()> {
        if let Some(run) = runs.first() {
            expect(rows, run, best);
        }
        let mut at_once = if best.wants_all() { AT_FIRST } else { AT_ONCE };
        for (at, run) in runs.iter().enumerate() {
            let line = run.logits(rows);
            let next = runs.get(at + 1);
            if let Some(next) = next {
                let marks = next.wide.children.marks();
                (0..marks.len()).step_by(64).for_each(|at| simd::prefetch(marks, at));
            }
            let next = next.map_or(Floats::F32(&[]), |next| next.logits(rows));
            let mut from = 0;
            while from < line.len() {
                let to = (from + at_once).min(line.len());
                let ahead = match from + AHEAD {
                    ahead if ahead < line.len() => line.slice(ahead, line.len()),
                    ahead => next.slice((ahead - line.len()).min(next.len()), next.len()),
                };
                self.take_scanned(rows, (run, at), (from, to), ahead, (best, places))?;
                from = to;
                at_once = (at_once * 2).min(AT_ONCE);
            }
        }
        Ok(())
    }

    /// The children among some of a run's ids, counted from its first.
    fn take_scanned(
        &self,
        rows: &BeamRows<'_>,
        (run, at): (&DenseNode<'_>, usize),
        (from, to): (usize, usize),
        ahead: Floats<'_>,
        (best, places): (&mut Best, &mut Vec<u32>),
    ) -> Result<()> {
        let before = rows.scores[run.row];
        let (limit, marks) = (best.limit(before), &run.wide.children.marks()[from / 8..]);
        places.clear();
        match run.logits(rows).slice(from, to) {
            Floats::F32(values) => {
                let ahead = if let Floats::F32(ahead) = ahead { ahead } else { &[] };
                simd::collect_marked(values, marks, limit, ahead, places);
            }
            narrow => {
                let mut buffer = [0.0; BLOCK];
                for block in 0..narrow.len().div_ceil(BLOCK) {
                    let (values, known) = (narrow.block(block, &mut buffer), places.len());
                    let marks = &marks[block * BLOCK / 8..];
                    simd::collect_marked(values, marks, limit, &[], places);
                    places[known..].iter_mut().for_each(|place| *place += (block * BLOCK) as u32);
                }
            }
        }
        let first = run.wide.span().0 as usize + from;
        let line = match rows.logits[run.row] {
            Floats::F32(line) => line.get(first..).unwrap_or_default(),
            _ => &[],
        };
        let is_whole = run.wide.is_whole();
        for &place in &*places {
            let token = (first + place as usize) as TokenId;
            let logit = match line.get(place as usize) {
                Some(&logit) if logit < f32::INFINITY => logit,
                _ => match self.logit(rows, run.row, token) {
                    Ok(logit) => logit,
                    // What was removed need not have a logit.
                    Err(_) if run.wide.step(token)?.is_none() => continue,
                    Err(error) => return Err(error),
                },
            };
            let score = score(before, logit, 0.0);
            if !best.wants(score) {
                continue;
            }
            let state = if is_whole {
                Place::ChildOf(at as u32)
            } else {
                match run.wide.step(token)? {
                    Some(state) => Place::Known(state),
                    None => continue,
                }
            };
            best.take(BeamCandidate { row: run.row as u32, token, score, state });
        }
        Ok(())
    }
}

/// Finds in the first run what is to be reached: so many lines of 16 logits have a child whose logit reaches it.
fn expect(rows: &BeamRows<'_>, run: &DenseNode<'_>, best: &mut Best) {
    const SOME: usize = 4096;
    let Floats::F32(values) = run.logits(rows) else { return };
    if !best.wants_all() || !run.wide.is_whole() {
        return;
    }
    let mut maxima = Vec::with_capacity(SOME / 16);
    simd::marked_maxima(&values[..values.len().min(SOME)], run.wide.children.marks(), &mut maxima);
    if (1..=maxima.len()).contains(&best.width()) {
        let worst = *maxima.select_nth_unstable_by(best.width() - 1, |a, b| b.total_cmp(a)).1;
        best.expect(score(rows.scores[run.row], worst, 0.0));
    }
}

/// The candidates with their states, appended to `out`. What is read first of each is fetched before the first is needed,
/// and then what is read next.
pub(super) fn resolve(
    runs: &[DenseNode<'_>],
    found: &[BeamCandidate<Place>],
    out: &mut Vec<BeamCandidate>,
) -> Result<()> {
    let unknown = || {
        found.iter().filter_map(|candidate| match candidate.state {
            Place::ChildOf(run) => Some((&runs[run as usize].wide, candidate.token)),
            Place::Known(_) => None,
        })
    };
    unknown().for_each(|(wide, token)| wide.children.prefetch_near(token, wide.span()));
    let mut places = Vec::with_capacity(found.len());
    for (wide, token) in unknown() {
        let at = wide.children.find_near(token, wide.span());
        let at = at.ok_or_else(|| damaged("a mark without a child"))?;
        wide.children.prefetch_state(at);
        places.push(at);
    }
    let mut places = places.into_iter();
    for &BeamCandidate { row, token, score, state } in found {
        let state = match state {
            Place::Known(state) => Some(state),
            Place::ChildOf(run) => match places.next() {
                Some(at) => runs[run as usize].wide.state(at)?,
                None => None,
            },
        };
        let state = state.ok_or_else(|| damaged("a mark without a child"))?;
        out.push(BeamCandidate { row, token, score, state });
    }
    Ok(())
}
