//! Syntax trees: their rules, their serialised form, their errors.

use std::sync::Arc;

use serde_json::json;

use logitree_grammar::ast::{Grammar, NodeKind, Syntax, TagNode, MAX_NESTED};
use logitree_grammar::json_schema::{PairForm, SchemaOptions};
use logitree_grammar::lazy::{TokenTrigger, Triggers};
use logitree_grammar::rules::{RuleBody, TokenName};
use logitree_grammar::tags::Mark;
use logitree_grammar::ErrorKind;
use logitree_testing::gbnf_writer::show;

fn text(text: &str) -> Grammar {
    Grammar::literal(text).unwrap()
}

fn gbnf(text: &str) -> Grammar {
    Grammar::read(Syntax::Gbnf { text: text.into(), root: "root".into() }).unwrap()
}

/// The rules in a comparable form.
fn shown(part: &Grammar) -> String {
    show(&part.rules().unwrap())
}

#[test]
fn texts_are_joined_in_place() {
    let ab = Grammar::seq([text("a"), text("b")]).unwrap();
    let abc = Grammar::seq([ab.clone(), text("c")]).unwrap();
    assert!(matches!(abc.kind(), NodeKind::Seq(parts) if parts.len() == 3));
    let either = Grammar::alt([Grammar::alt([ab, text("x")]).unwrap(), text("y")]).unwrap();
    assert!(matches!(either.kind(), NodeKind::Alt(parts) if parts.len() == 3));
    let rules = either.rules().unwrap();
    assert_eq!(rules.rules.len(), 1, "{}", shown(&either));
}

#[test]
fn rules_of_texts_are_moved_behind_one_another() {
    let list = gbnf("root ::= item (\",\" item)*\nitem ::= [a-z]+");
    let two = Grammar::seq([list.clone(), text(";"), gbnf("root ::= \"x\" root | \"y\"")]).unwrap();
    let rules = two.rules().unwrap();
    assert_eq!(rules.rules[rules.start.index()].name, "~root");
    for rule in &rules.rules {
        check_refs(&rule.body, rules.rules.len());
    }
    assert_eq!(list.rules().unwrap().rules.len() + 1 + 1, rules.rules.len());
}

fn check_refs(node: &RuleBody, rules: usize) {
    match node {
        RuleBody::Ref(rule) => assert!(rule.index() < rules),
        RuleBody::Seq(nodes) | RuleBody::Alt(nodes) => nodes.iter().for_each(|node| check_refs(node, rules)),
        RuleBody::Repeat { of, .. } => check_refs(of, rules),
        _ => {}
    }
}

#[test]
fn a_shared_part_is_one_rule() {
    let mut part = Grammar::alt([text("a"), text("b")]).unwrap();
    for _ in 0..60 {
        part = Grammar::seq([part.repeat(1, Some(2)).unwrap(), part]).unwrap();
    }
    let rules = part.rules().unwrap();
    assert!(rules.rules.len() < 1_000, "{} rules", rules.rules.len());
    assert!(part.written().len() < 100_000);
    assert_eq!(Grammar::from_written(part.written()).unwrap().written(), part.written());
}

#[test]
fn long_chains_stay_cheap_and_then_are_refused() {
    let mut part = text("a");
    for _ in 0..20_000 {
        part = Grammar::seq([part, text("a")]).unwrap();
    }
    assert!(part.rules().is_ok());
    let mut part = text("a");
    let refused = loop {
        match part.repeat(0, None).and_then(|part| Grammar::seq([part, text("b")])) {
            Ok(deeper) => part = deeper,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind, ErrorKind::Limit);
}

#[test]
fn recursion_names_itself() {
    let part: Grammar =
        Grammar::recursive(|me| Grammar::alt([Grammar::seq([text("("), me, text(")")])?, text("x")]))
            .unwrap();
    let rules = part.rules().unwrap();
    assert!(shown(&part).contains("recursion"), "{}", shown(&part));
    rules.rules.iter().for_each(|rule| check_refs(&rule.body, rules.rules.len()));

    let mut leaked = None;
    let inner: Grammar = Grammar::recursive(|me| {
        leaked = Some(me.clone());
        Grammar::alt([Grammar::seq([text("("), me])?, text("x")])
    })
    .unwrap();
    let leaked = leaked.unwrap();
    assert_eq!(leaked.rules().unwrap_err().kind, ErrorKind::Constraint);
    // Inside its grammar the reference is the grammar.
    assert!(Grammar::seq([leaked, inner]).unwrap().rules().is_ok());
}

#[test]
fn written_parts_are_read_again() {
    let token = Grammar::read(Syntax::Token(TokenName::Text("<think>".into()))).unwrap();
    let id = Grammar::read(Syntax::Token(TokenName::Id(7))).unwrap();
    let choice = Grammar::read(Syntax::Choice(vec!["a".into(), "é\n".into()])).unwrap();
    let any = Grammar::read(Syntax::Anything).unwrap();
    let nested: Grammar = Grammar::recursive(|me| {
        Grammar::alt([Grammar::seq([text("("), me, text(")")])?, gbnf("root ::= \"x\"")])
    })
    .unwrap();
    let whole = Grammar::seq([token, id, choice.repeat(0, Some(3)).unwrap(), any, nested]).unwrap();
    let written = whole.written();
    let read = Grammar::from_written(written).unwrap();
    assert_eq!(read.written(), written);
    assert_eq!(read.content(), whole.content());
    assert_eq!(shown(&read), shown(&whole));
}

#[test]
fn contents_are_equal_whether_forms_of_pairs_are_shared() {
    let forms = ["qwen_xml", "minimax_xml"].map(|name| Arc::new(PairForm::named(name).unwrap()));
    let copy = Arc::new(PairForm::clone(&forms[0]));
    let both = |pairs: [Option<&Arc<PairForm>>; 2]| {
        let one = |pairs: Option<&Arc<PairForm>>| {
            let options = SchemaOptions { pairs: pairs.cloned(), ..SchemaOptions::default() };
            let text = json!({"type": "object", "properties": {"a": {"type": "string"}}}).to_string();
            Grammar::read(Syntax::JsonSchema { text, options, documents: Vec::new() }).unwrap()
        };
        Grammar::alt(pairs.map(one)).unwrap().content().clone()
    };
    let shared = both([Some(&forms[0]), Some(&forms[0])]);
    assert_eq!(both([Some(&forms[0]), Some(&copy)]), shared);
    for other in [Some(&forms[1]), None] {
        assert_ne!(both([Some(&forms[0]), other]), shared);
        assert_ne!(both([other, Some(&forms[0])]), both([Some(&forms[0]), other]));
    }
}

#[test]
fn lark_names_other_grammars() {
    let inner = text("x").repeat(2, Some(2)).unwrap();
    let lark = "start: \"a\" @inner %json {\"type\": \"null\"}";
    let part =
        Grammar::read(Syntax::Lark { text: lark.into(), grammars: vec![("inner".into(), inner)] }).unwrap();
    let rules = part.rules().unwrap();
    rules.rules.iter().for_each(|rule| check_refs(&rule.body, rules.rules.len()));
    let read = Grammar::from_written(part.written()).unwrap();
    assert_eq!((read.written(), shown(&read)), (part.written(), shown(&part)));
    assert_eq!(read.content(), part.content());
    let other =
        Grammar::read(Syntax::Lark { text: lark.into(), grammars: vec![("inner".into(), text("x"))] });
    assert_ne!(other.unwrap().content(), part.content());
    let nameless = Grammar::read(Syntax::Lark { text: lark.into(), grammars: Vec::new() });
    assert_eq!(nameless.unwrap_err().kind, ErrorKind::Constraint);
}

#[test]
fn tags_hold_other_grammars() {
    let tag = |begin: Mark, content: Grammar| TagNode { begin, content, end: vec![Mark::Text("]".into())] };
    let tags = vec![
        tag(Mark::Text("[a".into()), text("1").repeat(0, None).unwrap()),
        tag(Mark::Either("<b>".into()), gbnf("root ::= \"2\" root | \"x\"")),
        tag(Mark::Token(TokenName::Id(7)), text("3")),
        tag(Mark::Token(TokenName::Text("<c>".into())), text("4")),
    ];
    let source = Syntax::Tags {
        tags,
        triggers: Vec::new(),
        free_before: true,
        at_least_one: true,
        stop_after_first: false,
        excludes: vec![Mark::Text("!".into())],
    };
    let part = Grammar::read(source).unwrap();
    let read = Grammar::from_written(part.written()).unwrap();
    assert_eq!((read.written(), shown(&read)), (part.written(), shown(&part)));
    assert_eq!(read.content(), part.content());
    let structural = r#"{"type":"structural_tag","format":{"type":"const_string","value":"x"}}"#;
    let part = Grammar::read(Syntax::StructuralTag(structural.into())).unwrap();
    assert_eq!(Grammar::from_written(part.written()).unwrap().written(), part.written());
    let refused = Grammar::read(Syntax::StructuralTag("{\n".into())).unwrap_err();
    assert_eq!(refused.place, "2:0");
}

#[test]
fn lazy_grammars_are_written_too() {
    let tokens = vec![
        TokenTrigger { name: TokenName::Text("<t>".into()), text: Some("<t>".into()) },
        TokenTrigger { name: TokenName::Id(7), text: Some("<t>".into()) },
    ];
    let triggers = Triggers { words: vec!["<t>".into()], tokens, patterns: Vec::new() };
    let part = Grammar::read(Syntax::Lazy { grammar: gbnf("root ::= \"<t>\" [0-9]+"), triggers }).unwrap();
    let read = Grammar::from_written(part.written()).unwrap();
    assert_eq!((read.written(), shown(&read)), (part.written(), shown(&part)));
    assert_eq!(read.content(), part.content());
    let none = Grammar::read(Syntax::Lazy { grammar: text("a"), triggers: Triggers::default() });
    assert_eq!(none.unwrap_err().kind, ErrorKind::Constraint);
}

/// Pickled grammars hold such texts: they stay readable.
#[test]
fn the_stored_form_stays() {
    for stored in [
        concat!(
            r#"[{"is":"regex","pattern":"[0-9]+"},"#,
            r#"{"is":"json_schema","text":"{\"type\": \"null\"}","written":{"order":"any","whitespace":"free","separators":[", ",": "],"ascii":true,"lenient":true,"draft":"7"},"documents":[["http://a","true"]]},"#,
            r#"{"is":"tags","tags":[{"begin":{"text":"[a "},"content":0,"end":[{"text":"]"}]},{"begin":{"token_text":"<think>"},"content":1,"end":[{"token_id":7},{"either":"<x>"}]}],"triggers":[],"free_before":true,"at_least_one":false,"stop_after_first":false,"excludes":[{"text":"no"}]}]"#,
        ),
        concat!(
            r#"[{"is":"literal","text":"go"},"#,
            r#"{"is":"regex","pattern":"[0-9]+"},"#,
            r#"{"is":"seq","of":[0,1]},"#,
            r#"{"is":"lazy","grammar":2,"words":["go"],"tokens":[[{"token_text":"go"},"go"]],"patterns":["^go"]}]"#,
        ),
    ] {
        assert_eq!(Grammar::from_written(stored).unwrap().written().as_ref(), stored);
    }
}

#[test]
fn the_same_making_gives_the_same_text() {
    let make = || {
        let inner: Grammar =
            Grammar::recursive(|me| Grammar::alt([Grammar::seq([text("a"), me])?, text("b")])).unwrap();
        Grammar::seq([inner.clone(), text("-"), inner]).unwrap()
    };
    assert_eq!(make().written(), make().written());
    assert_ne!(make().written(), text("a").written());
}

#[test]
fn hostile_texts_are_refused() {
    for text in [
        "",
        "[]",
        "{}",
        "[1]",
        r#"[{"is":"seq","of":[0]}]"#,
        r#"[{"is":"literal","text":"a"},{"is":"alt","of":[0,7]}]"#,
        r#"[{"is":"literal","text":"a"},{"is":"repeat","of":0,"min":3,"max":2}]"#,
        r#"[{"is":"gbnf","text":"root ::= nothing","root":"root"}]"#,
        r#"[{"is":"literal","text":"a","more":1}]"#,
    ] {
        let error = Grammar::from_written(text).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Constraint, "{text}: {error}");
    }
    let mut deep = String::from(r#"[{"is":"literal","text":"a"}"#);
    for n in 0..MAX_NESTED {
        deep += &format!(r#",{{"is":"repeat","of":{n},"min":0,"max":null}}"#);
    }
    assert_eq!(Grammar::from_written(&(deep + "]")).unwrap_err().kind, ErrorKind::Limit);
}
