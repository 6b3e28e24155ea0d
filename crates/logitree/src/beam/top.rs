//! The best ways on of many rows. It refuses to know what becomes of them.

use super::best::{score, Best};
use super::{Candidate, Paths, Rows};
use crate::kernel::{self, Floats, BLOCK};
use crate::prefix::{Children, State, WideNode};
use crate::{Result, TokenId};

/// Children are a run if at least one id in so many of their span is one.
const SPARSE: usize = 4;

impl Paths {
    /// The best `width` ways on of each owner's rows, written over `out`: by owner, then descending score, then row,
    /// then token. Fewer where there are fewer with a logit above -inf. A row that is finished, or whose score is -inf,
    /// has none; one that failed has the end token, at its own score.
    ///
    /// # Errors
    /// As [`Paths::children`]; [`crate::ErrorKind::Logits`] for NaN or +inf among the logits that are looked at, or a
    /// legal token without one; [`crate::ErrorKind::Sampling`] if columns differ in length or owners fall.
    pub fn top(&self, rows: &Rows<'_>, width: usize, out: &mut Vec<Candidate>) -> Result<()> {
        rows.check()?;
        out.clear();
        let mut scratch = Scratch::default();
        let mut from = 0;
        while from < rows.owners.len() {
            let of = &rows.owners[from..];
            let to = from + of.iter().take_while(|&&owner| owner == of[0]).count();
            // The best rows first, so that the others have much to reach.
            scratch.order.clear();
            scratch.order.extend(from..to);
            scratch.order.sort_by(|&a, &b| rows.scores[b].total_cmp(&rows.scores[a]));
            let mut best = Best::new(width.min(MOST));
            for at in 0..scratch.order.len() {
                let row = scratch.order[at];
                if rows.states[row] != State::FINISHED && rows.scores[row] > f64::NEG_INFINITY {
                    self.take_row(rows, row, &mut best, &mut scratch)?;
                }
            }
            best.finish(out);
            from = to;
        }
        Ok(())
    }

    fn take_row(&self, rows: &Rows<'_>, row: usize, best: &mut Best, scratch: &mut Scratch) -> Result<()> {
        let state = rows.states[row];
        // The root of a tree that lost its last item is the only place from which nothing goes on.
        if let Some(wide) = self.snapshot.wide(state)?.filter(|_| !self.snapshot.is_empty()) {
            return self.take_wide(rows, row, &wide, best, scratch);
        }
        self.children(state, &mut scratch.children)?;
        let children = &scratch.children;
        for (at, &token) in children.tokens.iter().enumerate() {
            let logit = self.logit(rows, row, token)?;
            let weight = children.weights.get(at).copied().unwrap_or(0.0);
            self.take(rows, row, best, (token, children.states[at], logit, weight));
        }
        Ok(())
    }

    #[inline]
    fn take(&self, rows: &Rows<'_>, row: usize, best: &mut Best, way: (TokenId, State, f32, f32)) {
        let (token, state, logit, weight) = way;
        let score = score(rows.scores[row], logit, weight);
        best.take(Candidate { row: row as u32, token, score, state });
    }

    fn take_wide(
        &self,
        rows: &Rows<'_>,
        row: usize,
        wide: &WideNode<'_>,
        best: &mut Best,
        scratch: &mut Scratch,
    ) -> Result<()> {
        for (token, state, weight) in wide.added() {
            let logit = self.logit(rows, row, token)?;
            self.take(rows, row, best, (token, state, logit, weight));
        }
        if let Some(end) = self.end.filter(|_| wide.is_item()) {
            let logit = self.logit(rows, row, end)?;
            self.take(rows, row, best, (end, State::FINISHED, logit, 0.0));
        }
        let n = wide.children.len();
        if n == 0 {
            return Ok(());
        }
        let (first, last) = (wide.children.token(0) as usize, wide.children.token(n - 1) as usize);
        if wide.children.weight(0).is_some() || last - first >= n.saturating_mul(SPARSE) {
            return self.take_each(rows, row, wide, best);
        }
        let logits = rows.logits[row];
        if last >= logits.len() {
            return self.logit(rows, row, last as TokenId).map(drop);
        }
        // The child whose token is no less than all that was passed.
        let mut child = 0;
        let mut room = [0.0; BLOCK];
        for from in (first..=last).step_by(BLOCK) {
            let line = logits.slice(from, (from + BLOCK).min(last + 1));
            let values = match line {
                Floats::F32(values) => values,
                narrow => narrow.block(0, &mut room),
            };
            scratch.places.clear();
            kernel::collect_reaching(values, best.limit(rows.scores[row]), &mut scratch.places);
            for &place in &scratch.places {
                let token = (from + place as usize) as TokenId;
                child = wide.children.find_from(child, token);
                if child < n && wide.children.token(child) == token {
                    let logit = self.logit(rows, row, token)?;
                    if logit < best.limit(rows.scores[row]) || logit == f32::NEG_INFINITY {
                        continue;
                    }
                    if let Some(state) = wide.state(child)? {
                        self.take(rows, row, best, (token, state, logit, 0.0));
                    }
                }
            }
        }
        Ok(())
    }

    /// Children that lie far apart, or that have weights.
    fn take_each(&self, rows: &Rows<'_>, row: usize, wide: &WideNode<'_>, best: &mut Best) -> Result<()> {
        for at in 0..wide.children.len() {
            let token = wide.children.token(at);
            let logit = self.logit(rows, row, token)?;
            let weight = wide.children.weight(at).unwrap_or(0.0);
            if score(rows.scores[row], logit, weight) < best.worst() {
                continue;
            }
            if let Some(state) = wide.state(at)? {
                self.take(rows, row, best, (token, state, logit, weight));
            }
        }
        Ok(())
    }
}

/// Candidates that are kept at most, whatever was asked for: as many as there can be rows of memory for.
const MOST: usize = 1 << 24;

/// What is used again and again.
#[derive(Default)]
struct Scratch {
    children: Children,
    places: Vec<u32>,
    order: Vec<usize>,
}
