//! Every kind of constraint as a value without a vocabulary: its matcher is the one that is built by hand.

use std::sync::Arc;

use crate::support::laws::look;
use logitree::catalogue::{BuildOptions, Catalogue, CatalogueBuilder, Intersection, ItemWalk};
use logitree::constraint::reasoning::{ReasoningStart, Tag};
use logitree::constraint::{
    Choices, Constraint, End, Grammar, GrammarLimits, Matcher, OneOf, PayloadCheck, Reasoning,
    ReasoningBudget, ReasoningOptions, TokenTree, TreeSpan,
};
use logitree::grammar::ast::{GrammarNode, Syntax};
use logitree::vocabulary::{Token, TokenKind, Vocabulary, VocabularyOptions};

/// a = 0, b = 1, ab = 2, c = 3, the end of generation 4, the marks of a reasoning block 5 and 6.
fn vocabulary() -> Arc<Vocabulary> {
    let token = |text: &str, kind| Token { bytes: text.into(), kind };
    let mut tokens = ["a", "b", "ab", "c"].map(|text| token(text, TokenKind::Normal)).to_vec();
    tokens.extend(["</s>", "<think>", "</think>"].map(|text| token(text, TokenKind::Control)));
    Arc::new(
        Vocabulary::new(
            tokens,
            VocabularyOptions { end_of_generation: vec![4], ..VocabularyOptions::default() },
        )
        .unwrap(),
    )
}

/// Compares the two along every sequence of up to four allowed tokens.
fn same(constraint: &dyn Constraint, by_hand: Box<dyn Matcher>) {
    let mut left = vec![(constraint.matcher(&vocabulary()).unwrap(), by_hand)];
    while let Some((mut one, mut other)) = left.pop() {
        let seen = look(&mut *one);
        assert_eq!(seen, look(&mut *other));
        for &token in seen.allowed.iter().flatten().filter(|_| seen.accepted < 4) {
            let (mut one, mut other) = (one.fork(), other.fork());
            one.accept(token).unwrap();
            other.accept(token).unwrap();
            left.push((one, other));
        }
    }
}

fn items() -> ItemWalk {
    let mut builder = CatalogueBuilder::new(BuildOptions::default()).unwrap();
    for (item, tokens) in [&[0, 1][..], &[0, 1, 3], &[2], &[3, 3]].into_iter().enumerate() {
        builder.push(tokens, &[], item as u64).unwrap();
    }
    let index = builder.finish(None, &mut |_| Ok(())).unwrap().index;
    ItemWalk { snapshot: Catalogue::new(index).snapshot(), end: Some(4) }
}

fn regex(pattern: &str) -> GrammarNode {
    GrammarNode::read(Syntax::Regex(pattern.into())).unwrap()
}

fn bound(pattern: &str) -> Box<dyn Matcher> {
    let rules = regex(pattern).rules().unwrap();
    Grammar::new(rules, &vocabulary(), None, GrammarLimits::default()).unwrap().matcher().unwrap()
}

#[test]
fn texts() {
    let made = OneOf::new(["ab", "b", "abab"]).followed_by("c");
    let end = End { following: Some(b"c".to_vec()), ..End::default() };
    same(&made, Choices::new(&["ab", "b", "abab"], &vocabulary(), &end).unwrap().matcher());
}

#[test]
fn a_grammar() {
    same(&regex("(ab|c){1,3}"), bound("(ab|c){1,3}"));
}

#[test]
fn a_span_of_a_token_tree() {
    let json =
        r#"{"descriptors":[{"path":"p","leaves":[{"name":"ab","tokens":[0,1]},{"name":"a","tokens":[0]}]}]}"#;
    let tree = Arc::new(TokenTree::from_json(json.as_bytes(), &PayloadCheck::default()).unwrap());
    let span = TreeSpan { tree: Arc::clone(&tree), path: "p".into(), following: None, end_tokens: None };
    let end = End { vocabulary: Some(vocabulary()), ..End::default() };
    same(&span, tree.matcher("p", &end).unwrap());
    assert!(span.bind(None).is_err(), "nothing ends the shorter leaf");
}

#[test]
fn reasoning_and_what_follows() {
    let options = ReasoningOptions { budget: Some(1), ..ReasoningOptions::default() };
    let then: Option<Arc<dyn Constraint>> = Some(Arc::new(regex("ab|c")));
    let (begin, end) = (vec![Tag::Ids(vec![5])], vec![Tag::Text("</think>".into())]);
    let made =
        Reasoning { begin, end, message: None, options: options.clone(), start: Default::default(), then };
    let options = ReasoningOptions { begin: vec![vec![5]], end: vec![vec![6]], ..options };
    let budget = ReasoningBudget::new(options, &vocabulary()).unwrap();
    same(&made, budget.matcher(ReasoningStart::Outside, Some(bound("ab|c"))).unwrap());
}

#[test]
fn a_catalogue_and_an_intersection_with_it() {
    let (walk, size) = (items(), vocabulary().len());
    same(&walk, Box::new(walk.sequence(size, &[]).unwrap()));
    let fuel = Intersection::FUEL;
    let both = Intersection { walk: walk.clone(), peers: vec![Arc::new(regex("ab.*"))], fuel };
    let peers = vec![bound("ab.*")];
    let by_hand = walk.sequence_with(peers, size, &[], fuel).unwrap();
    same(&both, Box::new(by_hand));
}
