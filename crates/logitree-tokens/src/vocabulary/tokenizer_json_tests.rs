//! Tests of the tokenizer.json loader on files made by hand.

use super::*;

const BYTE_LEVEL: &str = r#"{"version": "1.0", "added_tokens": [
    {"id": 3, "content": "<|im_end|>", "special": true, "lstrip": false},
    {"id": 5, "content": "a b"}, {"id": 2, "content": "<unk>", "special": true}],
    "normalizer": null, "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true},
    "model": {"type": "BPE", "unk_token": "<unk>", "vocab": {"\u0120hi": 0, "Ċ": 1, "<unk>": 2},
    "merges": ["a b", ["c", "d"], [[[]]]]}}"#;

const LLAMA: &str = r#"{"added_tokens": [{"id": 0, "content": "<unk>", "special": true},
    {"id": 1, "content": "<s>", "special": true}, {"id": 2, "content": "</s>", "special": true},
    {"id": 6, "content": "▁▁", "special": false}],
    "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true,
    "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "<0xC3>": 3, "▁a": 4, "b": 5}}}"#;

const UNIGRAM: &str = r#"{"decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["▁a▁", -1.5], ["b", -2]]}}"#;

fn read(json: &str) -> Result<Vocabulary> {
    Vocabulary::from_tokenizer_json_bytes(json.as_bytes())
}

fn bytes(vocabulary: &Vocabulary) -> Vec<&[u8]> {
    vocabulary.ids().map(|id| vocabulary.token_bytes(id)).collect()
}

fn kinds(vocabulary: &Vocabulary) -> Vec<&'static str> {
    vocabulary.ids().map(|id| vocabulary.kind(id).name()).collect()
}

#[test]
fn byte_level() {
    let v = read(BYTE_LEVEL).unwrap();
    assert_eq!(bytes(&v), [&b" hi"[..], b"\n", b"<unk>", b"<|im_end|>", b"", b"a b"]);
    assert_eq!(kinds(&v), ["normal", "normal", "unknown", "control", "unused", "user_defined"]);
    assert_eq!((v.end_tokens(), v.bos(), v.about().adds_prefix_space), (&[3][..], None, false));
    assert_eq!(v.about().source, "tokenizer.json");
}

#[test]
fn sentencepiece_style() {
    let v = read(LLAMA).unwrap();
    assert_eq!(bytes(&v), [&b"<unk>"[..], b"<s>", b"</s>", b"\xC3", b" a", b"b", b"  "]);
    assert_eq!(kinds(&v), ["unknown", "control", "control", "byte", "normal", "normal", "user_defined"]);
    assert_eq!((v.end_tokens(), v.bos(), v.about().adds_prefix_space), (&[2][..], Some(1), true));
    let v = read(&LLAMA.replace("\"start\": 1", "\"start\": 0")).unwrap();
    assert!(!v.about().adds_prefix_space);
}

#[test]
fn added_tokens_are_normalised_where_they_say_so() {
    let normalizer = r#"{"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}, "#;
    let json = LLAMA.replacen('{', normalizer, 1);
    assert_eq!(read(&json).unwrap().token_bytes(6), b"   ");
    let spaces = json.replace(r#""content": "▁▁""#, &format!(r#""content": "{}""#, " ".repeat(300)));
    assert_eq!(read(&spaces).unwrap().token_bytes(6), " ".repeat(301).as_bytes());
    let json = json.replace(r#""special": false"#, r#""special": false, "normalized": false"#);
    assert_eq!(read(&json).unwrap().token_bytes(6), b"  ");
    let json = BYTE_LEVEL.replace("null", r#"{"type": "ByteLevel"}"#).replace("a b", "é b");
    assert_eq!(read(&json).unwrap().token_bytes(5), "é b".as_bytes());
    let much = "x".repeat(5000);
    for grow in [
        format!(r#""normalizer": {{"type": "Prepend", "prepend": "{much}"}}"#),
        format!(r#""normalizer": {{"type": "Replace", "pattern": {{"String": "a"}}, "content": "{much}"}}"#),
    ] {
        let error = read(&BYTE_LEVEL.replace(r#""normalizer": null"#, &grow)).unwrap_err();
        assert_eq!(error.place, "field normalizer");
    }
}

#[test]
fn unigram_with_metaspace() {
    let v = read(UNIGRAM).unwrap();
    assert_eq!(bytes(&v), [&b"<unk>"[..], b" a ", b"b"]);
    assert_eq!(kinds(&v), ["unknown", "normal", "normal"]);
    assert!(v.about().adds_prefix_space);
    for never in [r#""prepend_scheme": "never""#, r#""add_prefix_space": false"#] {
        let v = read(&UNIGRAM.replace(r#""prepend_scheme": "always""#, never)).unwrap();
        assert!(!v.about().adds_prefix_space);
    }
}

#[test]
fn strip_and_replace_within_a_piece() {
    let steps = |decoders: &str| {
        let json = format!(
            r#"{{"decoder": {{"type": "Sequence", "decoders": [{decoders}]}},
                "model": {{"vocab": {{"__a_b__": 0}}}}}}"#
        );
        read(&json).map(|v| String::from_utf8(v.token_bytes(0).to_vec()).unwrap())
    };
    let strip = r#"{"type": "Strip", "content": "_", "start": 1, "stop": 5}"#;
    assert_eq!(steps(strip).unwrap(), "_a_b");
    let replace = r#"{"type": "Replace", "pattern": {"String": "__"}, "content": "<0x41>"}"#;
    assert_eq!(steps(&format!("{replace}, {strip}")).unwrap(), "<0x41>a_b<0x41>");
    for not_read in [
        r#"{"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""}"#,
        r#"{"type": "Replace", "pattern": {"String": ""}, "content": "x"}"#,
        r#"{"type": "Replace", "pattern": {"String": "a"}, "content": "0123456789"}"#,
        r#"{"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 0, "stop": 1}"#,
        r#"{"type": "ByteLevel"}, {"type": "ByteFallback"}"#,
        r#"{"type": "Sequence", "decoders": [{"type": "Fuse"}]}"#,
        r#"{"type": "WordPiece", "prefix": "\u0023\u0023", "cleanup": true}"#,
        r#"{"type": "BPEDecoder", "suffix": "</w>"}"#,
    ] {
        let error = steps(not_read).unwrap_err();
        assert!(error.kind == ErrorKind::Vocabulary && error.place.starts_with("field decoder"), "{error}");
    }
}

#[test]
fn a_replace_of_a_long_text_takes_no_time() {
    let (long, piece) = ("a".repeat(100_000) + "b", "a".repeat(200_000));
    let replace = format!(r#"{{"type": "Replace", "pattern": {{"String": "{long}"}}, "content": ""}}"#);
    let vocabulary = format!(r#""model": {{"vocab": {{"{piece}": 0}}}}"#);
    for (json, place) in [
        (format!(r#"{{"decoder": {replace}, {vocabulary}}}"#), "field decoder"),
        (
            BYTE_LEVEL.replace(r#""normalizer": null"#, &format!(r#""normalizer": {replace}"#)),
            "field normalizer",
        ),
    ] {
        let error = read(&json).unwrap_err();
        assert!(error.message.contains("256 bytes") && error.place == place, "{error}");
    }
}

#[test]
fn every_truncation_is_an_error_with_its_place() {
    for json in [BYTE_LEVEL, LLAMA, UNIGRAM] {
        for end in 0..json.len() {
            let error = Vocabulary::from_tokenizer_json_bytes(&json.as_bytes()[..end]).unwrap_err();
            assert!(error.kind == ErrorKind::Vocabulary && error.place.starts_with("offset "), "{error}");
        }
    }
}

#[test]
fn hostile_values_are_errors_that_say_where() {
    for (from, to, place) in [
        (r#""Ċ": 1"#, r#""Ċ": 0"#, "model.vocab"),
        (r#""Ċ": 1"#, r#""Ċ": -1"#, "model.vocab.Ċ"),
        (r#""Ċ": 1"#, r#""Ċ": "1""#, "model.vocab.Ċ"),
        (r#""Ċ": 1"#, r#""Ċ": 4294967295"#, "model.vocab"),
        (r#""id": 3"#, r#""id": 16000000"#, "model.vocab, added_tokens"),
        (r#""id": 3"#, r#""id": null"#, "added_tokens[0].id"),
        (r#""model""#, r#""modem""#, "field"),
        (r#""decoder""#, r#""encoder""#, "field decoder"),
        (r#""ByteLevel""#, r#"["ByteLevel"]"#, "decoder.type"),
    ] {
        let changed = BYTE_LEVEL.replace(from, to);
        assert_ne!(changed, BYTE_LEVEL);
        let error = read(&changed).unwrap_err();
        assert!(error.place.contains(place), "{place}: {error}");
    }
    let deep = BYTE_LEVEL.replace("[[[]]]", &format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    assert_eq!(read(&deep).unwrap(), read(BYTE_LEVEL).unwrap());
    assert!(read(&format!("{}1", "[".repeat(100_000))).is_err());
    assert!(read(r#"{"model": {"vocab": {}}, "decoder": {"type": "ByteLevel"}}"#).is_err());
}
