//! Catalogues, and walks of many beams over one.
#![allow(unsafe_code)] // exported names and pointers of the caller

use std::ffi::c_char;
use std::sync::Arc;

use logitree::catalogue::{BeamRows, Catalogue, Continuations, Intersection, ItemWalk, WalkState};
use logitree::Floats;

use crate::batch::extent;
use crate::constraint::{constraint_of, LogitreeConstraint, SharedConstraint};
use crate::handles::{handle, remove, shared};
use crate::library::LOGITREE_NO_TOKEN;
use crate::memory::{create, path, put, put_all, slice, slice_mut};
use crate::status::{argument, run};
use crate::LogitreeStatus;

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

/// Opens an index file for reading; it stays mapped into memory.
///
/// # Safety
/// `file` is NULL or ends in a byte of 0; a handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_catalogue_open(
    file: *const c_char,
    out: *mut *mut LogitreeCatalogue,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { create(out, || Ok(Catalogue::open(&path(file)?, false)?)) })
}

/// Frees a catalogue. Walks and constraints of it live on. NULL is no error.
#[no_mangle]
pub extern "C" fn logitree_catalogue_free(catalogue: *mut LogitreeCatalogue) -> LogitreeStatus {
    run(|| remove(catalogue))
}

/// Number of items.
///
/// # Safety
/// A number may be written at `size`.
#[no_mangle]
pub unsafe extern "C" fn logitree_catalogue_size(
    catalogue: *const LogitreeCatalogue,
    size: *mut u64,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put(size, shared(catalogue)?.snapshot().len(), "size") })
}

/// The constraint that the output is an item; `also`, unless it is NULL, must allow it too.
///
/// `end_token`: the token that ends every item; LOGITREE_NO_TOKEN: an item ends by itself.
///
/// # Safety
/// A handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_catalogue_constraint(
    catalogue: *const LogitreeCatalogue,
    end_token: u32,
    also: *const LogitreeConstraint,
    out: *mut *mut LogitreeConstraint,
) -> LogitreeStatus {
    run(|| {
        let make = || {
            let walk = walk_of(&*shared(catalogue)?, end_token);
            if also.is_null() {
                return Ok(Arc::new(walk) as SharedConstraint);
            }
            let peers = vec![constraint_of(also)?];
            Ok(Arc::new(Intersection { walk, peers, fuel: Intersection::FUEL }) as SharedConstraint)
        };
        // SAFETY: the caller's promise.
        unsafe { create(out, make) }
    })
}

fn walk_of(catalogue: &Catalogue, end_token: u32) -> ItemWalk {
    let end = (end_token != LOGITREE_NO_TOKEN).then_some(end_token);
    ItemWalk { snapshot: catalogue.snapshot(), end }
}

/// A walk over the catalogue as it is now.
///
/// # Safety
/// A handle may be written at `out`.
#[no_mangle]
pub unsafe extern "C" fn logitree_walk_new(
    catalogue: *const LogitreeCatalogue,
    end_token: u32,
    out: *mut *mut LogitreeWalk,
) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { create(out, || Ok(walk_of(&*shared(catalogue)?, end_token))) })
}

/// Frees a walk. NULL is no error.
#[no_mangle]
pub extern "C" fn logitree_walk_free(walk: *mut LogitreeWalk) -> LogitreeStatus {
    run(|| remove(walk))
}

/// The state where every item begins. -1 is a finished sequence, -2 one that took a token that is not allowed.
///
/// # Safety
/// A number may be written at `state`.
#[no_mangle]
pub unsafe extern "C" fn logitree_walk_start(walk: *const LogitreeWalk, state: *mut i64) -> LogitreeStatus {
    // SAFETY: the caller's promise.
    run(|| unsafe { put(state, shared(walk)?.snapshot.root().0, "state") })
}

/// Replaces each of `count` states by the one after its token.
///
/// # Safety
/// `count` states may be read and written at `states`, and `count` ids read at `tokens`.
#[no_mangle]
pub unsafe extern "C" fn logitree_walk_advance(
    walk: *const LogitreeWalk,
    states: *mut i64,
    tokens: *const u32,
    count: usize,
) -> LogitreeStatus {
    run(|| {
        // SAFETY: the caller's promise.
        let (states, tokens) =
            unsafe { (slice_mut(states, count, "states")?, slice(tokens, count, "tokens")?) };
        let mut next: Vec<WalkState> = states.iter().map(|&state| WalkState(state)).collect();
        shared(walk)?.advance(&mut next, tokens)?;
        states.iter_mut().zip(next).for_each(|(state, next)| *state = next.0);
        Ok(())
    })
}

/// The allowed tokens of a state, ascending.
///
/// # Safety
/// `capacity` ids may be written at `out`, and a number at `count`.
#[no_mangle]
pub unsafe extern "C" fn logitree_walk_allowed(
    walk: *const LogitreeWalk,
    state: i64,
    out: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> LogitreeStatus {
    run(|| {
        let mut children = Continuations::default();
        shared(walk)?.children(WalkState(state), &mut children)?;
        // SAFETY: the caller's promise.
        unsafe { put_all(&children.tokens, out, capacity, count) }
    })
}

/// The best `width` continuations of each group's rows: by group, descending score, row, token.
///
/// `states`: the state of each row. `logits`: row i begins at `logits + i * stride` and has `row_width` floats. `scores`: the
/// score of each row so far, minus infinity for one that ends; NULL: 0. `groups`: numbers that do not decrease; NULL: one
/// group. At most `width` times the number of groups are written.
///
/// # Safety
/// The rows may be read as said; `capacity` beams may be written at `out`, and a number at `found`.
#[no_mangle]
pub unsafe extern "C" fn logitree_walk_top(
    walk: *const LogitreeWalk,
    states: *const i64,
    count: usize,
    logits: *const f32,
    row_width: usize,
    stride: usize,
    scores: *const f64,
    groups: *const u32,
    width: usize,
    out: *mut LogitreeBeam,
    capacity: usize,
    found: *mut usize,
) -> LogitreeStatus {
    run(|| {
        // SAFETY: the caller's promise.
        let (states, logits, given_scores, given_groups) = unsafe {
            let extent = extent(count, row_width, stride, "logits")?;
            (
                slice(states, count, "states")?,
                slice(logits, extent, "logits")?,
                slice(scores, if scores.is_null() { 0 } else { count }, "scores")?,
                slice(groups, if groups.is_null() { 0 } else { count }, "groups")?,
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
        // SAFETY: the caller's promise.
        unsafe { put_all(&best, out, capacity, found) }
    })
}

/// Numbers of the items that are exactly what leads to a state, ascending.
///
/// # Safety
/// `capacity` numbers may be written at `out`, and a number at `count`.
#[no_mangle]
pub unsafe extern "C" fn logitree_walk_items(
    walk: *const LogitreeWalk,
    state: i64,
    out: *mut u64,
    capacity: usize,
    count: *mut usize,
) -> LogitreeStatus {
    run(|| {
        let mut items = Vec::new();
        shared(walk)?.snapshot.items(WalkState(state), &mut items)?;
        // SAFETY: the caller's promise.
        unsafe { put_all(&items, out, capacity, count) }
    })
}
