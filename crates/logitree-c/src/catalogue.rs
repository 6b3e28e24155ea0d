//! Catalogues, and walks of many beams over one.
#![allow(unsafe_code)] // exported names

use std::ffi::{c_char, c_void};

use logitree::catalogue::{BeamRows, Catalogue, Continuations, ItemWalk, WalkState};

use crate::batch::rows;
use crate::handles::{handle, shared};
use crate::library::LOGITREE_NO_TOKEN;
use crate::memory::{export, In, Out};
use crate::status::argument;

handle! {
    /// A catalogue at one moment, whose states are numbers. logitree_constraint_from_json
    /// makes a constraint of the same file. Any number of threads may use it at once.
    LogitreeWalk, ItemWalk, 6, "walk"
}

/// A continuation of a beam.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct LogitreeBeam {
    /// The row that continues.
    pub row: u32,
    /// Its token.
    pub token: u32,
    /// The state after the token.
    pub state: i64,
    /// The row's score, the token's logit and its weight together.
    pub score: f64,
}

export! {
    /// A walk over the catalogue in an index file as it is now; the file stays mapped into memory. `end_token`: the token
    /// that ends every item; LOGITREE_NO_TOKEN: an item ends by itself.
    ///
    /// Pointers: `file` is NULL or ends in a byte of 0.
    fn logitree_walk_open(file: In<c_char>, end_token: u32, out: Out<*mut LogitreeWalk>) {
        let make = || {
            let snapshot = Catalogue::open(&file.path()?, false)?.snapshot();
            Ok(ItemWalk { snapshot, end: (end_token != LOGITREE_NO_TOKEN).then_some(end_token) })
        };
        out.create(make)
    }

    /// The state where every item begins. -1 is a finished sequence, -2 one that took a token that is not allowed.
    fn logitree_walk_start(walk: *const LogitreeWalk, state: Out<i64>) {
        state.put(shared(walk)?.snapshot.root().0)
    }

    /// Replaces each of `count` states by the one after its token.
    fn logitree_walk_advance(walk: *const LogitreeWalk, states: Out<i64>, tokens: In<u32>, count: usize) {
        let (states, tokens) = (states.slice(count)?, tokens.slice(count)?);
        let mut next: Vec<WalkState> = states.iter().map(|&state| WalkState(state)).collect();
        shared(walk)?.advance(&mut next, tokens)?;
        states.iter_mut().zip(next).for_each(|(state, next)| *state = next.0);
        Ok(())
    }

    /// The allowed tokens of a state, ascending.
    fn logitree_walk_allowed(
        walk: *const LogitreeWalk,
        state: i64,
        out: Out<u32>,
        capacity: usize,
        count: Out<usize>,
    ) {
        let mut children = Continuations::default();
        shared(walk)?.children(WalkState(state), &mut children)?;
        out.put_all(&children.tokens, capacity, count)
    }

    /// The best `width` continuations of each group's rows: by group, descending score, row, token.
    ///
    /// `states`: the state of each row. `logits`: row i begins at `logits + i * stride` and has `row_width` of
    /// them, of the type `dtype`.
    /// `scores`: the score of each row so far, minus infinity for one that ends; NULL: 0. `groups`: numbers that do not
    /// decrease; NULL: one group. At most `width` times the number of groups are written.
    fn logitree_walk_top(
        walk: *const LogitreeWalk,
        states: In<i64>,
        count: usize,
        logits: In<c_void>,
        dtype: u32,
        row_width: usize,
        stride: usize,
        scores: In<f64>,
        groups: In<u32>,
        width: usize,
        out: Out<LogitreeBeam>,
        capacity: usize,
        found: Out<usize>,
    ) {
        let states: Vec<WalkState> = states.slice(count)?.iter().map(|&state| WalkState(state)).collect();
        let logits = rows(logits, dtype, count, row_width, stride)?;
        let given_scores = scores.slice(if scores.is_null() { 0 } else { count })?;
        let given_groups = groups.slice(if groups.is_null() { 0 } else { count })?;
        if width == 0 {
            return Err(argument("no beams are wanted", "width"));
        }
        let (no_scores, no_groups) = (vec![0.0; count], vec![0; count]);
        let rows = BeamRows {
            states: &states,
            logits: &logits,
            scores: if scores.is_null() { &no_scores } else { given_scores },
            groups: if groups.is_null() { &no_groups } else { given_groups },
        };
        let mut best = Vec::new();
        shared(walk)?.top(&rows, width, &mut best)?;
        let beam = |candidate: &logitree::catalogue::BeamCandidate| LogitreeBeam {
            row: candidate.row,
            token: candidate.token,
            state: candidate.state.0,
            score: candidate.score,
        };
        let best: Vec<LogitreeBeam> = best.iter().map(beam).collect();
        out.put_all(&best, capacity, found)
    }

    /// Numbers of the items that are exactly what leads to a state, ascending.
    fn logitree_walk_items(
        walk: *const LogitreeWalk,
        state: i64,
        out: Out<u64>,
        capacity: usize,
        count: Out<usize>,
    ) {
        let mut items = Vec::new();
        shared(walk)?.snapshot.items(WalkState(state), &mut items)?;
        out.put_all(&items, capacity, count)
    }
}
