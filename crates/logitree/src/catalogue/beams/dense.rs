//! The best children of dense nodes, whose children are nearly all ids from a first to a last: their logits are scanned in
//! memory order, and only ids that may be among the best are looked up.

use std::ops::Range;

use super::best::{score, BestCandidates};
use super::{BeamCandidate, BeamRows, ItemWalk};
use crate::catalogue::WideNode;
use crate::simd::{self, Floats, BLOCK};
use crate::{Result, TokenId};

/// One in so many blocks, and as many more, may have its highest logit where no child is.
const SPARE: usize = 8;

/// A wide node whose children are nearly all ids from the first to the last.
pub(super) struct DenseNode<'s> {
    row: usize,
    wide: WideNode<'s>,
    /// The first and the last child's token.
    first: usize,
    last: usize,
    /// The maxima of its blocks, among all nodes' maxima; empty if its logits cannot be scanned.
    maxima: Range<usize>,
}

/// Buffers that are reused.
#[derive(Default)]
pub(super) struct DenseScratch {
    /// The runs in the order of their rows.
    order: Vec<usize>,
    /// The maxima of all runs' blocks.
    maxima: Vec<f32>,
    /// The maxima of one run's finer blocks.
    fine: Vec<f32>,
    /// What the best of a block would score, its run, and which of the run's blocks it is.
    blocks: Vec<(f64, usize, usize)>,
    /// What the best of blocks would score.
    tops: Vec<f64>,
    /// Places in a line of logits that may be among the best.
    places: Vec<u32>,
}

impl<'s> DenseNode<'s> {
    /// The children of a row's wide node.
    pub fn new(row: usize, wide: WideNode<'s>) -> DenseNode<'s> {
        let (first, last) = wide.span();
        DenseNode { row, wide, first: first as usize, last: last as usize, maxima: 0..0 }
    }

    /// Its logits, where they are floats of 32 bits.
    fn values<'l>(&self, rows: &BeamRows<'l>) -> &'l [f32] {
        match rows.logits[self.row].slice(self.first, self.last + 1) {
            Floats::F32(values) => values,
            _ => &[],
        }
    }
}

impl ItemWalk {
    /// The children of all runs, the best row first.
    pub(super) fn take_runs(
        &self,
        rows: &BeamRows<'_>,
        runs: &mut [DenseNode<'_>],
        best: &mut BestCandidates,
        scratch: &mut DenseScratch,
    ) -> Result<()> {
        if runs.is_empty() {
            return Ok(());
        }
        self.read_maxima(rows, runs, best, scratch)?;
        take_by_guess(rows, runs, best, scratch)
    }

    /// The maxima of all nodes' blocks, row by row in memory order. A node that cannot be scanned
    /// is taken here, and has none.
    fn read_maxima(
        &self,
        rows: &BeamRows<'_>,
        runs: &mut [DenseNode<'_>],
        best: &mut BestCandidates,
        scratch: &mut DenseScratch,
    ) -> Result<()> {
        let DenseScratch { order, maxima, .. } = scratch;
        maxima.clear();
        order.clear();
        order.extend(0..runs.len());
        order.sort_unstable_by_key(|&at| runs[at].row);
        for &at in &*order {
            let run = &mut runs[at];
            let line = rows.logits[run.row].slice(run.first, run.last + 1);
            let from = maxima.len();
            maxima.resize(from + line.len().div_ceil(BLOCK), 0.0);
            run.maxima = from..maxima.len();
            if !simd::block_maxima(line, &mut maxima[from..]) {
                // NaN may be at an id that is not a child.
                maxima.truncate(from);
                run.maxima = from..from;
                self.take_each(rows, run.row, &run.wide, best)?;
            }
        }
        Ok(())
    }
}

/// The best children of all runs, block by block. So many blocks have a logit that reaches the lowest of the highest
/// maxima; if all of these are children, nothing below it counts, and nearly all blocks are passed over. If too few
/// are, it is done again without that guess.
fn take_by_guess(
    rows: &BeamRows<'_>,
    runs: &[DenseNode<'_>],
    best: &mut BestCandidates,
    scratch: &mut DenseScratch,
) -> Result<()> {
    let DenseScratch { maxima, fine, blocks, tops, places, .. } = scratch;
    let scanned = || runs.iter().filter(|run| !run.maxima.is_empty());
    blocks.clear();
    for (run, at) in runs.iter().zip(0..) {
        let (before, maxima) = (rows.scores[run.row], &maxima[run.maxima.clone()]);
        blocks.extend(maxima.iter().zip(0..).map(|(&max, block)| (score(before, max, 0.0), at, block)));
    }
    // Where one id in three is a child, three times as many blocks are needed to hold enough of them.
    let ids: usize = scanned().map(|run| run.last - run.first + 1).sum();
    let children: usize = scanned().map(|run| run.wide.children.len()).sum();
    let sure = best.width() + best.width() / SPARE + SPARE;
    let enough = sure.saturating_mul(ids) / children.max(1);
    let saved = best.clone();
    tops.clear();
    if enough < blocks.len() {
        tops.extend(blocks.iter().map(|block| block.0));
    } else {
        // With few blocks, finer ones give a better bound.
        for run in scanned() {
            fine.clear();
            simd::fine_maxima(run.values(rows), fine);
            tops.extend(fine.iter().map(|&max| score(rows.scores[run.row], max, 0.0)));
        }
    }
    let mut guess = f64::NEG_INFINITY;
    if enough < tops.len() {
        guess = *tops.select_nth_unstable_by(enough, |a, b| b.total_cmp(a)).1;
        best.expect(guess);
    }
    for again in [false, true] {
        for &(max, run, block) in &*blocks {
            if best.wants(max) {
                take_block(rows, &runs[run], block, best, places)?;
            }
        }
        if again || guess == f64::NEG_INFINITY || best.reaches(guess) {
            break;
        }
        *best = saved.clone();
    }
    Ok(())
}

/// One block of a run, its logits as they lie.
fn take_block(
    rows: &BeamRows<'_>,
    run: &DenseNode<'_>,
    block: usize,
    best: &mut BestCandidates,
    places: &mut Vec<u32>,
) -> Result<()> {
    let from = run.first + block * BLOCK;
    match rows.logits[run.row].slice(from, (from + BLOCK).min(run.last + 1)) {
        Floats::F32(values) => take_values(rows, run, (from, values), best, places),
        narrow => take_values(rows, run, (from, narrow.block(0, &mut [0.0; BLOCK])), best, places),
    }
}

/// Those of the ids from `from` on, with these logits, that are children and may be among the best.
fn take_values(
    rows: &BeamRows<'_>,
    run: &DenseNode<'_>,
    (from, values): (usize, &[f32]),
    best: &mut BestCandidates,
    places: &mut Vec<u32>,
) -> Result<()> {
    let before = rows.scores[run.row];
    places.clear();
    simd::collect_reaching(values, best.limit(before), places);
    for &place in &*places {
        let (token, logit) = ((from + place as usize) as TokenId, values[place as usize]);
        let score = score(before, logit, 0.0);
        if !best.wants(score) {
            continue;
        }
        let Some(child) = run.wide.children.find_near(token, run.wide.span()) else { continue };
        if let Some(state) = run.wide.state(child)? {
            best.take(BeamCandidate { row: run.row as u32, token, score, state });
        }
    }
    Ok(())
}
