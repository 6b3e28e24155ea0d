//! The JSON form of constraints: the examples of docs/c.md are read and written, and hostile forms are refused with a place.

use std::path::Path;
use std::sync::Arc;

use logitree::catalogue::{BuildOptions, CatalogueBuilder};
use logitree::constraint::form::{read, Fields, Names, Reader};
use logitree::constraint::{Constraint, OneOf, Recogniser};
use logitree::tokenizer::Tokenizer;
use logitree::{form, ErrorKind, Result};
use serde_json::Value;

const DOCS: &str = include_str!("../../../../../docs/c.md");

/// A tokenizer of three tokens, and a type of the caller's.
struct Mine;

const TOKENIZER: &str = r#"{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
    "decoder": {"type": "ByteLevel"}, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}}"#;

impl Names for Mine {
    fn tokenizer(&self, _: &str) -> Result<Arc<Tokenizer>> {
        Tokenizer::from_tokenizer_json_bytes(TOKENIZER.as_bytes()).map(Arc::new)
    }

    fn constraint(
        &self,
        kind: &str,
        fields: &mut Fields,
        reader: &Reader<'_>,
    ) -> Result<Option<Arc<dyn Constraint>>> {
        if kind != "catalogue" {
            return Ok(None);
        }
        let index = fields.text("index")?;
        for (at, peer) in fields.list("and")?.into_iter().enumerate() {
            reader.constraint(peer, &format!("{}/{at}", fields.at("and")))?;
        }
        Ok(Some(Arc::new(OneOf::new([index]))))
    }
}

/// The examples, and the types of the table.
fn documented() -> (Vec<&'static str>, Vec<&'static str>) {
    let section = DOCS.split("## Constraints as JSON").nth(1).unwrap().split("## C++").next().unwrap();
    let table = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let types = table.flat_map(|line| line.split(" | ").next().unwrap().trim_end_matches('`').split("`, `"));
    let block = section.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    (block.lines().collect(), types.collect())
}

#[test]
fn every_type_has_an_example_that_is_read_and_written() {
    let (examples, mut types) = documented();
    for example in examples {
        let constraint = read(example.as_bytes(), &Mine).unwrap_or_else(|error| panic!("{example}: {error}"));
        let value: Value = serde_json::from_str(example).unwrap();
        types.retain(|kind| value["type"] != *kind);
        let written = constraint.form().unwrap().to_string();
        let again = read(written.as_bytes(), &Mine).unwrap_or_else(|error| panic!("{written}: {error}"));
        assert_eq!(again.form().unwrap().to_string(), written);
        assert_eq!(again.key(), constraint.key(), "{written}");
    }
    assert!(types.is_empty(), "without an example: {types:?}");
}

#[test]
fn canonical_spelling_is_a_constraint() {
    let form = r#"{"type": "canonical", "of": {"type": "choices", "texts": ["ab"]}, "tokenizer": "mine"}"#;
    let constraint = read(form.as_bytes(), &Mine).unwrap();
    let other = Mine.tokenizer("").unwrap();
    let gone = Arc::downgrade(other.vocabulary());
    for _ in 0..2 {
        let mut matcher = constraint.matcher(other.vocabulary()).unwrap();
        assert!(matcher.is_allowed(2).unwrap() && !matcher.is_allowed(0).unwrap());
    }
    drop(other);
    assert!(gone.upgrade().is_none());
}

#[test]
fn paths_name_catalogues() {
    let path = std::env::temp_dir().join(format!("logitree-form-{}", std::process::id()));
    let mut builder = CatalogueBuilder::new(BuildOptions::default()).unwrap();
    builder.push(&[0, 1], &[], 7).unwrap();
    builder.finish(Some(Path::new(&path)), &mut |_| Ok(())).unwrap();
    let form = serde_json::json!({ "type": "catalogue", "index": path, "end": 2 }).to_string();
    let constraint = form::read(form.as_bytes());
    std::fs::remove_file(&path).ok();
    assert_eq!(constraint.unwrap().form().unwrap().to_string(), form);
    let missing = form::read(br#"{"type": "catalogue", "index": "/nowhere"}"#).err().unwrap();
    assert_eq!(missing.kind, ErrorKind::Io);
}

#[test]
fn hostile_forms_are_refused_with_their_place() {
    let nested = |depth| {
        let inner = r#"{"type":"repeat","of":"#.repeat(depth);
        format!(r#"{inner}{{"type":"text"}}{}"#, "}".repeat(depth))
    };
    assert!(read(nested(40).as_bytes(), &()).is_ok());
    for (form, place) in [
        ("", "1:0"),
        ("[]", "/"),
        ("{}", ""),
        (r#"{"type": "magic"}"#, "/type"),
        (r#"{"type": "regex", "pattern": 5}"#, "/pattern"),
        (r#"{"type": "regex", "pattern": "a", "more": 1}"#, "/more"),
        (
            r#"{"type": "sequence", "of": [{"type": "text"}, {"type": "choices", "texts": "a"}]}"#,
            "/of/1/texts",
        ),
        (r#"{"type": "both", "of": [{"type": "text"}, 7]}"#, "/of/1"),
        (r#"{"type": "at_most", "of": {"type": "text"}, "n": -1}"#, "/n"),
        (r#"{"type": "ban", "of": {"type": "text"}, "tokens": [["a"]]}"#, "/tokens"),
        (r#"{"type": "lazy", "grammar": {"type": "choices", "texts": ["a"]}, "words": ["a"]}"#, "/grammar"),
        (r#"{"type": "tags", "tags": [{"begin": 5, "content": {"type": "text"}}]}"#, "/tags/0/begin"),
        (r#"{"type": "canonical", "of": {"type": "text"}, "tokenizer": "none"}"#, "/tokenizer"),
        (r#"{"type": "skeleton", "skeleton": {"spans": 5}}"#, "/skeleton"),
        (r#"{"type": "grammar", "parts": [{"is": "seq", "of": [3]}]}"#, "/parts"),
        (r#"{"type": "token_tree", "binary": "***"}"#, "/binary"),
        (r#"{"type": "reasoning_budget", "begin": [1], "end": [2], "ramp": "x"}"#, "/ramp"),
        (r#"{"type": "catalogue", "index": "x"}"#, "/type"),
        (&nested(200), "1:"),
    ] {
        let error = read(form.as_bytes(), &()).err().unwrap_or_else(|| panic!("{form} is read"));
        assert!(error.place.starts_with(place), "{form:.80}: {} is not {place}", error.place);
    }
}

#[test]
fn programs_are_not_written() {
    let program = Recogniser::new(|| unreachable!());
    assert_eq!(program.form().unwrap_err().kind, ErrorKind::Constraint);
    let bytes = OneOf::new([&b"\xff"[..]]);
    assert_eq!(bytes.form().unwrap_err().kind, ErrorKind::Constraint);
}
