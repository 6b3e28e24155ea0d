//! Prefix trees intersected with other constraints: held to a list of items that are each fed to the others, to the
//! laws of matchers, and to each other. What is refused, and what work may cost.

use std::collections::BTreeSet;
use std::sync::Arc;

use logitree::catalogue::{
    intersect, BuildOptions, Catalogue, CatalogueBuilder, CatalogueSnapshot, Intersection,
    IntersectionMatcher, ItemIndex, ItemWalk,
};
use logitree::constraint::{BoundGrammar, BoundOneOf, End, GrammarLimits, Matcher, PayloadCheck};
use logitree::grammar::gbnf;
use logitree::vocabulary::Vocabulary;
use logitree::{Error, ErrorKind, Result, TokenId};
use logitree_testing::constraints::{bind_gbnf, catalogue, token_tree};
use logitree_testing::laws::{self, look};
use logitree_testing::sequences::Sequences;
use logitree_testing::vocabulary::ending_vocabulary;
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

/// Tokens 0 to 4; 5 ends a generation, and 7 is no token of the vocabulary.
const TEXTS: [&str; 5] = ["a", "b", "c", "ab", "bc"];
const SIZE: usize = 200;

const GRAMMARS: [&str; 6] = [
    "root ::= [ab]*",
    "root ::= \"a\" [a-c]* \"c\"",
    "root ::= ([a-c] [a-c])+",
    "root ::= \"ab\" | \"abc\" | \"cab\"",
    "root ::= [^b] root [^b] | \"b\" | \"\"",
    "root ::= <[1]> [abc]? | \"c\"",
];

type Lists = Vec<Vec<TokenId>>;

/// What a tree may be intersected with.
#[derive(Debug, Clone)]
enum Other {
    Tree(Lists, Option<TokenId>),
    Tokens(Lists, Vec<TokenId>),
    Choices(Vec<String>),
    Grammar(usize),
}

fn lists(most: usize) -> impl Strategy<Value = Lists> {
    prop::collection::vec(prop::collection::vec(0u32..6, 1..5), 0..most)
}

fn others() -> impl Strategy<Value = Vec<(Other, bool)>> {
    let end = prop::sample::select(vec![None, Some(5), Some(7)]);
    let other = prop_oneof![
        (lists(30), end).prop_map(|(lists, end)| Other::Tree(lists, end)),
        (lists(30), prop::collection::vec(5u32..8, 0..3))
            .prop_map(|(lists, ends)| Other::Tokens(lists, ends)),
        prop::collection::vec("[abc]{1,5}", 1..20).prop_map(Other::Choices),
        (0..GRAMMARS.len()).prop_map(Other::Grammar),
    ];
    prop::collection::vec((other, prop::bool::weighted(0.2)), 1..3)
}

impl Other {
    /// `None` if there is no such constraint. Lists have some of the items too.
    fn matcher(&self, items: &[Vec<TokenId>], vocabulary: &Arc<Vocabulary>) -> Option<Box<dyn Matcher>> {
        let with = |lists: &Lists| [lists.clone(), items.iter().step_by(2).cloned().collect()].concat();
        Some(match self {
            Other::Tree(lists, end) => Box::new(
                ItemWalk { snapshot: catalogue(&with(lists)).snapshot(), end: *end }.sequence(8, &[]).ok()?,
            ),
            Other::Tokens(lists, ends) => {
                let end = End { tokens: Some(ends.clone()), ..End::default() };
                let tree = token_tree(&with(lists), &PayloadCheck::default()).ok()?;
                tree.matcher("p", &end).ok()?
            }
            Other::Choices(texts) => BoundOneOf::new(texts, vocabulary, &End::default()).ok()?.matcher(),
            Other::Grammar(at) => grammar(GRAMMARS[*at], vocabulary),
        })
    }
}

fn grammar(gbnf: &str, vocabulary: &Arc<Vocabulary>) -> Box<dyn Matcher> {
    bind_gbnf(gbnf, vocabulary).matcher().expect("within the limits")
}

fn items(snapshot: &CatalogueSnapshot) -> BTreeSet<(Vec<TokenId>, u64)> {
    let mut items = BTreeSet::new();
    let mut each = |tokens: &[TokenId], _: &[f32], item| {
        assert!(items.insert((tokens.to_vec(), item)), "{tokens:?} twice");
        Ok(())
    };
    snapshot.for_each(&mut each).expect("a sound index");
    items
}

/// Whether the other takes all of it and is complete then, or after the end token.
fn allows(other: &dyn Matcher, tokens: &[TokenId], end: Option<TokenId>) -> bool {
    let mut other = other.fork();
    let taken = tokens.iter().all(|&token| !other.is_finished() && other.accept(token).is_ok());
    let behind = |end| {
        other.fork().accept(end).is_ok_and(|()| true) && {
            let mut after = other.fork();
            after.accept(end).expect("as before");
            after.is_accepting()
        }
    };
    taken && (other.is_accepting() || end.is_some_and(behind))
}

fn forks(others: &[Box<dyn Matcher>]) -> Vec<Box<dyn Matcher>> {
    others.iter().map(|other| other.fork()).collect()
}

fn of(items: &BTreeSet<(Vec<TokenId>, u64)>) -> Sequences {
    let all = items.iter().map(|(tokens, _)| tokens.clone()).collect();
    Sequences { all, after: Some(Vec::new()), ..Sequences::default() }
}

fn lazily(
    snapshot: &CatalogueSnapshot,
    others: &[Box<dyn Matcher>],
    end: Option<TokenId>,
    fuel: u64,
) -> Result<IntersectionMatcher> {
    ItemWalk { snapshot: snapshot.clone(), end }.sequence_with(forks(others), SIZE, &[], fuel)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_500) })]

    #[test]
    fn equal_to_feeding_every_item_to_the_others(
        base in lists(60),
        twice in any::<bool>(),
        wide in any::<bool>(),
        added in lists(8),
        removed in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        odd in any::<bool>(),
        others in others(),
        end in prop::sample::select(vec![None, Some(5), Some(7)]),
        script in prop::collection::vec(any::<u16>(), 0..24),
    ) {
        let (vocabulary, eog) = ending_vocabulary(&TEXTS);
        prop_assert_eq!(eog, 5);
        // Some have taken a token already: they allow what may come after it.
        let matchers: Option<Vec<_>> = others.iter().map(|(other, begun)| {
            let mut matcher = other.matcher(&base, &vocabulary)?;
            let first = (0..5).find(|_| *begun && !matcher.is_finished()).and_then(|_| look(&mut *matcher).allowed);
            if let Some(&token) = first.iter().flatten().next() {
                matcher.accept(token).expect("an allowed token");
            }
            Some(matcher)
        }).collect();
        let Some(others) = matchers else { return Ok(()) };
        let mut builder = CatalogueBuilder::new(BuildOptions::default()).unwrap();
        base.iter().for_each(|tokens| builder.push(tokens, &[], 0).unwrap());
        if twice {
            base.iter().step_by(2).for_each(|tokens| builder.push(tokens, &[], 1).unwrap());
        }
        if wide {
            (0..90).for_each(|n| builder.push(&[n / 30, n % 3, 10 + n], &[], 2).unwrap());
        }
        let tree = Catalogue::new(builder.finish(None, &mut |_| Ok(())).unwrap().index);
        tree.add(added.iter().map(|tokens| (&tokens[..], &[][..], 3))).unwrap();
        let gone = removed.iter().filter(|_| !base.is_empty()).map(|at| (&at.get(&base)[..], Some(0)));
        tree.remove(gone).unwrap();
        let mut snapshot = tree.snapshot();
        if odd {
            snapshot = snapshot.only(|item| item % 2 == 1).unwrap();
        }
        let mut truth = items(&snapshot);
        let (may_nest, none) = (snapshot.may_nest().unwrap(), snapshot.is_empty());
        truth.retain(|(tokens, _)| others.iter().all(|other| allows(&**other, tokens, end)));
        let model = of(&truth);

        let kept = intersect(&snapshot, forks(&others), end, &mut || Ok(())).unwrap();
        prop_assert_eq!(items(&kept), truth.clone());
        prop_assert_eq!(kept.len(), truth.len() as u64);
        prop_assert_eq!(kept.may_nest().unwrap(), model.needs_end());
        let eager = ItemWalk { snapshot: kept, end }.sequence(SIZE, &[]);
        let lazy = lazily(&snapshot, &others, end, Intersection::FUEL);
        prop_assert_eq!(eager.is_err(), truth.is_empty() || model.needs_end() && end.is_none());
        prop_assert_eq!(lazy.is_err(), truth.is_empty() || may_nest && end.is_none());
        if let Err(error) = &lazy {
            let unfit = if none { "no item" } else if may_nest && end.is_none() { "beginning" } else { "allowed" };
            prop_assert!(error.kind == ErrorKind::Constraint && error.message.contains(unfit), "{error}");
        }
        let simple = end.is_none_or(|end| truth.iter().all(|(tokens, _)| !tokens.contains(&end)));
        let expect = |history: &[TokenId], seen: &laws::Seen| match end {
            _ if !simple => {}
            Some(end) => model.expect_ended(end, history, seen),
            None => model.expect(history, seen),
        };
        if let Ok(eager) = &eager {
            laws::hold(&|| eager.fork(), &script, &mut |history, seen| expect(history, seen));
        }
        if let (Ok(lazy), Ok(eager)) = (lazy, eager) {
            // Born again and again, and forked from one that knows more and more.
            let fresh: [&dyn Fn() -> Box<dyn Matcher>; 2] = [
                &|| lazy.fork(),
                &|| Box::new(lazily(&snapshot, &others, end, Intersection::FUEL).unwrap()),
            ];
            for fresh in fresh {
                laws::hold(fresh, &script, &mut |history, seen| {
                    expect(history, seen);
                    let mut same = eager.fork();
                    history.iter().for_each(|&token| same.accept(token).expect("allowed in both"));
                    assert_eq!(&look(&mut *same), seen, "after {history:?}");
                });
            }
        }
    }
}

/// An item set of pairs and the one item of it that the other allows, the last one.
fn one_of_many() -> (CatalogueSnapshot, Vec<Box<dyn Matcher>>) {
    let lists: Lists = (0..100).flat_map(|a| (0..100).map(move |b| vec![a, b])).collect();
    let mut wanted: Lists = (0..100).map(|a| vec![a, 100]).collect();
    wanted.push(vec![99, 99]);
    let other = ItemWalk { snapshot: catalogue(&wanted).snapshot(), end: None }.sequence(SIZE, &[]).unwrap();
    (catalogue(&lists).snapshot(), vec![Box::new(other)])
}

#[test]
fn work_is_bounded_and_none_of_it_is_lost() {
    let (snapshot, others) = one_of_many();
    let error = lazily(&snapshot, &others, None, 500).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Limit);
    assert!(error.help.contains("intersect the whole catalogue once"), "{error}");
    // The first item of each of these is found at once, the hundred after it are not.
    let lists: Lists = (0..100).flat_map(|a| (0..100).map(move |b| vec![a, b])).collect();
    let wanted: Lists = (0..100).map(|a| vec![a, if a == 0 { 0 } else { 99 }]).collect();
    let others: Vec<Box<dyn Matcher>> = vec![Box::new(
        ItemWalk { snapshot: catalogue(&wanted).snapshot(), end: None }.sequence(SIZE, &[]).unwrap(),
    )];
    let snapshot = catalogue(&lists).snapshot();
    let mut matcher = lazily(&snapshot, &others, None, 500).unwrap();
    let mut asked = 0;
    let allowed = loop {
        asked += 1;
        match matcher.allowed() {
            Ok(allowed) => break allowed,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Limit);
                assert_eq!(error.place, "token 0 of the item");
                assert!(asked < 100, "asking again gets no further");
            }
        }
    };
    assert!(asked > 10, "{asked}");
    assert_eq!(allowed.count(SIZE), 100);
    // One token is cheaper to take than all are to list.
    let mut matcher = lazily(&snapshot, &others, None, 500).unwrap();
    matcher.accept(50).unwrap();
    assert_eq!(look(&mut matcher).forced, [99]);
    assert_eq!(matcher.accept(98).unwrap_err().kind, ErrorKind::Token);
}

#[test]
fn what_cannot_be_is_refused() {
    let (snapshot, others) = one_of_many();
    let error = lazily(&snapshot, &[], None, 500).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Constraint);
    let error = intersect(&snapshot, Vec::new(), None, &mut || Ok(())).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Constraint);
    let nothing: Box<dyn Matcher> = Box::new(
        ItemWalk { snapshot: catalogue(&[vec![7]]).snapshot(), end: None }.sequence(8, &[]).unwrap(),
    );
    let error = lazily(&snapshot, &[others[0].fork(), nothing], None, 1 << 20).err().unwrap();
    assert!(error.kind == ErrorKind::Constraint && error.message.contains("allowed"), "{error}");
    let stop = || Err(Error::new(ErrorKind::Sampling, "enough"));
    let lists: Lists = (0..100).flat_map(|a| (0..100).map(move |b| vec![a, b])).collect();
    let same: Box<dyn Matcher> =
        Box::new(ItemWalk { snapshot: snapshot.clone(), end: None }.sequence(SIZE, &[]).unwrap());
    let error = intersect(&catalogue(&lists).snapshot(), vec![same], None, &mut { stop }).err().unwrap();
    assert_eq!(error.message, "enough");
}

#[test]
fn a_limit_of_the_other_is_told() {
    let (vocabulary, _) = ending_vocabulary(&TEXTS);
    let rules = gbnf::parse("root ::= \"c\" | ([ab] [abc]{2,9}){1,9} [ab]{3,40} \"ccc\"").unwrap();
    let rules = Arc::new(rules);
    let bind = |fuel| {
        let limits = GrammarLimits { fuel, ..GrammarLimits::default() };
        BoundGrammar::new(Arc::clone(&rules), &vocabulary, None, limits).ok()
    };
    // No more fuel than the first mask needs: later ones need more.
    let grammar = (1..).find_map(|n| bind(8 * n)).unwrap();
    let others = [grammar.matcher().unwrap()];
    let mut alone = others[0].fork();
    let expected = (0..30).find_map(|_| alone.accept(0).err()).expect("it has little fuel");
    assert_eq!(expected.kind, ErrorKind::Limit);
    let snapshot = catalogue(&[vec![0; 30], vec![2]]).snapshot();
    let error = intersect(&snapshot, forks(&others), None, &mut || Ok(())).err().unwrap();
    assert_eq!(error, expected);
    assert_eq!(lazily(&snapshot, &others, None, Intersection::FUEL).err().unwrap(), expected);
    // What the tree does not reach is not asked.
    assert_eq!(
        intersect(&catalogue(&[vec![2]]).snapshot(), forks(&others), None, &mut || Ok(())).unwrap().len(),
        1
    );
}

#[test]
fn long_items_take_no_stack() {
    let long: Vec<TokenId> = (0..4096).map(|n| n % 2).collect();
    let mut longer = long.clone();
    longer.truncate(4000);
    let snapshot = catalogue(&[long.clone(), longer.clone()]).snapshot();
    let (vocabulary, end) = ending_vocabulary(&TEXTS);
    let others = [grammar("root ::= [ab]*", &vocabulary)];
    let kept = intersect(&snapshot, forks(&others), Some(end), &mut || Ok(())).unwrap();
    assert_eq!(kept.len(), 2);
    let mut matcher = lazily(&snapshot, &others, Some(end), Intersection::FUEL).unwrap();
    let mut out = Vec::new();
    for _ in 0..4 {
        let mut run = Vec::new();
        matcher.forced(&mut run).unwrap();
        run.iter().for_each(|&token| matcher.accept(token).unwrap());
        out.append(&mut run);
    }
    assert_eq!(out, longer);
    assert_eq!(look(&mut matcher).allowed, Some(vec![0, end]));
    matcher.rollback(4000).unwrap();
    assert_eq!(look(&mut matcher).allowed, Some(vec![0]));
}

/// The right checksums on the bytes of an index.
fn sign(bytes: &mut [u8]) {
    const PAGE: usize = 4096;
    // The last of the places that begin at byte 80.
    let sums = u64::from_le_bytes(*bytes[80 + 8 * 12..].first_chunk().unwrap()) as usize;
    let pages: Vec<u64> = bytes[PAGE..sums].chunks(PAGE).map(xxh3_64).collect();
    for (place, sum) in bytes[sums..].chunks_mut(8).zip(pages) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
    let all = xxh3_64(&bytes[sums..]);
    bytes[72..80].copy_from_slice(&all.to_le_bytes());
    let head = xxh3_64(&bytes[..PAGE - 8]);
    bytes[PAGE - 8..PAGE].copy_from_slice(&head.to_le_bytes());
}

/// A hostile file: its checksums are right, and its places form a cycle.
#[test]
fn places_in_a_circle_end() {
    let lists: Lists = (0..100).map(|n| vec![n / 50, n]).collect();
    let built = catalogue(&lists).snapshot();
    let mut bytes = built.index().bytes().to_vec();
    let root = built.root().0.to_le_bytes();
    let begins: Vec<usize> =
        (0..16).map(|at| u64::from_le_bytes(*bytes[80 + 8 * at..].first_chunk().unwrap()) as usize).collect();
    // The states of the root's two children are the only entries of eight bytes that name their first rows.
    let second = (50u64 << 16 | 1).to_le_bytes();
    let at = begins.iter().copied().find(|&at| bytes.get(at + 8..at + 16) == Some(&second[..]));
    let at = at.expect("the section of children's states");
    bytes[at..at + 8].copy_from_slice(&root);
    bytes[at + 8..at + 16].copy_from_slice(&root);
    sign(&mut bytes);
    let snapshot = CatalogueSnapshot::of(Arc::new(ItemIndex::from_bytes(bytes).unwrap()));
    let (vocabulary, _) = ending_vocabulary(&TEXTS);
    let others = [grammar("root ::= [ab]*", &vocabulary)];
    let error = intersect(&snapshot, forks(&others), None, &mut || Ok(())).err().unwrap();
    assert!(error.kind == ErrorKind::Payload, "{error}");
    let error = lazily(&snapshot, &others, None, Intersection::FUEL).err().unwrap();
    assert!(matches!(error.kind, ErrorKind::Payload | ErrorKind::Limit | ErrorKind::Constraint), "{error}");
}
