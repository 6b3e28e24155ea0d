//! The index of a prefix tree: a file with right checksums over anything is an error, or answers that do no harm; the
//! same bytes as they are, too.

#![no_main]

use libfuzzer_sys::fuzz_target;
use logitree::catalogue::{
    intersect, BeamRows, BuildOptions, Catalogue, CatalogueBuilder, CatalogueMatcher, Continuations,
    ItemIndex, ItemWalk,
};
use logitree::constraint::Matcher;
use logitree::sampling::Floats;
use xxhash_rust::xxh3::xxh3_64;

const PAGE: usize = 4096;

fuzz_target!(|data: (Vec<(Vec<u8>, u8)>, Vec<(u16, u8)>, Vec<u8>)| {
    let (items, patches, raw) = data;
    drop(ItemIndex::from_bytes(raw));
    let mut builder = CatalogueBuilder::new(BuildOptions::default()).expect("a builder");
    for (tokens, item) in items {
        let tokens: Vec<u32> = tokens.into_iter().map(u32::from).collect();
        if builder.push(&tokens, &[], item.into()).is_err() {
            return;
        }
    }
    let built = builder.finish(None, &mut |_| Ok(())).expect("an index").index;
    built.check().expect("as it was written");
    let mut bytes = built.bytes().to_vec();
    let sums = bytes[152..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b)) as usize % (bytes.len() + 1);
    for (at, value) in patches {
        let at = at as usize % bytes.len();
        bytes[at] = value;
    }
    sign(&mut bytes, sums);
    let Ok(index) = ItemIndex::from_bytes(bytes) else { return };
    drop(index.check());
    walk(Catalogue::new(index));
});

fn walk(tree: Catalogue) {
    drop(tree.add([(&[1, 2][..], &[][..], 9u64)].into_iter()));
    drop(tree.remove([(&[3][..], None)].into_iter()));
    let paths = ItemWalk { snapshot: tree.snapshot(), end: Some(300) };
    let logits = vec![0.5; 400];
    let logits = [Floats::F32(&logits)];
    let (mut state, mut best) = (paths.snapshot.root(), Vec::new());
    for step in 0..20 {
        let rows = BeamRows { states: &[state], logits: &logits, scores: &[0.0], groups: &[0] };
        if paths.top(&rows, 5, &mut best).is_err() || best.is_empty() {
            break;
        }
        state = best[step % best.len()].state;
    }
    let mut children = Continuations::default();
    drop(paths.children(state, &mut children));
    drop(paths.snapshot.only(|item| item % 2 == 0));
    drop(paths.snapshot.for_each(|_, _, _| Ok(())));
    if let Ok(mut matcher) =
        (ItemWalk { snapshot: paths.snapshot.clone(), end: Some(300) }).sequence(1 << 20, &[])
    {
        let mut forced = Vec::new();
        drop(matcher.forced(&mut forced));
        for token in forced {
            drop(matcher.accept(token));
        }
        matcher.reset();
        meet(&paths, matcher);
    }
}

/// The tree and itself: all of it, and one sequence.
fn meet(paths: &ItemWalk, same: CatalogueMatcher) {
    drop(intersect(&paths.snapshot, vec![same.fork()], paths.end, &mut || Ok(())));
    let others: Vec<Box<dyn Matcher>> = vec![Box::new(same)];
    if let Ok(mut both) = paths.sequence_with(others, 1 << 20, &[], 10_000) {
        let mut forced = Vec::new();
        drop(both.forced(&mut forced));
        for token in forced {
            drop(both.accept(token));
        }
        if let Ok(allowed) = both.allowed() {
            assert_ne!(allowed.count(1 << 20), 0, "an empty mask");
        }
    }
}

/// Puts the right checksums on the bytes; their own begin at `sums`.
fn sign(bytes: &mut [u8], sums: usize) {
    if sums < PAGE {
        return;
    }
    let pages: Vec<u64> = bytes[PAGE..sums].chunks(PAGE).map(xxh3_64).collect();
    for (place, sum) in bytes[sums..].chunks_mut(8).zip(pages) {
        let n = place.len();
        place.copy_from_slice(&sum.to_le_bytes()[..n]);
    }
    let all = xxh3_64(&bytes[sums..]);
    bytes[72..80].copy_from_slice(&all.to_le_bytes());
    let head = xxh3_64(&bytes[..PAGE - 8]);
    bytes[PAGE - 8..PAGE].copy_from_slice(&head.to_le_bytes());
}
