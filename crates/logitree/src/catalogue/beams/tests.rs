//! The best continuations held to gathering all of them, over catalogues that change.

use std::sync::Arc;

use proptest::prelude::*;

use super::top::possible;
use super::{BeamCandidate, BeamRows, ItemWalk};
use crate::catalogue::tests::of_old_version;
use crate::catalogue::{
    BuildOptions, Catalogue, CatalogueBuilder, CatalogueSnapshot, Continuations, ItemIndex, WalkState,
};
use crate::{ErrorKind, TokenId};
use logitree_tokens::simd::Floats;

fn tree(items: &[Vec<TokenId>], weighted: bool) -> Catalogue {
    Catalogue::new(index(items, weighted))
}

fn index(items: &[Vec<TokenId>], weighted: bool) -> ItemIndex {
    let mut builder = CatalogueBuilder::new(BuildOptions { weighted, ..BuildOptions::default() }).unwrap();
    for (tokens, item) in items.iter().zip(0..) {
        let weights: Vec<f32> = tokens.iter().map(|token| (token % 5) as f32 / 4.0).collect();
        builder.push(tokens, if weighted { &weights } else { &[] }, item).unwrap();
    }
    builder.finish(None, &mut |_| Ok(())).unwrap().index
}

fn sorted(paths: &ItemWalk, rows: &BeamRows<'_>, width: usize) -> Vec<BeamCandidate> {
    let (mut all, mut best) = (Vec::new(), Vec::new());
    paths.gather(rows, &mut all).unwrap();
    let mut groups = rows.groups.to_vec();
    groups.dedup();
    for group in groups {
        let mut own: Vec<BeamCandidate> =
            all.iter().copied().filter(|candidate| rows.groups[candidate.row as usize] == group).collect();
        own.sort();
        best.extend(own.into_iter().take(width));
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_best_are_the_first_of_all(
        alphabet in prop_oneof![Just(3u32), Just(100), Just(600)],
        items in prop::collection::vec(prop::collection::vec(any::<u32>(), 1..5), 1..500),
        added in prop::collection::vec(prop::collection::vec(any::<u32>(), 1..5), 0..30),
        (weighted, ends, change, old) in any::<(bool, bool, bool, bool)>(),
        // Few values, so that many are equal.
        values in prop::collection::vec(prop_oneof![9 => -6i8..6, 1 => Just(i8::MIN)], 1300..1500),
        width in prop_oneof![0usize..4, 0usize..90],
        steps in 1usize..5,
    ) {
        let cut = |items: Vec<Vec<u32>>| -> Vec<Vec<u32>> {
            items.into_iter().map(|item| item.into_iter().map(|token| 5 + token % alphabet).collect()).collect()
        };
        let (items, added) = (cut(items), cut(added));
        let mut index = index(&items, weighted);
        if old {
            index = ItemIndex::from_bytes(of_old_version(index.bytes())).unwrap();
        }
        let tree = Catalogue::new(index);
        if change {
            tree.add(added.iter().map(|tokens| (&tokens[..], &[][..], 1 << 20))).unwrap();
            tree.remove(items.iter().step_by(3).map(|tokens| (&tokens[..], None))).unwrap();
        }
        let paths = ItemWalk { snapshot: tree.snapshot(), end: ends.then_some(2) };
        let float = |v: i8| if v == i8::MIN { f32::NEG_INFINITY } else { f32::from(v) / 2.0 };
        let values: Vec<f32> = values.into_iter().map(float).collect();
        let bits: Vec<u16> = values.iter().map(|&x| half::bf16::from_f32(x).to_bits()).collect();
        let (mut states, mut scores, mut groups) = (vec![paths.snapshot.root(); 2], vec![0.0, -0.5], vec![3, 8]);
        for step in 0..steps {
            let logits: Vec<Floats<'_>> = (0..states.len()).map(|row| {
                let from = (row * 37 + step * 11) % 600;
                if row % 2 == 0 { Floats::F32(&values[from..]) } else { Floats::Bf16(&bits[from..]) }
            }).collect();
            let rows = BeamRows { states: &states, logits: &logits, scores: &scores, groups: &groups };
            let mut best = Vec::new();
            paths.top(&rows, width, &mut best).unwrap();
            prop_assert_eq!(&best, &sorted(&paths, &rows, width));
            let mut after: Vec<WalkState> = best.iter().map(|beam| states[beam.row as usize]).collect();
            let tokens: Vec<TokenId> = best.iter().map(|beam| beam.token).collect();
            paths.advance(&mut after, &tokens).unwrap();
            prop_assert_eq!(&after, &best.iter().map(|beam| beam.state).collect::<Vec<_>>());
            groups = best.iter().map(|beam| groups[beam.row as usize]).collect();
            scores = best.iter().map(|beam| beam.score).collect();
            states = after;
            if let Some(score) = scores.last_mut() {
                *score = f64::NEG_INFINITY;
            }
        }
    }
}

#[test]
fn wrong_rows_are_named() {
    let paths = ItemWalk { snapshot: tree(&[vec![1, 2], vec![3]], false).snapshot(), end: None };
    let root = paths.snapshot.root();
    let error = |logits: &[f32], scores: &[f64], groups: &[u32]| {
        let logits = vec![Floats::F32(logits); scores.len()];
        let states = vec![root; scores.len()];
        let rows = BeamRows { states: &states, logits: &logits, scores, groups };
        paths.top(&rows, 2, &mut Vec::new()).unwrap_err()
    };
    assert_eq!(error(&[0.0, f32::NAN, 0.0, 0.0], &[0.0], &[0]).place, "row 0, id 1");
    assert_eq!(error(&[0.0, f32::INFINITY, 0.0, 0.0], &[0.0], &[0]).kind, ErrorKind::Logits);
    assert_eq!(error(&[0.0; 3], &[0.0], &[0]).kind, ErrorKind::Logits);
    assert_eq!(error(&[0.0; 4], &[f64::NAN], &[0]).place, "row 0");
    assert_eq!(error(&[0.0; 4], &[0.0, 0.0], &[1, 0]).place, "row 1");
    assert_eq!(error(&[0.0; 4], &[0.0, 0.0], &[1]).kind, ErrorKind::Sampling);
}

#[test]
fn nan_in_a_wide_node_is_seen() {
    let items: Vec<Vec<TokenId>> = (0..300).map(|token| vec![token, 1]).collect();
    let paths = ItemWalk { snapshot: tree(&items, false).snapshot(), end: None };
    let mut logits = vec![0.0; 300];
    logits[299] = f32::NAN;
    let logits = [Floats::F32(&logits)];
    let rows = BeamRows { states: &[paths.snapshot.root()], logits: &logits, scores: &[0.0], groups: &[0] };
    assert_eq!(paths.top(&rows, 3, &mut Vec::new()).unwrap_err().place, "row 0, id 299");
}

/// A catalogue of three levels, dense at two of them, with many equal scores and rows of several widths of floats.
#[test]
fn many_beams_of_dense_nodes() {
    let codes = 1500u32;
    let mut state = 1u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let items: Vec<Vec<TokenId>> =
        (0..30_000).map(|_| vec![random(12) * 100, random(codes), random(codes)]).collect();
    let tree = tree(&items, false);
    for change in [false, true] {
        if change {
            tree.remove(items.iter().step_by(3).map(|tokens| (&tokens[..], None))).unwrap();
            tree.add((0..500).map(|n| (&[100, 7, 9][..], &[][..], 1 << 40 | n))).unwrap();
        }
        let walk = ItemWalk { snapshot: tree.snapshot(), end: None };
        let values: Vec<f32> = (0..codes * 24).map(|_| random(1000) as f32 / -50.0).collect();
        let bits: Vec<u16> = values.iter().map(|&x| half::f16::from_f32(x).to_bits()).collect();
        let (mut states, mut scores, mut groups) = (vec![walk.snapshot.root(); 2], vec![0.0; 2], vec![0, 1]);
        for width in [12, 40, 40] {
            let place = |row: usize| row % 24 * codes as usize..(row % 24 + 1) * codes as usize;
            let logits: Vec<Floats<'_>> = (0..states.len())
                .map(|row| match row % 3 {
                    0 => Floats::F16(&bits[place(row)]),
                    _ => Floats::F32(&values[place(row)]),
                })
                .collect();
            let rows = BeamRows { states: &states, logits: &logits, scores: &scores, groups: &groups };
            let mut best = Vec::new();
            walk.top(&rows, width, &mut best).unwrap();
            assert_eq!(best, sorted(&walk, &rows, width));
            groups = best.iter().map(|beam| groups[beam.row as usize]).collect();
            scores = best.iter().map(|beam| beam.score).collect();
            states = best.iter().map(|beam| beam.state).collect();
        }
    }
}

#[test]
fn a_width_beyond_all_that_there_is_gives_all() {
    let items: Vec<Vec<TokenId>> = (0..300).map(|token| vec![token, token % 7]).collect();
    for end in [None, Some(3)] {
        let paths = ItemWalk { snapshot: tree(&items, false).snapshot(), end };
        let states = [paths.snapshot.root(), WalkState::FAILED, paths.snapshot.find(&[5]).unwrap().unwrap()];
        let logits = vec![0.5; 300];
        let logits = [Floats::F32(&logits); 3];
        let rows = BeamRows { states: &states, logits: &logits, scores: &[0.0; 3], groups: &[0; 3] };
        let mut best = Vec::new();
        for width in [1 << 24, (1 << 24) + 1, usize::MAX / 2 + 1, usize::MAX] {
            paths.top(&rows, width, &mut best).unwrap();
            assert_eq!(
                (best.len(), &best),
                (301 + usize::from(end.is_some()), &sorted(&paths, &rows, width))
            );
        }
    }
    let line = vec![0.5; 4200];
    let logits = [Floats::F32(&line); 4200];
    let rows = BeamRows { states: &[], logits: &logits, scores: &[], groups: &[] };
    assert_eq!(possible(&rows), 4200 * 4200, "a width of more than 2^24 is a width");
}

#[test]
fn ends_and_failures() {
    let mut paths = ItemWalk { snapshot: tree(&[vec![1], vec![1, 4]], false).snapshot(), end: Some(2) };
    let (mut words, mut scratch) = ([0u32; 1], Continuations::default());
    let mut mask = |paths: &ItemWalk, state| {
        paths.mask(state, &mut words, &mut scratch).unwrap();
        words[0]
    };
    let mut states = [paths.snapshot.root(); 4];
    assert_eq!(mask(&paths, states[0]), 0b10);
    paths.advance(&mut states, &[1, 1, 7, 2]).unwrap();
    assert_eq!([mask(&paths, states[0]), mask(&paths, states[2])], [0b10100, 0b100]);
    assert_eq!(states[2..], [WalkState::FAILED, WalkState::FINISHED]);
    paths.advance(&mut states, &[4, 2, 1, 1]).unwrap();
    assert_eq!(mask(&paths, states[0]), 0b100);
    assert_eq!(states[1..], [WalkState::FINISHED, WalkState::FAILED, WalkState::FINISHED]);
    paths.advance(&mut states, &[2; 4]).unwrap();
    assert_eq!(states, [WalkState::FINISHED; 4]);
    paths.snapshot = CatalogueSnapshot::of(Arc::new(
        ItemIndex::from_bytes(paths.snapshot.index().bytes().to_vec()).unwrap(),
    ));
    assert_eq!(paths.mask(paths.snapshot.root(), &mut [], &mut scratch).unwrap_err().kind, ErrorKind::Mask);
    // With nothing left, only the end may follow, however it is asked.
    let tree = tree(&(0..100).map(|token| vec![token]).collect::<Vec<_>>(), false);
    tree.remove_items(|_| true).unwrap();
    let paths = ItemWalk { snapshot: tree.snapshot(), end: Some(2) };
    let logits = [Floats::F32(&[0.0; 100])];
    let rows = BeamRows { states: &[paths.snapshot.root()], logits: &logits, scores: &[0.0], groups: &[0] };
    let mut best = Vec::new();
    paths.top(&rows, 5, &mut best).unwrap();
    assert_eq!(
        best.iter().map(|beam| (beam.token, beam.state)).collect::<Vec<_>>(),
        [(2, WalkState::FINISHED)]
    );
}
