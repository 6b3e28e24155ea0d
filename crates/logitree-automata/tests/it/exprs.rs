//! Expressions compared with a naive version, which tries a text against every part of a regular language.

use std::sync::Arc;

use logitree_automata::dfa::{ComputedDfa, ComputedState, Steps};
use logitree_automata::expr::{Encoding, Exprs, EMPTY, NOTHING};
use logitree_automata::{CharSet, Regex};
use logitree_testing::regexes::matches;
use proptest::prelude::*;

const LETTERS: [char; 6] = ['a', 'b', '"', '\n', 'é', '😀'];

fn set() -> impl Strategy<Value = CharSet> {
    prop_oneof![
        prop::sample::subsequence(LETTERS.to_vec(), 0..4)
            .prop_map(|chars| CharSet::from_ranges(chars.into_iter().map(|c| (c.into(), c.into())))),
        prop::sample::subsequence(LETTERS.to_vec(), 0..3)
            .prop_map(|chars| CharSet::from_ranges(chars.into_iter().map(|c| (c.into(), c.into()))).not()),
    ]
}

fn regex() -> impl Strategy<Value = Regex> {
    let leaf = prop_oneof![
        1 => Just(Regex::Nothing),
        1 => Just(Regex::Empty),
        4 => set().prop_map(Regex::Set),
        4 => prop::collection::vec(prop::sample::select(LETTERS.to_vec()), 0..3)
            .prop_map(|chars| Regex::Text(chars.into_iter().collect())),
        1 => Just(Regex::anything()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Regex::Concat),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Regex::Or),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Regex::And),
            inner.clone().prop_map(Regex::not),
            (inner, 0u32..3, prop::option::of(0u32..4)).prop_map(|(of, min, max)| of.repeat(min, max)),
        ]
    })
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(
        prop::collection::vec(prop::sample::select(LETTERS.to_vec()), 0..6)
            .prop_map(|chars| chars.into_iter().collect()),
        1..12,
    )
}

/// A spelling of `text` in a JSON string, without quotes: each character as it is, if that is allowed, or one of its escapes.
fn spelled(text: &str, ascii: bool, mut seed: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for c in text.chars() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let way = seed >> 60;
        let short =
            "\"\\/\u{8}\u{c}\n\r\t".chars().position(|other| other == c).filter(|_| way.is_multiple_of(2));
        if let Some(short) = short {
            bytes.extend([b'\\', b"\"\\/bfnrt"[short]]);
        } else if way < 9 && c >= ' ' && !"\"\\".contains(c) && (c.is_ascii() || !ascii) {
            bytes.extend(c.to_string().as_bytes());
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let digits = if way & 3 == 1 { format!("{unit:04X}") } else { format!("{unit:04x}") };
                bytes.extend(format!("\\u{digits}").as_bytes());
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn expressions_match_what_the_naive_version_matches(regex in regex(), texts in texts(), seed in any::<u64>()) {
        let json = [false, true].map(|ascii| [Encoding::Json { ascii }, Encoding::AnyJson { ascii }]);
        for encoding in json.into_iter().flatten().chain([Encoding::Utf8]) {
            let mut exprs = Exprs::new(100_000);
            let e = exprs.compile(&regex, encoding).expect("within limits");
            for text in &texts {
                let bytes = match encoding {
                    Encoding::AnyJson { ascii } => spelled(text, ascii, seed),
                    Encoding::Utf8 | Encoding::Json { .. } => encoding.text(text),
                };
                let expected = matches(&regex, text);
                prop_assert_eq!(exprs.matches(e, &bytes).expect("within limits"), expected, "{} {:?}", exprs.show(e), text);
                // Every prefix of a match is alive, and first bytes are exact.
                let mut at = e;
                for &byte in &bytes {
                    let next = exprs.derive(at, byte).expect("within limits");
                    prop_assert_eq!(exprs.first_bytes(at).expect("within limits").contains(byte), next != NOTHING);
                    prop_assert!(next == NOTHING || exprs.is_alive(next).expect("within limits"));
                    prop_assert!(!expected || next != NOTHING);
                    at = next;
                }
                prop_assert_eq!(exprs.can_continue(at).expect("within limits"), !exprs.first_bytes(at).expect("within limits").is_empty());
            }
        }
    }

    /// One automaton, and what is derived from it, match what the combination matches.
    #[test]
    fn determined_expressions_match_what_they_were_made_from(
        (parts, nots) in (prop::collection::vec(regex(), 1..4), prop::collection::vec(regex(), 0..4)),
        around in any::<bool>(),
        texts in texts(),
    ) {
        let any = || Regex::anything().repeat(0, None);
        let search = |of: Regex| if around { Regex::concat([any(), of, any()]) } else { of };
        let all = parts.into_iter().map(search).chain(nots.into_iter().map(|of| search(of).not()));
        let regex = Regex::and(all);
        for encoding in [Encoding::Utf8, Encoding::Json { ascii: false }] {
            let mut exprs = Exprs::new(1_000_000);
            let e = exprs.compile(&regex, encoding).expect("within limits");
            let made = exprs.determined(e).expect("within limits");
            prop_assert_eq!(exprs.is_alive(e).expect("within limits"), made != NOTHING);
            let whole = exprs.any_text(encoding).expect("within limits");
            let both = exprs.and(&[whole, made]).expect("within limits");
            for text in &texts {
                let bytes = encoding.text(text);
                let (mut a, mut b, mut c) = (e, made, both);
                for &byte in &bytes {
                    [a, b, c] = [a, b, c].map(|e| exprs.derive(e, byte).expect("within limits"));
                    prop_assert_eq!(a == NOTHING, b == NOTHING, "{} {:?}", exprs.show(e), text);
                    prop_assert_eq!(a == NOTHING, c == NOTHING, "{} {:?}", exprs.show(e), text);
                }
                prop_assert_eq!(exprs.is_complete(a), exprs.is_complete(b), "{} {:?}", exprs.show(e), text);
                prop_assert_eq!(exprs.is_complete(a), exprs.is_complete(c), "{} {:?}", exprs.show(e), text);
                let first = [a, b, c].map(|e| exprs.first_bytes(e).expect("within limits"));
                prop_assert!(first[0] == first[1] && first[0] == first[2]);
            }
        }
    }

    /// An expression is alive if following first bytes reaches a match.
    #[test]
    fn what_is_alive_can_be_completed(regex in regex()) {
        let mut exprs = Exprs::new(100_000);
        let e = exprs.compile(&regex, Encoding::Utf8).expect("within limits");
        let mut seen = vec![e];
        let mut at = 0;
        let mut complete = false;
        while at < seen.len() && seen.len() < 5_000 && !complete {
            complete = exprs.is_complete(seen[at]);
            for byte in exprs.first_bytes(seen[at]).expect("within limits").iter() {
                let next = exprs.derive(seen[at], byte).expect("within limits");
                if !seen.contains(&next) {
                    seen.push(next);
                }
            }
            at += 1;
        }
        prop_assert_eq!(exprs.is_alive(e).expect("within limits"), complete);
    }

    #[test]
    fn saturated_counters_agree_on_short_texts(
        of in set(), min in 0u32..40, more in prop::option::of(0u32..40), then in regex(), texts in texts(),
    ) {
        let mut exprs = Exprs::new(100_000);
        let regex = Regex::concat([Regex::Set(of).repeat(min, more.map(|more| min + more)), then]);
        let e = exprs.compile(&regex, Encoding::Utf8).expect("within limits");
        let short = exprs.saturated(e, 12).expect("within limits");
        for text in &texts {
            let (mut a, mut b) = (e, short);
            for &byte in text.as_bytes().iter().take(12) {
                a = exprs.derive(a, byte).expect("within limits");
                b = exprs.derive(b, byte).expect("within limits");
                prop_assert_eq!(a == NOTHING, b == NOTHING);
                prop_assert_eq!(exprs.outcomes(a), exprs.outcomes(b));
            }
        }
    }

    /// By every other byte, what excludes texts and what does not have equal derivatives.
    #[test]
    fn exclusions_part_by_their_own_bytes(
        of in regex(), excluded in prop::collection::vec("[ab]{0,4}", 1..5), then in prop::option::of(regex()),
        texts in texts(),
    ) {
        let mut exprs = Exprs::new(100_000);
        let named = Regex::or(excluded.iter().map(Regex::text));
        let but = Regex::and([of.clone(), named.not()]);
        let [mine, theirs] = [but, of].map(|head| {
            let whole = Regex::concat([head].into_iter().chain(then.clone()));
            exprs.compile(&whole, Encoding::Utf8).expect("within limits")
        });
        for text in &texts {
            let (mut a, mut b) = (mine, theirs);
            for &byte in text.as_bytes() {
                let parting = exprs.parting_bytes(a, b).expect("within limits");
                prop_assert!(a != b || parting.is_empty());
                for other in 0..=u8::MAX {
                    let both = [a, b].map(|e| exprs.derive(e, other).expect("within limits"));
                    prop_assert!(parting.contains(other) || both[0] == both[1], "{} {}", exprs.show(a), exprs.show(b));
                }
                [a, b] = [a, b].map(|e| exprs.derive(e, byte).expect("within limits"));
            }
        }
    }

    /// Texts in any spelling, and all strings but them, against what a reader of JSON says of the string.
    #[test]
    fn spelled_texts_are_what_they_mean(
        texts in prop::collection::vec(("[ab/\"\\\\\n\u{7f}é😀]{0,3}", 0u32..3), 0..8), ascii in any::<bool>(),
        probe in "[ab/\"\\\\\n\u{7f}é😀]{0,4}", which in any::<prop::sample::Index>(), seed in any::<u64>(),
        damage in prop::option::of(("[\\\\u0aD8\"/é]", any::<prop::sample::Index>())),
    ) {
        let mut exprs = Exprs::new(100_000);
        let mut pairs = Vec::new();
        for (text, tag) in &texts {
            pairs.push((text.as_str(), exprs.tag(*tag).expect("within limits")));
        }
        let e = exprs.spelled(&pairs, ascii).expect("within limits");
        let plain: Vec<_> = pairs.iter().map(|&(text, _)| (text, EMPTY)).collect();
        let plain = exprs.spelled(&plain, ascii).expect("within limits");
        let not = exprs.not(plain).expect("within limits");
        let any = exprs.any_text(Encoding::AnyJson { ascii }).expect("within limits");
        let others = exprs.and(&[any, not]).expect("within limits");
        // Mostly one of the texts; sometimes with another character somewhere.
        let probe = if seed.is_multiple_of(3) || texts.is_empty() { probe } else { texts[which.index(texts.len())].0.clone() };
        let mut written = String::from_utf8(spelled(&probe, ascii, seed)).expect("UTF-8");
        if let Some((text, at)) = damage {
            let places: Vec<usize> = written.char_indices().map(|(at, _)| at).chain([written.len()]).collect();
            written.insert_str(places[at.index(places.len())], &text);
        }
        let meant = serde_json::from_str::<String>(&format!("\"{written}\"")).ok();
        let meant = meant.filter(|_| !ascii || written.is_ascii());
        let mut at = e;
        for byte in written.bytes() {
            let next = exprs.derive(at, byte).expect("within limits");
            prop_assert_eq!(exprs.first_bytes(at).expect("within limits").contains(byte), next != NOTHING);
            prop_assert!(next == NOTHING || exprs.is_alive(next).expect("within limits"));
            at = next;
        }
        let mut tags: Vec<u32> = texts.iter().filter(|(text, _)| meant.as_ref() == Some(text)).map(|pair| pair.1).collect();
        tags.sort_unstable();
        tags.dedup();
        let is_other = meant.is_some() && tags.is_empty();
        prop_assert_eq!(exprs.outcomes(at), &tags[..], "{}", &written);
        prop_assert_eq!(exprs.matches(others, written.as_bytes()).expect("within limits"), is_other, "{}", &written);
        let determined = exprs.determined(plain).expect("within limits");
        prop_assert_eq!(exprs.matches(determined, written.as_bytes()).expect("within limits"), !tags.is_empty());
    }

    #[test]
    fn literals_are_alternatives(
        texts in prop::collection::vec(("[ab]{0,4}", 0u32..3), 0..8), probe in "[ab]{0,5}",
    ) {
        let mut exprs = Exprs::new(10_000);
        let mut pairs = Vec::new();
        for (text, tag) in &texts {
            pairs.push((text.as_bytes(), exprs.tag(*tag).expect("within limits")));
        }
        let e = exprs.literals(&pairs).expect("within limits");
        let end = probe.bytes().try_fold(e, |at, byte| exprs.derive(at, byte)).expect("within limits");
        let mut tags: Vec<u32> = texts.iter().filter(|(text, _)| *text == probe).map(|(_, tag)| *tag).collect();
        tags.sort_unstable();
        tags.dedup();
        prop_assert_eq!(exprs.outcomes(end), tags);
        let is_prefix = texts.iter().any(|(text, _)| text.starts_with(&probe));
        prop_assert_eq!(end != NOTHING, is_prefix);
    }
}

#[test]
fn an_automaton_in_any_spelling() {
    let regex = Regex::or([Regex::text("12:3"), Regex::range('a', 'z').repeat(2, None)]);
    let mut exprs = Exprs::new(10_000);
    let plain = exprs.compile(&regex, Encoding::Utf8).expect("within limits");
    let dfa = exprs.to_dfa(plain).expect("within limits").expect("not empty");
    let any = Encoding::AnyJson { ascii: false };
    let (automaton, whole) = (exprs.compile(&Regex::Automaton(dfa), any), exprs.compile(&regex, any));
    let (automaton, whole) = (automaton.expect("within limits"), whole.expect("within limits"));
    for text in [
        "12:3",
        "1\\u0032:3",
        "1\\u0032\\u003A\\u00333",
        "ab",
        "\\u0061\\u0062",
        "\\u0061",
        "\\n\\n",
        "a\\/",
        "aé",
    ] {
        let [mine, theirs] =
            [automaton, whole].map(|e| exprs.matches(e, text.as_bytes()).expect("within limits"));
        assert_eq!(mine, theirs, "{text}");
    }
    assert!(exprs.matches(automaton, b"\\u0061b").expect("within limits"));
    assert!(exprs.matches(automaton, b"\\u00312:3").expect("within limits"));
}

#[test]
fn the_same_structure_has_the_same_hash_in_every_arena() {
    let regex = Regex::or([Regex::text("ab"), Regex::range('a', 'z').repeat(2, Some(9))]);
    let mut one = Exprs::new(1_000);
    let mut other = Exprs::new(1_000);
    other.compile(&Regex::text("something else"), Encoding::Utf8).expect("within limits");
    let a = one.compile(&regex, Encoding::Utf8).expect("within limits");
    let b = other.compile(&regex, Encoding::Utf8).expect("within limits");
    assert_eq!(one.structure(a), other.structure(b));
    assert_ne!(one.structure(a), one.structure(EMPTY));
}

#[test]
fn a_name_that_is_excluded_parts_by_one_byte() {
    let mut exprs = Exprs::new(1_000);
    let any = || Regex::range('a', 'z').repeat(0, None);
    let end = || Regex::text("\":");
    let names = Regex::or(["name", "node", "size"].map(Regex::text));
    let but = Regex::concat([Regex::and([any(), names.not()]), end()]);
    let [but, any] = [but, Regex::concat([any(), end()])]
        .map(|regex| exprs.compile(&regex, Encoding::Utf8).expect("within limits"));
    for (text, bytes) in [("", "ns"), ("n", "ao"), ("si", "z"), ("siz", "e"), ("size", "\""), ("x", "")] {
        let after = |e| text.bytes().try_fold(e, |at, byte| exprs.derive(at, byte));
        let [a, b] = [but, any].map(after).map(|e| e.expect("within limits"));
        let parting = exprs.parting_bytes(a, b).expect("within limits");
        assert_eq!(parting.iter().collect::<Vec<_>>(), bytes.as_bytes(), "after {text:?}");
    }
}

#[test]
fn an_enumeration_of_a_hundred_thousand_texts_is_cheap() {
    let texts: Vec<String> = (0..100_000).map(|n| format!("item {n:06}")).collect();
    let mut exprs = Exprs::new(10_000);
    let pairs: Vec<_> = texts.iter().map(|text| (text.as_bytes(), EMPTY)).collect();
    let e = exprs.literals(&pairs).expect("within limits");
    assert!(exprs.matches(e, b"item 054321").expect("within limits"));
    assert!(!exprs.matches(e, b"item 1000000").expect("within limits"));
    assert!(exprs.len() < 100);
}

#[test]
fn a_catastrophic_pattern_ends_in_an_error() {
    let a_or_b = || Regex::range('a', 'b');
    let regex = Regex::concat([a_or_b().repeat(0, None), Regex::text("a"), a_or_b().repeat(60, Some(60))]);
    let mut exprs = Exprs::new(1_000_000);
    let mut at = exprs.compile(&regex, Encoding::Utf8).expect("within limits");
    exprs.set_fuel(20_000);
    let mut seed = 1u64;
    let failed = (0..100_000).find_map(|_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        match exprs.derive(at, b'a' + (seed >> 40 & 1) as u8) {
            Ok(next) => {
                at = next;
                None
            }
            Err(error) => Some(error),
        }
    });
    assert_eq!(failed.map(|error| error.kind), Some(logitree_automata::ErrorKind::Limit));
}

/// Texts of a and b whose number of a is a multiple of five and whose last letter is no b.
struct Fives;

impl Steps for Fives {
    fn next(&self, [count, _, _]: ComputedState, byte: u8) -> Option<ComputedState> {
        let count = (count + u64::from(byte == b'a')) % 5;
        Some([count, u64::from(byte == b'b'), 0])
    }

    fn is_accepting(&self, state: ComputedState) -> bool {
        state == [0; 3]
    }
}

#[test]
fn computed_automata_are_leaves_like_others() {
    let fives =
        |start| Regex::Computed(Arc::new(ComputedDfa::new(Arc::new(Fives), "fives".into(), b"ab", start)));
    let (all, rest) = (fives([0; 3]), fives([2, 0, 0]));
    let a = || Regex::text("a");
    let regexes = [
        all.clone(),
        rest.clone(),
        Regex::or([all.clone(), rest.clone(), Regex::text("ba")]),
        Regex::concat([a(), all.clone(), Regex::text("b")]),
        Regex::and([all.clone(), Regex::concat([a(), a(), Regex::anything()])]),
        Regex::and([all.clone(), rest.clone()]),
        rest.clone().not(),
        Regex::concat([rest, Regex::text("b")]).repeat(1, Some(2)),
    ];
    let texts: Vec<String> = (0..1u32 << 11)
        .map(|bits| {
            (0..10)
                .take_while(move |at| bits >> at > 1)
                .map(move |at| if bits >> at & 1 == 1 { 'a' } else { 'b' })
        })
        .map(Iterator::collect)
        .collect();
    for regex in regexes {
        let mut exprs = Exprs::new(100_000);
        let e = exprs.compile(&regex, Encoding::Utf8).unwrap();
        for text in &texts {
            assert_eq!(exprs.matches(e, text.as_bytes()).unwrap(), matches(&regex, text), "{text} {regex:?}");
            let mut at = e;
            for byte in text.bytes() {
                let starts = exprs.first_bytes(at).unwrap();
                at = exprs.derive(at, byte).unwrap();
                assert_eq!(starts.contains(byte), at != NOTHING, "{text} {regex:?}");
            }
        }
    }
}
