//! Tags: what each structure accepts, and the message of each mistake.

use std::sync::Arc;

use serde_json::{json, Value};

use logitree_grammar::gbnf;
use logitree_grammar::json_schema::{load, SchemaOptions};
use logitree_grammar::rules::{Rules, TokenName};
use logitree_grammar::tags::{from_json, rules, Content, Mark, Tag, Tags};
use logitree_grammar::Result;
use logitree_testing::gbnf_writer::show;
use logitree_testing::rules::check;

fn read(value: &Value) -> Result<Rules> {
    let schema = |text: &str, options: &SchemaOptions| load(text, options, &[]).map(Arc::new);
    rules(&from_json(value, &schema)?)
}

fn check_json(value: &Value, accepted: &[&str], refused: &[&str]) {
    check(&read(value).unwrap_or_else(|error| panic!("{value}\n{error}")), accepted, refused);
}

fn tag(begin: &str, content: &str, end: &str) -> Tag {
    let content = Content::Rules(gbnf::parse(&format!("root ::= {content}")).unwrap());
    Tag { begin: Mark::Text(begin.into()), content, end: vec![Mark::Text(end.into())] }
}

fn tags(all: Vec<Tag>) -> Tags {
    Tags { triggers: vec![Mark::Text("<f=".into())], ..Tags::new(all) }
}

fn rules_of(tags: Tags) -> Rules {
    rules(&Content::Tags(Box::new(tags))).unwrap()
}

#[test]
fn free_text_until_a_trigger() {
    let two = || vec![tag("<f=a>", "[0-9]+", "</f>"), tag("<f=bc>", "[x-z]*", "</f>")];
    let rules = rules_of(tags(two()));
    let accepted = [
        "",
        "plain",
        "a < b <f",
        "<f=a>12</f>",
        "x<f=bc></f>",
        "x <f=a>1</f> y <f=bc>z</f>z<f",
        "<<f=a>1</f>",
        "é\n<f",
    ];
    let refused = ["<f=", "<f=c>", "<f=a>x</f>", "<f=a>1</f><f=", "x<f=a>1", "<f=a>12</f"];
    check(&rules, &accepted, &refused);

    let rules = rules_of(Tags { at_least_one: true, ..tags(two()) });
    check(&rules, &["x<f=a>1</f>", "<f=a>1</f>y"], &["", "x"]);
    let rules = rules_of(Tags { stop_after_first: true, ..tags(two()) });
    check(&rules, &["x<f=a>1</f>", "", "x"], &["<f=a>1</f>y", "<f=a>1</f><f=a>1</f>"]);
    let rules =
        rules_of(Tags { stop_after_first: true, at_least_one: true, free_before: false, ..tags(two()) });
    check(&rules, &["<f=a>1</f>", "<f=bc></f>"], &["", "x<f=a>1</f>", "<f=a>1</f>y"]);
    let rules = rules_of(Tags { free_before: false, ..tags(two()) });
    check(&rules, &["", "<f=a>1</f>y<f=bc></f>"], &["x", "x<f=a>1</f>"]);
    let rules = rules_of(Tags { excludes: vec![Mark::Text("bad".into())], ..tags(two()) });
    check(&rules, &["ba<f=a>1</f>d"], &["bad", "x<f=a>1</f> bad"]);
}

#[test]
fn triggers_that_overlap() {
    let own = |begin: &str| tag(begin, "\"!\"", ".");
    let rules = rules_of(Tags::new(vec![own("aa")]));
    check(&rules, &["aa!.", "baa!.a", "a", "ba"], &["aaa!.", "aaaa"]);
    // The one that ends first counts, and of two that end together the longer one.
    let rules = rules_of(Tags::new(vec![own("ab"), own("xabc")]));
    check(&rules, &["xab!.", "xa"], &["xabc!.", "xab"]);
    let rules = rules_of(Tags::new(vec![tag("b", "\"1\"", ""), tag("ab", "\"2\"", "")]));
    check(&rules, &["b1", "cb1", "ab2", "cab2b1"], &["ab1", "b2", "cab1"]);
}

#[test]
fn tokens_and_the_same_text() {
    let call = |begin: Mark| Tag { begin, ..tag("", "\"1\"", "</c>") };
    let name = "<call>";
    let token = rules_of(Tags::new(vec![call(Mark::Token(TokenName::Text(name.into())))]));
    check(&token, &["x⟦<call>⟧1</c>y", "<call>", "a <call>1</c>"], &["⟦<call>⟧", "⟦<call>⟧2</c>"]);
    let text = rules_of(Tags::new(vec![call(Mark::Text(name.into()))]));
    check(&text, &["x<call>1</c>y"], &["<call>", "⟦<call>⟧1</c>"]);
    let either = rules_of(Tags::new(vec![call(Mark::Either(name.into()))]));
    check(&either, &["x<call>1</c>y", "x⟦<call>⟧1</c>y<call>1</c>"], &["<call>", "⟦<call>⟧"]);
    // A tag that begins with the text of a token, triggered by the token.
    let triggers = vec![Mark::Token(TokenName::Text(name.into()))];
    let rest = rules_of(Tags { triggers, ..Tags::new(vec![call(Mark::Text("<call>\n".into()))]) });
    check(&rest, &["x⟦<call>⟧\n1</c>"], &["⟦<call>⟧1</c>"]);
}

#[test]
fn ends_stop_free_text() {
    let think = json!({"type": "tag", "begin": "<t>", "content": {"type": "any_text"}, "end": "</t>"});
    check_json(&think, &["<t></t>", "<t>a<b></</t>"], &["<t>a", "<t></t></t>", "a<t></t>"]);
    let two = json!({"type": "tag", "begin": "<t>", "content": {"type": "any_text", "excludes": ["no"], "max_chars": 3},
        "end": ["aa", "."]});
    check_json(&two, &["<t>xéz.", "<t>aa", "<t>bcdaa", "<t>n."], &["<t>no.", "<t>bcde.", "<t>aaa", "<t>b"]);
    let open = json!({"type": "tag", "begin": "<t>", "content": {"type": "any_text"}, "end": [""]});
    check_json(&open, &["<t>", "<t>abc"], &["", "abc"]);
    let inside = json!({"type": "tag", "begin": "(", "end": ")", "content": {"type": "sequence", "elements": [
        {"type": "any_text"}, {"type": "const_string", "value": "!"}]}});
    check_json(&inside, &["(a!)", "(!!)"], &["(a)", "(a)!)"]);
}

#[test]
fn excluded_texts_are_looked_for_in_the_content() {
    let tag =
        |content: Value, end: Value| json!({"type": "tag", "begin": "", "content": content, "end": end});
    let text = |excludes: &[&str]| json!({"type": "any_text", "excludes": excludes});
    // In the beginning, inside and at the end of an end mark, and as all of it.
    for excludes in [&["<b"][..], &["bc"], &["c>"], &["<"], &["<bc>"], &["<b", "bc", ">"]] {
        check_json(&tag(text(excludes), json!("<bc>")), &["a<bc>", "<bc>"], &["a", "a<bc>a", "a<bc><bc>"]);
        let few = json!({"type": "any_text", "excludes": excludes, "max_chars": 2});
        check_json(&tag(few, json!("<bc>")), &["é<bc>", "aa<bc>"], &["aaa<bc>", "aa"]);
    }
    check_json(&tag(text(&["<b"]), json!("<bc>")), &["a<<bc>", "bc<bc>"], &["a<b<bc>", "<b <bc>"]);
    check_json(&tag(text(&["<<"]), json!("<b>")), &["a<<b>"], &["a<<<b>", "<< <b>"]);
    let several = tag(text(&["<", "b"]), json!(["<b>", "</b>", "."]));
    check_json(&several, &["a<b>", "a</b>", "a.", "."], &["a<.", "a b.", "a.b>", "ab<b>"]);
    let kimi = tag(text(&["<|open|>", "<|close|>"]), json!("<|close|>think<|sep|>"));
    check_json(
        &kimi,
        &["a<|close|>think<|sep|>", "<|close<|close|>think<|sep|>"],
        &["a<|open|><|close|>think<|sep|>", "a<|close|>thin<|close|>think<|sep|>"],
    );
    // The same as a sequence, and one tag in another.
    let end = json!({"type": "const_string", "value": "<bc>"});
    check_json(&json!({"type": "sequence", "elements": [text(&["<b"]), end]}), &["a<bc>"], &["a<b<bc>"]);
    let inner = tag(text(&["]"]), json!("]]"));
    check_json(&tag(inner, json!("]")), &["a]]]", "]]]"], &["a]]", "a]", "]a]]]"]);
    let parts = json!([text(&["<"]), {"type": "const_string", "value": "!"}]);
    let parts = tag(json!({"type": "sequence", "elements": parts}), json!("<b>"));
    check_json(&parts, &["a!<b>"], &["<!<b>", "a<b>"]);
    // Text around tags.
    let call =
        json!({"type": "tag", "begin": "<f>", "content": {"type": "const_string", "value": "1"}, "end": ">"});
    let triggered =
        json!({"type": "triggered_tags", "triggers": ["<f"], "tags": [call], "excludes": ["<", "f>"]});
    check_json(&triggered, &["a<f>1>b", "", "f<f>1>"], &["a<", "f>", "<f>1>f>", "<<f>1>"]);
    check_json(&tag(triggered, json!("<e>")), &["a<f>1>b<e>", "<e>"], &["a<<e>", "<f>1><"]);
    let dispatch = json!({"type": "dispatch", "excludes": ["<"], "rules": [["<x>", {"type": "const_string", "value": "1"}]]});
    check_json(&dispatch, &["a<x>1b<x>1", ""], &["<", "a<x>2", "<<x>1"]);
}

#[test]
fn structural_tags() {
    let weather = json!({"type": "tag", "begin": "<function=get_weather>", "end": "</function>",
        "content": {"type": "json_schema", "json_schema": {"type": "object", "properties": {"city": {"type": "string"}},
            "required": ["city"], "additionalProperties": false}}});
    let triggered = json!({"type": "structural_tag", "format":
        {"type": "triggered_tags", "triggers": ["<function="], "tags": [weather]}});
    let call = "I call <function=get_weather>{\"city\": \"Rome\"}</function> now";
    check_json(&triggered, &[call, "", "no call"], &["<function=", "<function=get_weather>{}</function>"]);
    let exactly = json!({"type": "triggered_tags", "triggers": ["<function="], "tags": [weather],
        "at_least_one": true, "stop_after_first": true, "excludes": null});
    check_json(&exactly, &["<function=get_weather>{\"city\": \"\"}</function>"], &[call, ""]);
    let older = json!({"type": "structural_tag", "triggers": ["<f"], "structures": [
        {"begin": "<f>", "schema": {"const": 1}, "end": "</f>"}]});
    check_json(&older, &["x<f>1</f>y"], &["<f>2</f>"]);
    let list = json!({"type": "tags_with_separator", "separator": ", ", "tags": [
        {"type": "tag", "begin": "<", "content": {"type": "regex", "pattern": "[a-z]+"}, "end": ">"}]});
    check_json(&list, &["", "<a>", "<a>, <bc>"], &["<a>, ", "<a><b>", "x"]);
    let shapes = json!({"type": "sequence", "elements": [
        {"type": "optional", "content": {"type": "const_string", "value": "a"}},
        {"type": "or", "elements": [{"type": "const_string", "value": "b"}, {"type": "grammar", "grammar": "root ::= [cd]"}]},
        {"type": "plus", "content": {"type": "const_string", "value": "e"}},
        {"type": "star", "content": {"type": "const_string", "value": "f"}},
        {"type": "repeat", "min": 1, "max": -1, "content": {"type": "const_string", "value": "g"}}]});
    check_json(&shapes, &["abeg", "ceefffgg"], &["aeg", "abg", "abe"]);
}

#[test]
fn tokens_of_structural_tags() {
    let tokens = json!({"type": "sequence", "elements": [
        {"type": "tag", "begin": {"type": "token", "token": "<th>"}, "content": {"type": "any_tokens", "max_tokens": 2},
            "end": {"type": "token", "token": 5}},
        {"type": "exclude_token", "exclude_tokens": [7]}, {"type": "token", "token": 8}]});
    check_json(
        &tokens,
        &["⟦<th>⟧⟦5⟧⟦6⟧⟦8⟧", "⟦<th>⟧⟦1⟧⟦2⟧⟦5⟧⟦5⟧⟦8⟧"],
        &["⟦<th>⟧⟦1⟧⟦2⟧⟦3⟧⟦5⟧⟦6⟧⟦8⟧", "⟦<th>⟧⟦5⟧⟦7⟧⟦8⟧"],
    );
    let triggered = json!({"type": "token_triggered_tags", "trigger_tokens": ["<c>"], "exclude_tokens": [9], "tags": [
        {"type": "tag", "begin": {"type": "token", "token": "<c>"}, "content": {"type": "const_string", "value": "x"},
            "end": {"type": "token", "token": "</c>"}}]});
    check_json(&triggered, &["", "⟦1⟧⟦<c>⟧x⟦</c>⟧⟦2⟧⟦<c>⟧x⟦</c>⟧"], &["⟦9⟧", "⟦<c>⟧⟦</c>⟧", "⟦<c>⟧x"]);
    // The token that ends a tag is no content of it, wherever in the content.
    let end = json!({"type": "token", "token": "<e>"});
    let one = json!({"type": "exclude_token", "exclude_tokens": [7]});
    for content in [
        one.clone(),
        json!({"type": "sequence", "elements": [one]}),
        json!({"type": "or", "elements": [one]}),
        json!({"type": "repeat", "min": 1, "max": 1, "content": one}),
        json!({"type": "any_tokens", "exclude_tokens": [7], "max_tokens": 1}),
    ] {
        let tag = json!({"type": "tag", "begin": "<t>", "content": content, "end": end});
        check_json(&tag, &["<t>⟦1⟧⟦<e>⟧"], &["<t>⟦<e>⟧⟦<e>⟧", "<t>⟦7⟧⟦<e>⟧", "<t>⟦1⟧"]);
    }
    // A token that the content names is content.
    let named = json!({"type": "tag", "begin": "<t>", "content": end, "end": end});
    check_json(&named, &["<t>⟦<e>⟧⟦<e>⟧"], &["<t>⟦<e>⟧"]);
    let dispatch = json!({"type": "dispatch", "loop": false, "excludes": ["no"],
        "rules": [["<x>", {"type": "const_string", "value": "1"}], ["<y>", {"type": "const_string", "value": "2"}]]});
    check_json(&dispatch, &["", "a<x>1", "b<y>2"], &["<x>2", "<x>1<y>2", "no"]);
    let dispatch = json!({"type": "token_dispatch", "rules": [[3, {"type": "const_string", "value": "1"}]]});
    check_json(&dispatch, &["⟦1⟧⟦3⟧1⟦3⟧1⟦2⟧"], &["⟦3⟧2", "⟦3⟧"]);
}

#[test]
fn many_tools() {
    let all = (0..128).map(|n| tag(&format!("<f=tool{n}>"), "[0-9]+", "</f>")).collect();
    let rules = rules_of(tags(all));
    check(&rules, &["call <f=tool127>1</f> <f=tool0>2</f>"], &["<f=tool128>1</f>"]);
}

#[test]
#[allow(clippy::too_many_lines)] // one table
fn every_mistake_has_its_place_and_a_way_out() {
    let tag = json!({"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": "</a>"});
    for (value, said) in [
        (json!(1), "no object in the structural tag (at the top)"),
        (json!({}), "no text \"type\""),
        (json!({"type": "what"}), "the format \"what\" is not known"),
        (json!({"type": "const_string"}), "no text \"value\""),
        (json!({"type": "const_string", "value": "a", "b": 1}), "unknown key \"b\""),
        (
            json!({"type": "structural_tag", "format": {"type": "or"}}),
            "no list \"elements\" in the structural tag (at /format)",
        ),
        (
            json!({"type": "structural_tag"}),
            "no \"format\" in the structural tag (at the top); add it, or \"structures\"",
        ),
        (json!({"type": "structural_tag", "format": null}), "no \"format\""),
        (json!({"type": "structural_tag", "triggers": ["<f"]}), "no \"format\""),
        (json!({"type": "structural_tag", "structures": [], "triggers": ["<f"]}), "\"structures\" is empty"),
        (json!({"type": "or", "elements": []}), "\"elements\" is empty"),
        (json!({"type": "sequence", "elements": []}), "\"elements\" is empty"),
        (json!({"type": "dispatch"}), "no list \"rules\""),
        (json!({"type": "dispatch", "rules": []}), "\"rules\" is empty"),
        (json!({"type": "triggered_tags", "triggers": [], "tags": [tag]}), "\"triggers\" is empty"),
        (json!({"type": "triggered_tags", "triggers": ["<a"], "tags": []}), "\"tags\" is empty"),
        (json!({"type": "tags_with_separator", "separator": ",", "tags": []}), "\"tags\" is empty"),
        (
            json!({"type": "tag", "begin": "a", "content": {"type": "any_text"}, "end": []}),
            "\"end\" is empty",
        ),
        (json!({"type": "any_text", "excludes": ["a", ""]}), "an empty text in \"excludes\""),
        (json!({"type": "regex", "pattern": "["}), "in the structural tag (at /pattern)"),
        (json!({"type": "grammar", "grammar": "root ::= a"}), "the rule \"a\" is used and not defined"),
        (json!({"type": "json_schema", "json_schema": {"type": "strin"}}), "(at /json_schema)"),
        (
            json!({"type": "json_schema", "json_schema": true, "style": "html"}),
            "the style \"html\" is not known",
        ),
        (json!({"type": "any_text", "max_tokens": 0.5}), "\"max_tokens\" is no count"),
        (json!({"type": "any_text", "max_chars": -3}), "\"max_chars\" is no count"),
        (
            json!({"type": "repeat", "min": 3, "max": 2, "content": {"type": "any_text"}}),
            "\"max\" is less than \"min\"",
        ),
        (
            json!({"type": "tag", "begin": 1, "content": {"type": "any_text"}, "end": ""}),
            "\"begin\" is no mark",
        ),
        (
            json!({"type": "triggered_tags", "triggers": ["<b"], "tags": [tag]}),
            "no trigger starts the tag that begins with \"<a>\"",
        ),
        (
            json!({"type": "triggered_tags", "triggers": ["<a", "b"], "tags": [tag]}),
            "the trigger \"b\" starts no tag",
        ),
        (json!({"type": "triggered_tags", "triggers": [""], "tags": [tag]}), "a trigger is empty"),
        (json!({"type": "token_triggered_tags", "trigger_tokens": ["<a>"], "tags": [tag]}), ""),
        (json!({"type": "dispatch", "rules": [["a"]]}), "no rule in the structural tag (at /rules/0)"),
    ] {
        let message = match read(&value) {
            Ok(_) if said.is_empty() => continue,
            Ok(rules) => panic!("{value}\n{}", show(&rules)),
            Err(error) => error.to_string(),
        };
        assert!(message.contains(said), "{value}\n{message}");
    }
    let two = json!({"type": "or", "elements": [{"type": "x"}, {"type": "tag", "begin": "", "end": ""}]});
    let message = read(&two).unwrap_err().to_string();
    assert!(message.starts_with("2 problems in the structural tag:\n  /elements/0: "), "{message}");
    let mut deep = json!({"type": "any_text"});
    for _ in 0..100 {
        deep = json!({"type": "optional", "content": deep});
    }
    assert!(read(&deep).unwrap_err().message.contains("nest more than 64 deep"));
}
