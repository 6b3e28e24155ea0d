//! Schemas as states against the plain validator: the accepted texts are the valid values.

use std::sync::Arc;

use super::validate::is_valid;
use super::{accepts, compact, from_value, machine};
use crate::earley::{ConfigId, Machine, ValueSource, DEAD};
use crate::expr::Exprs;
use crate::json_schema::normalize::NormalForms;
use crate::json_schema::{JsonRules, KeyOrder, NumberSpelling, Schema, SchemaOptions, Whitespace};
use serde_json::{json, Map, Value};

/// A schema that runs.
struct Runner {
    machine: Option<Machine>,
    schema: Arc<Schema>,
}

impl Runner {
    fn new(schema: &Value, options: &SchemaOptions) -> Runner {
        Runner::try_new(schema, options).unwrap_or_else(|error| panic!("{schema}: {error}"))
    }

    fn try_new(schema: &Value, options: &SchemaOptions) -> crate::Result<Runner> {
        let schema = Arc::new(from_value(schema, options, &[])?);
        Ok(Runner { machine: machine(&schema)?, schema })
    }

    fn run(&mut self, text: &str) -> ConfigId {
        let Some(machine) = &mut self.machine else { return DEAD };
        let mut config = machine.start();
        for &byte in text.as_bytes() {
            config = machine.step(config, byte).unwrap();
        }
        config
    }

    fn accepts(&mut self, text: &str) -> bool {
        accepts(&mut self.machine, text)
    }

    fn valid(&self, value: &Value) -> bool {
        is_valid(&self.schema, value).unwrap()
    }
}

#[track_caller]
fn check(schema: &Value, good: &[&str], bad: &[&str]) {
    let mut runner = Runner::new(schema, &compact(KeyOrder::Any));
    for (texts, wanted) in [(good, true), (bad, false)] {
        for text in texts {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(runner.valid(&value), wanted, "the validator: {schema} on {text}");
            assert_eq!(runner.accepts(text), wanted, "{schema} on {text}");
        }
    }
}

#[test]
fn plain_objects() {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
        "required": ["name"],
        "additionalProperties": false,
    });
    check(
        &schema,
        &[r#"{"name":"x"}"#, r#"{"name":"","age":7}"#, r#"{"age":150,"name":"\u00e9"}"#],
        &["{}", r#"{"age":7}"#, r#"{"name":7}"#, r#"{"name":"x","age":151}"#, r#"{"name":"x","b":1}"#, "[]"],
    );
    let mut ordered = Runner::new(&schema, &compact(KeyOrder::Schema));
    assert!(ordered.accepts(r#"{"name":"a","age":1}"#) && !ordered.accepts(r#"{"age":1,"name":"a"}"#));
}

#[test]
fn objects_merge_exactly() {
    let schema = json!({
        "allOf": [
            {"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": ["string", "integer"]}},
            {"properties": {"b": {"minimum": 5}}, "additionalProperties": {"maximum": 3}},
        ],
        "type": "object",
    });
    check(
        &schema,
        &["{}", r#"{"a":3}"#, r#"{"b":5}"#, r#"{"b":"x"}"#, r#"{"c":3}"#, r#"{"c":"x"}"#],
        &[r#"{"a":4}"#, r#"{"a":"x"}"#, r#"{"b":4}"#, r#"{"b":null}"#, r#"{"c":4}"#, r#"{"c":null}"#],
    );
}

#[test]
fn branches_count() {
    let schema = json!({"oneOf": [
        {"properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind", "x"], "type": "object"},
        {"properties": {"kind": {"const": "b"}, "y": {"type": "string"}}, "required": ["kind"], "type": "object"},
        {"type": ["integer", "null"]},
        {"minimum": 3, "type": "number"},
    ]});
    check(
        &schema,
        &[r#"{"kind":"a","x":1}"#, r#"{"kind":"b"}"#, r#"{"x":"z","kind":"b"}"#, "null", "2", "3.5"],
        &[r#"{"kind":"a"}"#, r#"{"kind":"b","y":1}"#, "3", "2.5", r#""a""#],
    );
}

#[test]
fn conditions_and_dependencies() {
    let schema = json!({
        "type": "object",
        "if": {"properties": {"c": {"const": 1}}, "required": ["c"]},
        "then": {"required": ["x"]},
        "else": {"properties": {"x": {"type": "null"}}},
        "dependentRequired": {"p": ["q"]},
        "dependentSchemas": {"s": {"maxProperties": 1}},
    });
    check(
        &schema,
        &["{}", r#"{"c":1,"x":4}"#, r#"{"x":null}"#, r#"{"q":1,"p":1}"#, r#"{"p":1,"q":1}"#, r#"{"s":1}"#],
        &[r#"{"c":1}"#, r#"{"x":4}"#, r#"{"p":1}"#, r#"{"s":1,"t":1}"#, "[]"],
    );
}

#[test]
fn arrays_count_what_they_contain() {
    let schema = json!({
        "prefixItems": [{"type": "string"}], "items": {"type": "integer"},
        "contains": {"minimum": 5, "type": "integer"}, "minContains": 1, "maxContains": 2, "type": "array",
    });
    check(
        &schema,
        &[r#"["a",5]"#, r#"["a",1,5,2,6,3]"#],
        &["[]", r#"["a"]"#, r#"["a",1]"#, "[5]", r#"["a",5,6,7]"#],
    );
    let unique =
        json!({"type": "array", "items": {"enum": [1, "a", null, true]}, "uniqueItems": true, "minItems": 2});
    check(
        &unique,
        &[r#"[1,"a"]"#, r#"[true,null,"a",1.0]"#],
        &["[1]", "[1,1]", r#"["a",null,"a"]"#, "[1,1.0]"],
    );
}

#[test]
fn unevaluated_parts() {
    let schema = json!({
        "type": "object",
        "properties": {"a": true},
        "anyOf": [{"properties": {"b": {"type": "integer"}}, "required": ["b"]}, {"properties": {"c": true}}],
        "unevaluatedProperties": false,
    });
    check(
        &schema,
        &["{}", r#"{"a":1}"#, r#"{"b":1,"a":1}"#, r#"{"b":1,"c":1}"#, r#"{"c":1}"#],
        &[r#"{"d":1}"#, r#"{"b":"x"}"#, r#"{"b":"x","c":1}"#],
    );
}

#[test]
fn unevaluated_parts_may_nest() {
    let innermost = json!({"properties": {"a": true}, "patternProperties": {"^b": {"type": "null"}}});
    let around = |inside| json!({"unevaluatedProperties": false, "allOf": [inside]});
    let nested = (0..60).fold(innermost, |inside, _| around(inside));
    check(
        &nested,
        &["{}", r#"{"a":1}"#, r#"{"a":1,"bc":null}"#],
        &[r#"{"c":1}"#, r#"{"bc":1}"#, r#"{"a":1,"c":null}"#],
    );
}

#[test]
fn unevaluated_parts_may_be_asked_to_fail() {
    let branches = json!([{"properties": {"b": true}, "required": ["b"]}, {"properties": {"c": true}}]);
    let closed = json!({"type": "object", "anyOf": branches, "unevaluatedProperties": false});
    check(
        &json!({"not": closed}),
        &[r#"{"a":1}"#, r#"{"b":1,"d":1}"#, r#"{"c":1,"d":1}"#, "1"],
        &["{}", r#"{"b":1}"#, r#"{"c":1}"#, r#"{"b":1,"c":1}"#],
    );
    check(
        &json!({"type": "object", "if": closed, "then": {"maxProperties": 1}, "else": {"required": ["d"]}}),
        &["{}", r#"{"b":1}"#, r#"{"d":1}"#, r#"{"b":1,"d":1}"#],
        &[r#"{"b":1,"c":1}"#, r#"{"a":1}"#],
    );
    let items = json!({
        "if": {"prefixItems": [{"const": 1}], "minItems": 1},
        "then": {"prefixItems": [true, true]},
        "contains": {"type": "string"},
        "unevaluatedItems": {"type": "null"},
    });
    check(
        &json!({"type": "array", "not": items}),
        &["[]", "[2,3]", r#"["x",1]"#, r#"[1,2,3,"x"]"#],
        &[r#"[1,2,"x",null]"#, r#"["x",null]"#, r#"["x"]"#],
    );
}

#[test]
fn integers_of_draft_4_have_no_point() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "items": [
            {"type": "integer"},
            {"type": ["integer", "string"], "minimum": 2, "maximum": 11, "exclusiveMaximum": true},
            {"type": "integer", "enum": [1.0, 2, 2.5, "a"]},
            {"type": "number"},
        ],
    });
    check(
        &schema,
        &["[-7]", r#"[0,"x"]"#, "[0,10,1]", "[0,2,2,1.0]", "[10]"],
        &["[1.0]", "[1e2]", "[0,2.0]", "[0,11]", "[0,2,1.0]", "[0,2,2.5]", r#"[0,2,"a"]"#],
    );
}

#[test]
fn what_a_string_holds_matters_in_draft_7() {
    let of = |draft: &str, encoding: Option<&str>| {
        let mut schema = json!({"$schema": draft, "type": "string", "contentMediaType": "application/json"});
        if let Some(encoding) = encoding {
            schema["contentEncoding"] = json!(encoding);
        }
        schema
    };
    let seven = "http://json-schema.org/draft-07/schema#";
    check(&of(seven, None), &[r#""[1]""#, r#""{\"a\":\"x\"}""#], &[r#""{:}""#, r#""""#]);
    check(&of("https://json-schema.org/draft/2020-12/schema", Some("base64")), &[r#""{:}""#], &["1"]);
    check(
        &json!({"$schema": seven, "contentEncoding": "base64", "maxLength": 4}),
        &["\"\"", r#""eyI=""#, "7"],
        &[r#""ey""#, r#""ey%=""#, r#""eyI=eyI=""#],
    );
    let error = Runner::try_new(&of(seven, Some("base64")), &SchemaOptions::default()).err().unwrap();
    assert_eq!(error.place, "#/contentMediaType");
}

#[test]
fn recursion_ends() {
    let schema = json!({
        "$defs": {"node": {
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
            "required": ["next"], "additionalProperties": false,
        }},
        "$ref": "#/$defs/node",
    });
    let deep = format!("{}null{}", "{\"next\":".repeat(2_000), "}".repeat(2_000));
    let mut runner = Runner::new(&schema, &compact(KeyOrder::Schema));
    assert!(runner.accepts(&deep) && !runner.accepts("{}"));
    let endless = json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]});
    assert!(Runner::new(&endless, &compact(KeyOrder::Schema)).machine.is_none());
    let optional =
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": false});
    assert!(Runner::new(&optional, &compact(KeyOrder::Schema)).accepts(r#"{"a":{"a":{}}}"#));
}

#[test]
fn white_space_as_asked() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}});
    let text = |options: &SchemaOptions, text: &str| Runner::new(&schema, options).accepts(text);
    let indented = "{\n  \"a\": [\n    1,\n    2\n  ]\n}";
    let bounded = SchemaOptions::default();
    for good in [indented, r#"{"a": [1, 2]}"#, r#"{"a":[1,2]}"#, "{\n\t\"a\": [\n\t\t1\n\t]\n}"] {
        assert!(text(&bounded, good), "{good}");
    }
    for bad in ["{\n\n\"a\": [1]}", "{\"a\":  [1]}", " {}", "{} ", "{\"a\" :[1]}"] {
        assert!(!text(&bounded, bad), "{bad}");
    }
    let free = SchemaOptions { whitespace: Whitespace::Free, ..SchemaOptions::default() };
    assert!(text(&free, "{ \n\"a\"\t: \r\n[ 1 , 2 ] }"));
    for good in ["{} ", " {}", "\n\t {\"a\" :[1 ]}\r\n ", "\n[\n] "] {
        let any = Runner::new(&json!(true), &free).accepts(good);
        assert!(any && (text(&free, good) || good.contains("[\n]")), "{good:?}");
    }
    for (schema, good) in [(json!({"type": "integer"}), " 1\n"), (json!({"const": "a"}), "\t\"a\" ")] {
        assert!(Runner::new(&schema, &free).accepts(good), "{good:?}");
    }
    for bad in ["", " ", "{} {}", "{}\u{a0}", " {}{"] {
        assert!(!text(&free, bad), "{bad:?}");
    }
    let spaced =
        SchemaOptions { separators: Some((", ".into(), ": ".into())), whitespace: Whitespace::Free, ..free };
    assert!(text(&spaced, "{}") && !text(&spaced, "{} ") && !text(&spaced, " {}"));
    let exact = SchemaOptions { separators: Some((", ".into(), ": ".into())), ..SchemaOptions::default() };
    assert!(text(&exact, r#"{"a": [1, 2]}"#) && !text(&exact, r#"{"a":[1, 2]}"#) && !text(&exact, "{ }"));
    let wrong = SchemaOptions { separators: Some((";".into(), ":".into())), ..SchemaOptions::default() };
    assert!(Runner::try_new(&schema, &wrong).is_err());
}

#[test]
fn strings_in_every_spelling_but_named_keys_in_one() {
    let any = json!({"type": "string"});
    let mut runner = Runner::new(&any, &compact(KeyOrder::Schema));
    for good in
        [r#""""#, r#""\/""#, r#""\u00e9é""#, r#""\ud83d\udE00""#, r#""\"\\\b\f\n\r\t""#, "\"\u{7f}😀\""]
    {
        assert!(runner.accepts(good), "{good}");
    }
    for bad in ["\"\n\"", r#""\x""#, r#""\ud83d""#, r#""\ude00""#, r#""\u00g0""#, "\"", "a"] {
        assert!(!runner.accepts(bad), "{bad}");
    }
    let counted = json!({"type": "string", "minLength": 2, "maxLength": 3});
    let mut runner = Runner::new(&counted, &compact(KeyOrder::Schema));
    assert!(
        runner.accepts(r#""\ud83d\ude00é""#)
            && !runner.accepts(r#""\u00e9""#)
            && !runner.accepts(r#""abcd""#)
    );
    let keyed =
        json!({"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": true});
    let mut runner = Runner::new(&keyed, &compact(KeyOrder::Any));
    assert!(runner.accepts(r#"{"a":null,"b":1}"#) && !runner.accepts(r#"{"\u0061":1}"#));
    assert!(!runner.accepts(r#"{"\u0061":null}"#) && runner.accepts(r#"{"\u0061b":1,"\/\u0062":2}"#));
    let ascii = SchemaOptions { ascii: true, ..SchemaOptions::default() };
    let mut runner = Runner::new(&any, &ascii);
    assert!(runner.accepts(r#""\u00e9""#) && !runner.accepts("\"é\""));
}

/// What `json.dumps` writes, with and without `ensure_ascii`, and escapes that it never writes.
#[test]
fn keys_and_named_texts_may_have_escapes() {
    let check = |schema: &Value, options: &SchemaOptions, good: &[&str], bad: &[&str]| {
        let mut runner = Runner::new(schema, options);
        good.iter().for_each(|text| assert!(runner.accepts(text), "{schema} accepts {text}"));
        bad.iter().for_each(|text| assert!(!runner.accepts(text), "{schema} refuses {text}"));
    };
    let any = compact(KeyOrder::Any);
    let ascii = SchemaOptions { ascii: true, ..compact(KeyOrder::Any) };
    let free = [r#"{"é":1}"#, r#"{"\u00e9":1}"#, r#"{"\u00E9":1,"a\/b":2}"#, r#"{"\ud83d\ude00":1}"#];
    for schema in
        [json!(true), json!({"type": "object"}), json!({"additionalProperties": {"type": "integer"}})]
    {
        check(&schema, &any, &free, &[r#"{"\ud83d":1}"#, r#"{"\x":1}"#, r#"{"\u00e":1}"#]);
        check(&schema, &ascii, &free[1..], &free[..1]);
    }
    let named =
        json!({"properties": {"é": {"const": 1}}, "required": ["é"], "additionalProperties": {"const": 2}});
    let good = [r#"{"é":1}"#, r#"{"\u00e9":1,"\u00e8":2}"#, r#"{"\u00e9\u00e9":2,"é":1}"#];
    let bad = [r#"{"\u00e9":2}"#, r#"{"\u00E9":2,"é":1}"#, r#"{"é":1,"\u00E9":2}"#, r#"{"\u00e8":2}"#];
    check(&named, &any, &good, &bad);
    let closed = json!({"properties": {"a": {}}, "additionalProperties": false});
    check(&closed, &any, &[r#"{"a":1}"#], &[r#"{"\u0062":1}"#, r#"{"\u0061":1}"#]);
    let patterns = json!({"patternProperties": {"^é": {"const": 1}, "/": {"const": 2}}, "additionalProperties": {"const": 3}});
    let good = [r#"{"\u00e9x":1,"a\u002f":2,"\u0061":3}"#, r#"{"éx":1,"a\/":2}"#];
    check(
        &patterns,
        &any,
        &good,
        &[r#"{"\u00E9":3}"#, r#"{"\/":3}"#, r#"{"\u002F":1}"#, r#"{"\u00e9\/":1}"#],
    );
    let names = json!({"propertyNames": {"pattern": "^[a-z]{2}$", "not": {"const": "ab"}}});
    check(
        &names,
        &any,
        &[r#"{"\u0061\u0061":1}"#],
        &[r#"{"\u0061b":1}"#, r#"{"\u0041a":1}"#, r#"{"\u0061":1}"#],
    );
    let long = json!({"propertyNames": {"minLength": 2, "maxLength": 2}});
    check(&long, &any, &[r#"{"\ud83d\ude00\n":1}"#], &[r#"{"\u0061":1}"#]);
    let dates = json!({"propertyNames": {"format": "date-time"}});
    let noon = |hour: &str| format!("{{\"2020-01-01T{hour}:00:00Z\":1}}");
    check(&dates, &any, &[&noon("12"), &noon("\\u00312")], &[&noon("25"), &noon("\\u00325")]);
    for schema in [json!({"const": "é"}), json!({"enum": ["a", "é", "b"]})] {
        check(&schema, &any, &[r#""é""#, r#""\u00e9""#], &[r#""\u00e8""#, r#""e""#]);
        check(&schema, &ascii, &[r#""\u00e9""#], &[r#""é""#]);
    }
    check(&json!({"const": "\u{7f}"}), &any, &["\"\u{7f}\"", r#""\u007f""#], &[r#""\u007F""#]);
    let unique = json!({"items": {"enum": ["é", "a"]}, "uniqueItems": true});
    check(&unique, &any, &[r#"["é","a"]"#, r#"["\u00e9"]"#], &[r#"["é","\u00e9"]"#]);
    let objects =
        json!({"items": {"properties": {"é": {"type": "integer"}}, "required": ["é"]}, "uniqueItems": true});
    check(
        &objects,
        &any,
        &[r#"[{"é":1},{"\u00e9":2}]"#, r#"[{"\u00e9":1,"b":2}]"#],
        &[r#"[{"é":1},{"\u00e9":1}]"#, r#"[{"é":1,"\u00e9":2}]"#],
    );
}

#[test]
fn dead_keys_are_never_offered() {
    let schema = json!({
        "type": "object",
        "properties": {"a": false, "b": {"type": "integer", "minimum": 5, "maximum": 4}, "c": {"type": "null"}},
        "additionalProperties": false,
    });
    let mut runner = Runner::new(&schema, &compact(KeyOrder::Schema));
    for dead in [r#"{"a"#, r#"{"b"#] {
        assert_eq!(runner.run(dead), DEAD, "{dead}");
    }
    assert!(runner.run(r#"{"c"#) != DEAD && runner.accepts("{}"));
}

#[test]
fn what_cannot_be_honoured_is_named() {
    let flags: Map<String, Value> = (0..12).map(|n| (format!("f{n}"), json!({"type": "boolean"}))).collect();
    let items = json!({"type": "object", "properties": flags, "additionalProperties": false});
    let array = json!({"type": "array", "items": items, "uniqueItems": true, "minItems": 600});
    let unique = json!({"properties": {"x": array}});
    let error = Runner::try_new(&unique, &SchemaOptions::default()).err().unwrap();
    assert!(error.message.contains("uniqueItems") && error.place == "#/properties/x", "{error}");
    let listed = json!({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": true});
    let beside = json!({"properties": {"listed": listed, "x": unique["properties"]["x"]}});
    let error = Runner::try_new(&beside, &SchemaOptions::default()).err().unwrap();
    assert_eq!(error.place, "#/properties/x", "{error}");
    let lenient = SchemaOptions { lenient: true, ..SchemaOptions::default() };
    assert!(Runner::try_new(&unique, &lenient).unwrap().machine.is_some());
}

#[test]
fn states_say_what_they_are() {
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    let mut runner = Runner::new(&schema, &compact(KeyOrder::Schema));
    let config = runner.run(r#"{"age":"#);
    assert_eq!(runner.machine.unwrap().describe(config), ["the value of \"age\" (an integer)"]);
}

#[test]
fn one_of_many_open_objects() {
    let kinds = ["exe", "image", "docker", "project", "function", "repository", "include", "chart"];
    let branch = |kind: &&str| {
        let own = format!("{kind}Args");
        json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, *kind: {"type": "string"}, own: {"type": "array"}},
            "required": ["name", kind]
        })
    };
    let schema = json!({"oneOf": kinds.iter().map(branch).collect::<Vec<_>>()});
    check(
        &schema,
        &[
            r#"{"name":"a","image":"b"}"#,
            r#"{"image":"b","name":"a","imageArgs":[],"more":1}"#,
            r#"{"name":"a","image":"b","exe":1}"#,
            r#"{"name":"a","exe":"b","image":"c","imageArgs":1}"#,
        ],
        &[
            "1",
            r#"{"name":"a"}"#,
            r#"{"name":1,"image":"b"}"#,
            r#"{"name":"a","image":"b","imageArgs":1}"#,
            r#"{"name":"a","image":"b","exe":"c"}"#,
        ],
    );
    // Hundreds of alternatives that allow the same keys next read one lexeme.
    let mut runner = Runner::new(&schema, &compact(KeyOrder::Any));
    let mut threads = |text: &str| {
        let config = runner.run(text);
        runner.machine.as_ref().unwrap().threads(config).len()
    };
    assert_eq!((threads("{"), threads(r#"{""#)), (1, 1));
    assert!(threads(r#"{"name":"a","#) <= 2, "that may end or not");
}

#[test]
fn branches_that_an_optional_key_tells_apart_stay_few() {
    let branch = |n: usize| {
        let own: Vec<(String, Value)> =
            (0..4).map(|k| (format!("own{n}{k}"), json!({"type": "string"}))).collect();
        let mut properties: serde_json::Map<String, Value> = own.into_iter().collect();
        properties.insert("kind".into(), json!({"enum": [format!("k{n}")]}));
        json!({"type": "object", "properties": properties})
    };
    // The last two have no keys of their own, so that a value without the kind fulfils both.
    let mut branches: Vec<Value> = (0..8).map(branch).collect();
    branches
        .extend(["a", "b"].map(|kind| json!({"type": "object", "properties": {"kind": {"enum": [kind]}}})));
    let schema = json!({"oneOf": branches});
    check(
        &schema,
        &[r#"{"kind":"k1"}"#, r#"{"kind":"a","own11":1}"#, r#"{"own10":"x","own20":1,"kind":"k1"}"#],
        &["{}", "1", r#"{"own10":"x"}"#, r#"{"kind":"c"}"#, r#"{"kind":"k1","own10":1}"#],
    );
    let schema = Arc::new(from_value(&schema, &compact(KeyOrder::Any), &[]).unwrap());
    let mut forms = NormalForms::new(Arc::clone(&schema));
    let root = forms.schema_of(schema.root).unwrap();
    let alternatives = forms.normal(root, &mut Exprs::new(1 << 20)).unwrap().len();
    assert_eq!(alternatives, 10, "one for each kind");
}

/// Schemas under which no value is valid, the place, and why.
const CONTRADICTIONS: &[(&str, &str, &str)] = &[
    (
        r#"{"type": "integer", "minimum": 5, "maximum": 3}"#,
        "#",
        "`minimum` and `maximum` contradict each other",
    ),
    (
        r#"{"allOf": [{"type": "string"}, {"type": "integer"}]}"#,
        "#",
        "`type` (of #/allOf/0) and `type` (of #/allOf/1) contradict each other",
    ),
    (
        r#"{"type": "object", "properties": {"a": false}, "required": ["a"]}"#,
        "#/properties/a",
        "`false` allows no value, and the key is required",
    ),
    (
        r#"{"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "object", "required": ["b"],
                "properties": {"b": {"type": "integer", "exclusiveMinimum": 5, "maximum": 5}}}}}"#,
        "#/properties/a/properties/b",
        "`exclusiveMinimum` and `maximum` contradict each other",
    ),
    (
        r##"{"$ref": "#/$defs/a", "$defs": {"a": {"type": "string", "minLength": 4, "maxLength": 3}}}"##,
        "#/$defs/a",
        "`minLength` and `maxLength` contradict each other",
    ),
    (
        r#"{"anyOf": [{"type": "string", "minLength": 4, "maxLength": 3}, false]}"#,
        "#",
        "no branch of `anyOf` is possible",
    ),
    (
        r#"{"type": "array", "items": false, "minItems": 1}"#,
        "#",
        "`items` and `minItems` contradict each other",
    ),
    (r#"{"type": "array", "items": {"enum": []}, "minItems": 1}"#, "#/items", "`enum` allows no value"),
    ("false", "#", "`false` allows no value"),
    (r#"{"type": "string", "enum": [1, 2]}"#, "#", "`type` and `enum` contradict each other"),
    (r#"{"not": {}}"#, "#", "`not` leaves no value"),
    (
        r#"{"type": "object", "required": ["a"], "additionalProperties": false}"#,
        "#",
        "`additionalProperties` and `required` contradict each other",
    ),
    (
        r##"{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}"##,
        "#",
        "it requires a value of its own kind inside of itself, without end",
    ),
];

#[test]
fn contradictions_have_a_place_and_keywords() {
    for (text, place, why) in CONTRADICTIONS {
        let schema = Arc::new(super::super::load(text, &SchemaOptions::default(), &[]).unwrap());
        assert!(machine(&schema).unwrap().is_none(), "{text}");
        let error = JsonRules::new().contradiction(&schema);
        let message = format!("no value is valid under the schema: {why}");
        assert_eq!((&*error.place, &*error.message), (*place, &*message), "{text}");
    }
    // What is impossible and need not be there says nothing.
    let optional =
        r#"{"type": "object", "properties": {"a": false}, "anyOf": [false, {"minProperties": 1}]}"#;
    let schema = Arc::new(super::super::load(optional, &SchemaOptions::default(), &[]).unwrap());
    assert!(machine(&schema).unwrap().is_some());
}

#[test]
fn contradictions_with_plain_numbers_say_so() {
    let options = SchemaOptions { numbers: NumberSpelling::Plain, ..SchemaOptions::default() };
    let text = format!(r#"{{"type": "number", "minimum": 1{}}}"#, "0".repeat(400));
    let schema = Arc::new(super::super::load(&text, &options, &[]).unwrap());
    assert!(machine(&schema).unwrap().is_none());
    let error = JsonRules::new().contradiction(&schema);
    assert!(error.help.contains("plain numbers"), "{error}");
}
