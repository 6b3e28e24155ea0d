//! Loading: hand-written cases (`testdata/json_schema/load.toml`), the JSON-Schema-Test-Suite and MaskBench with their
//! instances judged by the plain validator, and hostile documents.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::data::{files, read, suite, unpacked, DRAFTS};
use super::random::{document, value};
use super::validate::is_valid;
use super::{from_value, Dice};
use crate::json_schema::{self as json, Draft, Schema, SchemaNode, SchemaOptions};
use crate::{Error, ErrorKind};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Corpus {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    schema: String,
    draft: Option<String>,
    #[serde(default)]
    documents: Vec<(String, String)>,
    #[serde(default)]
    lenient: bool,
    nodes: Option<Vec<String>>,
    #[serde(default)]
    errors: Vec<(String, String)>,
}

fn load(text: &str) -> Result<Schema, Error> {
    let schema = json::load(text, &SchemaOptions::default(), &[])?;
    assert!(
        schema.root.index() < schema.nodes.len()
            && !schema.places.get(schema.nodes.len() as u32 - 1).is_empty()
    );
    Ok(schema)
}

/// How many problems an error or a list of warnings names.
fn count(message: &str) -> usize {
    message.split_once(" problems in the schema").map_or(1, |(count, _)| count.parse().unwrap())
}

#[test]
fn documents_are_read_as_the_corpus_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/json_schema/load.toml");
    let corpus: Corpus = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for case in corpus.case {
        let name = &case.name;
        let draft = case.draft.as_ref().map_or(Draft::Draft2020, |wanted| {
            DRAFTS.iter().find(|(draft, _)| *draft == format!("draft{wanted}")).unwrap().1
        });
        let options = SchemaOptions { draft, lenient: case.lenient, ..SchemaOptions::default() };
        let schema = json::load(&case.schema, &options, &case.documents);
        if let Some(nodes) = &case.nodes {
            let schema = schema.as_ref().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(schema.to_string(), nodes.join("\n"), "{name}");
        }
        match schema {
            Ok(schema) => {
                assert_eq!(schema.warnings.len(), case.errors.len(), "{name}: {:?}", schema.warnings);
                for ((place, words), warning) in case.errors.iter().zip(&schema.warnings) {
                    assert!(warning.starts_with(&format!("{place}: ")), "{name}: {place} in {warning}");
                    assert!(warning.contains(words.as_str()), "{name}: {words} in {warning}");
                }
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Constraint, "{name}");
                let text = error.to_string();
                assert_eq!(count(&error.message), case.errors.len(), "{name}: {text}");
                assert_eq!(error.place, case.errors[0].0, "{name}");
                for (place, words) in &case.errors {
                    let placed = [format!("(at {place})"), format!("\n  {place}: ")];
                    assert!(placed.iter().any(|placed| text.contains(placed)), "{name}: {place} in {text}");
                    assert!(text.contains(words.as_str()), "{name}: {words} in {text}");
                }
            }
        }
    }
}

/// Schemas of MaskBench with instances that are judged otherwise, and why.
const OTHERWISE_THERE: [(&str, &str); 4] = [
    ("Github_easy---o24544", "1.0 has no fraction in draft 4 either"),
    ("Github_hard---o16749", "the format regex"),
    ("JsonSchemaStore---chutzpah", "the format regex"),
    ("JsonSchemaStore---xs-app", "the format regex"),
];

/// Files of the suite in which a valid instance may be refused, or an invalid one accepted, and why.
const OTHERWISE: [(&str, bool, &str); 4] = [
    ("/format.json", false, "formats assert here, as they do wherever a text is to be written"),
    ("optional/format-assertion.json", false, "and so whatever a meta-schema declares"),
    ("optional/zeroTerminatedFloats.json", true, "1.0 has no fraction in draft 4 either"),
    ("optional/content.json", true, "contentMediaType and contentEncoding are descriptions"),
];

/// Files of the suite with schemas that are refused by name, and why.
const REFUSED: [(&str, &str); 1] =
    [("draft7/optional/content.json", "JSON in another encoding is not regular, and draft 7 asserts it")];

#[test]
fn the_suite_is_judged_by_what_was_read_with_the_data() {
    let Some(suite) = suite() else { return };
    let mut wrong = Vec::new();
    let mut judged = 0;
    for (name, draft) in DRAFTS {
        let options = SchemaOptions { draft, ..SchemaOptions::default() };
        // Formats have their own tests.
        let formats = suite.tests.join(name).join("optional/format");
        for path in files(&suite.tests.join(name)).into_iter().filter(|path| !path.starts_with(&formats)) {
            let file = path.strip_prefix(&suite.tests).unwrap().display().to_string();
            let known = |says: bool| {
                OTHERWISE.iter().any(|(of, otherwise, _)| file.ends_with(of) && *otherwise == says)
            };
            for group in read(&path).as_array().unwrap() {
                let about = &group["description"];
                let schema = match super::from_value(&group["schema"], &options, &suite.remotes) {
                    Ok(schema) => schema,
                    Err(_) if REFUSED.iter().any(|(of, _)| file == *of) => continue,
                    Err(error) => {
                        wrong.push(format!("{file} {about}: {error}"));
                        continue;
                    }
                };
                for test in group["tests"].as_array().unwrap() {
                    judged += 1;
                    let says = is_valid(&schema, &test["data"]).unwrap();
                    if says != test["valid"].as_bool().unwrap() && !known(says) {
                        wrong.push(format!("{file} {about} {}: {says}", test["description"]));
                    }
                }
            }
        }
    }
    assert!(judged > 5000, "{judged}");
    assert!(wrong.is_empty(), "{} of {judged}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn maskbench_is_judged_by_what_was_read_with_the_data() {
    let Some(folder) = unpacked("maskbench-dev") else { return };
    let mut times = Vec::new();
    let mut wrong = Vec::new();
    for path in files(&folder) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let case = read(&path);
        let text = case["schema"].to_string();
        // The formats of a process are made once; the second time is what a schema costs.
        let schema = load(&text);
        let start = Instant::now();
        let again = load(&text);
        times.push((start.elapsed(), text.len()));
        assert_eq!(again.is_ok(), schema.is_ok(), "{name}");
        let schema = match schema {
            Ok(schema) => schema,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        for (n, test) in case["tests"].as_array().unwrap().iter().enumerate() {
            let says = is_valid(&schema, &test["data"]).unwrap();
            let known = OTHERWISE_THERE.iter().any(|(of, _)| *of == name);
            if says != test["valid"].as_bool().unwrap() && !known {
                wrong.push(format!("{name} {n}: {says}"));
            }
        }
    }
    times.sort();
    let total: Duration = times.iter().map(|(time, _)| *time).sum();
    let bytes: usize = times.iter().map(|(_, bytes)| *bytes).sum();
    let (p50, p99) = (times[times.len() / 2].0, times[times.len() * 99 / 100].0);
    let mean = total / u32::try_from(times.len()).unwrap();
    println!("{} schemas of {bytes} bytes: mean {mean:?}, p50 {p50:?}, p99 {p99:?}", times.len());
    println!("longest {:?}; {:.1} ns a byte", times.last(), total.as_nanos() as f64 / bytes as f64);
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn values_are_parsed_exactly() {
    let schema = load(r#"{"const": {"b": [1e400, "\ud83d\ude00"], "a": null}}"#).unwrap();
    let SchemaNode::Keywords(keywords) = &schema.nodes[0] else { panic!("{schema}") };
    let value = keywords.values.as_ref().unwrap()[0].to_string();
    assert_eq!(value, "{\"b\":[1e+400,\"\u{1f600}\"],\"a\":null}");
}

#[test]
fn what_is_not_json_has_a_line_and_a_column() {
    let cases = [
        ("", "1:1", "the end of the text"),
        ("{\"a\": 1,}", "1:9", "a key in quotes"),
        ("[1\n 2]", "2:2", "`,` or `]`"),
        ("{\"é\" 1}", "1:6", "`:`"),
        ("01", "1:2", "expected the end"),
        ("-", "1:2", "a digit"),
        ("1.e3", "1:3", "a digit"),
        ("nul", "1:1", "a value"),
        ("NaN", "1:1", "a value"),
        ("{} x", "1:4", "expected the end"),
        ("\"\u{1}\"", "1:2", "no control character"),
        ("\"abc", "1:5", "the end of the text"),
        ("\"\\x\"", "1:3", "an escape"),
        ("\"\\ud800\"", "1:8", "no lone surrogate"),
        ("\"\\ud800\\u0041\"", "1:14", "no lone surrogate"),
        ("\"\\u00e\"", "1:3", "four hexadecimal digits"),
        ("\u{feff}{}", "1:1", "a value"),
    ];
    for (text, place, words) in cases {
        let error = load(text).unwrap_err();
        assert_eq!((error.kind, error.place.as_str()), (ErrorKind::Constraint, place), "{text:?} {error}");
        assert!(error.message.contains(words), "{text:?}: {error}");
    }
}

/// How long any document may take: a second, and more where nothing is optimised and others share the machine.
const IN_TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 1 });

/// Loads in time; the error's kind if it is one.
fn in_time(text: &str) -> Result<Schema, ErrorKind> {
    let start = Instant::now();
    let schema = load(text);
    assert!(start.elapsed() < IN_TIME, "{} bytes took {:?}", text.len(), start.elapsed());
    schema.map_err(|error| error.kind)
}

#[test]
fn deep_documents_are_read_or_refused() {
    let nested =
        |depth: usize| format!("{}true{}", r#"{"properties":{"a":"#.repeat(depth), "}}".repeat(depth));
    assert_eq!(in_time(&nested(510)).unwrap().nodes.len(), 511);
    assert_eq!(in_time(&nested(100_000)).unwrap_err(), ErrorKind::Limit);
    assert_eq!(in_time(&"[".repeat(1_000_000)).unwrap_err(), ErrorKind::Limit);
    assert_eq!(
        in_time(&format!("{}1{}", "{\"not\":".repeat(1000), "}".repeat(1000))).unwrap_err(),
        ErrorKind::Constraint
    );
    let constant = format!(r#"{{"const": {}{}}}"#, "[".repeat(1000), "]".repeat(1000));
    assert_eq!(in_time(&constant).unwrap().nodes.len(), 1);
}

#[test]
fn large_documents_are_read_in_time() {
    let names: Vec<String> = (0..100_000).map(|n| format!("\"name number {n}\"")).collect();
    let schema = in_time(&format!(r#"{{"enum": [{}]}}"#, names.join(","))).unwrap();
    let SchemaNode::Keywords(keywords) = &schema.nodes[0] else { panic!("{schema}") };
    assert_eq!(keywords.values.as_ref().unwrap().len(), 100_000);

    let zeros = |count: usize| format!(r#"{{"enum": [{}0]}}"#, "0,".repeat(count));
    assert_eq!(in_time(&zeros(999_990)).unwrap().to_string(), "0 #: values 0");
    assert_eq!(in_time(&zeros(1_000_000)).unwrap_err(), ErrorKind::Limit);
    let numbers: Vec<String> = (0..999_990).map(|n| n.to_string()).collect();
    let schema = in_time(&format!(r#"{{"enum": [{}]}}"#, numbers.join(","))).unwrap();
    let SchemaNode::Keywords(keywords) = &schema.nodes[0] else { panic!("{schema}") };
    assert_eq!(keywords.values.as_ref().unwrap().len(), 999_990);

    let definitions: Vec<String> = (0..100_000)
        .map(|n| format!(r##""d{n}": {{"items": {{"$ref": "#/$defs/d{}"}}}}"##, (n + 1) % 100_000))
        .collect();
    let chain = format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{}}}}}"##, definitions.join(","));
    assert_eq!(in_time(&chain).unwrap().nodes.len(), 100_000);

    let aliases: Vec<String> =
        (0..100_000).map(|n| format!(r##""d{n}": {{"$ref": "#/$defs/d{}"}}"##, n + 1)).collect();
    let chain = format!(
        r##"{{"$ref": "#/$defs/d0", "$defs": {{{}, "d100000": {{"type": "null"}}}}}}"##,
        aliases.join(",")
    );
    assert_eq!(in_time(&chain).unwrap().to_string(), "0 #/$defs/d100000: type null");

    let many = format!(r#"{{"anyOf": [{}{{"type": "null"}}]}}"#, r#"{"minLength": 1},"#.repeat(600_000));
    assert_eq!(in_time(&many).unwrap_err(), ErrorKind::Limit);
    assert_eq!(in_time(&" ".repeat(20 << 20)).unwrap_err(), ErrorKind::Limit);
}

#[test]
fn wrong_documents_are_refused_in_time() {
    let wrong = format!(r#"{{"items": [{}true]}}"#, r#"{"type": 1},"#.repeat(300_000));
    assert_eq!(in_time(&wrong).unwrap_err(), ErrorKind::Constraint);

    let mut lost = String::from(r#"{"allOf": ["#);
    for n in 0..100_000 {
        write!(lost, r##"{{"$ref": "#/nowhere/{n}"}},"##).unwrap();
    }
    assert_eq!(in_time(&format!("{lost}true]}}")).unwrap_err(), ErrorKind::Constraint);

    // All of them in one wide place, which is sought only for those that are listed.
    let mut lost = String::from(r#"{"allOf": ["#);
    for n in 0..60_000 {
        write!(lost, r##"{{"$ref": "#/allOf/{}/x"}},{{"$ref": "#/allOf/{}"}},"##, 2 * n, 2 * n + 1).unwrap();
    }
    assert_eq!(in_time(&format!("{lost}true]}}")).unwrap_err(), ErrorKind::Constraint);
    let options = SchemaOptions { lenient: true, ..SchemaOptions::default() };
    let start = Instant::now();
    assert_eq!(json::load(&format!("{lost}true]}}"), &options, &[]).unwrap().warnings.len(), 1001);
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());

    // A long base for many references.
    let references = r#"{"$ref": "a"},"#.repeat(300_000);
    let long =
        format!(r#"{{"$id": "http://x.test/{}", "allOf": [{references}true]}}"#, "x".repeat(4_000_000));
    assert_eq!(in_time(&long).unwrap_err(), ErrorKind::Constraint);

    // Schemas that apply to one value within each other, further than anyone follows.
    let links: Vec<String> =
        (0..5_000).map(|n| format!(r##""d{n}": {{"not": {{"$ref": "#/$defs/d{}"}}}}"##, n + 1)).collect();
    let chain = format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{}, "d5000": false}}}}"##, links.join(","));
    assert_eq!(in_time(&chain).unwrap_err(), ErrorKind::Limit);

    // Each of these patterns is refused for the work it takes. Together they take no more than a few.
    let pattern = r"(?:\\[]b[^]|\\BAx(?<=a{2,3<=a{b[^]|\\B2,'},3})=$)[^]*";
    let many: Vec<String> = (0..30).map(|n| format!(r#"{{"pattern": "[^]{{{n},}}{pattern}"}}"#)).collect();
    assert_eq!(in_time(&format!(r#"{{"allOf": [{}]}}"#, many.join(","))).unwrap_err(), ErrorKind::Constraint);
}

/// The schema with `additionalProperties` where objects of declared properties say nothing of others, written into its text.
fn closed(of: &Value) -> Value {
    let Value::Object(keywords) = of else { return of.clone() };
    let mut made = keywords.clone();
    for (keyword, inner) in &mut made {
        *inner = match (keyword.as_str(), &*inner) {
            ("$defs" | "properties" | "patternProperties", Value::Object(named)) => {
                named.iter().map(|(name, of)| (name.clone(), closed(of))).collect()
            }
            ("dependentSchemas", Value::Object(named)) => {
                let open = |of: &Value| match closed(of) {
                    Value::Object(mut inner) if of.get("additionalProperties").is_none() => {
                        inner.remove("additionalProperties");
                        Value::Object(inner)
                    }
                    other => other,
                };
                named.iter().map(|(name, of)| (name.clone(), open(of))).collect()
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(all)) => {
                all.iter().map(closed).collect()
            }
            ("enum" | "const" | "required" | "dependentRequired" | "type", inner) => inner.clone(),
            (_, inner) => closed(inner),
        };
    }
    if keywords.contains_key("properties") {
        made.entry("additionalProperties").or_insert(false.into());
    }
    Value::Object(made)
}

#[test]
fn closed_objects_are_those_with_additional_properties_written_out() {
    let options = SchemaOptions { closed: true, ..SchemaOptions::default() };
    let (mut run, mut apart) = (0, 0);
    for seed in 0..600_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        let of = document(&mut dice);
        let slow = from_value(&closed(&of), &SchemaOptions::default(), &[]);
        let (Ok(slow), Ok(open)) = (slow, from_value(&of, &SchemaOptions::default(), &[])) else { continue };
        let fast = from_value(&of, &options, &[]).unwrap();
        run += 1;
        for _ in 0..30 {
            let value = value(&mut dice, 3);
            let is_fine = is_valid(&fast, &value).unwrap();
            assert_eq!(is_fine, is_valid(&slow, &value).unwrap(), "{of} {value}");
            apart += usize::from(is_fine != is_valid(&open, &value).unwrap());
        }
    }
    assert!(run > 400 && apart > 100, "{apart} values differ under {run} schemas");
}
