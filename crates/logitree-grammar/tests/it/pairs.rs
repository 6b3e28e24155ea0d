//! Objects as pairs of keys and values: beside the naive list of all texts, and the message of each mistake.

use std::sync::Arc;

use serde_json::{json, Value};

use logitree_grammar::json_schema::{
    load, MarkerPart, PairForm, PythonValues, Schema, SchemaOptions, Whitespace,
};
use logitree_grammar::rules::{RuleBody, Rules, TokenName};
use logitree_grammar::Result;
use logitree_testing::rules::{check, of_bodies, Running};

fn schema(schema: &Value, options: &SchemaOptions) -> Result<Arc<Schema>> {
    load(&schema.to_string(), options, &[]).map(Arc::new)
}

fn options(style: &str) -> SchemaOptions {
    let pairs = PairForm::named(style).map(Arc::new);
    SchemaOptions { pairs, whitespace: Whitespace::Compact, ..SchemaOptions::default() }
}

fn rules(of: &Value, options: &SchemaOptions) -> Rules {
    of_bodies([RuleBody::Json(schema(of, options).unwrap())])
}

/// Whether a text is an object of a closed schema, key by key: slow and plain.
fn naive(text: &str, of: &Value, any_order: bool) -> bool {
    let mut keys: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(behind) = rest.strip_prefix("<parameter=") {
        let Some((key, behind)) = behind.split_once('>') else { return false };
        let Some((value, behind)) = behind.split_once("</parameter>") else { return false };
        let good = match &of["properties"][key]["type"] {
            Value::String(kind) if kind == "string" => true,
            Value::String(kind) if kind == "boolean" => matches!(value, "true" | "false"),
            _ => false,
        };
        if !good || keys.contains(&key) {
            return false;
        }
        keys.push(key);
        rest = behind;
    }
    let named: Vec<&str> = of["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let place = |key: &str| named.iter().position(|name| *name == key);
    let in_order = keys.windows(2).all(|pair| place(pair[0]) < place(pair[1]));
    let required = of["required"].as_array().unwrap();
    rest.is_empty()
        && (any_order || in_order)
        && required.iter().all(|key| keys.contains(&key.as_str().unwrap()))
        && of.get("minProperties").is_none_or(|min| keys.len() as u64 >= min.as_u64().unwrap())
}

#[test]
fn pairs_are_those_of_the_naive_reader() {
    let pairs = ["<parameter=a>x</parameter>", "<parameter=b>true</parameter>", "<parameter=b>x</parameter>"];
    let more = ["<parameter=c></parameter>", "<parameter=d>1</parameter>", " "];
    let pairs: Vec<&str> = pairs.into_iter().chain(more).collect();
    let mut texts: Vec<String> = vec![String::new()];
    for _ in 0..3 {
        let longer = texts.iter().flat_map(|text| pairs.iter().map(move |pair| format!("{text}{pair}")));
        texts = texts.iter().cloned().chain(longer).collect();
        texts.sort();
        texts.dedup();
    }
    let properties = json!({"a": {"type": "string"}, "b": {"type": "boolean"}, "c": {"type": "string"}});
    for required in [json!([]), json!(["b"]), json!(["a", "c"])] {
        for (any_order, min) in [(false, 0), (true, 0), (false, 2)] {
            let mut of = json!({"type": "object", "properties": properties, "required": required});
            of["additionalProperties"] = false.into();
            if min > 0 {
                of["minProperties"] = min.into();
            }
            let mut options = options("qwen_xml");
            if any_order {
                options.order = logitree_grammar::json_schema::KeyOrder::Any;
            }
            let mut running = Running::new(&rules(&of, &options)).unwrap();
            for text in &texts {
                assert_eq!(running.accepts(text), naive(text, &of, any_order), "{text} {of} {any_order}");
            }
        }
    }
}

#[test]
#[allow(clippy::too_many_lines)] // one table
fn every_form() {
    let one = |value: Value| json!({"type": "object", "properties": {"a": value}, "required": ["a"], "additionalProperties": false});
    let text = || one(json!({"type": "string"}));
    let cases: &[(&str, Value, &[&str], &[&str])] = &[
        ("qwen_xml", text(), &["<parameter=a>x</parameter>", "<parameter=a>\n</p\n</parameter>"], &["", "<parameter=a>x"]),
        ("qwen_xml", text(), &[], &["<parameter=a>x</parameter></parameter>"]),
        ("qwen_xml", one(json!({"type": ["string", "null"]})), &["<parameter=a>null</parameter>"], &[]),
        ("qwen_xml", one(json!({"enum": ["x", 1]})), &["<parameter=a>1</parameter>", "<parameter=a>x</parameter>"], &["<parameter=a>\"x\"</parameter>"]),
        ("qwen_xml", one(json!({"type": "string", "pattern": "^[0-9]+$", "maxLength": 2})), &["<parameter=a>12</parameter>"], &["<parameter=a>123</parameter>", "<parameter=a>x</parameter>"]),
        ("qwen_xml", one(json!({"type": "array", "items": {"type": "string"}})), &["<parameter=a>[\"</parameter>\"]</parameter>"], &["<parameter=a>x</parameter>"]),
        ("qwen_xml", one(json!(true)), &["<parameter=a>{}</parameter>", "<parameter=a>x</parameter>"], &[]),
        ("minimax_xml", text(), &["<parameter name=\"a\">x</parameter>"], &["<parameter=a>x</parameter>"]),
        ("glm_xml", text(), &["<arg_key>a</arg_key><arg_value>x</arg_value>"], &["<arg_key>a</arg_key>x"]),
        ("deepseek_xml", text(), &["<｜DSML｜parameter name=\"a\" string=\"true\">x</｜DSML｜parameter>"], &["<｜DSML｜parameter name=\"a\" string=\"false\">x</｜DSML｜parameter>"]),
        ("deepseek_xml", one(json!({"type": "integer"})), &["<｜DSML｜parameter name=\"a\" string=\"false\">1</｜DSML｜parameter>"], &["<｜DSML｜parameter name=\"a\" string=\"true\">1</｜DSML｜parameter>"]),
        ("deepseek_v4_1_xml", text(), &["<｜DSML｜ parameter name=\"a\" string=\"true\">x</｜DSML｜ parameter>"], &[]),
        ("kimi_k3_xml", one(json!({"type": ["integer", "object"]})), &["<|open|>argument key=\"a\" type=\"number\"<|sep|>1<|close|>argument<|sep|>", "<|open|>argument key=\"a\" type=\"object\"<|sep|>{}<|close|>argument<|sep|>"], &["<|open|>argument key=\"a\" type=\"number\"<|sep|>{}<|close|>argument<|sep|>", "<|open|>argument key=\"a\" type=\"object\"<|sep|>1<|close|>argument<|sep|>"]),
        ("cohere_xml", one(json!({"type": "array", "items": {"type": "integer"}, "maxItems": 2})), &["<cofl:value name=\"a\" type=\"list\"></cofl:value>", "<cofl:value name=\"a\" type=\"list\"><cofl:value type=\"json\">1</cofl:value><cofl:value type=\"json\">2</cofl:value></cofl:value>"], &["<cofl:value name=\"a\" type=\"list\">[1]</cofl:value>", "<cofl:value name=\"a\" type=\"list\"><cofl:value type=\"json\">1</cofl:value><cofl:value type=\"json\">2</cofl:value><cofl:value type=\"json\">2</cofl:value></cofl:value>"]),
        ("cohere_xml", one(json!({"type": "object", "properties": {"b\"": {"type": "string"}}, "additionalProperties": false})), &["<cofl:value name=\"a\" type=\"dict\"></cofl:value>", "<cofl:value name=\"a\" type=\"dict\"><cofl:value name=\"b&quot;\" type=\"raw\">x</cofl:value></cofl:value>"], &["<cofl:value name=\"a\" type=\"dict\">{}</cofl:value>"]),
        ("qwen_xml", json!({"type": "object", "properties": {"a": true}, "additionalProperties": {"type": "null"}}), &["", "<parameter=b>null</parameter><parameter=_c1>null</parameter>"], &["<parameter=b>1</parameter>", "<parameter=1>null</parameter>"]),
        ("qwen_xml", json!({"type": "object", "additionalProperties": false}), &[""], &["<parameter=b>1</parameter>"]),
        ("qwen_xml", json!({"type": "object", "properties": {"a": true, "b": true}, "dependentRequired": {"a": ["b"]}, "additionalProperties": false}), &["", "<parameter=b>1</parameter>", "<parameter=a>1</parameter><parameter=b>1</parameter>"], &["<parameter=a>1</parameter>"]),
    ];
    for (style, of, accepted, refused) in cases {
        check(&rules(of, &options(style)), accepted, refused);
    }
    // White space as JSON has it there.
    let free = SchemaOptions { whitespace: Whitespace::Free, ..options("glm_xml") };
    let loose = [
        "\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n\n",
        "<arg_key>a</arg_key><arg_value>x</arg_value>",
    ];
    check(&rules(&text(), &free), &loose, &["<arg_key> a</arg_key><arg_value>x</arg_value>"]);
}

/// Objects with keys without quotes, as Gemma 4 writes them: separators, ends of a way's own, and brackets around nested values.
fn bare_keys() -> SchemaOptions {
    let text = |text: &str| json!([{"text": text}]);
    let form = json!({
        "begin": [], "end": [], "separator": ",", "item": "", "excludes": ["<|\"|>"], "may_break_off": true,
        "middles": [
            {"types": ["string"], "parts": text(":<|\"|>"), "end": text("<|\"|>")},
            {"types": ["null", "boolean", "number"], "parts": text(":")},
            {"types": ["object"], "parts": text(":{"), "end": text("}"), "is_nested": true},
            {"types": ["array"], "parts": text(":["), "end": text("]"), "is_nested": true},
        ],
        "python": "words",
    });
    let pairs = serde_json::from_value(form).unwrap();
    SchemaOptions {
        pairs: Some(Arc::new(pairs)),
        whitespace: Whitespace::Compact,
        ..SchemaOptions::default()
    }
}

fn closed(properties: &Value, required: &Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

#[test]
fn keys_without_quotes() {
    let kinds = json!({"s": {"type": "string", "maxLength": 3}, "n": {"type": ["integer", "null"]}, "b": {"type": "boolean"}});
    let inner = closed(
        &json!({"k": {"type": "string"}, "z": {"type": "array", "items": {"type": "integer"}}}),
        &json!([]),
    );
    let nested =
        closed(&json!({"o": inner, "l": {"type": "array", "items": inner, "maxItems": 2}}), &json!(["o"]));
    let texts = json!({"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1});
    let cases: &[(Value, &[&str], &[&str])] = &[
        (
            closed(&kinds, &json!([])),
            &["", "s:<|\"|><|\"|>", "s:<|\"|>a,}<|\"|>,n:12,b:true", "n:null", "n:None,b:True", "b:false"],
            &[
                ",",
                "s:abc",
                "s:\"abc\"",
                "s:<|\"|>abcd<|\"|>",
                "n:1,",
                "n:1b:true",
                "n:1, b:true",
                "b:true,n:1",
                "n:",
                "n:x",
            ],
        ),
        (
            nested,
            &[
                "o:{}",
                "o:{k:<|\"|>}<|\"|>}",
                "o:{z:[1,2,3]}",
                "o:{k:<|\"|>a<|\"|>,z:[]},l:[{},{z:[1]}]",
                "o:{},l:[]",
            ],
            &[
                "",
                "l:[]",
                "o:{",
                "o:{},",
                "o:{},l:[{},{},{}]",
                "o:{z:[1,]}",
                "o:{z:[,1]}",
                "o:{k:a}",
                "o:{},l:[{}{}]",
            ],
        ),
        (
            closed(&json!({"t": texts}), &json!([])),
            &["t:[<|\"|>a<|\"|>]", "t:[1,<|\"|>1<|\"|>,2]", ""],
            &["t:[]", "t:[a]", "t:<|\"|>a<|\"|>", "t:[<|\"|>a<|\"|>"],
        ),
    ];
    for (of, accepted, refused) in cases {
        check(&rules(of, &bare_keys()), accepted, refused);
    }
}

/// The arguments as MiniMax M3's template writes them, in pieces: an element for each key and item.
fn elements(value: &Value, pieces: &mut Vec<String>) {
    let mut element = |name: &str, inner: &Value| {
        pieces.push(format!("]<]minimax[>[<{name}>"));
        elements(inner, pieces);
        pieces.push(format!("]<]minimax[>[</{name}>"));
    };
    match value {
        Value::Object(pairs) => pairs.iter().for_each(|(key, inner)| element(key, inner)),
        Value::Array(items) => items.iter().for_each(|item| element("item", item)),
        Value::String(text) => pieces.push(text.clone()),
        other => pieces.push(other.to_string()),
    }
}

#[test]
fn nested_elements_are_what_the_template_writes() {
    let text = |values: &[&str]| json!({"enum": values});
    let small = closed(&json!({"c": text(&["", "z"])}), &json!([]));
    let inner = closed(&json!({"b": {"type": "boolean"}, "c": text(&["", "z"])}), &json!([]));
    let list = json!({"type": "array", "items": {"anyOf": [text(&["x"]), small]}, "maxItems": 2});
    let number = json!({"type": ["null", "integer"], "maximum": 3, "minimum": 2});
    let of = closed(&json!({"a": list, "o": inner, "n": number}), &json!(["o"]));
    let smalls = [json!({}), json!({"c": ""}), json!({"c": "z"})];
    let with = |b: bool| [json!({"b": b}), json!({"b": b, "c": ""}), json!({"b": b, "c": "z"})];
    let inners: Vec<Value> = smalls.iter().cloned().chain(with(true)).chain(with(false)).collect();
    let items: Vec<Value> = smalls.iter().cloned().chain([json!("x")]).collect();
    let mut lists = vec![json!([])];
    for one in &items {
        lists.push(json!([one]));
        lists.extend(items.iter().map(|two| json!([one, two])));
    }
    let mut valid = std::collections::BTreeSet::new();
    let mut broken = Vec::new();
    for list in lists.iter().map(Some).chain([None]) {
        for (inner, n) in
            inners.iter().flat_map(|inner| [None, Some(json!(null)), Some(json!(2))].map(|n| (inner, n)))
        {
            let mut value = json!({});
            if let Some(list) = list {
                value["a"] = list.clone();
            }
            value["o"] = inner.clone();
            if let Some(n) = n {
                value["n"] = n;
            }
            let mut pieces = Vec::new();
            elements(&value, &mut pieces);
            valid.insert(pieces.concat());
            for at in 0..pieces.len() {
                let (before, after) = (pieces[..at].concat(), pieces[at + 1..].concat());
                broken.extend([
                    before.clone() + &after,
                    before.clone(),
                    before + &pieces[at].repeat(2) + &after,
                ]);
            }
        }
    }
    let mut with_key = Running::new(&rules(&of, &options("minimax_m3_xml"))).unwrap();
    assert!(valid.len() > 300);
    for text in valid.iter().chain(&broken) {
        assert_eq!(with_key.accepts(text), valid.contains(text), "{text}");
    }
    let free = closed(&json!({"a": {"type": "array", "items": {"type": "object"}}}), &json!([]));
    let unique = closed(
        &json!({"o": closed(&json!({"a": {"type": "array", "uniqueItems": true}}), &json!([]))}),
        &json!([]),
    );
    for (of, message) in [(free, "arguments that have no name"), (unique, "uniqueItems of an array")] {
        let made = schema(&of, &options("minimax_m3_xml"))
            .and_then(|schema| Running::new(&of_bodies([RuleBody::Json(schema)])));
        assert!(made.err().expect("an error").to_string().contains(message), "{message}");
    }
}

#[test]
fn a_text_may_be_written_in_two_ways() {
    let form = json!({
        "begin": [{"text": "<p>"}],
        "end": [{"text": "</p>"}],
        "middles": [
            {"types": ["string", "number"], "parts": [{"text": ":"}], "excludes": ["<", "&"]},
            {"types": ["string"], "parts": [{"text": ":<!["}], "end": [{"text": "]]></p>"}], "excludes": ["]]>"]},
        ],
        "excludes": ["</p>"],
        "may_break_off": true,
    });
    let pairs = Some(Arc::new(serde_json::from_value(form).unwrap()));
    let options = SchemaOptions { pairs, whitespace: Whitespace::Compact, ..SchemaOptions::default() };
    let of = closed(&json!({"k": {"type": "string"}, "n": {"type": "integer"}}), &json!([]));
    check(
        &rules(&of, &options),
        &["<p>k:a</p>", "<p>k:<![a<&</p>]]></p>", "<p>k:<![]]></p><p>n:1</p>", "<p>k:]]</p>"],
        &["<p>k:a<b</p>", "<p>k:&</p>", "<p>k:<![a</p>", "<p>k:<![]]>]]></p>", "<p>n:<![1]]></p>"],
    );
}

#[test]
fn keys_that_end_a_key_are_refused() {
    for key in ["a:b", "a,b", "a}", "[a"] {
        assert!(schema(&closed(&json!({key: true}), &json!([])), &bare_keys()).is_err(), "{key}");
    }
}

#[test]
fn mistakes() {
    for (of, message) in [
        (
            json!({"type": "object", "properties": {"a b": true}}),
            "the key \"a b\" cannot be written without quotes",
        ),
        (
            json!({"type": "object", "properties": {"a": {"const": "</parameter>"}}}),
            "every value of \"a\" contains what ends a value",
        ),
        (json!({"type": "string"}), "no value is valid"),
        (json!({"type": "object", "properties": {"a": false}, "required": ["a"]}), "no value is valid"),
    ] {
        let read = schema(&of, &options("qwen_xml"));
        let made = read.and_then(|schema| Running::new(&of_bodies([RuleBody::Json(schema)])));
        let error = made.err().expect("an error");
        assert!(error.to_string().contains(message), "{of}\n{error}");
    }
    let unique = json!({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}, "required": ["a"]});
    let mut running = Running::new(&rules(&unique, &options("qwen_xml"))).unwrap();
    assert!(
        running.accepts("<parameter=a>[1,2]</parameter>")
            && !running.accepts("<parameter=a>[1,1]</parameter>")
    );
    assert!(PairForm::named("html").is_none());
}

/// Forms as a protocol describes them.
fn own_forms() -> [PairForm; 3] {
    let own = |form: Value| serde_json::from_value::<PairForm>(form).unwrap();
    let others = ["null", "boolean", "number", "array", "object"];
    let all: Vec<&str> = others.into_iter().chain(["string"]).collect();
    [
        own(json!({
            "begin": [{"text": "<p "}],
            "middles": [{"types": ["string"], "parts": [{"text": ">"}]}, {"types": others, "parts": [{"text": " j>"}]}],
            "end": [{"token": {"token_text": "</p>"}}, {"spaces": 2}],
            "excludes": ["</p>", "STOP"],
            "named_only": true,
            "python": "words",
        })),
        own(json!({
            "begin": [{"token": {"token_text": "<k>"}}],
            "middles": [{
                "types": all,
                "parts": [{"token": {"token_text": "</k>"}}, {"text": "\n"}, {"token": {"token_text": "<v>"}}],
            }],
            "end": [{"text": "\n</v>"}, {"spaces": 2}],
            "excludes": ["</v>"],
            "named_only": true,
        })),
        own(json!({
            "begin": [{"text": "("}],
            "middles": [{"types": all, "parts": [{"text": "="}]}],
            "end": [{"text": ")"}],
            "excludes": [")"],
            "may_break_off": true,
        })),
    ]
}

/// The rest after a marker, in every way.
fn after<'a>(text: &'a str, parts: &[MarkerPart]) -> Vec<&'a str> {
    let Some((first, parts)) = parts.split_first() else { return vec![text] };
    let spaces = text.len() - text.trim_start_matches([' ', '\n']).len();
    let rests: Vec<&str> = match first {
        MarkerPart::Text(marker) => text.strip_prefix(marker.as_str()).into_iter().collect(),
        MarkerPart::Blank => panic!("no form here has one"),
        MarkerPart::Spaces(most) => (0..=spaces.min(*most as usize)).map(|n| &text[n..]).collect(),
        MarkerPart::Key => panic!("no form here has one"),
        MarkerPart::Token(names) => {
            let [TokenName::Text(name)] = &names.tokens[..] else { panic!("one token by its text") };
            text.strip_prefix(format!("⟦{name}⟧").as_str()).into_iter().collect()
        }
    };
    rests.into_iter().flat_map(|rest| after(rest, parts)).collect()
}

/// Whether a text is an array or object that breaks off inside of a string.
fn breaks_off(text: &str) -> bool {
    let text = text.trim_start();
    let (mut inside, mut escaped) = (false, false);
    for c in text.chars().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => inside = !inside,
            _ => {}
        }
    }
    text.starts_with(['[', '{']) && inside
}

/// Whether a text is a value of these types after a middle.
fn is_value(text: &str, types: &[&str], middle: &[String], form: &PairForm) -> bool {
    let may_be = |kind: &str| types.contains(&kind) && middle.iter().any(|name| name == kind);
    let is_other = types.iter().any(|kind| *kind != "string" && may_be(kind));
    if text.contains('⟦') {
        return false;
    }
    let is_text = may_be("string")
        && !form.excludes.iter().any(|excluded| text.contains(excluded.as_str()))
        && (form.may_break_off || !is_other || !breaks_off(text));
    let word = match (form.python, text) {
        (PythonValues::Words, "None") => may_be("null"),
        (PythonValues::Words, "True" | "False") => may_be("boolean"),
        _ => false,
    };
    let is_json = match serde_json::from_str::<Value>(text) {
        _ if text != text.trim() => false,
        Ok(Value::Null) => may_be("null"),
        Ok(Value::Bool(_)) => may_be("boolean"),
        Ok(Value::Array(items)) => may_be("array") && items.iter().all(Value::is_string),
        _ => false,
    };
    is_text || word || is_json
}

/// Whether a text is pairs with the keys `a`, `b` and `c` in order, in every way to read it: slow and plain.
fn is_pairs(text: &str, form: &PairForm, left: &[(&str, Vec<&str>)]) -> bool {
    text.is_empty()
        || left.iter().enumerate().any(|(place, (key, types))| {
            let rest = after(text, &form.begin).into_iter().filter_map(|rest| rest.strip_prefix(key));
            rest.flat_map(|rest| form.middles.iter().map(move |middle| (rest, middle))).any(
                |(rest, middle)| {
                    after(rest, &middle.parts).into_iter().any(|value| {
                        let ends = value.char_indices().map(|(end, _)| end).chain([value.len()]);
                        ends.filter(|&end| is_value(&value[..end], types, &middle.types, form)).any(|end| {
                            let rests = after(&value[end..], &form.end);
                            rests.into_iter().any(|rest| is_pairs(rest, form, &left[place + 1..]))
                        })
                    })
                },
            )
        })
}

#[test]
fn own_forms_are_those_of_the_naive_reader() {
    let keys =
        [("a", vec!["string"]), ("b", vec!["string", "null", "array"]), ("c", vec!["boolean", "null"])];
    let of = json!({"type": "object", "properties": {
        "a": {"type": "string"},
        "b": {"type": ["string", "null", "array"], "items": {"type": "string"}},
        "c": {"type": ["boolean", "null"]},
    }});
    let values = [
        "", "x", "null", "None", "true", "True", "[]", "[\"a\"]", "[\"", "\"]", "[\"\\\"", "STOP", " ", "\n",
    ];
    let mut state = 7_u64;
    let mut below = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most
    };
    for form in own_forms() {
        let shown = |parts: &[MarkerPart]| {
            let one = |part: &MarkerPart| match part {
                MarkerPart::Text(text) => text.clone(),
                MarkerPart::Token(names) => match &names.tokens[0] {
                    TokenName::Text(name) => format!("⟦{name}⟧"),
                    TokenName::Id(id) => format!("⟦{id}⟧"),
                },
                MarkerPart::Blank | MarkerPart::Spaces(_) => "\n".into(),
                MarkerPart::Key => panic!("no form here has one"),
            };
            parts.iter().map(one).collect::<Vec<_>>()
        };
        let middles: Vec<_> = form.middles.iter().map(|middle| shown(&middle.parts).concat()).collect();
        let (begin, end) = (shown(&form.begin).concat(), shown(&form.end));
        let options = SchemaOptions {
            pairs: Some(Arc::new(form.clone())),
            whitespace: Whitespace::Compact,
            closed: true,
            ..SchemaOptions::default()
        };
        let mut running = Running::new(&rules(&of, &options)).unwrap();
        let mut accepted = 0;
        for _ in 0..3_000 {
            let mut text = String::new();
            for _ in 0..=below(2) {
                text += &begin;
                text += ["a", "b", "c"][below(3)];
                text += &middles[below(middles.len())];
                (0..=below(3)).for_each(|_| text += values[below(values.len())]);
                text += &end[..end.len() - below(2).min(end.len() - 1)].concat();
            }
            if below(8) == 0 {
                text.truncate(text.char_indices().nth(below(text.chars().count())).map_or(0, |(at, _)| at));
                if text.matches('⟦').count() != text.matches('⟧').count() {
                    continue;
                }
            }
            let expected = is_pairs(&text, &form, &keys);
            assert_eq!(running.accepts(&text), expected, "{text:?} {form:?}");
            accepted += u32::from(expected && !text.is_empty());
        }
        assert!(accepted > 200, "{accepted}");
    }
}

#[test]
fn forms_are_values_and_wrong_ones_are_refused() {
    for form in own_forms() {
        let written = serde_json::to_string(&form).unwrap();
        assert_eq!(serde_json::from_str::<PairForm>(&written).unwrap(), form);
    }
    let [good, ..] = own_forms();
    let text = |text: &str| vec![MarkerPart::Text(text.into())];
    let mut wrong = vec![good.clone(); 7];
    wrong[0].middles.clear();
    wrong[1].begin.clear();
    wrong[2].end = vec![MarkerPart::Spaces(2)];
    wrong[3].middles[0].types.push("integer".into());
    wrong[4].begin = vec![MarkerPart::Text("x".into()); 300];
    (wrong[5].item, wrong[5].middles[0].parts) = (Some("<p".into()), text(""));
    wrong[6].excludes.push(String::new());
    for form in wrong {
        let options = SchemaOptions { pairs: Some(Arc::new(form)), ..SchemaOptions::default() };
        let error = schema(&json!({"type": "object"}), &options).unwrap_err();
        assert!(
            error.to_string().contains("a form of pairs") || error.to_string().contains("a marker of"),
            "{error}"
        );
    }
    let named = |of: Value| {
        let options = SchemaOptions {
            pairs: Some(Arc::new(good.clone())),
            label: Some("f".into()),
            ..SchemaOptions::default()
        };
        schema(&of, &options).and_then(|schema| Running::new(&of_bodies([RuleBody::Json(schema)])))
    };
    assert!(named(json!({"type": "object"})).unwrap().accepts(""));
    for (of, message) in [
        (json!({"type": "object", "additionalProperties": true}), "arguments that have no name"),
        (json!({"type": "object", "patternProperties": {"^a": true}}), "arguments that have no name"),
        (json!({"allOf": [{"properties": {"a": true}}]}), "arguments that have no name"),
        (json!({"type": "object", "required": ["a"]}), "\"a\" is required and not described"),
        (json!({"type": "object", "minProperties": 1}), "no value is valid"),
    ] {
        let error = named(of).err().expect("an error").to_string();
        assert!(error.contains(message) && error.contains("(at f)"), "{error}");
    }
}
