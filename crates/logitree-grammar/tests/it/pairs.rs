//! Objects as pairs of keys and values: beside the naive list of all texts, and the message of each mistake.

use std::sync::Arc;

use serde_json::{json, Value};

use logitree_grammar::json_schema::{load, PairForm, Schema, SchemaOptions, Whitespace};
use logitree_grammar::rules::{Rule, RuleBody, RuleId, Rules};
use logitree_grammar::Result;
use logitree_testing::rules::{check, Running};

fn schema(schema: &Value, options: &SchemaOptions) -> Result<Arc<Schema>> {
    load(&schema.to_string(), options, &[]).map(Arc::new)
}

fn options(style: &str) -> SchemaOptions {
    let pairs = PairForm::named(style).map(Arc::new);
    SchemaOptions { pairs, whitespace: Whitespace::Compact, ..SchemaOptions::default() }
}

fn rules(of: &Value, options: &SchemaOptions) -> Rules {
    let body = RuleBody::Json(schema(of, options).unwrap());
    Rules { rules: vec![Rule::new("root", body)], start: RuleId(0) }
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
        let error = Running::new(&rules(&of, &options("qwen_xml"))).err().expect("an error");
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
