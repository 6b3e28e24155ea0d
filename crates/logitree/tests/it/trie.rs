//! The trie against slow obvious versions: the recursive walk, and a scan over all tokens.

use logitree::mask::{insert_bit, insert_bits, words_for};
use logitree::trie::{DumpOptions, Node, Recognizer, Table, TokenTrie, MAX_DEPTH};
use logitree::vocabulary::{Token, TokenKind, Vocabulary, VocabularyOptions};
use logitree::ErrorKind;
use logitree_testing::vocabulary::{small, vocabulary, END, SMALL};
use proptest::prelude::*;

/// A table automaton as a recogniser with a stack.
struct Stack<'a> {
    next: &'a [u16],
    dead: u16,
    states: Vec<u16>,
}

impl Recognizer for Stack<'_> {
    fn push(&mut self, byte: u8) -> bool {
        let state = usize::from(*self.states.last().unwrap());
        let next = self.next[state * 256 + usize::from(byte)];
        if next == self.dead {
            return false;
        }
        self.states.push(next);
        true
    }

    fn pop(&mut self, n: usize) {
        self.states.truncate(self.states.len() - n);
    }
}

/// The naive version: recursion over the cursor interface.
fn recurse(trie: &TokenTrie, node: Node, r: &mut impl Recognizer, words: &mut [u32], visited: &mut usize) {
    for (byte, child) in trie.children(node) {
        *visited += 1;
        if r.push(byte) {
            insert_bits(words, trie.tokens(child));
            recurse(trie, child, r, words, visited);
            r.pop(1);
        }
    }
}

/// More naive still: every token on its own.
fn scan(v: &Vocabulary, next: &[u16], start: u16, dead: u16) -> Vec<u32> {
    let mut words = vec![0; words_for(v.len())];
    for id in (0..v.len() as u32).filter(|&id| v.kind(id).is_text() && !v.token_bytes(id).is_empty()) {
        let mut state = start;
        if v.token_bytes(id).iter().all(|&b| {
            state = next[usize::from(state) * 256 + usize::from(b)];
            state != dead
        }) {
            insert_bit(&mut words, id);
        }
    }
    words
}

fn ids_where(v: &Vocabulary, keep: impl Fn(&[u8]) -> bool) -> Vec<u32> {
    let text = |id: &u32| v.kind(*id).is_text() && !v.token_bytes(*id).is_empty();
    let mut ids: Vec<u32> = (0..v.len() as u32).filter(text).filter(|&id| keep(v.token_bytes(id))).collect();
    ids.sort_by(|&a, &b| v.token_bytes(a).cmp(v.token_bytes(b)).then(a.cmp(&b)));
    ids
}

#[test]
fn the_small_vocabulary_by_hand() {
    let v = small();
    let trie = v.trie().unwrap();
    assert_eq!((trie.token_count(), trie.node_count(), trie.max_depth()), (25, 36, 4));
    assert_eq!(trie.lookup(b"cat"), [11, 12]);
    assert!(trie.lookup(b"ca").is_empty());
    assert!(trie.lookup(b"<end>").is_empty(), "control tokens are no text");
    assert!(trie.has_prefix(b"ca") && !trie.has_prefix(b"cab") && trie.has_prefix(b""));
    assert_eq!(trie.with_prefix(b"1"), [6, 7, 8, 9]);
    assert_eq!(trie.longest_match(b"cats and dogs"), Some((13, 4)));
    assert_eq!(trie.longest_match(b"catalogue"), Some((11, 3)));
    assert_eq!(trie.longest_match(b"zebra"), None);
    let prefixes: Vec<_> = trie.prefixes(b"1000").collect();
    assert_eq!(prefixes, [(&[6][..], 1), (&[7][..], 2), (&[8][..], 3)]);
    let children: Vec<u8> = trie.children(trie.root()).map(|(b, _)| b).collect();
    assert_eq!(children, b"\n \"1acdnot\xc3\xe4");
    assert!((END as usize) < v.len() && SMALL.len() == trie.token_count());
}

#[test]
fn dumps_are_readable_and_bounded() {
    let v = small();
    let trie = v.trie().unwrap();
    let dump = |prefix: &[u8], depth, max_nodes| {
        trie.dump(&DumpOptions { prefix: prefix.to_vec(), depth, max_nodes })
    };
    assert_eq!(dump(b"1", 9, 9), "1 6\n├─ 0 7\n│  └─ 0 8\n└─ 2 9\n");
    assert_eq!(dump(b"1", 1, 9), "1 6\n├─ 0 7 …\n└─ 2 9\n(1 nodes below are not shown)\n");
    assert_eq!(dump(b"1", 9, 1), "1 6\n├─ 0 7\n(2 nodes below are not shown)\n");
    assert_eq!(dump(b"c", 9, 9), "c\n└─ a\n   └─ t 11 12\n      └─ s 13\n");
    assert_eq!(dump(b"x", 9, 9), "no token begins with x\n");
    assert_eq!(dump(b"", 0, 9), "root\n(35 nodes below are not shown)\n");
    assert_eq!(dump(b"\xe4", 9, 9), "\\xe4 22\n└─ \\xbd\n   ├─ \\xa0 23\n   └─ \\xa5 24\n");
    let dot = trie.graphviz(&DumpOptions { prefix: b"\"".to_vec(), ..DumpOptions::default() });
    let want = "digraph trie {\n  rankdir=LR;\n  node [shape=circle, label=\"\"];\n  n9 [xlabel=\"\\\"\"];\n  \
                n9 [shape=box, label=\"4\"];\n  n9 -> n10 [label=\":\"];\n  n10 [shape=box, label=\"5\"];\n}\n";
    assert_eq!(dot, want);
    assert_eq!(trie.graphviz(&DumpOptions::default()).matches(" -> ").count(), 35);
}

#[test]
fn limits_are_errors_and_nothing_is_cut() {
    let longest = vocabulary(&[vec![b'x'; MAX_DEPTH], b"y".to_vec()]);
    assert_eq!(longest.trie().unwrap().max_depth(), MAX_DEPTH);
    let too_long = vocabulary(&[b"y".to_vec(), vec![b'x'; MAX_DEPTH + 1]]);
    let error = too_long.trie().unwrap_err();
    assert_eq!((error.kind, &*error.place), (ErrorKind::Limit, "token id 1"));
    assert_eq!(error.message, "token 1 has 1024 bytes, and the vocabulary trie holds at most 1023");
    let marker = Token { bytes: vec![b'x'; 5000], kind: TokenKind::Control };
    let only_markers = Vocabulary::new([marker], VocabularyOptions::default()).unwrap();
    assert_eq!(only_markers.trie().unwrap().node_count(), 1, "markers are not in the trie");
}

#[test]
fn too_many_nodes_are_an_error() {
    let tokens: Vec<Vec<u8>> = (0..4200u32).map(|i| [&i.to_be_bytes()[..], &[7; 1000]].concat()).collect();
    assert_eq!(vocabulary(&tokens).trie().unwrap_err().kind, ErrorKind::Limit);
}

#[test]
fn a_short_mask_is_refused() {
    let v = vocabulary(&(0..40u8).map(|b| [b]).collect::<Vec<_>>());
    let next = vec![0u16; 256];
    let mut stack = Stack { next: &next, dead: 1, states: vec![0] };
    let error = v.trie().unwrap().allowed(&mut stack, &mut [0; 1]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Mask);
    let mut padded = [u32::MAX; 4];
    v.trie().unwrap().allowed(&mut stack, &mut padded).unwrap();
    assert_eq!(padded, [u32::MAX, 0xff, 0, 0], "padding is cleared");
}

/// Tokens over few bytes, so that prefixes and equal tokens are common.
fn tokens() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop_oneof![Just(b'a'), Just(b'b'), Just(0u8), Just(255u8), any::<u8>()];
    prop::collection::vec(prop::collection::vec(byte, 0..7), 1..200)
}

/// (states, table, start, dead): about `live` percent of the transitions live.
fn automaton() -> impl Strategy<Value = (Vec<u16>, u16, u16)> {
    (2u16..7, 0u32..=100, any::<u64>(), prop_oneof![Just(0u16), Just(u16::MAX)]).prop_map(
        |(states, live, seed, dead)| {
            let mut x = seed | 1;
            let mut draw = || {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                (x >> 32) as u32
            };
            let next = (0..usize::from(states) * 256)
                .map(|_| if draw() % 100 < live { (draw() % u32::from(states)) as u16 } else { dead })
                .collect();
            (next, states - 1, dead)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_walk_equals_the_recursion((next, start, dead) in automaton(), tokens in tokens()) {
        let v = vocabulary(&tokens);
        let trie = v.trie().unwrap();
        let (mut got, mut want, mut visited) = (vec![7; words_for(v.len())], vec![0; words_for(v.len())], 0);
        let mut stack = Stack { next: &next, dead, states: vec![start] };
        trie.allowed(&mut stack, &mut got).unwrap();
        prop_assert_eq!(stack.states.len(), 1);
        recurse(trie, trie.root(), &mut stack, &mut want, &mut visited);
        prop_assert_eq!(&got, &want);
        prop_assert_eq!(trie.count_visited(&mut stack), visited);
        prop_assert_eq!(&want, &scan(&v, &next, start, dead));
        trie.allowed_by(&Table::new(&next, start, dead).unwrap(), &mut got).unwrap();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn look_ups_equal_a_scan(tokens in tokens(), text in prop::collection::vec(any::<u8>(), 0..4)) {
        let v = vocabulary(&tokens);
        let trie = v.trie().unwrap();
        for text in tokens.iter().chain([&text, &[text.as_slice(), b"a"].concat()]) {
            prop_assert_eq!(trie.lookup(text), ids_where(&v, |b| b == text));
            prop_assert_eq!(trie.with_prefix(text), ids_where(&v, |b| b.starts_with(text)));
            prop_assert_eq!(trie.has_prefix(text), !ids_where(&v, |b| b.starts_with(text)).is_empty());
            let prefixes = ids_where(&v, |b| text.starts_with(b));
            prop_assert_eq!(trie.prefixes(text).flat_map(|(ids, _)| ids).copied().collect::<Vec<_>>(), &*prefixes);
            let longest = prefixes.last().map(|&id| v.token_bytes(id).len());
            prop_assert_eq!(trie.longest_match(text).map(|(_, n)| n), longest);
            if let Some((id, n)) = trie.longest_match(text) {
                prop_assert_eq!(v.token_bytes(id), &text[..n]);
            }
        }
    }

    #[test]
    fn the_cursor_sees_every_node(tokens in tokens()) {
        let v = vocabulary(&tokens);
        let trie = v.trie().unwrap();
        let mut paths = vec![(trie.root(), Vec::new())];
        let mut seen = 0;
        while let Some((node, path)) = paths.pop() {
            seen += 1;
            prop_assert_eq!(trie.depth(node), path.len());
            prop_assert_eq!(trie.find(&path), Some(node));
            prop_assert_eq!(trie.tokens(node), trie.lookup(&path));
            for (byte, child) in trie.children(node) {
                prop_assert_eq!(trie.child(node, byte), Some(child));
                prop_assert_eq!(trie.byte(child), byte);
                paths.push((child, [&path[..], &[byte]].concat()));
            }
        }
        prop_assert_eq!(seen, trie.node_count());
    }
}

/// Text automata as the grammars of this world have them: (table, dead), start 0.
fn text_automata() -> Vec<(&'static str, Vec<u32>)> {
    const DEAD: u32 = u32::MAX;
    let build = |states: usize, step: &dyn Fn(usize, u8) -> Option<u32>| -> Vec<u32> {
        (0..states * 256).map(|i| step(i / 256, (i % 256) as u8).unwrap_or(DEAD)).collect()
    };
    // 0 between characters, 1 to 3 continuation bytes to come, 4 E0, 5 ED, 6 F0, 7 F4, 8 after a backslash
    let utf8 = |state, byte| match (state, byte) {
        (0, 0xc2..=0xdf) => Some(1),
        (0, 0xe0) => Some(4),
        (0, 0xed) => Some(5),
        (0, 0xe1..=0xef) => Some(2),
        (0, 0xf0) => Some(6),
        (0, 0xf1..=0xf3) => Some(3),
        (0, 0xf4) => Some(7),
        (1, 0x80..=0xbf) => Some(0),
        (2, 0x80..=0xbf) | (4, 0xa0..=0xbf) | (5, 0x80..=0x9f) => Some(1),
        (3, 0x80..=0xbf) | (6, 0x90..=0xbf) | (7, 0x80..=0x8f) => Some(2),
        _ => None,
    };
    vec![
        (
            "JSON string",
            build(9, &|state, byte| match (state, byte) {
                (0, b'\\') => Some(8),
                (0, b'"') => None,
                (0, 0x20..=0x7f) | (8, b'"' | b'\\' | b'/' | b'n') => Some(0),
                _ => utf8(state, byte),
            }),
        ),
        (
            "any text",
            build(8, &|state, byte| if state == 0 && byte < 0x80 { Some(0) } else { utf8(state, byte) }),
        ),
        (
            "text without four-byte characters",
            build(8, &|state, byte| match (state, byte) {
                (0, 0x00..=0x7f) => Some(0),
                (0, 0xf0..=0xff) => None,
                _ => utf8(state, byte),
            }),
        ),
        (
            "no ASCII after a wide character",
            build(9, &|state, byte| match (state, byte) {
                (0, 0x00..=0x7f) => Some(0),
                (8, 0x00..=0x7f) => None,
                _ => utf8(state % 8, byte).map(|next| if next == 0 { 8 } else { next }),
            }),
        ),
        ("anything", build(1, &|_, _| Some(0))),
        ("[a-c]+", build(1, &|_, byte| (b'a'..=b'c').contains(&byte).then_some(0))),
        (
            "identifier",
            build(2, &|state, byte| {
                (byte.is_ascii_alphabetic() || state == 1 && byte.is_ascii_digit()).then_some(1)
            }),
        ),
        ("two in turn", build(2, &|state, byte| (byte.is_ascii() || state == 1).then_some(1 - state as u32))),
        ("nothing", build(1, &|_, _| None)),
    ]
}

/// Tokens enough for subtrees that are looked at as a whole, over few characters, some of them cut.
fn many_tokens() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let piece = prop::sample::select(vec![
        "a",
        "b",
        "c",
        "é",
        "ß",
        "你",
        "好",
        "😀",
        "\u{10ffff}",
        "0",
        "\"",
        "\\",
        " ",
        "\u{800}",
        "\u{d7ff}",
    ]);
    let token =
        (prop::collection::vec(piece, 1..6), 0usize..40, any::<u8>()).prop_map(|(pieces, spoil, byte)| {
            let mut bytes = pieces.concat().into_bytes();
            match spoil {
                0 => bytes.push(byte),
                1..5 => bytes.truncate(bytes.len() - 1),
                5 => {
                    bytes.remove(0);
                }
                _ => {}
            }
            if bytes.is_empty() {
                vec![byte]
            } else {
                bytes
            }
        });
    prop::collection::vec(token, 800..2500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whole_subtrees_equal_the_recursion(tokens in many_tokens()) {
        let v = vocabulary(&tokens);
        let trie = v.trie().unwrap();
        for (name, next) in text_automata() {
            let table = Table::new(&next, 0, u32::MAX).unwrap();
            let (mut got, mut want) = (vec![7; words_for(v.len())], vec![0; words_for(v.len())]);
            let mut stack = table.recognizer();
            recurse(trie, trie.root(), &mut stack, &mut want, &mut 0);
            trie.allowed_by(&table, &mut got).unwrap();
            prop_assert_eq!(&got, &want, "{}", name);
            trie.allowed(&mut stack, &mut got).unwrap();
            prop_assert_eq!(&got, &want, "{}", name);
        }
    }

    #[test]
    fn random_tables_over_many_tokens((next, start, dead) in automaton(), tokens in many_tokens()) {
        let v = vocabulary(&tokens);
        let mut got = vec![7; words_for(v.len())];
        v.trie().unwrap().allowed_by(&Table::new(&next, start, dead).unwrap(), &mut got).unwrap();
        prop_assert_eq!(got, scan(&v, &next, start, dead));
    }
}
