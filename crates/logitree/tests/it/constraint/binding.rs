//! Constraints with equal contents share what their matchers find out over one vocabulary, which keeps it within bounds.

use std::sync::Arc;

use logitree::constraint::compose::Composition;
use logitree::constraint::reasoning::Tag;
use logitree::constraint::{
    binding_count, clear_bindings, BoundGrammar, Constraint, GrammarLimits, Matcher, OneOf, PayloadCheck,
    ReasoningBudget, ReasoningOptions, Recogniser, Skeleton, TokenTree, TreeSpan, MAX_BINDINGS,
};
use logitree::grammar::ast::{Grammar, Syntax};
use logitree::grammar::json_schema::SchemaOptions;
use logitree::Vocabulary;
use logitree_testing::vocabulary::{bytes_and, with_special};

/// All bytes, an end of the generation, and the marks of a reasoning block.
fn vocabulary() -> Arc<Vocabulary> {
    with_special(&bytes_and::<&str>(&[]), &["</s>", "<think>", "</think>"], &[256])
}

fn schema() -> Grammar {
    let text = r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}}}"#;
    let options = SchemaOptions::default();
    Grammar::read(Syntax::JsonSchema { text: text.into(), options, documents: Vec::new() }).unwrap()
}

fn walk(matcher: &mut dyn Matcher, text: &str) {
    for byte in text.bytes() {
        matcher.allowed().unwrap();
        matcher.accept(u32::from(byte)).unwrap();
    }
    matcher.allowed().unwrap();
}

/// Every kind that is kept.
fn kinds() -> Vec<Box<dyn Constraint>> {
    let part = || Composition::grammar(schema());
    let choices = || OneOf::new(["ab", "b"]).followed_by("c").ended_by(vec![256]);
    let other = || Composition::of(Arc::new(choices()));
    let reasoning = |then| ReasoningBudget {
        begin: vec![Tag::Ids(vec![257])],
        end: vec![Tag::Text("</think>".into())],
        message: None,
        options: ReasoningOptions::default(),
        start: Default::default(),
        then,
    };
    let skeleton =
        Skeleton::from_json(r#"{"spans": [{"kind": "literal", "value": "{"}, {"kind": "number"}]}"#);
    vec![
        Box::new(schema()),
        Box::new(choices()),
        Box::new(OneOf::new(["ab"]).spelled(vec![vec![97, 98]])),
        Box::new(skeleton.unwrap().compile().unwrap()),
        Box::new(Composition::then([part(), other()]).unwrap()),
        Box::new(Composition::either([part(), other()]).unwrap()),
        Box::new(part().both(&other()).unwrap()),
        Box::new(other().repeat(1, Some(3)).unwrap()),
        Box::new(other().repeat(1, Some(4)).unwrap()),
        Box::new(Composition::until(&Composition::grammar(text()), &part_text("end")).unwrap()),
        Box::new(other().without(vec!["x".into()], vec![vec![1]]).unwrap()),
        Box::new(other().at_most(4).unwrap()),
        Box::new(other().at_least(1).unwrap()),
        Box::new(reasoning(None)),
        Box::new(reasoning(Some(Arc::new(schema())))),
    ]
}

fn text() -> Grammar {
    Grammar::read(Syntax::Anything).unwrap()
}

fn part_text(text: &str) -> Composition {
    Composition::grammar(Grammar::literal(text).unwrap())
}

#[test]
fn a_second_matcher_computes_nothing_that_the_first_one_found() {
    let vocabulary = vocabulary();
    let text = r#"{"a": 12, "b": "x"}"#;
    walk(&mut *schema().matcher(&vocabulary).unwrap(), text);
    let bound = BoundGrammar::of(&schema(), &vocabulary, None, GrammarLimits::default()).unwrap();
    let steps = bound.steps();
    assert!(steps > 0);
    let mut second = schema().matcher(&vocabulary).unwrap();
    assert!(second.is_ready());
    walk(&mut *second, text);
    assert_eq!(bound.steps(), steps);
    // Other limits and other ends are other grammars.
    let other = BoundGrammar::of(&schema(), &vocabulary, Some(&[]), GrammarLimits::default()).unwrap();
    assert!(!Arc::ptr_eq(&bound, &other));
}

#[test]
fn keys_are_contents() {
    let (first, second) = (kinds(), kinds());
    for (at, one) in first.iter().enumerate() {
        for (other_at, other) in second.iter().enumerate() {
            assert_eq!(one.key().unwrap() == other.key().unwrap(), at == other_at, "{at} and {other_at}");
        }
    }
    let unknown = Recogniser::new(|| unreachable!());
    assert!(unknown.key().is_none());
    assert!(Composition::of(Arc::new(unknown)).at_most(3).unwrap().key().is_none());
}

#[test]
fn what_is_written_is_read_again() {
    for constraint in kinds() {
        let form = constraint.form().unwrap().to_string();
        let read = logitree::form::read(form.as_bytes()).unwrap_or_else(|error| panic!("{form}: {error}"));
        assert_eq!(read.form().unwrap().to_string(), form);
        assert_eq!(read.key(), constraint.key(), "{form}");
    }
}

#[test]
fn equal_constraints_are_bound_once() {
    let vocabulary = vocabulary();
    let count = |kinds: Vec<Box<dyn Constraint>>| {
        for constraint in kinds {
            drop(constraint.matcher(&vocabulary));
        }
        binding_count(&vocabulary)
    };
    let first = count(kinds());
    assert!(first >= kinds().len() - 2, "{first}");
    assert_eq!(count(kinds()), first);
    let mut matcher = schema().matcher(&vocabulary).unwrap();
    clear_bindings(&vocabulary);
    assert_eq!(binding_count(&vocabulary), 0);
    walk(&mut *matcher, "{\"a\": 1}");
}

#[test]
fn the_last_ones_are_kept() {
    let vocabulary = vocabulary();
    let bind = |n: usize| drop(OneOf::new([n.to_string()]).matcher(&vocabulary).unwrap());
    (0..2 * MAX_BINDINGS).for_each(bind);
    assert_eq!(binding_count(&vocabulary), MAX_BINDINGS);
}

#[test]
fn few_matchers_are_kept_to_be_copied() {
    let vocabulary = vocabulary();
    let choices = Composition::of(Arc::new(OneOf::new(["ab", "b"])));
    for n in 1..40 {
        drop(choices.at_most(n).unwrap().matcher(&vocabulary).unwrap());
    }
    assert_eq!(binding_count(&vocabulary), 1 + 8); // The choices, and the last compositions of them.
    for _ in 0..40 {
        let mut matcher = choices.at_most(3).unwrap().matcher(&vocabulary).unwrap();
        walk(&mut *matcher, "ab");
        assert!(binding_count(&vocabulary) <= 1 + 8);
    }
}

#[test]
fn contents_of_nested_constraints_are_bounded() {
    let mut nested = Composition::of(Arc::new(OneOf::new(["ab".repeat(20_000)])));
    for _ in 0..2 {
        assert!(nested.key().is_some());
        nested = Composition::then([nested.at_most(9).unwrap(), nested.clone(), nested]).unwrap();
    }
    for _ in 0..3 {
        nested = Composition::then([nested.at_most(9).unwrap(), nested.clone(), nested]).unwrap();
    }
    assert!(nested.key().is_none());
}

#[test]
fn a_vocabulary_and_its_bindings_do_not_keep_each_other_alive() {
    let vocabulary = vocabulary();
    let gone = Arc::downgrade(&vocabulary);
    let mut left = schema().matcher(&vocabulary).unwrap();
    for constraint in kinds() {
        drop(constraint.matcher(&vocabulary));
    }
    drop(vocabulary);
    assert!(gone.upgrade().is_none());
    walk(&mut *left, "{\"a\": 1}");
}

#[test]
fn a_tree_that_is_gone_gives_its_place_to_no_other() {
    let vocabulary = vocabulary();
    for token in 0..50 {
        let json =
            format!(r#"{{"descriptors":[{{"path":"p","leaves":[{{"name":"n","tokens":[{token}]}}]}}]}}"#);
        let tree = TokenTree::from_json(json.as_bytes(), &PayloadCheck::default()).unwrap();
        let following = Some(b"!".to_vec());
        let span = TreeSpan { tree: Arc::new(tree), path: "p".into(), following, end_tokens: None };
        for whole in [&span as &dyn Constraint, &Composition::of(Arc::new(span.clone())).at_most(9).unwrap()]
        {
            let mut matcher = whole.matcher(&vocabulary).unwrap();
            assert!(matcher.is_allowed(token).unwrap(), "{token}");
        }
    }
}

#[test]
fn threads_bind_one_constraint() {
    let vocabulary = vocabulary();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| walk(&mut *schema().matcher(&vocabulary).unwrap(), "{\"a\": 1}"));
        }
    });
    assert_eq!(binding_count(&vocabulary), 1);
}
