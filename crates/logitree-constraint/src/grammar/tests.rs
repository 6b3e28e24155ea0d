//! Every way to the tables of a lexeme, compared with the naive one, which feeds the bytes of every token to the
//! automaton and notes each place where it is complete. What follows a lexeme is tested in
//! `tests/it/grammar/masks.rs`.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::counted::counted as counted_tables;
use super::lexeme::{Crossing, Lexeme};
use super::table::narrow::{as_difference, default_state, LoopRounds};
use super::table::state::StartState;
use super::table::LexemeTables;
use super::walk::{loops_on_start, narrow, wide, Automaton, ByByte};
use logitree_grammar::expr::{Encoding, ExprId, Exprs, Tag, NOTHING};
use logitree_grammar::pattern::{self, PatternOptions};
use logitree_grammar::{CharSet, Regex};
use logitree_tokens::mask::ids;
use logitree_tokens::vocabulary::{Token, TokenKind, Vocabulary, VocabularyOptions};
use logitree_tokens::TokenId;

/// What tables say: the tokens inside, and of the others each place where they leave: how many bytes are left, and the
/// tags.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    inside: Vec<TokenId>,
    exits: Vec<(TokenId, usize, Vec<Tag>)>,
}

fn naive(e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary) -> Seen {
    let mut seen = Seen { inside: Vec::new(), exits: Vec::new() };
    for id in vocabulary.ids().filter(|&id| vocabulary.kind(id).is_text()) {
        let bytes = vocabulary.token_bytes(id);
        let first = seen.exits.len();
        let mut state = e;
        for (n, &byte) in bytes.iter().enumerate() {
            if n > 0 && exprs.is_complete(state) {
                seen.exits.push((id, bytes.len() - n, exprs.outcomes(state).to_vec()));
            }
            state = exprs.derive(state, byte).unwrap();
            if state == NOTHING {
                break;
            }
        }
        if state != NOTHING && !bytes.is_empty() {
            seen.inside.push(id);
            seen.exits.truncate(first);
        }
    }
    seen.exits.sort();
    seen
}

fn seen(lexeme: &Lexeme, vocabulary: &Vocabulary) -> Seen {
    let trie = vocabulary.trie().unwrap();
    let mut exits = Vec::new();
    let mut add = |crossings: &[Crossing], takes: &dyn Fn(TokenId) -> bool, but: &[TokenId]| {
        for crossing in crossings {
            for byte in crossing.bytes.iter() {
                let suffixes = crossing.suffixes(byte, &takes, trie);
                let all = suffixes.iter().flat_map(|suffixes| suffixes.all());
                let own = all.filter(|(id, _)| but.binary_search(id).is_err() && !lexeme.takes(*id));
                exits.extend(own.map(|(id, rest)| (id, rest, crossing.tags.to_vec())));
            }
        }
    };
    if let Some(base) = &lexeme.base {
        assert!(base.lexeme.base.is_none());
        assert!([&base.without, &base.elsewhere].iter().all(|ids| ids.is_sorted_by(|a, b| a < b)));
        add(&base.lexeme.crossings, &|id| base.lexeme.takes(id), &base.elsewhere);
    }
    add(&lexeme.crossings, &|id| lexeme.takes(id), &[]);
    exits.sort();
    exits.dedup(); // a base may know of them, too
    Seen { inside: vocabulary.ids().filter(|&id| lexeme.takes(id)).collect(), exits }
}

/// How often each way was gone.
#[derive(Debug, Default)]
struct Gone {
    bounded: Cell<usize>,
    mostly: Cell<usize>,
    differing: Cell<usize>,
    saturated: Cell<usize>,
    behind: Cell<usize>,
    far: Cell<usize>,
    between: Cell<usize>,
    pieces: Cell<usize>,
    bracket: Cell<usize>,
    parts: Cell<usize>,
}

/// What is kept from one expression to the next.
struct Kept {
    by_byte: ByByte,
    tables: LexemeTables,
}

impl Kept {
    fn new(vocabulary: &Vocabulary) -> Kept {
        Kept { by_byte: ByByte::new(vocabulary.trie().unwrap()), tables: LexemeTables::default() }
    }
}

fn once_more(count: &Cell<usize>) {
    count.set(count.get() + 1);
}

/// Goes every way to the tables of `e`.
fn compare(e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary, kept: &Kept, gone: &Gone) {
    let by_byte = &kept.by_byte;
    let trie = vocabulary.trie().unwrap();
    let truth = naive(e, exprs, vocabulary);
    let equal = |way: &str, lexeme: &Lexeme, exprs: &Exprs| {
        let found = seen(lexeme, vocabulary);
        let text = |id: TokenId| String::from_utf8_lossy(vocabulary.token_bytes(id)).into_owned();
        let (a, b) = (&truth.inside, &found.inside);
        let only = |a: &[TokenId], b: &[TokenId]| a.iter().copied().find(|id| b.binary_search(id).is_err());
        let inside = (only(a, b).map(text), only(b, a).map(text));
        assert!(a == b, "{way} of {}: not taken, or wrongly taken: {inside:?}", exprs.show(e));
        let only = |a: &Seen, b: &Seen| {
            let exit = a.exits.iter().find(|exit| b.exits.binary_search(exit).is_err());
            exit.map(|exit| (text(exit.0), exit.clone()))
        };
        let exits = (only(&truth, &found), only(&found, &truth));
        assert!(truth == found, "{way} of {}: exits missed, or wrong: {exits:?}", exprs.show(e));
    };
    let root = StartState::root(e, &exprs.first_bytes(e).unwrap(), trie);
    let made = narrow(&root, exprs, trie, usize::MAX).unwrap().unwrap();
    equal("narrow", &made, exprs);
    let tables = LexemeTables::default();
    let place = tables.place(e, exprs, vocabulary).unwrap();
    if place.state != e {
        equal("behind", &narrow(&place, exprs, trie, usize::MAX).unwrap().unwrap(), exprs);
        once_more(&gone.behind);
    }
    let made = wide(e, exprs, vocabulary, by_byte).unwrap();
    equal("wide", &made, exprs);
    compare_sweeps(e, &truth, exprs, (vocabulary, by_byte), gone);
    if let Some(bounds) = exprs.bounded_loop(e).unwrap() {
        let base = Arc::new(wide(bounds.endless, exprs, vocabulary, by_byte).unwrap());
        let rounds = LoopRounds::new(bounds.endless, exprs, trie).unwrap();
        equal("bounded", &rounds.bounded(&bounds, &base, exprs), exprs);
        once_more(&gone.bounded);
    }
    if let Some(other) = default_state(e, exprs).unwrap() {
        let base = Arc::new(wide(other, exprs, vocabulary, by_byte).unwrap());
        let root = root.with(&exprs.first_bytes(other).unwrap(), trie);
        if let Some(near) = as_difference(&root, other, &base, exprs, trie).unwrap() {
            equal("mostly", &near, exprs);
            once_more(&gone.mostly);
        }
    }
    if let Some(far) = tables.far(e, exprs, vocabulary).unwrap() {
        equal("far", &far, exprs);
        once_more(&gone.far);
    }
    if let Some(between) = tables.between(e, exprs, vocabulary).unwrap() {
        equal("between", &between, exprs);
        once_more(&gone.between);
    }
    compare_parts(e, &truth, exprs, vocabulary, gone);
    let short = exprs.saturated(e, trie.max_depth() as u32).unwrap();
    if short != e {
        assert_eq!(naive(short, exprs, vocabulary), truth, "saturated {}", exprs.show(e));
        once_more(&gone.saturated);
    }
    equal("the tables", &LexemeTables::default().lexeme(e, exprs, vocabulary).unwrap(), exprs);
    equal("the vocabulary's tables", &kept.tables.lexeme(e, exprs, vocabulary).unwrap(), exprs);
}

/// What a sweep finds, and one that stops at a byte.
fn compare_sweeps(
    e: ExprId,
    truth: &Seen,
    exprs: &mut Exprs,
    (vocabulary, by_byte): (&Vocabulary, &ByByte),
    gone: &Gone,
) {
    let Some(automaton) = Automaton::new(e, exprs).unwrap() else { return };
    let whole = automaton.inside(vocabulary.trie().unwrap()).unwrap();
    assert_eq!(ids(&whole).collect::<Vec<_>>(), truth.inside, "a sweep of {}", exprs.show(e));
    for cut in [b'"', b'a'] {
        let Some(short) = automaton.without(cut, exprs).unwrap() else { return };
        let parts = automaton.inside_in_parts((&short, cut), vocabulary, by_byte).unwrap();
        assert_eq!(ids(&parts).collect::<Vec<_>>(), truth.inside, "a sweep in parts of {}", exprs.show(e));
        if loops_on_start(&short) > loops_on_start(automaton.table()) {
            once_more(&gone.parts);
        }
    }
}

/// What is taken apart or rounded, beside the whole.
fn compare_parts(e: ExprId, truth: &Seen, exprs: &mut Exprs, vocabulary: &Vocabulary, gone: &Gone) {
    let mut pieces = Vec::new();
    exprs.split_alternatives(e, &mut |piece| pieces.push(piece)).unwrap();
    if pieces != [e] {
        let mut all = Seen { inside: Vec::new(), exits: Vec::new() };
        for &piece in &pieces {
            let seen = naive(piece, exprs, vocabulary);
            all.inside.extend(seen.inside);
            all.exits.extend(seen.exits);
        }
        all.inside.sort_unstable();
        all.inside.dedup();
        all.exits.retain(|exit| all.inside.binary_search(&exit.0).is_err());
        let tags = |exits: &[(TokenId, usize, Vec<Tag>)]| {
            let one = |(id, rest, tags): &(TokenId, usize, Vec<Tag>)| {
                tags.iter().map(|tag| (*id, *rest, *tag)).collect::<Vec<_>>()
            };
            exits.iter().flat_map(one).collect::<BTreeSet<_>>()
        };
        assert_eq!(all.inside, truth.inside, "pieces of {}", exprs.show(e));
        assert_eq!(tags(&all.exits), tags(&truth.exits), "pieces of {}", exprs.show(e));
        once_more(&gone.pieces);
    }
    if let Some((less, more)) = exprs.approximations(e).unwrap() {
        let [less, more] = [less, more].map(|e| naive(e, exprs, vocabulary).inside);
        assert!(less.iter().all(|id| truth.inside.binary_search(id).is_ok()), "less than {}", exprs.show(e));
        assert!(truth.inside.iter().all(|id| more.binary_search(id).is_ok()), "more than {}", exprs.show(e));
        once_more(&gone.bracket);
    }
}

// -- Random expressions over small vocabularies

const LETTERS: [char; 6] = ['a', 'b', 'c', '"', ' ', 'é'];

fn set() -> impl Strategy<Value = Regex> {
    let some = |most: usize| prop::sample::subsequence(LETTERS.to_vec(), 1..most);
    let of = |chars: Vec<char>| CharSet::from_ranges(chars.into_iter().map(|c| (c.into(), c.into())));
    prop_oneof![
        some(4).prop_map(move |chars| Regex::Set(of(chars))),
        some(3).prop_map(move |chars| Regex::Set(of(chars).not())),
    ]
}

fn word() -> impl Strategy<Value = Regex> {
    prop::collection::vec(prop::sample::select(LETTERS.to_vec()), 0..4)
        .prop_map(|chars| Regex::text(chars.into_iter().collect::<String>()))
}

fn regex() -> impl Strategy<Value = Regex> {
    let leaf = prop_oneof![3 => set(), 3 => word(), 1 => Just(Regex::anything())];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(Regex::Concat),
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(Regex::Or),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(Regex::And),
            1 => inner.clone().prop_map(Regex::not),
            3 => (inner, 0u32..4, prop::option::of(0u32..9))
                .prop_map(|(of, min, more)| of.repeat(min, more.map(|more| min + more))),
        ]
    })
}

/// A loop with bounds, whose rounds are one letter or several, and something that no round begins with.
fn bounded() -> impl Strategy<Value = Regex> {
    let letters = Just(LETTERS.to_vec()).prop_shuffle();
    let parts = (letters, 1usize..4, any::<bool>());
    (parts, (0u32..6, 0u32..7), regex()).prop_map(|((letters, count, long), (min, more), then)| {
        let set = |chars: &[char]| {
            Regex::Set(CharSet::from_ranges(chars.iter().map(|&c| (u32::from(c), u32::from(c)))))
        };
        let (body, others) = letters.split_at(count);
        let round =
            if long { Regex::concat([set(body).repeat(1, None), set(&others[..1])]) } else { set(body) };
        Regex::concat([round.repeat(min, Some(min + more + 1)), set(&others[1..]), then])
    })
}

/// The shapes that the fast ways are made for, and any others.
fn shape() -> impl Strategy<Value = Regex> {
    let counts = (prop_oneof![0u32..5, 60u32..70], prop::option::of(prop_oneof![0u32..6, 60u32..70]));
    let many = |of: Regex, (min, more): (u32, Option<u32>)| of.repeat(min, more.map(|more| min + more));
    let names = prop::collection::vec(word(), 1..4);
    prop_oneof![
        3 => regex(),
        4 => bounded(),
        3 => (set(), counts.clone(), regex()).prop_map(move |(of, n, then)| Regex::concat([many(of, n), then])),
        2 => (regex(), counts, regex()).prop_map(move |(of, n, then)| Regex::concat([many(of, n), then])),
        3 => (set(), names, regex()).prop_map(|(of, names, then)| {
            let others = Regex::and([of.repeat(0, None), Regex::or(names).not()]);
            Regex::concat([others, then])
        }),
        6 => (keys(), prop::bool::weighted(0.3)).prop_map(|(keys, comma)| {
            let comma = if comma { Regex::text("c") } else { Regex::Empty };
            Regex::concat([comma, Regex::text(" ").repeat(0, Some(3)), keys])
        }),
        3 => (counted(), regex()).prop_map(|(counted, then)| Regex::concat([counted, then])),
        1 => (set(), 2u32..7).prop_map(|(of, n)| {
            let any = Regex::Set(CharSet::all());
            Regex::concat([any.clone().repeat(0, None), of.repeat(n, Some(n)), any.repeat(0, None)])
        }),
    ]
}

/// Keys with a name and, with another tag where tags are, keys without one: what an object has next.
fn keys() -> impl Strategy<Value = Regex> {
    let names = || prop::collection::vec(word(), 1..4);
    (names(), names()).prop_map(|(all, left)| {
        let letters = CharSet::from_ranges(['a', 'b', 'c', 'é'].map(|c| (c.into(), c.into())));
        let others = Regex::and([Regex::Set(letters).repeat(0, None), Regex::or(all).not()]);
        let quoted = |of: Regex| Regex::concat([Regex::text("\""), of, Regex::text("\"")]);
        Regex::or([quoted(others), Regex::or(left.into_iter().map(quoted))])
    })
}

/// Words in a row, and their letters, both counted.
fn counted() -> impl Strategy<Value = Regex> {
    let counts = (0u32..2, prop_oneof![3u32..12, 30u32..140], 0u32..2, prop_oneof![4u32..30, 100u32..200]);
    (set(), set(), counts).prop_map(|(letters, between, (min, words, least, most))| {
        let word = letters.repeat(1, None);
        let text = Regex::concat([word.clone(), between]).repeat(min, Some(min + words));
        let any = Regex::Set(CharSet::all());
        Regex::and([Regex::concat([text, word]), any.repeat(least, Some(least + most))])
    })
}

/// One shape, or several with tags.
fn tagged() -> impl Strategy<Value = Vec<(Regex, Tag)>> {
    prop::collection::vec((shape(), 0u32..3), 1..=2)
}

fn pieces(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let bytes: Vec<u8> = LETTERS.iter().collect::<String>().into_bytes();
    prop::collection::vec(prop::sample::select(bytes), 1..most)
}

fn small_vocabulary(tokens: &[Vec<u8>]) -> Vocabulary {
    let tokens = tokens.iter().map(|bytes| Token { bytes: bytes.clone(), kind: TokenKind::Normal });
    Vocabulary::new(tokens, VocabularyOptions::default()).unwrap()
}

fn compiled(exprs: &mut Exprs, parts: &[(Regex, Tag)], encoding: Encoding) -> ExprId {
    let ways: Vec<ExprId> = parts
        .iter()
        .map(|(regex, tag)| {
            let (e, tag) = (exprs.compile(regex, encoding).unwrap(), exprs.tag(*tag).unwrap());
            exprs.concat(&[e, tag]).unwrap()
        })
        .collect();
    exprs.or(&ways).unwrap()
}

#[test]
fn all_ways_to_tables_are_the_naive_one() {
    let gone = Gone::default();
    let strategy = (
        (tagged(), tagged(), any::<bool>()),
        prop::collection::vec(pieces(7), 1..60),
        prop::collection::vec(pieces(6), 0..5),
    );
    let mut runner = TestRunner::new(Config { cases: 6_000, failure_persistence: None, ..Config::default() });
    let run = runner.run(&strategy, |((parts, others, json), tokens, befores)| {
        let vocabulary = small_vocabulary(&tokens);
        let trie = vocabulary.trie().unwrap();
        let kept = Kept::new(&vocabulary);
        let mut exprs = Exprs::new(1 << 20);
        let encoding = if json { Encoding::Json { ascii: false } } else { Encoding::Utf8 };
        let e = compiled(&mut exprs, &parts, encoding);
        let other = compiled(&mut exprs, &others, encoding);
        compare(e, &mut exprs, &vocabulary, &kept, &gone);
        for before in &befores {
            let all = before.iter().try_fold(e, |e, &byte| exprs.derive(e, byte)).unwrap();
            compare(all, &mut exprs, &vocabulary, &kept, &gone);
        }
        // Any two states will do, however little they have in common.
        let (truth, base) =
            (naive(e, &mut exprs, &vocabulary), wide(other, &mut exprs, &vocabulary, &kept.by_byte));
        let first = exprs.first_bytes(e).unwrap().or(&exprs.first_bytes(other).unwrap());
        let root = StartState::root(e, &first, trie);
        if let Some(near) = as_difference(&root, other, &Arc::new(base.unwrap()), &mut exprs, trie).unwrap() {
            prop_assert_eq!(seen(&near, &vocabulary), truth, "{} from {}", exprs.show(e), exprs.show(other));
            once_more(&gone.differing);
        }
        Ok(())
    });
    run.unwrap();
    let often = [&gone.bounded, &gone.mostly, &gone.differing, &gone.saturated, &gone.behind, &gone.pieces];
    let counts =
        often.into_iter().chain([&gone.far, &gone.between, &gone.bracket, &gone.parts]).map(Cell::get);
    assert!(counts.min() > Some(200), "{gone:?}");
}

// -- Expressions as grammars have them, over large vocabularies

/// All bytes, words with and without their surroundings, numbers, and JSON's punctuation.
fn written_vocabulary() -> Vocabulary {
    let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
    let syllables = ["a", "be", "con", "der", "é", "ing", "na", "s", "tion", "über", "日", "x"];
    for a in syllables {
        for b in syllables {
            for c in ["", "al", "me", "s", "\"", "\":", "\",", " ", ".", "_"] {
                for before in ["", " ", "\"", " \"", "{\""] {
                    tokens.push([before, a, b, c].concat().into_bytes());
                }
            }
        }
    }
    tokens.extend((0..1_000).map(|n: u32| n.to_string().into_bytes()));
    tokens.extend((1..80).map(|n| vec![b' '; n]));
    tokens.extend((1..70).map(|n| vec![b'a'; n]));
    let marks = ["{", "}", "[", "]", ":", ",", " ", "\"", "\\", "n", "\n", "-", ".", "e"];
    for a in marks {
        for b in marks {
            tokens.extend(marks.map(|c| [a, b, c].concat().into_bytes()));
        }
    }
    small_vocabulary(&tokens)
}

/// Llama 3's, where the data is there. Names of tests that need it end with `with_the_data`: `make test-data` selects
/// them so.
fn real_vocabulary() -> Option<Vocabulary> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = std::env::var("LOGITREE_DATA").unwrap_or_else(|_| beside.into());
    let path = Path::new(&folder).join("vocabs/ggml-vocab-llama-bpe.gguf");
    if !path.exists() {
        eprintln!("skipped: {} is absent, set LOGITREE_DATA to the data folder", path.display());
        return None;
    }
    Some(Vocabulary::from_gguf(&path).unwrap())
}

/// Patterns inside a JSON string or a text, and whether it is the string: then its closing quote follows.
const PATTERNS: [(&str, bool); 53] = [
    (r"[\s\S]*", true),
    (r"[\s\S]{0,5}", true),
    (r"[\s\S]{3,}", true),
    (r"[\s\S]{1,17}", true),
    (r"[\s\S]{2,300}", true),
    (r"[\s\S]{40,60}", true),
    (r"[^,]*", true),
    (r"[a-z]+", true),
    (r"[a-z]{1,8}", true),
    (r"[a-z]{8}", true),
    (r"[A-Za-z_][A-Za-z0-9_]*", true),
    (r"(?!(?:name|id|type)$)[\s\S]*", true),
    (r"(?!(?:name|id|type)$)[\s\S]{1,12}", true),
    (r"(?!x-)[\s\S]*", true),
    (r"[\s\S]*(?:ing|tion)", true),
    (r"(?:[a-z]+ )*[a-z]+", true),
    (r"[^@]+@[^@]+", true),
    (r"\d{4}-\d\d-\d\d", true),
    (r"(?:red|green|blue|name|note|none)", true),
    (r"\p{L}+", true),
    (r"\w{2,}\d*", true),
    (r"(?:ab|[c-z])*", true),
    (r"[\s\S]*", false),
    (r"[a-z]+", false),
    (r"[a-z]{3,}", false),
    (r"[a-z]{0,20}", false),
    (r"[^\n]*\n", false),
    (r"[^\n]{0,80}\n", false),
    (r"(?:[^\n]+\n)*", false),
    (r"(?:[^\n]{1,9}\n){0,5}```", false),
    (r"(?:[a-z]+,){2,4};", false),
    (r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", false),
    (r"(?:[0-9]|[1-9][0-9]|100)", false),
    (r"\s*", false),
    (r" {0,63}[a-z]", false),
    (r"(?!(?:if|in|is)$)[a-z]+", false),
    (r"(?!(?:if|in|is)$)[a-z]+;", false),
    (r"(?:a|b)*abb", false),
    (r"(?:[\s\S]*)</tool>", false),
    (r"(?![\s\S]*```)[\s\S]*", false),
    (r"(?:(?![\s\S]*</tool>)[\s\S]*)</tool>", false),
    (r"(?:1|[0a-z]0*[1a-z])*[0a-z]0*", false),
    (r"(?:[^ ]{1,9} ){3,9}\.", false),
    (r"[\s\S]{0,9}", false),
    (r"(?=[\s\S]{0,60}$)(?:\S+\s+){0,24}\S+", true),
    (r"(?=[\s\S]{1,300}$)(?:\S+\s+){0,99}\S+", true),
    (r"(?=[\s\S]{0,40}$)(?:\S+\s+){0,9}\S+", true),
    (r"(?=.{0,20}$)(?:[a-z]{1,9} )*[a-z]+", false),
    (r"(?: |\n {0,20})?(?:(?!(?:name|id|type)$)[a-z]*:|(?:name|id);)", false),
    (r"(?:a|an(?=aa)bb)", false),
    (r"(?:12|1(?=..$)a)", true),
    (r"(?: b?[ -`b-~]*)?", false),
    (r"(?: b?[ -`b-~]*)?abc", false),
];

/// Texts that lead to further states.
const BEFORE: [&str; 6] = ["", "a", "na", "12", "the name of ", "i"];

fn compare_patterns(vocabulary: &Vocabulary) -> Gone {
    let gone = Gone::default();
    let kept = Kept::new(vocabulary);
    for (n, (text, is_string)) in PATTERNS.iter().enumerate() {
        let mut exprs = Exprs::new(1 << 20);
        let regex = pattern::parse(text, &PatternOptions::WHOLE).unwrap();
        let encoding = if *is_string { Encoding::Json { ascii: n % 5 == 4 } } else { Encoding::Utf8 };
        let (inside, end) = (exprs.compile(&regex, encoding).unwrap(), exprs.bytes(b"\"").unwrap());
        let e = if *is_string { exprs.concat(&[inside, end]).unwrap() } else { inside };
        let mut done = vec![NOTHING];
        for before in BEFORE {
            let state = before.bytes().try_fold(e, |e, byte| exprs.derive(e, byte)).unwrap();
            if !done.contains(&state) {
                compare(state, &mut exprs, vocabulary, &kept, &gone);
                done.push(state);
            }
        }
    }
    gone
}

#[test]
fn patterns_over_a_written_vocabulary() {
    let gone = compare_patterns(&written_vocabulary());
    assert!(gone.bounded.get() > 20 && gone.mostly.get() > 10 && gone.saturated.get() > 2, "{gone:?}");
}

/// Patterns beside a minimum and a maximum of characters.
const COUNTED: [(&str, u32, Option<u32>); 12] = [
    (r"[a-z]+(?: [a-z]+)*", 0, Some(12)),
    (r"[a-z]+(?: [a-z]+)*", 3, Some(200)),
    (r"[a-z]+(?: [a-z]+)*", 5, None),
    (r"[\s\S]*(?:ing|tion)", 0, Some(9)),
    (r"[\s\S]*(?:ing|tion)", 4, Some(40)),
    (r"(?![\s\S]*ing)[\s\S]*", 2, Some(17)),
    (r"[^@]+@[^@]+", 5, Some(30)),
    (r"[^@]+@[^@]+", 0, Some(254)),
    (r"(?:[a-z]{2})*", 1, Some(9)),
    (r"\w{2,}\d*é*", 1, Some(7)),
    (r"(?:red|green|blue|name|note|none)", 4, Some(5)),
    (r"(?=[\s\S]*\d)[\s\S]*[a-z]", 0, Some(6)),
];

#[test]
fn counted_texts_have_the_tables_of_the_naive_version() {
    let vocabulary = written_vocabulary();
    let kept = Kept::new(&vocabulary);
    let gone = Gone::default();
    let mut made = 0;
    for (pattern, min, max) in COUNTED {
        let mut exprs = Exprs::new(1 << 20);
        let encoding = Encoding::Json { ascii: false };
        // Without an intersection of its own, the pattern is one of any text.
        let regex = pattern::parse(pattern, &PatternOptions::WHOLE).unwrap();
        let never = Regex::concat([Regex::text("~~"), Regex::anything().repeat(0, None)]).not();
        let text = exprs.compile(&Regex::and([regex, never]), encoding).unwrap();
        let text = exprs.determined(text).unwrap();
        let any = exprs.chars(&CharSet::all(), encoding).unwrap();
        let counted = exprs.repeat(any, min, max).unwrap();
        let (both, end) = (exprs.and(&[text, counted]).unwrap(), exprs.bytes(b"\"").unwrap());
        let e = exprs.concat(&[both, end]).unwrap();
        let mut done = vec![NOTHING];
        for before in BEFORE.iter().chain(&["a@", "gree", "\u{e9}", "\\", "abcdefg", "1é"]) {
            let state = before.bytes().try_fold(e, |e, byte| exprs.derive(e, byte)).unwrap();
            if !done.contains(&state) {
                made += usize::from(
                    counted_tables(state, &mut exprs, vocabulary.trie().unwrap()).unwrap().is_some(),
                );
                compare(state, &mut exprs, &vocabulary, &kept, &gone);
                done.push(state);
            }
        }
    }
    assert!(made > 25, "{made}");
}

#[test]
fn patterns_over_a_real_vocabulary_with_the_data() {
    let Some(vocabulary) = real_vocabulary() else { return };
    let gone = compare_patterns(&vocabulary);
    assert!(gone.bounded.get() > 20 && gone.mostly.get() > 10, "{gone:?}");
}
