//! The best ways on of many rows. It refuses to know what becomes of them.

use super::best::{score, Best};
use super::{Candidate, Paths, Rows};
use crate::kernel::{self, Floats, BLOCK};
use crate::prefix::{Children, State, WideNode};
use crate::{Result, TokenId};

/// Children are a run if at least one id in so many of their span is one.
const SPARSE: usize = 4;

/// Candidates that are kept at most, whatever was asked for.
const MOST: usize = 1 << 24;

/// What is used again and again.
#[derive(Default)]
struct Scratch {
    order: Vec<usize>,
    /// Places in a line of logits that may be among the best.
    places: Vec<u32>,
    /// Children of all narrow nodes, row by row.
    children: Children,
    /// How far the children of each of those rows go, and which row it is.
    ends: Vec<(usize, usize)>,
    one: Children,
}

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
        // The rows' places in the index are far apart: all are fetched before the first is needed.
        rows.states.iter().for_each(|&state| self.snapshot.prefetch(state));
        let (mut scratch, mut best) = (Scratch::default(), Best::new(width.min(MOST)));
        let mut from = 0;
        while from < rows.owners.len() {
            let of = &rows.owners[from..];
            let to = from + of.iter().take_while(|&&owner| owner == of[0]).count();
            let goes_on =
                |&row: &usize| rows.states[row] != State::FINISHED && rows.scores[row] > f64::NEG_INFINITY;
            // The best rows first, so that the others have much to reach.
            scratch.order.clear();
            scratch.order.extend((from..to).filter(goes_on));
            scratch.order.sort_by(|&a, &b| rows.scores[b].total_cmp(&rows.scores[a]));
            self.take_rows(rows, &mut best, &mut scratch)?;
            best.finish(out);
            from = to;
        }
        Ok(())
    }

    /// One owner's rows: the wide nodes as they come, the children of all others gathered first, so that their logits
    /// are fetched together, too.
    fn take_rows(&self, rows: &Rows<'_>, best: &mut Best, scratch: &mut Scratch) -> Result<()> {
        scratch.children.clear();
        scratch.ends.clear();
        // The root of a tree that lost its last item is the only place from which nothing goes on.
        let empty = self.snapshot.is_empty();
        for at in 0..scratch.order.len() {
            let row = scratch.order[at];
            if let Some(wide) = self.snapshot.wide(rows.states[row])?.filter(|_| !empty) {
                self.take_wide(rows, row, &wide, best, &mut scratch.places)?;
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
            for at in from..to {
                let logit = self.logit(rows, row, children.tokens[at])?;
                let weight = children.weights.get(at).copied().unwrap_or(0.0);
                take(rows, row, best, (children.tokens[at], children.states[at], logit, weight));
            }
            from = to;
        }
        Ok(())
    }

    fn take_wide(
        &self,
        rows: &Rows<'_>,
        row: usize,
        wide: &WideNode<'_>,
        best: &mut Best,
        places: &mut Vec<u32>,
    ) -> Result<()> {
        for (token, state, weight) in wide.added() {
            let logit = self.logit(rows, row, token)?;
            take(rows, row, best, (token, state, logit, weight));
        }
        if let Some(end) = self.end.filter(|_| wide.is_item()) {
            let logit = self.logit(rows, row, end)?;
            take(rows, row, best, (end, State::FINISHED, logit, 0.0));
        }
        let n = wide.children.len();
        if n == 0 {
            return Ok(());
        }
        let (first, last) = (wide.children.token(0) as usize, wide.children.token(n - 1) as usize);
        if wide.children.weight(0).is_some() || last.wrapping_sub(first) >= n.saturating_mul(SPARSE) {
            return self.take_each(rows, row, wide, best);
        }
        if last >= rows.logits[row].len() {
            return self.logit(rows, row, last as TokenId).map(drop);
        }
        self.take_run(rows, row, wide, (first, last), best, places)
    }

    /// Children that are nearly all ids from the first to the last: their logits are scanned as they lie.
    fn take_run(
        &self,
        rows: &Rows<'_>,
        row: usize,
        wide: &WideNode<'_>,
        (first, last): (usize, usize),
        best: &mut Best,
        places: &mut Vec<u32>,
    ) -> Result<()> {
        let before = rows.scores[row];
        let mut room = [0.0; BLOCK];
        for from in (first..=last).step_by(BLOCK) {
            let line = rows.logits[row].slice(from, (from + BLOCK).min(last + 1));
            let values = match line {
                Floats::F32(values) => values,
                narrow => narrow.block(0, &mut room),
            };
            places.clear();
            kernel::collect_reaching(values, best.limit(before), places);
            for &place in &*places {
                let (logit, token) = (values[place as usize], (from + place as usize) as TokenId);
                if !(logit == f32::INFINITY || logit.is_nan() || best.wants(score(before, logit, 0.0))) {
                    continue;
                }
                let Some(child) = wide.children.find_near(token) else { continue };
                self.logit(rows, row, token)?;
                if let Some(state) = wide.state(child)? {
                    take(rows, row, best, (token, state, logit, 0.0));
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
            if best.wants(score(rows.scores[row], logit, weight)) {
                if let Some(state) = wide.state(at)? {
                    take(rows, row, best, (token, state, logit, weight));
                }
            }
        }
        Ok(())
    }
}

#[inline]
fn take(rows: &Rows<'_>, row: usize, best: &mut Best, way: (TokenId, State, f32, f32)) {
    let (token, state, logit, weight) = way;
    let score = score(rows.scores[row], logit, weight);
    best.take(Candidate { row: row as u32, token, score, state });
}
