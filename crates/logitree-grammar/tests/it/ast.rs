//! Syntax trees: their rules, their serialised form, their errors.

use logitree_grammar::ast::{GrammarNode, NodeKind, Syntax, TagNode, MAX_NESTED};
use logitree_grammar::lazy::{TokenTrigger, Triggers};
use logitree_grammar::rules::{RuleBody, TokenName};
use logitree_grammar::tags::Mark;
use logitree_grammar::ErrorKind;
use logitree_testing::gbnf_writer::show;

fn text(text: &str) -> GrammarNode {
    GrammarNode::literal(text).unwrap()
}

fn gbnf(text: &str) -> GrammarNode {
    GrammarNode::read(Syntax::Gbnf { text: text.into(), root: "root".into() }).unwrap()
}

/// The rules in a comparable form.
fn shown(part: &GrammarNode) -> String {
    show(&part.rules().unwrap())
}

#[test]
fn texts_are_joined_in_place() {
    let ab = GrammarNode::seq([text("a"), text("b")]).unwrap();
    let abc = GrammarNode::seq([ab.clone(), text("c")]).unwrap();
    assert!(matches!(abc.kind(), NodeKind::Seq(parts) if parts.len() == 3));
    let either = GrammarNode::alt([GrammarNode::alt([ab, text("x")]).unwrap(), text("y")]).unwrap();
    assert!(matches!(either.kind(), NodeKind::Alt(parts) if parts.len() == 3));
    let rules = either.rules().unwrap();
    assert_eq!(rules.rules.len(), 1, "{}", shown(&either));
}

#[test]
fn rules_of_texts_are_moved_behind_one_another() {
    let list = gbnf("root ::= item (\",\" item)*\nitem ::= [a-z]+");
    let two = GrammarNode::seq([list.clone(), text(";"), gbnf("root ::= \"x\" root | \"y\"")]).unwrap();
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
    let mut part = GrammarNode::alt([text("a"), text("b")]).unwrap();
    for _ in 0..60 {
        part = GrammarNode::seq([part.repeat(1, Some(2)).unwrap(), part]).unwrap();
    }
    let rules = part.rules().unwrap();
    assert!(rules.rules.len() < 1_000, "{} rules", rules.rules.len());
    assert!(part.written().len() < 100_000);
    assert_eq!(GrammarNode::from_written(part.written()).unwrap().written(), part.written());
}

#[test]
fn long_chains_stay_cheap_and_then_are_refused() {
    let mut part = text("a");
    for _ in 0..20_000 {
        part = GrammarNode::seq([part, text("a")]).unwrap();
    }
    assert!(part.rules().is_ok());
    let mut part = text("a");
    let refused = loop {
        match part.repeat(0, None).and_then(|part| GrammarNode::seq([part, text("b")])) {
            Ok(deeper) => part = deeper,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind, ErrorKind::Limit);
}

#[test]
fn recursion_names_itself() {
    let part: GrammarNode = GrammarNode::recursive(|me| {
        GrammarNode::alt([GrammarNode::seq([text("("), me, text(")")])?, text("x")])
    })
    .unwrap();
    let rules = part.rules().unwrap();
    assert!(shown(&part).contains("recursion"), "{}", shown(&part));
    rules.rules.iter().for_each(|rule| check_refs(&rule.body, rules.rules.len()));

    let mut leaked = None;
    let inner: GrammarNode = GrammarNode::recursive(|me| {
        leaked = Some(me.clone());
        GrammarNode::alt([GrammarNode::seq([text("("), me])?, text("x")])
    })
    .unwrap();
    let leaked = leaked.unwrap();
    assert_eq!(leaked.rules().unwrap_err().kind, ErrorKind::Constraint);
    // Inside its grammar the reference is the grammar.
    assert!(GrammarNode::seq([leaked, inner]).unwrap().rules().is_ok());
}

#[test]
fn written_parts_are_read_again() {
    let token = GrammarNode::read(Syntax::Token(TokenName::Text("<think>".into()))).unwrap();
    let id = GrammarNode::read(Syntax::Token(TokenName::Id(7))).unwrap();
    let choice = GrammarNode::read(Syntax::Choice(vec!["a".into(), "é\n".into()])).unwrap();
    let any = GrammarNode::read(Syntax::Anything).unwrap();
    let nested: GrammarNode = GrammarNode::recursive(|me| {
        GrammarNode::alt([GrammarNode::seq([text("("), me, text(")")])?, gbnf("root ::= \"x\"")])
    })
    .unwrap();
    let whole = GrammarNode::seq([token, id, choice.repeat(0, Some(3)).unwrap(), any, nested]).unwrap();
    let written = whole.written();
    let read = GrammarNode::from_written(written).unwrap();
    assert_eq!(read.written(), written);
    assert_eq!(read.content(), whole.content());
    assert_eq!(shown(&read), shown(&whole));
}

#[test]
fn lark_names_other_grammars() {
    let inner = text("x").repeat(2, Some(2)).unwrap();
    let lark = "start: \"a\" @inner %json {\"type\": \"null\"}";
    let part = GrammarNode::read(Syntax::Lark { text: lark.into(), grammars: vec![("inner".into(), inner)] })
        .unwrap();
    let rules = part.rules().unwrap();
    rules.rules.iter().for_each(|rule| check_refs(&rule.body, rules.rules.len()));
    let read = GrammarNode::from_written(part.written()).unwrap();
    assert_eq!((read.written(), shown(&read)), (part.written(), shown(&part)));
    assert_eq!(read.content(), part.content());
    let other =
        GrammarNode::read(Syntax::Lark { text: lark.into(), grammars: vec![("inner".into(), text("x"))] });
    assert_ne!(other.unwrap().content(), part.content());
    let nameless = GrammarNode::read(Syntax::Lark { text: lark.into(), grammars: Vec::new() });
    assert_eq!(nameless.unwrap_err().kind, ErrorKind::Constraint);
}

#[test]
fn tags_hold_other_grammars() {
    let tag =
        |begin: Mark, content: GrammarNode| TagNode { begin, content, end: vec![Mark::Text("]".into())] };
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
    let part = GrammarNode::read(source).unwrap();
    let read = GrammarNode::from_written(part.written()).unwrap();
    assert_eq!((read.written(), shown(&read)), (part.written(), shown(&part)));
    assert_eq!(read.content(), part.content());
    let structural = r#"{"type":"structural_tag","format":{"type":"const_string","value":"x"}}"#;
    let part = GrammarNode::read(Syntax::StructuralTag(structural.into())).unwrap();
    assert_eq!(GrammarNode::from_written(part.written()).unwrap().written(), part.written());
    let refused = GrammarNode::read(Syntax::StructuralTag("{\n".into())).unwrap_err();
    assert_eq!(refused.place, "2:0");
}

#[test]
fn lazy_grammars_are_written_too() {
    let tokens = vec![
        TokenTrigger { name: TokenName::Text("<t>".into()), text: Some("<t>".into()) },
        TokenTrigger { name: TokenName::Id(7), text: Some("<t>".into()) },
    ];
    let triggers = Triggers { words: vec!["<t>".into()], tokens, patterns: Vec::new() };
    let part =
        GrammarNode::read(Syntax::Lazy { grammar: gbnf("root ::= \"<t>\" [0-9]+"), triggers }).unwrap();
    let read = GrammarNode::from_written(part.written()).unwrap();
    assert_eq!((read.written(), shown(&read)), (part.written(), shown(&part)));
    assert_eq!(read.content(), part.content());
    let none = GrammarNode::read(Syntax::Lazy { grammar: text("a"), triggers: Triggers::default() });
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
        assert_eq!(GrammarNode::from_written(stored).unwrap().written().as_ref(), stored);
    }
}

#[test]
fn the_same_making_gives_the_same_text() {
    let make = || {
        let inner: GrammarNode =
            GrammarNode::recursive(|me| GrammarNode::alt([GrammarNode::seq([text("a"), me])?, text("b")]))
                .unwrap();
        GrammarNode::seq([inner.clone(), text("-"), inner]).unwrap()
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
        let error = GrammarNode::from_written(text).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Constraint, "{text}: {error}");
    }
    let mut deep = String::from(r#"[{"is":"literal","text":"a"}"#);
    for n in 0..MAX_NESTED {
        deep += &format!(r#",{{"is":"repeat","of":{n},"min":0,"max":null}}"#);
    }
    assert_eq!(GrammarNode::from_written(&(deep + "]")).unwrap_err().kind, ErrorKind::Limit);
}
