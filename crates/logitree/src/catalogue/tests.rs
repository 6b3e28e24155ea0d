//! The catalogue held to an ordered set of items: every state, its continuations, its items.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;

use super::build::{BuildOptions, BuiltIndex, CatalogueBuilder};
use super::format::header::{self, IndexHeader};
use super::{BeamRows, Catalogue, CatalogueSnapshot, Continuations, ItemIndex, ItemWalk, WalkState};
use crate::{ErrorKind, TokenId};
use logitree_tokens::simd::Floats;

type Item = (Vec<TokenId>, u64);

fn build(items: &[Item], memory: usize, path: Option<&Path>) -> BuiltIndex {
    let options = BuildOptions {
        memory,
        folder: path.and_then(Path::parent).map(Path::to_path_buf),
        ..BuildOptions::default()
    };
    let mut builder = CatalogueBuilder::new(options).unwrap();
    items.iter().for_each(|(tokens, item)| builder.push(tokens, &[], *item).unwrap());
    builder.finish(path, &mut |_| Ok(())).unwrap()
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// What a tree of these items has at each of its places: tokens that follow, and numbers of the items there.
fn places(items: &BTreeSet<Item>) -> BTreeMap<Vec<TokenId>, (BTreeSet<TokenId>, BTreeSet<u64>)> {
    let mut places: BTreeMap<Vec<TokenId>, (BTreeSet<TokenId>, BTreeSet<u64>)> = BTreeMap::new();
    places.entry(Vec::new()).or_default();
    for (tokens, item) in items {
        for at in 0..tokens.len() {
            places.entry(tokens[..at].to_vec()).or_default().0.insert(tokens[at]);
        }
        places.entry(tokens.clone()).or_default().1.insert(*item);
    }
    places
}

fn check(snapshot: &CatalogueSnapshot, items: &BTreeSet<Item>, alphabet: u32) {
    assert_eq!(snapshot.len(), items.len() as u64);
    let (mut children, mut found) = (Continuations::default(), Vec::new());
    for (tokens, (follow, here)) in places(items) {
        let state = snapshot.find(&tokens).unwrap().unwrap_or_else(|| panic!("{tokens:?} is not found"));
        snapshot.children(state, &mut children).unwrap();
        assert_eq!(children.tokens, follow.iter().copied().collect::<Vec<_>>(), "after {tokens:?}");
        assert_eq!(children.is_item, !here.is_empty(), "at {tokens:?}");
        for (&token, &next) in children.tokens.iter().zip(&children.states) {
            assert_eq!(snapshot.step(state, token).unwrap(), Some(next), "{token} after {tokens:?}");
        }
        for token in (0..=alphabet).filter(|token| !follow.contains(token)) {
            assert_eq!(snapshot.step(state, token).unwrap(), None, "{token} after {tokens:?}");
        }
        snapshot.items(state, &mut found).unwrap();
        assert_eq!(found, here.into_iter().collect::<Vec<_>>(), "at {tokens:?}");
    }
    let mut seen = BTreeSet::new();
    snapshot
        .for_each(|tokens, _, item| {
            assert!(seen.insert((tokens.to_vec(), item)));
            Ok(())
        })
        .unwrap();
    assert_eq!(&seen, items);
}

/// Items over few tokens or many, of one length or several.
fn items() -> impl Strategy<Value = (u32, Vec<Item>)> {
    let alphabet = prop_oneof![Just(1u32), Just(2), Just(5), Just(90), Just(400), Just(70_000)];
    (alphabet, 1usize..6, any::<bool>(), any::<bool>()).prop_flat_map(
        |(alphabet, longest, ragged, numbers)| {
            let lengths = if ragged { 1..longest + 1 } else { longest..longest + 1 };
            let tokens = prop::collection::vec(0..alphabet, lengths);
            let number = if numbers { 0u64..4 } else { 0..1 << 34 };
            (Just(alphabet), prop::collection::vec((tokens, number), 0..400))
        },
    )
}

#[derive(Debug, Clone)]
enum Change {
    Add(Vec<Item>),
    /// Some of those that are there, by their place among them.
    Remove(Vec<prop::sample::Index>, bool),
    Merge,
    Only(u64),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        4 => items().prop_map(|(_, mut items)| { items.truncate(60); Change::Add(items) }),
        4 => (prop::collection::vec(any::<prop::sample::Index>(), 0..60), any::<bool>())
            .prop_map(|(which, number)| Change::Remove(which, number)),
        1 => Just(Change::Merge),
        1 => (1u64..5).prop_map(Change::Only),
    ];
    prop::collection::vec(change, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn equal_to_a_set((alphabet, items) in items(), changes in changes()) {
        let mut set: BTreeSet<Item> = items.iter().cloned().collect();
        let built = build(&items, 1 << 20, None);
        prop_assert_eq!(built.repeated, (items.len() - set.len()) as u64);
        built.index.check().unwrap();
        let tree = Catalogue::new(built.index);
        check(&tree.snapshot(), &set, alphabet.min(500));
        for change in changes {
            let (before, was) = (tree.snapshot(), set.clone());
            match change {
                Change::Add(items) => {
                    let added = tree.add(items.iter().map(|(tokens, item)| (&tokens[..], &[][..], *item))).unwrap();
                    let new = items.into_iter().filter(|item| set.insert(item.clone())).count();
                    prop_assert_eq!(added, new as u64);
                }
                Change::Remove(which, number) if !set.is_empty() => {
                    let all: Vec<Item> = set.iter().cloned().collect();
                    let gone: Vec<&Item> = which.iter().map(|index| index.get(&all)).collect();
                    let given = gone.iter().map(|(tokens, item)| (&tokens[..], number.then_some(*item)));
                    let removed = tree.remove(given).unwrap();
                    set.retain(|item| !gone.iter().any(|gone| gone.0 == item.0 && (!number || gone.1 == item.1)));
                    prop_assert_eq!(removed, (all.len() - set.len()) as u64);
                }
                Change::Remove(..) => {}
                Change::Merge => tree.merge(None, &BuildOptions::default(), &mut |_| Ok(())).unwrap(),
                Change::Only(divisor) => {
                    let only = tree.snapshot().only(|item| item % divisor == 0).unwrap();
                    let kept = set.iter().filter(|(_, item)| item % divisor == 0).cloned().collect();
                    check(&only, &kept, alphabet.min(20));
                    let removed = tree.remove_items(|item| item % divisor != 0).unwrap();
                    prop_assert_eq!(removed, (set.len() - kept.len()) as u64);
                    set = kept;
                }
            }
            check(&tree.snapshot(), &set, alphabet.min(20));
            check(&before, &was, alphabet.min(5));
        }
    }

    #[test]
    fn the_same_items_give_the_same_bytes((_, items) in items(), seed in any::<u64>(), memory in 1024usize..20_000) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let mut turned = items.clone();
        turned.rotate_left(seed as usize % items.len().max(1));
        turned.reverse();
        let whole = build(&items, 1 << 30, None).index;
        let spilled = build(&turned, memory, Some(&path)).index;
        prop_assert!(whole.bytes() == spilled.bytes());
        prop_assert_eq!(files(folder.path()), 1);
        spilled.check().unwrap();
        check(&CatalogueSnapshot::of(spilled.into()), &items.into_iter().collect(), 20);
    }

    #[test]
    fn indexes_of_old_versions_are_read((alphabet, items) in items()) {
        let index = ItemIndex::from_bytes(of_old_version(build(&items, 1 << 20, None).index.bytes())).unwrap();
        index.check().unwrap();
        prop_assert_eq!(index.largest_item().unwrap(), items.iter().map(|item| item.1).max());
        check(&CatalogueSnapshot::of(index.into()), &items.into_iter().collect(), alphabet.min(20));
    }

    #[test]
    fn damage_is_an_error((_, items) in items(), at in any::<prop::sample::Index>(), flip in 1u8..) {
        let mut bytes = build(&items, 1 << 30, None).index.bytes().to_vec();
        let cut = bytes[..at.index(bytes.len())].to_vec();
        prop_assert_eq!(ItemIndex::from_bytes(cut).unwrap_err().kind, ErrorKind::Payload);
        let place = at.index(bytes.len());
        bytes[place] ^= flip;
        match ItemIndex::from_bytes(bytes) {
            Err(error) => prop_assert_eq!(error.kind, ErrorKind::Payload),
            Ok(index) => {
                prop_assert_eq!(index.check().unwrap_err().kind, ErrorKind::Payload);
                // What is walked is right, or an error.
                let snapshot = CatalogueSnapshot::of(index.into());
                for (tokens, _) in &items {
                    match snapshot.find(tokens) {
                        Ok(found) => prop_assert!(found.is_some()),
                        Err(error) => prop_assert_eq!(error.kind, ErrorKind::Payload),
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A forged index with valid checksums gives wrong answers or errors, and nothing worse.
    #[test]
    fn forged_indexes_do_no_harm(
        (alphabet, items) in items(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        first_page in prop::collection::vec((12usize..224, any::<u8>()), 0..2),
    ) {
        let mut bytes = build(&items, 1 << 30, None).index.bytes().to_vec();
        let sums = ItemIndex::from_bytes(bytes.clone()).unwrap().header().at[header::SECTIONS] as usize;
        for (place, value) in changes {
            if sums > 4096 {
                bytes[4096 + place.index(sums - 4096)] = value;
            }
        }
        first_page.into_iter().for_each(|(place, value)| bytes[place] = value);
        sign(&mut bytes, sums);
        let Ok(index) = ItemIndex::from_bytes(bytes) else { return Ok(()) };
        drop(index.check());
        let tree = Catalogue::new(index);
        if tree.add([(&[1, 2][..], &[][..], 9u64)].into_iter()).is_ok() {
            drop(tree.remove([(&[1][..], None)].into_iter()));
        }
        let (snapshot, mut children, mut found) = (tree.snapshot(), Continuations::default(), Vec::new());
        let mut state = snapshot.root();
        for step in 0..50u32 {
            if snapshot.children(state, &mut children).is_err() || children.tokens.is_empty() {
                break;
            }
            drop(snapshot.items(state, &mut found));
            drop(snapshot.step(state, step % alphabet));
            state = children.states[step as usize % children.states.len()];
        }
        drop(snapshot.only(|item| item % 2 == 0));
        drop(snapshot.for_each(|_, _, _| Ok(())));
        let logits = [Floats::F32(&[0.5; 500])];
        let walk = ItemWalk { snapshot: tree.snapshot(), end: None };
        let rows = BeamRows { states: &[walk.snapshot.root()], logits: &logits, scores: &[0.0], groups: &[0] };
        drop(walk.top(&rows, 70, &mut Vec::new()));
    }
}

/// The same index as version 1 or, with keys, 2 lays it out.
pub(super) fn of_old_version(bytes: &[u8]) -> Vec<u8> {
    let new = IndexHeader::read(bytes).unwrap();
    let version = if new.keyed { 2 } else { 1 };
    let mut old = IndexHeader { version, marks: 0, largest_item: None, ..new };
    old.lay();
    let mut made = vec![0; old.file as usize];
    for section in (0..header::SECTIONS).filter(|&section| section != header::CHILD_MARKS) {
        let from = &bytes[new.at[section] as usize..][..new.lengths()[section] as usize];
        let from = match section {
            header::RECORDS => {
                from.chunks(new.record_bytes()).flat_map(|record| &record[..48]).copied().collect()
            }
            _ => from.to_vec(),
        };
        made[old.at[section] as usize..][..from.len()].copy_from_slice(&from);
    }
    made[..4096].copy_from_slice(&old.write());
    sign(&mut made, old.at[header::SECTIONS] as usize);
    made
}

/// A later layout does not change what an index of this one means: read as the newest and as an old version, it is the same.
#[test]
fn a_later_version_reads_this_one_as_it_is() {
    let rows: Vec<(Vec<TokenId>, String)> =
        (0..900u32).map(|item| (vec![item / 30, item % 30, 7], format!("item {item}"))).collect();
    for keyed in [false, true] {
        let mut builder = CatalogueBuilder::new(BuildOptions { keyed, ..BuildOptions::default() }).unwrap();
        for ((tokens, key), number) in rows.iter().zip(0..) {
            match keyed {
                true => builder.push_keyed(tokens, &[], key).unwrap(),
                false => builder.push(tokens, &[], number).unwrap(),
            }
        }
        let bytes = builder.finish(None, &mut |_| Ok(())).unwrap().index.bytes().to_vec();
        let now = IndexHeader::read(&bytes).unwrap();
        assert!(now.marks > 0 && now.keyed == keyed && now.largest_item == Some(899));
        let old = of_old_version(&bytes);
        let mut next = bytes.clone();
        next[8..12].copy_from_slice(&(header::VERSION + 1).to_le_bytes());
        sign(&mut next, now.at[header::SECTIONS] as usize);
        assert_eq!(IndexHeader::read(&next).unwrap_err().kind, ErrorKind::Payload);
        for newest in header::VERSION..header::VERSION + 3 {
            assert_eq!(IndexHeader::read_up_to(newest, &bytes).unwrap(), now);
            assert_eq!(IndexHeader::read_up_to(newest, &old), IndexHeader::read(&old));
        }
        let later = IndexHeader::read_up_to(header::VERSION + 1, &next).unwrap();
        assert_eq!(later, IndexHeader { version: header::VERSION + 1, sums: later.sums, ..now });
    }
}

/// Puts the right checksums on forged bytes, whose own begin at `sums`.
fn sign(bytes: &mut [u8], sums: usize) {
    let pages: Vec<u64> = bytes[4096..sums].chunks(4096).map(xxhash_rust::xxh3::xxh3_64).collect();
    for (place, sum) in bytes[sums..].chunks_mut(8).zip(pages) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
    let all = xxhash_rust::xxh3::xxh3_64(&bytes[sums..]);
    bytes[72..80].copy_from_slice(&all.to_le_bytes());
    let header = xxhash_rust::xxh3::xxh3_64(&bytes[..4088]);
    bytes[4088..4096].copy_from_slice(&header.to_le_bytes());
}

#[test]
fn weights_stand_with_their_tokens() {
    let mut builder =
        CatalogueBuilder::new(BuildOptions { weighted: true, ..BuildOptions::default() }).unwrap();
    for item in 0..200u32 {
        builder.push(&[item / 100, item % 100, 7], &[0.5, item as f32, -1.0], item.into()).unwrap();
    }
    let tree = Catalogue::new(builder.finish(None, &mut |_| Ok(())).unwrap().index);
    tree.add([(&[0, 500][..], &[9.0, 0.25][..], 1000u64), (&[1, 2, 8], &[], 1001)].into_iter()).unwrap();
    for merged in [false, true] {
        if merged {
            let options = BuildOptions { weighted: true, ..BuildOptions::default() };
            tree.merge(None, &options, &mut |_| Ok(())).unwrap();
        }
        let (snapshot, mut children) = (tree.snapshot(), Continuations::default());
        let mut at = |tokens: &[TokenId]| {
            snapshot.children(snapshot.find(tokens).unwrap().unwrap(), &mut children).unwrap();
            children.weights.clone()
        };
        assert_eq!(at(&[]), [0.5, 0.5]);
        let mut expected: Vec<f32> = (0..100).map(|n| n as f32).collect();
        expected.push(0.25);
        assert_eq!(at(&[0]), expected);
        assert_eq!(at(&[1, 2]), [-1.0, 0.0]);
    }
    let mut builder =
        CatalogueBuilder::new(BuildOptions { weighted: true, ..BuildOptions::default() }).unwrap();
    builder.push(&[1, 2], &[0.5, 0.0], 0).unwrap();
    builder.push(&[1, 3], &[0.25, 0.0], 1).unwrap();
    let error = builder.finish(None, &mut |_| Ok(())).unwrap_err();
    assert!(error.kind == ErrorKind::Constraint && error.message.contains("0.5 and 0.25"), "{error}");
}

#[test]
fn what_no_tree_can_hold_is_refused() {
    let push = |tokens: &[TokenId], weights: &[f32]| {
        let options = BuildOptions { weighted: !weights.is_empty(), ..BuildOptions::default() };
        CatalogueBuilder::new(options).unwrap().push(tokens, weights, 0).unwrap_err()
    };
    assert_eq!(push(&[], &[]).kind, ErrorKind::Constraint);
    assert_eq!(push(&[1 << 31], &[]).kind, ErrorKind::Constraint);
    assert_eq!(push(&[1; 5000], &[]).kind, ErrorKind::Limit);
    assert_eq!(push(&[1], &[f32::NAN]).place, "item 0");
    assert_eq!(push(&[1, 2], &[0.0]).kind, ErrorKind::Constraint);
    let tree = Catalogue::new(build(&[], 1024, None).index);
    assert_eq!(tree.add([(&[][..], &[][..], 1u64)].into_iter()).unwrap_err().kind, ErrorKind::Constraint);
    assert_eq!(tree.add([(&[1][..], &[1.0][..], 1u64)].into_iter()).unwrap_err().kind, ErrorKind::Constraint);
    assert!(tree.snapshot().is_empty());
    for state in [i64::MAX, i64::MIN, -3, 1 << 56, 2 << 56, 1 << 20] {
        assert_eq!(tree.snapshot().step(WalkState(state), 1).unwrap_err().kind, ErrorKind::State);
    }
}

/// As any file that a program writes: others may read it if the umask lets them.
#[cfg(unix)]
#[test]
fn an_index_has_the_usual_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
    build(&[(vec![1], 0)], 1 << 20, Some(&folder.path().join("index")));
    std::fs::write(folder.path().join("usual"), b"").unwrap();
    assert_eq!(mode("index"), mode("usual"));
}

#[test]
fn a_build_that_is_ended_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    std::fs::write(&path, b"before").unwrap();
    let options =
        BuildOptions { memory: 1024, folder: Some(folder.path().to_path_buf()), ..BuildOptions::default() };
    let mut builder = CatalogueBuilder::new(options).unwrap();
    (0..1000).for_each(|item| builder.push(&[item % 7, item], &[], 0).unwrap());
    let ended = builder.finish(Some(&path), &mut |done| {
        let error = crate::Error::new(ErrorKind::State, "ended");
        if done >= 0.9 {
            Err(error)
        } else {
            Ok(())
        }
    });
    assert_eq!(ended.unwrap_err().message, "ended");
    assert_eq!((files(folder.path()), std::fs::read(&path).unwrap()), (1, b"before".to_vec()));
}

#[test]
fn keys_name_items_through_files_and_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    for file in [None, Some(path.as_path())] {
        let options = BuildOptions {
            keyed: true,
            folder: file.map(|_| folder.path().to_path_buf()),
            ..BuildOptions::default()
        };
        let mut builder = CatalogueBuilder::new(options).unwrap();
        for item in 0..3000u32 {
            builder.push_keyed(&[item % 70, 7000 - item], &[], &format!("sku-{item} é")).unwrap();
        }
        let index = builder.finish(file, &mut |_| Ok(())).unwrap().index;
        index.check().unwrap();
        let bytes = index.bytes().to_vec();
        let tree = Catalogue::new(ItemIndex::from_bytes(bytes).unwrap());
        let keys = |tree: &Catalogue, tokens: &[TokenId]| {
            let (snapshot, mut found) = (tree.snapshot(), Vec::new());
            snapshot.items(snapshot.find(tokens).unwrap().unwrap(), &mut found).unwrap();
            let key = |&item: &u64| snapshot.key(item).unwrap().unwrap().to_string();
            found.iter().map(key).collect::<Vec<_>>()
        };
        assert_eq!(keys(&tree, &[12, 7000 - 712]), ["sku-712 é"]);
        assert_eq!(tree.snapshot().items_of_keys(&["sku-5 é", "nothing"]).unwrap(), [Some(5), None]);
        let before = tree.snapshot();
        let rows = [(&[1, 2][..], &[][..]), (&[1, 3], &[]), (&[5, 6995], &[]), (&[1, 4], &[])];
        assert_eq!(tree.add_keyed(rows.into_iter(), &["new", "other", "sku-5 é", "new"]).unwrap(), 3);
        assert_eq!((tree.snapshot().key_count(), before.key_count()), (3002, 3000));
        assert_eq!(before.key(3000).unwrap(), None);
        for merged in [false, true] {
            if merged {
                tree.merge(None, &BuildOptions::default(), &mut |_| Ok(())).unwrap();
                tree.snapshot().index().check().unwrap();
            }
            assert_eq!(
                (keys(&tree, &[1, 2]), keys(&tree, &[1, 4])),
                (vec!["new".into()], vec!["new".to_string()])
            );
            assert_eq!(
                (keys(&tree, &[1, 3]), keys(&tree, &[5, 6995])),
                (vec!["other".into()], vec!["sku-5 é".to_string()])
            );
        }
        let error = tree.add([(&[1][..], &[][..], 9u64)].into_iter()).unwrap_err();
        assert!(error.kind == ErrorKind::Constraint && error.message.contains("keys"), "{error}");
    }
}

#[test]
fn wrong_keys_are_refused_with_their_item() {
    let builder = || CatalogueBuilder::new(BuildOptions { keyed: true, ..BuildOptions::default() }).unwrap();
    let mut keyed = builder();
    keyed.push_keyed(&[1], &[], "a").unwrap();
    let error = keyed.push_keyed(&[2], &[], "a").unwrap_err();
    assert_eq!((error.kind, &*error.place), (ErrorKind::Constraint, "item 1"));
    assert_eq!(builder().push_keyed(&[2], &[], "").unwrap_err().kind, ErrorKind::Constraint);
    assert_eq!(builder().push_keyed(&[2], &[], &"x".repeat(5000)).unwrap_err().kind, ErrorKind::Limit);
    assert_eq!(builder().push(&[2], &[], 0).unwrap_err().kind, ErrorKind::Constraint);
    let mut numbered = CatalogueBuilder::new(BuildOptions::default()).unwrap();
    assert_eq!(numbered.push_keyed(&[2], &[], "a").unwrap_err().kind, ErrorKind::Constraint);
    let tree = Catalogue::new(numbered.finish(None, &mut |_| Ok(())).unwrap().index);
    assert_eq!(
        tree.add_keyed([(&[1][..], &[][..])].into_iter(), &["a"]).unwrap_err().kind,
        ErrorKind::Constraint
    );
}
