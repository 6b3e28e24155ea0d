//! Random compositions put through the laws, and held equal to brute force: all texts of up to eleven letters where all
//! parts look at bytes, and all sequences of up to five tokens elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use logitree::constraint::{
    shortest_ending, AfterEnd, ByteRecogniser, Composition, Constraint, Matcher, PayloadCheck, Recogniser,
    Sequence, States, TreeSpan,
};
use logitree::grammar::ast::{Grammar, Syntax};
use logitree::mask::AllowedTokens;
use logitree::{Error, ErrorKind, Result, TokenId, Vocabulary};
use logitree_testing::vocabulary::ending_vocabulary;
use logitree_testing::{constraints, laws};
use proptest::prelude::*;

const TOKENS: [&[u8]; 5] = [b"a", b"b", b"ab", b"ba", b"bb"];
const END: TokenId = 5;
/// Letters of the longest text, and tokens of the longest sequence.
const LETTERS: usize = 11;
const LENGTH: usize = 5;

fn vocabulary() -> Arc<Vocabulary> {
    ending_vocabulary(&TOKENS).0
}

/// A set of sequences over few symbols, up to a length: whether each is in it, by its number.
#[derive(Clone, PartialEq, Debug)]
struct Set {
    symbols: usize,
    longest: usize,
    has: Vec<bool>,
}

/// The number of a sequence among all, the shorter first.
fn number(symbols: usize, sequence: &[usize]) -> usize {
    sequence.iter().fold(0, |number, &symbol| number * symbols + symbol + 1)
}

/// All sequences up to a length.
fn all(symbols: usize, longest: usize) -> Vec<Vec<usize>> {
    let (mut all, mut last) = (vec![vec![]], vec![vec![]]);
    for _ in 0..longest {
        last = last
            .iter()
            .flat_map(|before: &Vec<usize>| {
                (0..symbols).map(|symbol| before.iter().copied().chain([symbol]).collect::<Vec<_>>())
            })
            .collect();
        all.extend(last.iter().cloned());
    }
    all
}

impl Set {
    fn of(symbols: usize, longest: usize, mut holds: impl FnMut(&[usize]) -> bool) -> Set {
        let all = all(symbols, longest);
        let mut has = vec![false; all.len()];
        for sequence in &all {
            has[number(symbols, sequence)] = holds(sequence);
        }
        Set { symbols, longest, has }
    }

    fn contains(&self, sequence: &[usize]) -> bool {
        self.has.get(number(self.symbols, sequence)).copied().unwrap_or(false)
    }

    fn map(&self, holds: impl FnMut(&[usize]) -> bool) -> Set {
        Set::of(self.symbols, self.longest, holds)
    }

    fn then(&self, other: &Set) -> Set {
        self.map(|s| (0..=s.len()).any(|cut| self.contains(&s[..cut]) && other.contains(&s[cut..])))
    }

    fn repeat(&self, min: u32, max: Option<u32>) -> Set {
        let mut round = self.map(<[usize]>::is_empty);
        let mut found = self.map(|_| false);
        // More rounds than letters add only empty ones.
        for n in 0..=max.unwrap_or(min + self.longest as u32) {
            if n >= min {
                found = found.map(|s| found.contains(s) || round.contains(s));
            }
            round = round.then(self);
        }
        found
    }

    /// The beginnings of all in it.
    fn beginnings(&self) -> Set {
        let mut has = self.has.clone();
        for n in (1..has.len()).rev() {
            let before = (n - 1) / self.symbols;
            has[before] |= has[n];
        }
        Set { has, ..self.clone() }
    }
}

/// What a composition means: texts where all parts look at bytes, else sequences of tokens.
#[derive(Clone, Debug)]
enum Model {
    Bytes(Set),
    Tokens(Set),
}

fn letters(tokens: &[usize]) -> Vec<usize> {
    tokens.iter().flat_map(|&token| TOKENS[token].iter().map(|byte| usize::from(byte - b'a'))).collect()
}

impl Model {
    /// The same over tokens.
    fn tokens(&self) -> Set {
        match self {
            Model::Tokens(set) => set.clone(),
            Model::Bytes(set) => Set::of(TOKENS.len(), LENGTH, |tokens| set.contains(&letters(tokens))),
        }
    }

    fn with(&self, other: &Model, join: impl Fn(&Set, &Set) -> Set) -> Model {
        match (self, other) {
            (Model::Bytes(a), Model::Bytes(b)) => Model::Bytes(join(a, b)),
            (a, b) => Model::Tokens(join(&a.tokens(), &b.tokens())),
        }
    }

    fn map(&self, change: impl Fn(&Set) -> Set) -> Model {
        match self {
            Model::Bytes(set) => Model::Bytes(change(set)),
            Model::Tokens(set) => Model::Tokens(change(set)),
        }
    }
}

/// A recogniser of texts with an even number of a and at most `most` letters.
struct Even {
    read: Vec<u8>,
    most: usize,
}

impl ByteRecogniser for Even {
    fn push(&mut self, byte: u8) -> Result<bool> {
        // The last letter may not leave an odd number of a behind.
        let odd = self.read.iter().chain([&byte]).filter(|&&byte| byte == b'a').count() % 2 == 1;
        let fits = self.read.len() + 1 + usize::from(odd) <= self.most && matches!(byte, b'a' | b'b');
        if fits {
            self.read.push(byte);
        }
        Ok(fits)
    }

    fn pop(&mut self, n: usize) -> Result<()> {
        self.read.truncate(self.read.len() - n);
        Ok(())
    }

    fn is_end(&mut self) -> Result<bool> {
        Ok(self.read.iter().filter(|&&byte| byte == b'a').count() % 2 == 0)
    }
}

fn regex(pattern: &str) -> Composition {
    constraints::regex(pattern).into()
}

fn gbnf(text: &str) -> Composition {
    Grammar::read(Syntax::Gbnf { text: text.into(), root: "root".into() }).unwrap().into()
}

fn texts(holds: impl FnMut(&[usize]) -> bool) -> Model {
    Model::Bytes(Set::of(2, LETTERS, holds))
}

fn tree(lists: &[&[TokenId]]) -> Composition {
    let tree = constraints::token_tree(lists, &PayloadCheck::default()).unwrap();
    Composition::of(Arc::new(TreeSpan { tree, path: "p".into(), following: None, end_tokens: None }))
}

/// The parts that compositions are made of, each with its model.
fn part(which: usize) -> (Composition, Model) {
    let trees: [&[&[TokenId]]; 3] = [&[&[0, 1], &[0], &[2, 2]], &[&[3]], &[&[1, 1], &[4]]];
    match which {
        0 => (regex("a|bb"), texts(|t| matches!(t, [0] | [1, 1]))),
        1 => (regex("a*b"), texts(|t| t.split_last().is_some_and(|(l, r)| *l == 1 && !r.contains(&1)))),
        2 => (regex("[ab]*"), texts(|_| true)),
        3 => (regex("(ab)?"), texts(|t| matches!(t, [] | [0, 1]))),
        4 => (regex("[ab]{2}"), texts(|t| t.len() == 2)),
        // The same number of each; properly nested pairs.
        5 => (
            gbnf("root ::= \"a\" root \"b\" | \"ab\""),
            texts(|t| {
                t.len() >= 2
                    && t.len() % 2 == 0
                    && (0..t.len()).all(|n| t[n] == usize::from(n >= t.len() / 2))
            }),
        ),
        6 => (
            gbnf("root ::= (\"a\" root \"b\")*"),
            texts(|t| {
                let depths = t.iter().try_fold(0usize, |depth, &l| match l {
                    0 => Some(depth + 1),
                    _ => depth.checked_sub(1),
                });
                depths == Some(0)
            }),
        ),
        7 => {
            let make = || Ok(Box::new(Even { read: Vec::new(), most: 4 }) as Box<dyn ByteRecogniser>);
            let model = texts(|t| t.len() <= 4 && t.iter().filter(|&&l| l == 0).count() % 2 == 0);
            (Composition::of(Arc::new(Recogniser::new(make))), model)
        }
        n => {
            let lists = trees[n - 8];
            let as_token = |&id: &TokenId| id as usize;
            let holds =
                |s: &[usize]| lists.iter().any(|list| list.iter().map(as_token).eq(s.iter().copied()));
            (tree(lists), Model::Tokens(Set::of(TOKENS.len(), LENGTH, holds)))
        }
    }
}

/// A composition to be made.
#[derive(Debug, Clone)]
enum Plan {
    Part(usize),
    Then(Vec<Plan>),
    Either(Vec<Plan>),
    Repeat(Box<Plan>, u32, Option<u32>),
    Both(Box<Plan>, Box<Plan>),
    Until(Box<Plan>, &'static str),
    Words(Box<Plan>, &'static str),
    Sequence(Box<Plan>, Vec<TokenId>),
    AtLeast(Box<Plan>, usize),
    AtMost(Box<Plan>, usize),
}

fn meet(a: &Set, b: &Set) -> Set {
    a.map(|s| a.contains(s) && b.contains(s))
}

/// A sequence and its model.
fn sequence(plans: &[Plan]) -> (Composition, Model) {
    // Neighbours that look at bytes share tokens: they are joined first.
    let (parts, models): (Vec<_>, Vec<_>) = plans.iter().map(made).unzip();
    let mut runs: Vec<Model> = Vec::new();
    for (plan, model) in plans.iter().zip(models) {
        // A sequence in a sequence is flattened; its runs are not known here, so the plans hold none.
        assert!(!matches!(plan, Plan::Then(_)));
        match (runs.last_mut(), &model) {
            (Some(last @ Model::Bytes(_)), Model::Bytes(_)) => *last = last.with(&model, Set::then),
            _ => runs.push(model),
        }
    }
    let model = runs.into_iter().reduce(|a, b| a.with(&b, Set::then)).unwrap();
    (Composition::then(parts).unwrap(), model)
}

/// The composition of a plan, and its model.
fn made(plan: &Plan) -> (Composition, Model) {
    let word = |word: &str| -> Vec<usize> { word.bytes().map(|byte| usize::from(byte - b'a')).collect() };
    match plan {
        Plan::Part(which) => part(*which),
        Plan::Then(plans) => sequence(plans),
        Plan::Either(plans) => {
            let (parts, models): (Vec<_>, Vec<_>) = plans.iter().map(made).unzip();
            let union = |a: &Set, b: &Set| a.map(|s| a.contains(s) || b.contains(s));
            let model = models.into_iter().reduce(|a, b| a.with(&b, union)).unwrap();
            (Composition::either(parts).unwrap(), model)
        }
        Plan::Repeat(plan, min, max) => {
            let (part, model) = made(plan);
            (part.repeat(*min, *max).unwrap(), model.map(|set| set.repeat(*min, *max)))
        }
        Plan::Both(a, b) => {
            let ((a, left), (b, right)) = (made(a), made(b));
            (a.both(&b).unwrap(), left.with(&right, meet))
        }
        Plan::Until(plan, stop) => {
            let (part, model) = made(plan);
            let end = word(stop);
            let stops = texts(|t| t == end);
            let whole = model.with(&stops, Set::then);
            let first =
                texts(|t| t.ends_with(&end) && !t[..t.len() - 1].windows(end.len()).any(|w| w == end));
            (Composition::until(&part, &regex(stop)).unwrap(), whole.with(&first, meet))
        }
        Plan::Words(plan, banned) => {
            let (part, model) = made(plan);
            let banned_letters = word(banned);
            let clean = texts(|t| !t.windows(banned_letters.len()).any(|w| w == banned_letters));
            (part.without(vec![banned.to_string()], vec![]).unwrap(), model.with(&clean, meet))
        }
        Plan::Sequence(plan, tokens) => {
            let (part, model) = made(plan);
            let banned: Vec<usize> = tokens.iter().map(|&id| id as usize).collect();
            let set = model.tokens();
            let clean = set.map(|s| set.contains(s) && !s.windows(banned.len()).any(|w| w == banned));
            (part.without(vec![], vec![tokens.clone()]).unwrap(), Model::Tokens(clean))
        }
        Plan::AtLeast(plan, n) => {
            let (part, model) = made(plan);
            let set = model.tokens();
            (part.at_least(*n).unwrap(), Model::Tokens(set.map(|s| set.contains(s) && s.len() >= *n)))
        }
        Plan::AtMost(plan, n) => {
            let (part, model) = made(plan);
            let set = model.tokens();
            (part.at_most(*n).unwrap(), Model::Tokens(set.map(|s| set.contains(s) && s.len() <= *n)))
        }
    }
}

/// The plans inside.
fn inside(plan: &Plan) -> Vec<&Plan> {
    match plan {
        Plan::Part(_) => vec![],
        Plan::Then(plans) | Plan::Either(plans) => plans.iter().collect(),
        Plan::Both(a, b) => vec![a, b],
        Plan::Repeat(of, ..) | Plan::Until(of, _) | Plan::Words(of, _) => vec![of],
        Plan::Sequence(of, _) | Plan::AtLeast(of, _) | Plan::AtMost(of, _) => vec![of],
    }
}

/// Whether a part is recursive.
fn is_recursive(plan: &Plan) -> bool {
    matches!(plan, Plan::Part(5 | 6)) || inside(plan).into_iter().any(is_recursive)
}

/// Whether nothing can be written in some part, which may be an error of its own.
fn has_empty_part(plan: &Plan) -> bool {
    let writes = |plan: &Plan| made(plan).1.tokens().has[1..].contains(&true);
    inside(plan).into_iter().any(|part| !writes(part) || has_empty_part(part))
}

/// Plans whose parts have numbers below `parts`.
fn plans(parts: usize) -> impl Strategy<Value = Plan> {
    let words = || prop::sample::select(vec!["a", "ab", "bb", "aba"]);
    let leaf = (0..parts).prop_map(Plan::Part);
    let tokens = parts > 8;
    let grown = move |inner: BoxedStrategy<Plan>| {
        let boxed = || inner.clone().prop_map(Box::new);
        let flat =
            || inner.clone().prop_filter("no sequence in a sequence", |plan| !matches!(plan, Plan::Then(_)));
        let finite = || boxed().prop_filter("states without end", |plan| !is_recursive(plan));
        let bytes = prop_oneof![
            3 => prop::collection::vec(flat(), 1..4).prop_map(Plan::Then),
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(Plan::Either),
            1 => (boxed(), 0u32..3, prop::option::of(0u32..2))
                .prop_map(|(of, min, more)| Plan::Repeat(of, min, more.map(|more| min + more))),
            2 => (finite(), finite()).prop_map(|(a, b)| Plan::Both(a, b)),
            1 => (finite(), words()).prop_map(|(of, word)| Plan::Until(of, word)),
            1 => (finite(), words()).prop_map(|(of, word)| Plan::Words(of, word)),
        ];
        if !tokens {
            return bytes.boxed();
        }
        let sequence = prop::collection::vec(0u32..5, 1..3);
        let counted = prop_oneof![
            1 => (finite(), sequence).prop_map(|(of, tokens)| Plan::Sequence(of, tokens)),
            1 => (finite(), 0usize..4).prop_map(|(of, n)| Plan::AtLeast(of, n)),
            1 => (finite(), 1usize..4).prop_map(|(of, n)| Plan::AtMost(of, n)),
        ];
        prop_oneof![3 => bytes, 1 => counted].boxed()
    };
    leaf.boxed().prop_recursive(2, 6, 3, grown)
}

/// The matcher, unless there is nothing to write. `all`: whether the model has all outputs, and not only short ones.
fn matcher(plan: &Plan, model: &Set, all: bool) -> Option<Box<dyn Matcher>> {
    let more = model.has[1..].contains(&true);
    match made(plan).0.matcher(&vocabulary()) {
        Ok(matcher) => {
            assert!(!all || more || model.has[0] && matcher.is_finished(), "a matcher of nothing");
            Some(matcher)
        }
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Constraint, "{error}");
            assert!(!more || has_empty_part(plan), "{error}");
            None
        }
    }
}

/// Compares a state with the model.
fn expect(seen: &laws::Seen, complete: bool, viable: &dyn Fn(TokenId) -> bool) {
    assert_eq!(seen.accepting, complete, "whether it is complete");
    if seen.finished {
        assert!((0..END).all(|token| !viable(token)), "finished, and something may follow");
        return;
    }
    let mut allowed: Vec<TokenId> = (0..END).filter(|&token| viable(token)).collect();
    allowed.extend(complete.then_some(END));
    assert_eq!(seen.allowed.as_ref(), Some(&allowed));
}

fn script() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 2_000, ..ProptestConfig::with_cases(100) })]

    /// All parts look at bytes: masks are exactly the tokens after which some text is completed.
    #[test]
    fn texts_equal_brute_force(plan in plans(8), script in script()) {
        let Model::Bytes(model) = made(&plan).1 else { panic!("parts that look at tokens") };
        let Some(matcher) = matcher(&plan, &model, true) else { return Ok(()) };
        let begun = model.beginnings();
        laws::hold(&|| matcher.fork(), &script, &mut |history, seen| {
            let ended = history.iter().position(|&token| token >= END).unwrap_or(history.len());
            let tokens: Vec<usize> = history[..ended].iter().map(|&token| token as usize).collect();
            let text = letters(&tokens);
            // Texts that are longer than half of all are not known to be hopeless.
            if history.len() == ended && text.len() <= 3 && !seen.finished {
                expect(seen, model.contains(&text), &|token| {
                    begun.contains(&[text.clone(), letters(&[token as usize])].concat())
                });
            } else if history.len() == ended && text.len() <= LETTERS && !seen.finished {
                assert_eq!(seen.accepting, model.contains(&text));
            }
        });
    }

    /// Parts that look at tokens too.
    #[test]
    fn sequences_equal_brute_force(plan in plans(11), script in script()) {
        let model = made(&plan).1.tokens();
        let Some(matcher) = matcher(&plan, &model, false) else { return Ok(()) };
        let begun = model.beginnings();
        laws::hold(&|| matcher.fork(), &script, &mut |history, seen| {
            if seen.finished || history.iter().any(|&token| token >= END) {
                return;
            }
            let tokens: Vec<usize> = history.iter().map(|&token| token as usize).collect();
            if tokens.len() <= LENGTH {
                assert_eq!(seen.accepting, model.contains(&tokens), "whether it is complete");
            }
            // Whatever is allowed leads to an end, and that end is checked above.
            let mut on = matcher.fork();
            history.iter().for_each(|&token| on.accept(token).unwrap());
            shortest_ending(&*on, &vocabulary(), 5_000).expect("a dead end was entered");
            // A token that the model needs is allowed.
            if tokens.len() < LENGTH {
                for token in 0..END {
                    let after = [tokens.as_slice(), &[token as usize]].concat();
                    if begun.contains(&after) {
                        let allowed = seen.allowed.as_ref().is_some_and(|allowed| allowed.contains(&token));
                        assert!(allowed, "token {token} after {tokens:?}");
                    }
                }
            }
        });
    }
}

/// Three tokens `a` or `b`, which cannot be taken back while `stuck`.
#[derive(Clone)]
struct Stubborn {
    stuck: Arc<AtomicBool>,
    after: AfterEnd,
}

impl States for Stubborn {
    type At = usize;

    fn vocabulary_size(&self) -> usize {
        vocabulary().len()
    }

    fn after_end(&self) -> &AfterEnd {
        &self.after
    }

    fn is_accepting(&self, taken: &usize) -> bool {
        *taken == 3
    }

    fn is_finished(&self, taken: &usize) -> bool {
        *taken == 3
    }

    fn allowed<'a>(&'a mut self, _taken: &'a usize) -> Result<AllowedTokens<'a>> {
        Ok(AllowedTokens::Ids(&[0, 1]))
    }

    fn next(&mut self, taken: &usize, token: TokenId) -> Result<Option<usize>> {
        Ok((token < 2).then_some(taken + 1))
    }

    fn back(&mut self, _to: &usize, _left: &mut [usize]) -> Result<()> {
        match self.stuck.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::Limit, "stuck")),
            false => Ok(()),
        }
    }
}

impl Constraint for Stubborn {
    fn matcher(&self, _vocabulary: &Arc<Vocabulary>) -> Result<Box<dyn Matcher>> {
        Ok(Box::new(Sequence::begin(self.clone(), 0)))
    }
}

/// The parts before the one that fails have been taken back, and the one that was put aside is back.
#[test]
fn a_rollback_that_fails_changes_nothing() {
    let stuck = Arc::new(AtomicBool::new(false));
    let stubborn = Stubborn { stuck: Arc::clone(&stuck), after: AfterEnd::tokens(&[], &[END]) };
    let parts = [tree(&[&[0, 4, 4]]), tree(&[&[0, 1, 3]]), Composition::of(Arc::new(stubborn))];
    let mut matcher = Composition::either(parts).unwrap().matcher(&vocabulary()).unwrap();
    let ids = |matcher: &mut Box<dyn Matcher>| -> Vec<TokenId> {
        matcher.allowed().unwrap().ids(vocabulary().len()).collect()
    };
    assert_eq!(ids(&mut matcher), [0, 1]);
    matcher.accept(0).unwrap();
    assert_eq!(ids(&mut matcher), [0, 1, 4]);
    matcher.accept(1).unwrap();
    assert_eq!(ids(&mut matcher), [0, 1, 3]);
    stuck.store(true, Ordering::Relaxed);
    for n in [1, 2] {
        assert_eq!(matcher.rollback(n).unwrap_err().kind, ErrorKind::Limit);
        assert_eq!((ids(&mut matcher), matcher.accepted()), (vec![0, 1, 3], 2));
    }
    stuck.store(false, Ordering::Relaxed);
    matcher.rollback(1).unwrap();
    assert_eq!(ids(&mut matcher), [0, 1, 4]);
}
