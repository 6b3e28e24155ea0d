//! Journals held to the catalogue that was changed in memory: whole, cut, flipped, of other indexes, from two processes.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::catalogue::{BuildOptions, Catalogue, CatalogueBuilder};

type Item = (Vec<TokenId>, u64);

fn build(items: &BTreeSet<Item>, path: &Path) {
    let mut builder = CatalogueBuilder::new(BuildOptions::default()).unwrap();
    items.iter().for_each(|(tokens, item)| builder.push(tokens, &[], *item).unwrap());
    builder.finish(Some(path), &mut |_| Ok(())).unwrap();
}

/// All items, of what can be walked and of what is listed.
fn all(tree: &Catalogue) -> BTreeSet<Item> {
    let (snapshot, mut found, mut here) = (tree.snapshot(), BTreeSet::new(), Vec::new());
    snapshot
        .for_each(|tokens, _, item| {
            assert!(found.insert((tokens.to_vec(), item)));
            Ok(())
        })
        .unwrap();
    for (tokens, item) in &found {
        snapshot.items(snapshot.find(tokens).unwrap().unwrap(), &mut here).unwrap();
        assert!(here.contains(item));
    }
    assert_eq!(snapshot.len(), found.len() as u64);
    found
}

fn opened(path: &Path) -> Catalogue {
    Catalogue::open(path, false).unwrap()
}

fn add(tree: &Catalogue, items: &[Item]) -> Result<u64> {
    tree.add(items.iter().map(|(tokens, item)| (&tokens[..], &[][..], *item)))
}

fn remove(tree: &Catalogue, items: &[Item]) -> Result<u64> {
    tree.remove(items.iter().map(|(tokens, item)| (&tokens[..], Some(*item))))
}

#[derive(Debug, Clone)]
enum Step {
    Add(Vec<Item>),
    Remove(Vec<Item>),
    RemoveNumber(u64),
    /// The other process changes the file next.
    Other,
    Merge,
}

fn items(most: usize) -> impl Strategy<Value = Vec<Item>> {
    prop::collection::vec((prop::collection::vec(0u32..5, 1..4), 0u64..3), 0..most)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => items(20).prop_map(Step::Add),
        4 => items(20).prop_map(Step::Remove),
        1 => (0u64..3).prop_map(Step::RemoveNumber),
        3 => Just(Step::Other),
        1 => Just(Step::Merge),
    ];
    prop::collection::vec(step, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn equal_to_changes_in_memory(first in items(150), steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let mut set: BTreeSet<Item> = first.into_iter().collect();
        build(&set, &path);
        // Two catalogues stand for two processes: they share the file and nothing else.
        let mut trees = [Catalogue::open(&path, true).unwrap(), Catalogue::open(&path, true).unwrap()];
        for step in steps {
            match step {
                Step::Add(items) => {
                    add(&trees[0], &items).unwrap();
                    set.extend(items);
                }
                Step::Remove(items) => {
                    remove(&trees[0], &items).unwrap();
                    set.retain(|item| !items.contains(item));
                }
                Step::RemoveNumber(number) => {
                    trees[0].remove_items(|item| item == number).unwrap();
                    set.retain(|item| item.1 != number);
                }
                Step::Other => {
                    trees.swap(0, 1);
                    continue;
                }
                Step::Merge => {
                    trees[0].merge(Some(&path), &BuildOptions::default(), &mut |_| Ok(())).unwrap();
                    let error = add(&trees[1], &[(vec![1], 1)]).unwrap_err();
                    prop_assert!(error.kind == ErrorKind::State && error.message.contains("replaced"), "{error}");
                    trees[1].reload(&path).unwrap();
                }
            }
            prop_assert_eq!(all(&trees[0]), set.clone());
            prop_assert_eq!(all(&opened(&path)), set.clone());
            prop_assert_eq!(all(&Catalogue::from_bytes(std::fs::read(&path).unwrap()).unwrap()), set.clone());
        }
    }

    #[test]
    fn a_flipped_bit_is_an_error_or_changes_nothing(at in any::<prop::sample::Index>(), bit in 0u32..8) {
        let (bytes, end, set) = changed();
        let place = end + at.index(bytes.len() - end);
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << bit;
        match Catalogue::from_bytes(flipped) {
            Err(error) => prop_assert_eq!(error.kind, ErrorKind::Payload, "{}", error),
            Ok(tree) => {
                // Only the room between the commits is not part of them.
                prop_assert!(bytes[place] == 0);
                prop_assert_eq!(all(&tree), set);
            }
        }
    }

    #[test]
    fn a_cut_file_is_an_error(at in any::<prop::sample::Index>()) {
        let (bytes, end, _) = changed();
        let begin = end.next_multiple_of(PAGE);
        let cut = begin + 1 + at.index(bytes.len() - begin - 1);
        let error = Catalogue::from_bytes(bytes[..cut].to_vec()).unwrap_err();
        prop_assert_eq!(error.kind, ErrorKind::Payload, "{}", error);
    }
}

/// The bytes of an index with three changes, where its journal's room begins, and what is in it.
fn changed() -> (Vec<u8>, usize, BTreeSet<Item>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    build(&(0..100).map(|n| (vec![n % 7, n], n.into())).collect(), &path);
    let tree = Catalogue::open(&path, true).unwrap();
    let end = std::fs::metadata(&path).unwrap().len() as usize;
    add(&tree, &[(vec![1, 2, 3], 500), (vec![9], 501)]).unwrap();
    remove(&tree, &[(vec![1, 2, 3], 500), (vec![3, 10], 10)]).unwrap();
    tree.add_numbered([(&[4, 4][..], &[][..])].into_iter()).unwrap();
    (std::fs::read(&path).unwrap(), end, all(&tree))
}

/// Every state that a crash may leave is the catalogue before the change, or after it.
#[test]
fn a_torn_write_leaves_the_catalogue_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let first: BTreeSet<Item> = (0..100).map(|n| (vec![n % 7, n], n.into())).collect();
    build(&first, &path);
    let index = std::fs::read(&path).unwrap();
    let begin = index.len().next_multiple_of(PAGE);
    // The first change begins the journal: the file may be longer, with nothing but zeros in it.
    for longer in [1, begin - index.len() + 1, begin - index.len() + HEADER as usize] {
        std::fs::write(&path, [&index[..], &vec![0; longer]].concat()).unwrap();
        assert_eq!(all(&opened(&path)), first);
        let tree = Catalogue::open(&path, true).unwrap();
        add(&tree, &[(vec![6, 6], 600)]).unwrap();
        assert_eq!(all(&opened(&path)), all(&tree));
    }
    let mut before = (std::fs::read(&path).unwrap(), all(&opened(&path)));
    for round in 0..4 {
        std::fs::write(&path, &before.0).unwrap();
        let tree = Catalogue::open(&path, true).unwrap();
        add(&tree, &[(vec![round, 77], 700), (vec![8, round], 701)]).unwrap();
        let after = (std::fs::read(&path).unwrap(), all(&tree));
        // The record is there, in part or as a whole, and its commit is not.
        for torn in before.0.len()..=after.0.len() {
            let mut bytes = after.0[..torn].to_vec();
            bytes[begin..begin + HEADER as usize].copy_from_slice(&before.0[begin..begin + HEADER as usize]);
            if torn % 3 == 0 {
                // Room that the system gave to the file before it wrote there.
                bytes[before.0.len()..].fill(0);
            }
            std::fs::write(&path, &bytes).unwrap();
            let again = Catalogue::open(&path, true).unwrap();
            assert_eq!(all(&again), before.1);
            if torn % 7 == 0 {
                add(&again, &[(vec![5, 5, 5], 900)]).unwrap();
                assert_eq!(all(&opened(&path)), all(&again));
            }
        }
        before = after;
    }
}

#[test]
fn journals_of_other_indexes_and_other_bytes_are_refused() {
    let (bytes, end, _) = changed();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    build(&(0..100).map(|n| (vec![n % 7, n], u64::from(n) + 1)).collect(), &path);
    let other = std::fs::read(&path).unwrap();
    assert_eq!(other.len(), end);
    let foreign = [&other[..], &bytes[end..]].concat();
    let refused = |bytes: Vec<u8>, why: &str| {
        let error = Catalogue::from_bytes(bytes).unwrap_err();
        assert!(error.kind == ErrorKind::Payload && error.message.contains(why), "{error}");
    };
    refused(foreign, "of another index");
    refused([&other[..], b"GGUF, and more"].concat(), "no journal");
    refused([&other[..], &vec![0; 100_000], b"x"].concat(), "no journal");
    let mut newer = bytes.clone();
    let begin = end.next_multiple_of(PAGE);
    newer[begin + 8] = 2;
    refused(newer, "version 2");
    // An index alone, without the changes after it, is not opened by mistake.
    assert_eq!(ItemIndex::from_bytes(bytes).unwrap_err().kind, ErrorKind::Payload);
}

/// Records with right checksums and wrong contents.
#[test]
fn forged_records_are_refused() {
    let (bytes, end, _) = changed();
    let begin = end.next_multiple_of(PAGE);
    let identity = xxh3_64(&bytes[..PAGE]);
    let forged = |kind: u32, count: u32, items: &[u8]| {
        let mut record =
            [&kind.to_le_bytes()[..], &count.to_le_bytes(), &(items.len() as u64).to_le_bytes(), items]
                .concat();
        let sum = xxh3_64_with_seed(&record, identity);
        record.extend_from_slice(&sum.to_le_bytes());
        let mut made = bytes[..end].to_vec();
        made.resize(begin + HEADER as usize, 0);
        let commits =
            [Commit { number: 2, bytes: record.len() as u64, records: 1, sum }, Commit::first(identity)];
        for commit in commits {
            let place = begin + commit.place() as usize;
            made[place..place + COMMIT].copy_from_slice(&commit.write(identity));
        }
        made.extend_from_slice(&record);
        Catalogue::from_bytes(made)
    };
    let item = |tokens: &[u32], weights: u32, key: u32, number: u64| {
        let mut bytes = Vec::new();
        [tokens.len() as u32, weights, key, 0].iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
        bytes.extend_from_slice(&number.to_le_bytes());
        tokens.iter().for_each(|token| bytes.extend_from_slice(&token.to_le_bytes()));
        bytes
    };
    assert_eq!(forged(1, 1, &item(&[1, 99], 0, 0, 7)).unwrap().snapshot().len(), 101);
    for (kind, count, items) in [
        (3, 1, item(&[1, 99], 0, 0, 7)),
        (1, 2, item(&[1, 99], 0, 0, 7)),
        (1, 0, item(&[1, 99], 0, 0, 7)),
        (1, 1, item(&[], 0, 0, 7)),
        (1, 1, item(&[u32::MAX], 0, 0, 7)),
        (1, 1, item(&[1, 99], 1, 0, 7)),
        (1, 1, item(&[1, 99], u32::MAX, 0, 7)),
        (1, 1, item(&[1, 99], 0, u32::MAX, 7)),
        (1, 1, item(&[1, 1], 0, 0, 1)),
        (2, 1, item(&[1, 99], 0, 0, 7)),
    ] {
        let error = forged(kind, count, &items).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Payload, "{error}");
    }
}

#[test]
fn keys_and_weights_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let mut builder =
        CatalogueBuilder::new(BuildOptions { weighted: true, keyed: true, ..BuildOptions::default() })
            .unwrap();
    builder.push_keyed(&[1, 2], &[0.5, 1.0], "a").unwrap();
    builder.finish(Some(&path), &mut |_| Ok(())).unwrap();
    let trees = [Catalogue::open(&path, true).unwrap(), Catalogue::open(&path, true).unwrap()];
    let rows = [(&[1, 3][..], &[0.5, 2.0][..]), (&[7], &[]), (&[8], &[3.0])];
    trees[0].add_keyed(rows.into_iter(), &["b", "a", "b"]).unwrap();
    trees[1].add_keyed([(&[9][..], &[4.0][..])].into_iter(), &["c"]).unwrap();
    trees[0].remove([(&[7][..], None)].into_iter()).unwrap();
    let snapshot = opened(&path).snapshot();
    let mut found = Vec::new();
    snapshot
        .for_each(|tokens, weights, item| {
            found.push((tokens.to_vec(), weights.to_vec(), snapshot.key(item)?.unwrap().to_string()));
            Ok(())
        })
        .unwrap();
    let item =
        |tokens: &[u32], weights: &[f32], key: &str| (tokens.to_vec(), weights.to_vec(), key.to_string());
    assert_eq!(
        found,
        [
            item(&[1, 2], &[0.5, 1.0], "a"),
            item(&[1, 3], &[0.5, 2.0], "b"),
            item(&[8], &[3.0], "b"),
            item(&[9], &[4.0], "c")
        ]
    );
    let error = trees[0].merge(None, &BuildOptions::default(), &mut |_| Ok(())).unwrap_err();
    assert!(error.kind == ErrorKind::State && error.message.contains("durable"), "{error}");
}

/// What a change writes does not depend on the index, nor on the changes before it.
#[test]
fn a_record_is_as_long_as_its_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    build(&(0..20_000).map(|n| (vec![n % 97, n], n.into())).collect(), &path);
    let tree = Catalogue::open(&path, true).unwrap();
    let size = || std::fs::metadata(&path).unwrap().len();
    add(&tree, &[(vec![1, 1, 1], 70_000)]).unwrap();
    for n in 0..50u32 {
        let before = size();
        add(&tree, &[(vec![2, n, n], 80_000)]).unwrap();
        assert_eq!(size() - before, (RECORD + ITEM + 12) as u64);
    }
}
