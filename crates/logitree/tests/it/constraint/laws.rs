//! Every matcher is put through the laws here, and held equal to its slow obvious model.

use std::collections::BTreeSet;
use std::sync::Arc;

use logitree::catalogue::ItemWalk;
use logitree::constraint::{BoundOneOf, End, Matcher, OnMismatch, PayloadCheck, TokenTree};
use logitree::{ErrorKind, Token, TokenId, TokenKind};
use logitree_testing::constraints::{catalogue, token_tree};
use logitree_testing::laws;
use logitree_testing::sequences::{tokenisations, Sequences};
use logitree_testing::vocabulary::{ending_vocabulary, of_tokens, token};
use proptest::prelude::*;

fn script() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..40)
}

fn tree(lists: &[Vec<TokenId>]) -> Arc<TokenTree> {
    // Lists without tokens are left out.
    let check = PayloadCheck { on_mismatch: OnMismatch::Warn, ..PayloadCheck::default() };
    token_tree(lists, &check).expect("a valid payload")
}

/// Bytes that cut characters in pieces, and no bytes at all.
fn pieces(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(UNITS.to_vec()), 0..most)
}

const UNITS: [u8; 8] = [b' ', b'a', 0xc3, 0xa9, 0xe4, 0xbd, 0xff, 0];

proptest! {
    /// Tokens of every kind, repeated and empty ones among them. Any may be an end token.
    #[test]
    fn choices_of_any_bytes(
        tokens in prop::collection::vec((pieces(4), 0usize..9), 1..14),
        single in any::<bool>(),
        texts in prop::collection::vec(pieces(7), 1..6),
        following in prop::option::of(pieces(3)),
        ends in prop::option::of(prop::collection::vec(any::<prop::sample::Index>(), 0..3)),
        script in script(),
    ) {
        let kind = |n: usize| TokenKind::ALL.get(n).copied().unwrap_or(TokenKind::Normal);
        let mut all: Vec<Token> =
            tokens.into_iter().map(|(bytes, n)| token(bytes, kind(n))).collect();
        if single {
            all.extend(UNITS.map(|byte| token([byte], TokenKind::Byte)));
        }
        let special = all.len() as TokenId;
        all.push(token("a", TokenKind::Control));
        let is_text = |token: &Token| token.kind.is_text() && !token.bytes.is_empty();
        let spelled: Vec<(TokenId, Vec<u8>)> =
            all.iter().zip(0..).filter(|(t, _)| is_text(t)).map(|(t, id)| (id, t.bytes.clone())).collect();
        let ends: Option<Vec<TokenId>> =
            ends.map(|ends| ends.iter().map(|end| end.index(all.len()) as TokenId).collect());
        let vocabulary = of_tokens(all, &[special]);
        let end = End { tokens: ends.clone(), following: following.clone(), vocabulary: None };
        let ends: BTreeSet<TokenId> = ends.unwrap_or(vec![special]).into_iter().collect();
        let after = if ends.is_empty() { vec![special] } else { ends.iter().copied().collect() };
        let mut model = Sequences { ends, after: Some(after), ..Sequences::default() };
        let mut unspelled = false;
        for text in &texts {
            let whole = [text.as_slice(), following.as_deref().unwrap_or_default()].concat();
            let all = tokenisations(&whole, &spelled);
            unspelled |= all.is_empty();
            model.all.extend(all);
        }
        let only_empty = model.all.iter().all(Vec::is_empty);
        let refused = unspelled
            || only_empty
            || model.needs_end() && model.ends.is_empty()
            || model.ends_collide();
        match BoundOneOf::new(&texts, &vocabulary, &end) {
            Err(error) => prop_assert!(refused, "{error}"),
            Ok(choices) => {
                prop_assert!(!refused);
                laws::hold(&|| choices.matcher(), &script, &mut |history, seen| model.expect(history, seen));
            }
        }
    }

    #[test]
    fn token_trees(
        lists in prop::collection::vec(prop::collection::vec(0u32..5, 0..5), 0..8),
        ends in prop::collection::vec(3u32..8, 0..3),
        script in script(),
    ) {
        let model = Sequences {
            all: lists.iter().filter(|l| !l.is_empty()).cloned().collect(),
            ends: ends.iter().copied().collect(),
            after: None,
        };
        let tree = tree(&lists);
        let end = End { tokens: Some(ends.clone()), ..End::default() };
        let refused = model.all.is_empty() || model.needs_end() && ends.is_empty() || model.ends_collide();
        match tree.matcher("p", &end) {
            Err(error) => {
                prop_assert!(refused, "{error}");
                prop_assert_eq!(error.kind, ErrorKind::Constraint);
            }
            Ok(matcher) => {
                prop_assert!(!refused);
                laws::hold(&|| matcher.fork(), &script, &mut |history, seen| model.expect(history, seen));
            }
        }
    }

    #[test]
    fn prefix_trees(
        lists in prop::collection::vec(prop::collection::vec(0u32..5, 1..5), 0..8),
        added in prop::collection::vec(prop::collection::vec(0u32..5, 1..5), 0..4),
        wide in any::<bool>(),
        ends in any::<bool>(),
        script in script(),
    ) {
        let all = lists.into_iter().collect();
        let mut model = Sequences { all, after: Some(vec![]), ..Sequences::default() };
        if wide {
            model.all.extend((0..90).map(|token| vec![token / 30, 10 + token, 0]));
        }
        let tree = catalogue(&Vec::from_iter(&model.all));
        tree.add(added.iter().map(|tokens| (&tokens[..], &[][..], 1))).unwrap();
        model.all.extend(added);
        let end = ends.then_some(7);
        match (ItemWalk { snapshot: tree.snapshot(), end }).sequence(200, &[]) {
            Err(error) => {
                prop_assert!(model.all.is_empty() || model.needs_end() && !ends, "{error}");
                prop_assert_eq!(error.kind, ErrorKind::Constraint);
            }
            // Without an end token it is what choices are; with one, every item ends with it and not before.
            Ok(matcher) => laws::hold(&|| matcher.fork(), &script, &mut |history, seen| match end {
                Some(end) => model.expect_ended(end, history, seen),
                None => model.expect(history, seen),
            }),
        }
    }

    #[test]
    fn choices(
        tokens in prop::collection::vec("[abc]{1,3}", 1..10),
        texts in prop::collection::vec("[abc]{0,5}", 1..6),
        following in prop::option::of("[abc]{0,2}"),
        single in any::<bool>(),
        text_end in any::<bool>(),
        no_end in any::<bool>(),
        script in script(),
    ) {
        let mut tokens = tokens;
        if single {
            tokens.extend(["a", "b", "c"].map(String::from));
        }
        let (vocabulary, special) = ending_vocabulary(&tokens);
        let spelled: Vec<(TokenId, Vec<u8>)> =
            tokens.iter().enumerate().map(|(id, t)| (id as TokenId, t.as_bytes().to_vec())).collect();
        let ends = match (no_end, text_end) {
            (true, _) => vec![],
            (_, true) => vec![0, special],
            _ => vec![special],
        };
        let end = End {
            tokens: (ends != [special]).then(|| ends.clone()),
            following: following.clone().map(String::into_bytes),
            vocabulary: None,
        };
        let after = if no_end { vec![special] } else { ends.clone() };
        let ends: BTreeSet<TokenId> = ends.into_iter().collect();
        let mut model = Sequences { ends: ends.clone(), after: Some(after), ..Sequences::default() };
        let mut unspelled = false;
        for text in &texts {
            let whole = text.clone() + following.as_deref().unwrap_or("");
            let all = tokenisations(whole.as_bytes(), &spelled);
            unspelled |= all.is_empty();
            model.all.extend(all);
        }
        let only_empty = model.all.iter().all(Vec::is_empty);
        let refused =
            unspelled || only_empty || model.needs_end() && ends.is_empty() || model.ends_collide();
        match BoundOneOf::new(&texts, &vocabulary, &end) {
            Err(error) => {
                prop_assert!(refused, "{error}");
                prop_assert_eq!(error.kind, ErrorKind::Constraint);
            }
            Ok(choices) => {
                prop_assert!(!refused);
                laws::hold(&|| choices.matcher(), &script, &mut |history, seen| model.expect(history, seen));
            }
        }
    }

    #[test]
    fn canonical_choices(
        texts in prop::collection::vec("[abc]{1,5}", 1..6),
        script in script(),
    ) {
        let (vocabulary, end_id) = ending_vocabulary(&["a", "b", "c", "ab"]);
        let spelled = [(0, b"a".to_vec()), (1, b"b".to_vec()), (2, b"c".to_vec()), (3, b"ab".to_vec())];
        let lists: Vec<_> =
            texts.iter().map(|t| tokenisations(t.as_bytes(), &spelled).pop().unwrap_or_default()).collect();
        let (all, after) = (lists.iter().cloned().collect(), Some(vec![end_id]));
        let model = Sequences { all, ends: [end_id].into(), after };
        let choices = BoundOneOf::canonical(&texts, lists, &vocabulary, &End::default()).unwrap();
        prop_assert!(choices.is_canonical());
        laws::hold(&|| choices.matcher(), &script, &mut |history, seen| model.expect(history, seen));
    }
}
