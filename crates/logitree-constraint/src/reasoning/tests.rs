//! The automaton: RTP-LLM's statuses (testdata/reasoning/kmp.toml), and random sequences against comparing by hand.

use proptest::prelude::*;
use serde::Deserialize;

use crate::finder::{Finder, START};
use logitree_tokens::TokenId;

#[derive(Deserialize)]
struct Corpus {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    sequence: Vec<TokenId>,
    start: Option<Vec<u32>>,
    tokens: Vec<TokenId>,
    statuses: Vec<u32>,
}

#[test]
fn statuses_of_one_sequence() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/reasoning/kmp.toml");
    let corpus: Corpus = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(corpus.case.len(), 4);
    for case in corpus.case {
        let finder = Finder::new(&[case.sequence]);
        let mut node = START;
        let mut seen = Vec::new();
        for (at, &token) in case.tokens.iter().enumerate() {
            node = finder.step(case.start.as_ref().map_or(node, |start| start[at]), token);
            seen.push(node);
        }
        assert_eq!(seen, case.statuses);
    }
}

proptest! {
    #[test]
    fn what_is_found_is_at_the_end_of_the_stream(
        sequences in prop::collection::vec(prop::collection::vec(0u32..3, 1..5), 1..5),
        tokens in prop::collection::vec(0u32..3, 0..24),
    ) {
        let finder = Finder::new(&sequences);
        let ends = |stream: &[TokenId]| sequences.iter().any(|sequence| stream.ends_with(sequence));
        let mut node = START;
        for at in 0..tokens.len() {
            let stream = &tokens[..at];
            let mut completing = Vec::new();
            finder.completions(node, &mut completing);
            completing.sort_unstable();
            completing.dedup();
            let slowly: Vec<TokenId> = (0..3).filter(|&token| ends(&[stream, &[token]].concat())).collect();
            prop_assert_eq!(completing, slowly);
            let path = finder.path(node);
            let longest = (0..=at).rev().find(|&n| sequences.iter().any(|s| s.starts_with(&stream[at - n..])));
            prop_assert_eq!(Some(path.len()), longest);
            prop_assert!(stream.ends_with(&path));
            node = finder.step(node, tokens[at]);
            prop_assert_eq!(finder.is_found(node), ends(&tokens[..=at]));
            if finder.is_found(node) {
                prop_assert_eq!(finder.step(node, 0), node);
                return Ok(());
            }
        }
    }
}
