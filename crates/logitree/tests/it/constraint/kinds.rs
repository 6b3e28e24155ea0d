//! Every kind of constraint as a value without a vocabulary: its matcher is the one that is built by hand.

use std::sync::Arc;

use logitree::catalogue::{Intersection, ItemWalk};
use logitree::constraint::reasoning::{ReasoningStart, Tag};
use logitree::constraint::{
    BoundOneOf, BoundReasoning, Constraint, End, Matcher, OneOf, PayloadCheck, ReasoningBudget,
    ReasoningOptions, TokenTree, TreeSpan,
};
use logitree::Vocabulary;
use logitree_testing::constraints::{bind, catalogue, regex};
use logitree_testing::laws::look;
use logitree_testing::vocabulary::with_special;

/// a = 0, b = 1, ab = 2, c = 3, the end of generation 4, the marks of a reasoning block 5 and 6.
fn vocabulary() -> Arc<Vocabulary> {
    with_special(&["a", "b", "ab", "c"], &["</s>", "<think>", "</think>"], &[4])
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
    ItemWalk { snapshot: catalogue(&[&[0, 1][..], &[0, 1, 3], &[2], &[3, 3]]).snapshot(), end: Some(4) }
}

fn bound(pattern: &str) -> Box<dyn Matcher> {
    bind(regex(pattern).rules().unwrap(), &vocabulary()).unwrap().matcher().unwrap()
}

#[test]
fn texts() {
    let made = OneOf::new(["ab", "b", "abab"]).followed_by("c");
    let end = End { following: Some(b"c".to_vec()), ..End::default() };
    same(&made, BoundOneOf::new(&["ab", "b", "abab"], &vocabulary(), &end).unwrap().matcher());
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
    let made = ReasoningBudget {
        begin,
        end,
        message: None,
        options: options.clone(),
        start: Default::default(),
        then,
    };
    let options = ReasoningOptions { begin: vec![vec![5]], end: vec![vec![6]], ..options };
    let budget = BoundReasoning::new(options, &vocabulary()).unwrap();
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
