//! A hundred thousand operations on catalogues of every kind, held to an ordered set of items: adding, removing,
//! merging, opening again, and every question that a catalogue answers, asked of the present and of earlier snapshots.
//!
//! `LOGITREE_CATALOGUE_OPERATIONS=1000000` makes more of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use logitree::catalogue::{BuildOptions, Catalogue, CatalogueBuilder, ItemIndex, ItemWalk};
use logitree::TokenId;
use logitree_testing::item_set::{Item, ItemSet, Kind, Random};
use logitree_testing::item_set_questions::{ask, View};

/// Operations on one item_set.
const ON_ONE: usize = 2_500;

/// Trees of earlier moments that are kept and asked.
const KEPT: usize = 4;

const fn kind(
    (name, weighted, end): (&'static str, bool, TokenId),
    tokens: (usize, u32),
    lengths: (usize, usize),
    numbers: u64,
    items: usize,
) -> Kind {
    Kind { name, tokens, lengths, numbers, items, weighted, end }
}

const KINDS: [Kind; 9] = [
    kind(("nested", false, 2), (2, 1), (1, 6), 4, 80),
    kind(("one token", false, 0), (1, 1), (1, 12), 3, 9),
    kind(("one length", false, 5), (20, 1), (4, 4), 1 << 20, 900),
    kind(("wide nodes", false, 7), (300, 1), (2, 2), 1 << 40, 1200),
    kind(("ragged", false, 900), (120, 7), (1, 5), 50, 600),
    kind(("weighted", true, 95), (90, 1), (3, 3), u64::MAX, 700),
    kind(("weighted, nested", true, 3), (5, 3), (1, 5), 9, 300),
    kind(("long items", false, 30), (80, 11), (3, 120), 1 << 20, 40),
    kind(("huge ids", false, 1), (200, 10_737_418), (1, 3), 1 << 33, 500),
];

/// The weight with which items are built: the same for all that begin alike.
fn weight(begin: &[TokenId]) -> f32 {
    let mixed = begin.iter().fold(7u32, |at, &token| at.wrapping_mul(31).wrapping_add(token));
    f32::from(mixed as i8) / 16.0
}

/// One item_set under way.
struct Run {
    kind: Kind,
    seed: u64,
    random: Random,
    tree: Catalogue,
    now: View,
    kept: Vec<View>,
    file: PathBuf,
    done: usize,
    /// How often each operation was done.
    counts: BTreeMap<&'static str, usize>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("operation {} on the item_set {:?} of seed {}", self.done, self.kind.name, self.seed);
        }
        drop(std::fs::remove_file(&self.file));
    }
}

impl Run {
    fn new(kind: Kind, seed: u64) -> Run {
        let mut random = Random(seed);
        let items: Vec<Item> = (0..kind.items).map(|_| kind.item(&mut random)).collect();
        let mut builder =
            CatalogueBuilder::new(BuildOptions { weighted: kind.weighted, ..BuildOptions::default() })
                .unwrap();
        let truth = ItemSet::new(items.iter().cloned().collect(), kind.weighted.then_some(weight));
        for (tokens, item) in &items {
            builder.push(tokens, &truth.weights(tokens), *item).unwrap();
        }
        let built = builder.finish(None, &mut |_| Ok(())).unwrap();
        assert_eq!(built.repeated, (items.len() - truth.items.len()) as u64);
        let tree = Catalogue::new(built.index);
        let end = random.one_in(2).then_some(kind.end);
        let now = View { paths: ItemWalk { snapshot: tree.snapshot(), end }, truth };
        let file = std::env::temp_dir().join(format!("logitree-operations-{}-{seed}", std::process::id()));
        Run { kind, seed, random, tree, now, kept: Vec::new(), file, done: 0, counts: BTreeMap::new() }
    }

    fn go(&mut self, operations: usize) {
        while self.done < operations {
            self.done += 1;
            let name = match self.random.below(100) {
                0..=7 => self.add(1),
                8..=10 => self.add(20),
                11..=14 => self.remove(false),
                15..=18 => self.remove(true),
                19 => self.remove_numbers(),
                20 => self.make_anew(),
                21..=22 => self.keep(),
                _ => self.ask(),
            };
            *self.counts.entry(name).or_default() += 1;
            self.now.paths.snapshot = self.tree.snapshot();
            assert_eq!(self.now.paths.snapshot.len(), self.now.truth.items.len() as u64, "after {name}");
        }
        self.kept.iter().chain([&self.now]).for_each(View::whole);
    }

    /// An item that is there, or one beside it, or any.
    fn item(&mut self) -> Item {
        let other = self.kind.item(&mut self.random);
        let Some((tokens, number)) = self.now.truth.any(&mut self.random, &self.kind) else { return other };
        match self.random.below(4) {
            0 => other,
            1 => (tokens, number),
            2 => (tokens, other.1),
            _ => {
                let (mut mixed, number) = other;
                let same = self.random.below(tokens.len().min(mixed.len()) + 1);
                mixed[..same].copy_from_slice(&tokens[..same]);
                (mixed, number)
            }
        }
    }

    fn add(&mut self, most: usize) -> &'static str {
        let items: Vec<Item> = (0..=self.random.below(most)).map(|_| self.item()).collect();
        let weighs = self.kind.weighted && !self.random.one_in(3);
        let mut weights = |(tokens, _): &Item| -> Vec<f32> {
            let weights = tokens.iter().filter(|_| weighs);
            weights.map(|_| self.random.below(64) as f32 / 8.0 - 4.0).collect()
        };
        let weights: Vec<Vec<f32>> = items.iter().map(&mut weights).collect();
        let rows = items.iter().zip(&weights).map(|((tokens, item), w)| (&tokens[..], &w[..], *item));
        let added = self.tree.add(rows.clone()).unwrap();
        let truth = &mut self.now.truth;
        assert_eq!(added, rows.map(|(t, w, item)| u64::from(truth.add(t, w, item))).sum::<u64>());
        if most == 1 {
            "add one"
        } else {
            "add many"
        }
    }

    fn remove(&mut self, numbered: bool) -> &'static str {
        let most = if self.random.one_in(3) { 20 } else { 1 };
        let items: Vec<Item> = (0..=self.random.below(most)).map(|_| self.item()).collect();
        let gone = items.iter().map(|(tokens, item)| (&tokens[..], numbered.then_some(*item)));
        let removed = self.tree.remove(gone.clone()).unwrap();
        let truth = &mut self.now.truth;
        assert_eq!(removed, gone.map(|(tokens, item)| truth.remove_tokens(tokens, item)).sum::<u64>());
        if numbered {
            "remove by tokens and number"
        } else {
            "remove by tokens"
        }
    }

    /// A few, and now and then nearly all, so that trees become empty, too.
    fn remove_numbers(&mut self) -> &'static str {
        let few = (0..5).filter_map(|_| self.now.truth.any(&mut self.random, &self.kind));
        let few: BTreeSet<u64> = few.map(|item| item.1).collect();
        let (nearly_all, all) = (self.random.one_in(12), self.random.one_in(40));
        let gone = |item: u64| all || few.contains(&item) != nearly_all;
        let removed = self.tree.remove_items(gone).unwrap();
        assert_eq!(removed, self.now.truth.remove(|item| gone(item.1)));
        "remove by numbers"
    }

    /// Merges, in memory or into a file, and continues with it as it is, opened again, or reloaded.
    fn make_anew(&mut self) -> &'static str {
        let options =
            BuildOptions { weighted: self.kind.weighted, memory: 1 << 14, ..BuildOptions::default() };
        let to_file = self.random.one_in(3);
        self.tree.merge(to_file.then_some(&self.file), &options, &mut |_| Ok(())).unwrap();
        self.now.truth.merge();
        let snapshot = self.tree.snapshot();
        let rows = snapshot.index().header().rows;
        assert_eq!((snapshot.added_nodes(), rows), (0, self.now.truth.items.len() as u64));
        if !to_file {
            return "merge";
        }
        let opened = ItemIndex::open(&self.file).unwrap();
        opened.check().unwrap();
        assert!(opened.bytes() == snapshot.index().bytes());
        match self.random.one_in(2) {
            true => self.tree = Catalogue::new(opened),
            false => self.tree.reload(&self.file).unwrap(),
        }
        "merge into a file and open it"
    }

    /// Keeps the tree as it is, or a part of it.
    fn keep(&mut self) -> &'static str {
        let mut view = self.now.clone();
        let part = self.random.one_in(2);
        if part {
            let divisor = 2 + self.random.below(4) as u64;
            view.paths.snapshot = view.paths.snapshot.only(|item| item % divisor == 0).unwrap();
            view.truth.remove(|item| item.1 % divisor != 0);
        }
        if self.random.one_in(4) {
            view.whole();
        }
        if self.kept.len() == KEPT {
            let out = self.random.below(KEPT);
            self.kept.swap_remove(out).whole();
        }
        self.kept.push(view);
        if part {
            "restrict"
        } else {
            "keep"
        }
    }

    /// Asks the tree as it is, or as it was.
    fn ask(&mut self) -> &'static str {
        let at = self.random.below(KEPT + 4);
        ask(self.kept.get(at).unwrap_or(&self.now), &self.kind, &mut self.random)
    }
}

#[test]
fn a_hundred_thousand_operations_are_those_of_a_set() {
    let given = std::env::var("LOGITREE_CATALOGUE_OPERATIONS").ok();
    let wanted: usize = given.map_or(100_000, |n| n.parse().expect("a number of operations"));
    let (mut counts, mut seed): (BTreeMap<&str, usize>, u64) = (BTreeMap::new(), 0);
    while counts.values().sum::<usize>() < wanted {
        let mut run = Run::new(KINDS[seed as usize % KINDS.len()], seed);
        run.go(ON_ONE);
        run.counts.iter().for_each(|(name, n)| *counts.entry(name).or_default() += n);
        seed += 1;
    }
    println!("{} operations on {seed} catalogues: {counts:?}", counts.values().sum::<usize>());
    assert!(counts.values().sum::<usize>() >= wanted);
    assert!(
        seed as usize >= KINDS.len() && counts.len() == 20 && counts.values().all(|&n| n > 20),
        "{counts:?}"
    );
}
