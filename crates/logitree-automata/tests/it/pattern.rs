//! Patterns: a corpus of cases, and random patterns compared with an exhaustive matcher of their syntax tree
//! (lookarounds and anchors anywhere) or with the `regex` crate (syntax that both read).

use std::collections::BTreeSet;
use std::fmt::Write;

use logitree_automata::pattern::{parse, LineEnds, MatchScope, PatternOptions};
use logitree_automata::ErrorKind;
use logitree_testing::{corpus, regexes::matches};
use proptest::prelude::*;
use serde::Deserialize;

const WHOLE: PatternOptions = PatternOptions { lines: LineEnds::LineFeed, ..PatternOptions::WHOLE };
const SEARCH: PatternOptions = PatternOptions { lines: LineEnds::LineFeed, ..PatternOptions::SEARCH };

// -- hand cases

#[derive(Deserialize)]
struct Corpus {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    pattern: String,
    #[serde(default)]
    whole: bool,
    #[serde(default)]
    matches: Vec<String>,
    #[serde(default)]
    refuses: Vec<String>,
    /// What the message says, and the column it names.
    error: Option<(String, usize)>,
}

#[test]
fn the_corpus() {
    let mut cases = 0;
    for (_, corpus) in corpus::read_all::<Corpus>("regex") {
        corpus.case.iter().for_each(check);
        cases += corpus.case.len();
    }
    assert!(cases > 100, "{cases} cases");
}

fn check(case: &Case) {
    let options = if case.whole { PatternOptions::WHOLE } else { PatternOptions::SEARCH };
    let parsed = parse(&case.pattern, &options);
    if let Some((message, column)) = &case.error {
        let error = parsed.expect_err(&case.pattern);
        assert!(error.message.contains(message.as_str()), "{}: {error}", case.pattern);
        assert_eq!(error.place, format!("1:{column}"), "{}: {error}", case.pattern);
        return;
    }
    let regex = parsed.unwrap_or_else(|e| panic!("{}: {e}", case.pattern));
    assert!(case.matches.len() + case.refuses.len() > 0, "{} says nothing", case.pattern);
    for text in &case.matches {
        assert!(matches(&regex, text), "{} must match {text:?}: {regex:?}", case.pattern);
    }
    for text in &case.refuses {
        assert!(!matches(&regex, text), "{} must refuse {text:?}: {regex:?}", case.pattern);
    }
}

// -- random patterns, by their trees

#[derive(Debug, Clone)]
enum Tree {
    Empty,
    Set(&'static str),
    Concat(Vec<Tree>),
    Or(Vec<Tree>),
    Repeat(Box<Tree>, usize, Option<usize>),
    Start,
    End,
    Line(bool),
    Word(bool),
    Look { behind: bool, negated: bool, body: Box<Tree> },
}

/// What one character of a set is, for the sets that trees have.
fn is_in(set: &str, c: char) -> bool {
    match set {
        "." => c != '\n',
        "\\w" => c.is_ascii_alphanumeric(),
        "[^a]" => c != 'a',
        "[ab]" => c == 'a' || c == 'b',
        literal => literal.starts_with(c),
    }
}

impl Tree {
    fn write(&self, out: &mut String) {
        match self {
            Tree::Empty => out.push_str("(?:)"),
            Tree::Set(set) => out.push_str(set),
            Tree::Concat(parts) => parts.iter().for_each(|part| part.write_grouped(out)),
            Tree::Or(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    out.push_str(if at > 0 { "|" } else { "" });
                    part.write(out);
                }
            }
            Tree::Repeat(of, min, max) => {
                out.push_str("(?:");
                of.write(out);
                let max = max.map(|max| max.to_string()).unwrap_or_default();
                write!(out, "){{{min},{max}}}").unwrap();
            }
            Tree::Start => out.push('^'),
            Tree::End => out.push('$'),
            Tree::Line(start) => out.push_str(if *start { "(?m:^)" } else { "(?m:$)" }),
            Tree::Word(negated) => out.push_str(if *negated { "\\B" } else { "\\b" }),
            Tree::Look { behind, negated, body } => {
                let behind = if *behind { "<" } else { "" };
                write!(out, "(?{behind}{}", if *negated { '!' } else { '=' }).unwrap();
                body.write(out);
                out.push(')');
            }
        }
    }

    fn write_grouped(&self, out: &mut String) {
        if matches!(self, Tree::Or(_)) {
            out.push('(');
            self.write(out);
            out.push(')');
        } else {
            self.write(out);
        }
    }

    /// Where a match that begins at `from` may end.
    fn ends(&self, text: &[char], from: usize) -> BTreeSet<usize> {
        let here = |holds: bool| if holds { BTreeSet::from([from]) } else { BTreeSet::new() };
        let before = from.checked_sub(1).map(|at| text[at]);
        let after = text.get(from).copied();
        match self {
            Tree::Empty => here(true),
            Tree::Set(set) => after.filter(|&c| is_in(set, c)).map(|_| from + 1).into_iter().collect(),
            Tree::Concat(parts) => parts.iter().fold(here(true), |places, part| part.all(text, &places)),
            Tree::Or(parts) => parts.iter().flat_map(|part| part.ends(text, from)).collect(),
            Tree::Repeat(of, min, max) => {
                let mut places = here(true);
                (0..*min).for_each(|_| places = of.all(text, &places));
                for _ in *min..max.unwrap_or(min + text.len() + 1) {
                    let more = of.all(text, &places);
                    places.extend(more);
                }
                places
            }
            Tree::Start => here(from == 0),
            Tree::End => here(after.is_none()),
            Tree::Line(true) => here(before.is_none_or(|c| c == '\n')),
            Tree::Line(false) => here(after.is_none_or(|c| c == '\n')),
            Tree::Word(negated) => {
                let word = |c: Option<char>| c.is_some_and(|c| is_in("\\w", c));
                here((word(before) != word(after)) != *negated)
            }
            Tree::Look { behind: false, negated, body } => here(body.ends(text, from).is_empty() == *negated),
            Tree::Look { behind: true, negated, body } => {
                let found = (0..=from).any(|start| body.ends(text, start).contains(&from));
                here(found != *negated)
            }
        }
    }

    fn all(&self, text: &[char], places: &BTreeSet<usize>) -> BTreeSet<usize> {
        places.iter().flat_map(|&from| self.ends(text, from)).collect()
    }
}

fn tree(looks: bool) -> impl Strategy<Value = Tree> {
    let set = prop::sample::select(vec!["a", "b", " ", "\n", ".", "\\w", "[^a]", "[ab]"]).prop_map(Tree::Set);
    let leaf = prop_oneof![
        10 => set,
        1 => Just(Tree::Empty),
        1 => Just(Tree::Start),
        1 => Just(Tree::End),
        1 => any::<bool>().prop_map(Tree::Line),
        1 => any::<bool>().prop_map(Tree::Word),
    ];
    leaf.prop_recursive(4, 14, 3, move |inner| {
        let counts = (0usize..3, prop::option::of(0usize..3));
        let repeat = (inner.clone(), counts)
            .prop_map(|(of, (min, more))| Tree::Repeat(Box::new(of), min, more.map(|more| min + more)));
        let look = (inner.clone(), any::<bool>(), any::<bool>());
        let look =
            look.prop_map(|(body, behind, negated)| Tree::Look { behind, negated, body: Box::new(body) });
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(Tree::Concat),
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(Tree::Or),
            2 => repeat,
            u32::from(looks) * 2 + 1 => if looks { look.boxed() } else { inner.boxed() },
        ]
    })
}

/// All texts of at most three characters and some longer ones.
fn texts() -> Vec<Vec<char>> {
    let alphabet = ['a', 'b', ' ', '\n'];
    let mut all: Vec<Vec<char>> = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..3 {
        last = last.iter().flat_map(|t| alphabet.map(|c| [t.as_slice(), &[c]].concat())).collect();
        all.extend(last.clone());
    }
    all.extend(["aabb", "ab ab", "a\nb\na", "b  a b", "abab"].map(|t| t.chars().collect()));
    all
}

fn agrees(tree: &Tree) -> Result<(), TestCaseError> {
    let mut pattern = String::new();
    tree.write(&mut pattern);
    for (options, search) in [(WHOLE, false), (SEARCH, true)] {
        let regex = match parse(&pattern, &options) {
            Ok(regex) => regex,
            Err(error) => {
                let known = error.kind == ErrorKind::Limit || error.message.contains("is not supported");
                prop_assert!(known, "{pattern:?}: {error}");
                return Err(TestCaseError::reject("named as not supported"));
            }
        };
        for text in texts() {
            let starts = if search { 0..text.len() + 1 } else { 0..1 };
            let mut ends = starts.flat_map(|from| tree.ends(&text, from));
            let truth = ends.any(|end| search || end == text.len());
            let text: String = text.iter().collect();
            prop_assert_eq!(matches(&regex, &text), truth, "{:?} on {:?}: {:?}", pattern, text, regex);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_global_rejects: 4000, ..ProptestConfig::default() })]

    #[test]
    fn anchors_anywhere_mean_what_their_tree_means(tree in tree(false)) {
        agrees(&tree)?;
    }

    #[test]
    fn lookarounds_anywhere_mean_what_their_tree_means(tree in tree(true)) {
        agrees(&tree)?;
    }
}

// -- random texts as patterns, by the regex crate

/// Pieces of the syntax that both read, with the same meaning on ASCII.
const PIECES: [&str; 40] = [
    "a",
    "b",
    "-",
    "0",
    "_",
    "ab",
    ".",
    "\\d",
    "\\w",
    "\\s",
    "\\D",
    "\\W",
    "\\S",
    "[ab]",
    "[^ab]",
    "[a-c0-9]",
    "[\\w-]",
    "[^\\d\\s]",
    "[[:alpha:]]",
    "[[:^space:]_]",
    "\\x61",
    "\\t",
    "\\.",
    "\\-",
    "(",
    ")",
    "(?:",
    "(?i:",
    "(?P<n>",
    "(?s)",
    "|",
    "*",
    "+",
    "?",
    "*?",
    "{2}",
    "{0,2}",
    "^",
    "$",
    "\\b",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn common_syntax_means_what_the_regex_crate_means(
        pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 1..9),
        texts in prop::collection::vec("[abA0_. \n-]{0,6}", 12),
    ) {
        let pattern = pieces.concat();
        let Ok(truth) = regex::Regex::new(&pattern) else { return Err(TestCaseError::reject("not a pattern")) };
        let ours = match parse(&pattern, &SEARCH) {
            Ok(ours) => ours,
            Err(error) => {
                prop_assert!(error.message.contains("quantifier") || error.message.contains("nothing to repeat"), "{}: {}", pattern, error);
                return Err(TestCaseError::reject("repeats a repetition"));
            }
        };
        for text in texts {
            prop_assert_eq!(matches(&ours, &text), truth.is_match(&text), "{:?} on {:?}: {:?}", pattern, text, ours);
        }
    }
}

// -- limits

#[test]
fn limits_are_errors() {
    let deep = format!("{}{}", "(".repeat(100_000), ")".repeat(100_000));
    let product = "(-\\b|a\\B|x)".repeat(60);
    let counted = "((?:^a|b\\b){1000}){1000}".to_string();
    let classes = "[\\p{L}\\p{N}]".repeat(60_000);
    let long = format!("(?:a(?<={})|b)*", "[ab]{300}");
    for pattern in [deep, product, counted, classes, long, "a".repeat(1_000_001)] {
        let error = parse(&pattern, &PatternOptions::SEARCH).expect_err(&pattern[..20]);
        assert_eq!(error.kind, ErrorKind::Limit, "{error}");
    }
    assert!(parse(&format!("{}a{}", "(".repeat(250), ")".repeat(250)), &PatternOptions::WHOLE).is_ok());
    let huge =
        parse("(?:ab|c){1000000,4294967295}", &PatternOptions { scope: MatchScope::Whole, ..WHOLE }).unwrap();
    assert!(format!("{huge:?}").len() < 1000);
}

#[test]
fn what_is_too_large_is_named_by_its_place() {
    let place = |pattern: &str| parse(pattern, &PatternOptions::SEARCH).unwrap_err().place;
    assert_eq!(place("ab(?<=[ab]{300})"), "1:3");
    assert_eq!(place("a\n(?:(?=[ab]{300}c).)*"), "2:4");
    assert_eq!(place("^a(?:(?:b\\b){1000}){1000}"), "1:13");
}

#[test]
fn hostile_patterns_end() {
    // Some threads have a stack of 64 KiB.
    let small = std::thread::Builder::new().stack_size(64 << 10);
    small.spawn(read_hostile_patterns).unwrap().join().unwrap();
}

fn read_hostile_patterns() {
    let nested = |open: &str, close: &str| format!("{}a{}", open.repeat(250), close.repeat(250));
    let patterns = [
        "(?=a)".repeat(100_000),
        "(?!a)b".repeat(20_000),
        "\\b\\w+\\b ".repeat(20_000),
        "(a|^b|c$|\\bd)".repeat(10_000),
        "a|".repeat(300_000),
        "(?i)".to_string() + &"ſß".repeat(200_000),
        "(?:x{1000}){1000}(?<!x{500})".into(),
        "(?=".repeat(249) + "a" + &")".repeat(249),
        "(?<=".repeat(249) + "a" + &")".repeat(249),
        nested("(?:", "|^)*"),
        nested("(?:\\b", "|$)*"),
        nested("(?:(?!a)", "){2}"),
        nested("(?:^?", "$?){0,3}"),
        "(?:(?!a.{0,40}b)[^]|(?=c.{0,40}d)[^])*".into(),
        "(?:\\b(?:a|\\B(?:b|\\b(?:c|$)*)*)*)*".into(),
        (0..400).map(|i| format!("(?=[{}])", char::from_u32(0x4e00 + i).unwrap())).collect(),
        (0..400).map(|i| format!("(?:(?={}).)*", char::from_u32(0x4e00 + i).unwrap())).collect(),
    ];
    for pattern in patterns {
        for options in [PatternOptions::SEARCH, PatternOptions::WHOLE] {
            let start = std::time::Instant::now();
            let answer = parse(&pattern, &options);
            assert!(start.elapsed().as_secs() < 20, "{:.30}", pattern);
            if let Err(error) = answer {
                assert_eq!(error.kind, ErrorKind::Limit, "{error}");
            }
        }
    }
}
