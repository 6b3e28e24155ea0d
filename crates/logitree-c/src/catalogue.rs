//! Catalogues, and walks of many beams over one.
#![allow(unsafe_code)] // exported names

use std::ffi::c_char;
use std::sync::Arc;

use logitree::catalogue::{BeamRows, Catalogue, Continuations, Intersection, ItemWalk, WalkState};
use logitree::Floats;

use crate::batch::extent;
use crate::constraint::{constraint_of, LogitreeConstraint, SharedConstraint};
use crate::handles::{handle, remove, shared};
use crate::library::LOGITREE_NO_TOKEN;
use crate::memory::{export, In, Out};
use crate::status::argument;

handle! {
    /// A catalogue of items in an index file. Any number of threads may use it at once.
    LogitreeCatalogue, Catalogue, 6, "catalogue"
}

handle! {
    /// A catalogue at one moment, whose states are numbers. Any number of threads may use it at once.
    LogitreeWalk, ItemWalk, 7, "walk"
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
    /// Opens an index file for reading; it stays mapped into memory.
    ///
    /// Pointers: `file` is NULL or ends in a byte of 0.
    fn logitree_catalogue_open(file: In<c_char>, out: Out<*mut LogitreeCatalogue>) {
        out.create(|| Ok(Catalogue::open(&file.path()?, false)?))
    }

    /// Frees a catalogue. Walks and constraints of it live on. NULL is no error.
    fn logitree_catalogue_free(catalogue: *mut LogitreeCatalogue) {
        remove(catalogue)
    }

    /// Number of items.
    fn logitree_catalogue_size(catalogue: *const LogitreeCatalogue, size: Out<u64>) {
        size.put(shared(catalogue)?.snapshot().len())
    }

    /// The constraint that the output is an item; `also`, unless it is NULL, must allow it too.
    ///
    /// `end_token`: the token that ends every item; LOGITREE_NO_TOKEN: an item ends by itself.
    fn logitree_catalogue_constraint(
        catalogue: *const LogitreeCatalogue,
        end_token: u32,
        also: *const LogitreeConstraint,
        out: Out<*mut LogitreeConstraint>,
    ) {
        let make = || {
            let walk = walk_of(&*shared(catalogue)?, end_token);
            if also.is_null() {
                return Ok(Arc::new(walk) as SharedConstraint);
            }
            let peers = vec![constraint_of(also)?];
            Ok(Arc::new(Intersection { walk, peers, fuel: Intersection::FUEL }) as SharedConstraint)
        };
        out.create(make)
    }
}

fn walk_of(catalogue: &Catalogue, end_token: u32) -> ItemWalk {
    let end = (end_token != LOGITREE_NO_TOKEN).then_some(end_token);
    ItemWalk { snapshot: catalogue.snapshot(), end }
}

export! {
    /// A walk over the catalogue as it is now.
    fn logitree_walk_new(catalogue: *const LogitreeCatalogue, end_token: u32, out: Out<*mut LogitreeWalk>) {
        out.create(|| Ok(walk_of(&*shared(catalogue)?, end_token)))
    }

    /// Frees a walk. NULL is no error.
    fn logitree_walk_free(walk: *mut LogitreeWalk) {
        remove(walk)
    }

    /// The state where every item begins. -1 is a finished sequence, -2 one that took a token that is not allowed.
    fn logitree_walk_start(walk: *const LogitreeWalk, state: Out<i64>) {
        state.put(shared(walk)?.snapshot.root().0)
    }

    /// Replaces each of `count` states by the one after its token.
    fn logitree_walk_advance(walk: *const LogitreeWalk, states: Out<i64>, tokens: In<u32>, count: usize) {
        let (states, tokens) =
            (states.slice(count)?, tokens.slice(count)?);
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
    /// `states`: the state of each row. `logits`: row i begins at `logits + i * stride` and has `row_width` floats.
    /// `scores`: the score of each row so far, minus infinity for one that ends; NULL: 0. `groups`: numbers that do not
    /// decrease; NULL: one group. At most `width` times the number of groups are written.
    fn logitree_walk_top(
        walk: *const LogitreeWalk,
        states: In<i64>,
        count: usize,
        logits: In<f32>,
        row_width: usize,
        stride: usize,
        scores: In<f64>,
        groups: In<u32>,
        width: usize,
        out: Out<LogitreeBeam>,
        capacity: usize,
        found: Out<usize>,
    ) {
        let (states, logits, given_scores, given_groups) = {
            let extent = extent(count, row_width, stride, "logits")?;
            (
                states.slice(count)?,
                logits.slice(extent)?,
                scores.slice(if scores.is_null() { 0 } else { count })?,
                groups.slice(if groups.is_null() { 0 } else { count })?,
            )
        };
        if width == 0 {
            return Err(argument("no beams are wanted", "width"));
        }
        let (no_scores, no_groups) = (vec![0.0; count], vec![0; count]);
        let rows: Vec<Floats<'_>> =
            (0..count).map(|row| Floats::F32(&logits[row * stride..row * stride + row_width])).collect();
        let states: Vec<WalkState> = states.iter().map(|&state| WalkState(state)).collect();
        let rows = BeamRows {
            states: &states,
            logits: &rows,
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
