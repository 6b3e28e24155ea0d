//! The trie against one that is written down as it is defined.

use super::*;
use crate::vocabulary::{Token, TokenKind, VocabularyOptions};
use std::collections::BTreeMap;

/// Every prefix of a text token in byte order, which is the order of the nodes, with the ids that end there.
fn prefixes(vocabulary: &Vocabulary) -> BTreeMap<Vec<u8>, Vec<TokenId>> {
    let mut all = BTreeMap::from([(Vec::new(), Vec::new())]);
    for id in 0..vocabulary.len() as TokenId {
        let bytes = vocabulary.token_bytes(id);
        if bytes.is_empty() || !vocabulary.kind(id).is_text() {
            continue;
        }
        for end in 1..=bytes.len() {
            all.entry(bytes[..end].to_vec()).or_default();
        }
        all.entry(bytes.to_vec()).or_default().push(id);
    }
    all
}

fn is_text(path: &[u8]) -> bool {
    std::str::from_utf8(path).err().is_none_or(|error| error.error_len().is_none())
}

/// Holds every field of the trie of `vocabulary` to its definition.
fn check(vocabulary: &Vocabulary) {
    let trie = TokenTrie::new(vocabulary).unwrap();
    let all = prefixes(vocabulary);
    let paths: Vec<&Vec<u8>> = all.keys().collect();
    assert_eq!(trie.nodes.len(), all.len());
    assert_eq!(trie.max_depth, paths.iter().map(|path| path.len()).max().unwrap());
    assert_eq!(trie.vocabulary_size, vocabulary.len());
    let bogus = words_for(vocabulary.len()) * 32;
    let (mut ids, mut twins, mut before, mut big) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (at, (path, here)) in all.iter().enumerate() {
        let node = trie.nodes[at];
        let below: Vec<&[u8]> = paths[at + 1..]
            .iter()
            .take_while(|other| other.starts_with(path))
            .map(|other| &other[path.len()..])
            .collect();
        assert_eq!(node.depth(), path.len());
        assert_eq!(node.byte(), path.last().copied().unwrap_or(0));
        assert_eq!(node.size(), 1 + below.len());
        let slot = here.first().map_or(bogus + at % BOGUS_SLOTS, |&id| id as usize);
        assert_eq!(node.slot() as usize, slot, "{path:?}");
        before.push(ids.len() as u32);
        ids.extend(here);
        twins.extend(here.iter().skip(1).map(|&twin| (here[0], twin)));
        if at > 0 && Outline::is_big(node.size()) {
            let mut bytes = ByteSet::NONE;
            below.iter().flat_map(|path| path.iter()).for_each(|&byte| bytes.insert(byte));
            big.push((at, Below { bytes, text: below.iter().all(|path| is_text(path)) }));
        }
    }
    before.push(ids.len() as u32);
    assert_eq!((&*trie.before, &*trie.ids, &*trie.twins), (&*before, &*ids, &*twins));
    for byte in 0..=256 {
        let first = paths.iter().position(|path| path.first().is_some_and(|&b| usize::from(b) >= byte));
        assert_eq!(trie.first[byte] as usize, first.unwrap_or(paths.len()));
    }
    let (mut number, mut found) = (0, Vec::new());
    while let Some(part) = trie.outline.part(number) {
        found.extend(part.below.map(|below| (part.nodes.start, *below)));
        number += 1;
    }
    assert_eq!(found, big);
}

/// A random vocabulary over few bytes, so that many tokens share their beginnings or are equal.
fn random(random: &mut impl FnMut(usize) -> usize) -> Vocabulary {
    const BYTES: [&[u8]; 5] = [
        b"ab",
        b"\0a",
        b"\0\xffa",
        "aé€😀".as_bytes(),
        &[0, 1, b' ', b'a', 0xc3, 0xa9, 0xe2, 0xed, 0xf4, 0xff],
    ];
    let bytes = BYTES[random(BYTES.len())];
    let starts = [&b""[..], b"aaaaaa", b"aaaaaaaa", b"a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"];
    let tokens = (0..1 + random(300)).map(|_| {
        let mut text = starts[random(starts.len())].to_vec();
        let most = [3, 9, 20][random(3)];
        text.extend((0..random(most)).map(|_| bytes[random(bytes.len())]));
        let kind = if random(9) == 0 { TokenKind::ALL[random(6)] } else { TokenKind::Normal };
        Token { bytes: text, kind }
    });
    Vocabulary::new(tokens.collect::<Vec<_>>(), VocabularyOptions::default()).unwrap()
}

#[test]
fn every_field_is_as_defined() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut number = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..400 {
        check(&random(&mut number));
    }
}

#[test]
fn a_node_of_every_size_and_a_token_of_every_length() {
    let lengths = (1..=MAX_DEPTH).step_by(37).chain([MAX_DEPTH]);
    let tokens = lengths.map(|length| Token { bytes: vec![b'x'; length], kind: TokenKind::Normal });
    check(&Vocabulary::new(tokens, VocabularyOptions::default()).unwrap());
    let pairs = (0..=u16::MAX).step_by(7).map(|n| n.to_be_bytes().to_vec());
    let tokens = pairs.map(|bytes| Token { bytes, kind: TokenKind::Normal });
    check(&Vocabulary::new(tokens.collect::<Vec<_>>(), VocabularyOptions::default()).unwrap());
}
