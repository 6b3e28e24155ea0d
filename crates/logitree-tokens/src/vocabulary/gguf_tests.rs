//! Tests of the GGUF loader on files made by hand.

use super::*;
use crate::ErrorKind;

/// Writes a GGUF file pair by pair.
struct File(Vec<u8>, u64);

impl File {
    fn new() -> Self {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend([0; 16]);
        File(bytes, 0)
    }

    fn raw(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.0.extend((key.len() as u64).to_le_bytes());
        self.0.extend(key.as_bytes());
        self.0.extend(kind.to_le_bytes());
        self.0.extend(value);
        self.1 += 1;
        self.0[16..24].copy_from_slice(&self.1.to_le_bytes());
        self
    }

    fn string(self, key: &str, text: &str) -> Self {
        let value = string(text);
        self.raw(key, 8, &value)
    }

    fn u32(self, key: &str, number: u32) -> Self {
        self.raw(key, 4, &number.to_le_bytes())
    }

    fn strings(self, key: &str, texts: &[&str]) -> Self {
        let mut value = head(8, texts.len() as u64);
        texts.iter().for_each(|text| value.extend(string(text)));
        self.raw(key, 9, &value)
    }

    fn i32s(self, key: &str, numbers: &[i32]) -> Self {
        let mut value = head(5, numbers.len() as u64);
        numbers.iter().for_each(|n| value.extend(n.to_le_bytes()));
        self.raw(key, 9, &value)
    }
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

fn head(kind: u32, count: u64) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat()
}

fn spm() -> File {
    let nested = [head(9, 2), head(8, 1), string("x"), head(4, 0)].concat();
    File::new()
        .string("general.name", "tiny")
        .string(MODEL, "llama")
        .raw("general.nested", 9, &nested)
        .raw("general.float", 6, &[0; 4])
        .strings(TOKENS, &["<unk>", "<s>", "</s>", "<0x0A>", "▁a▁", "b", "▁u", ""])
        .i32s(TYPES, &[2, 3, 3, 6, 1, 1, 4, 5])
        .u32("tokenizer.ggml.eos_token_id", 2)
}

fn read(file: &File) -> Result<Vocabulary> {
    Vocabulary::from_gguf_bytes(&file.0)
}

fn bytes(vocabulary: &Vocabulary) -> Vec<&[u8]> {
    vocabulary.ids().map(|id| vocabulary.token_bytes(id)).collect()
}

#[test]
fn sentencepiece_style() {
    use TokenKind::{Byte, Control, Normal, Unknown, Unused, UserDefined};
    let v = read(&spm()).unwrap();
    let expected: [&[u8]; 8] = [b"<unk>", b"<s>", b"</s>", b"\n", b" a ", b"b", "▁u".as_bytes(), b""];
    assert_eq!(bytes(&v), expected);
    let kinds: Vec<_> = v.ids().map(|id| v.kind(id)).collect();
    assert_eq!(kinds, [Unknown, Control, Control, Byte, Normal, Normal, UserDefined, Unused]);
    assert_eq!((v.end_tokens(), v.bos()), (&[2][..], Some(1)));
    assert_eq!((v.about().name.as_str(), v.about().source.as_str()), ("tiny", "gguf"));
    assert!(v.about().adds_prefix_space);
    let v = read(&spm().raw("tokenizer.ggml.add_space_prefix", 7, &[0])).unwrap();
    assert!(!v.about().adds_prefix_space);
}

#[test]
fn byte_level_and_its_metaspace_variants() {
    let texts = ["Ġhi", "Ċ", "<|im_end|>", "▁x", "a b"];
    let v = read(&File::new().string(MODEL, "gpt2").strings(TOKENS, &texts)).unwrap();
    assert_eq!(bytes(&v), [b" hi", &b"\n"[..], b"<|im_end|>", "▁x".as_bytes(), b"a b"]);
    assert_eq!((v.end_tokens(), v.bos()), (&[2][..], None));
    assert!(!v.about().adds_prefix_space);
    let file =
        File::new().string(MODEL, "gpt2").string("tokenizer.ggml.pre", "gemma4").strings(TOKENS, &texts);
    assert_eq!(read(&file).unwrap().token_bytes(3), b" x");
}

#[test]
fn rwkv_escapes() {
    let file = File::new().string(MODEL, "rwkv").strings(TOKENS, &["\\x00a\\n", "\\\\\\'", "\\x4", "\\"]);
    assert_eq!(bytes(&read(&file).unwrap()), [&b"\0a\n"[..], b"\\'", b"", b""]);
}

#[test]
fn every_truncation_is_an_error_with_its_place() {
    let file = spm().0;
    for end in 0..file.len() {
        let error = Vocabulary::from_gguf_bytes(&file[..end]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Vocabulary);
        assert!(error.place.starts_with("offset ") && error.place.contains(", field "), "{end}: {error}");
    }
}

#[test]
fn no_byte_makes_it_panic() {
    let file = spm().0;
    for at in 0..file.len() {
        for value in [0, 1, 7, 9, 0x7F, 0x80, 0xFF] {
            let mut changed = file.clone();
            changed[at] = value;
            let _ = Vocabulary::from_gguf_bytes(&changed).map(|v| v.fingerprint());
        }
    }
}

/// What is wrong, what the place must name, the file.
fn hostile() -> Vec<(&'static str, &'static str, File)> {
    let huge = (u64::MAX / 8).to_le_bytes();
    let deep: Vec<u8> = (0..100).flat_map(|_| head(9, 1)).collect();
    let list = |file: File| file.strings(TOKENS, &["a"]);
    vec![
        ("fit", TOKENS, File::new().string(MODEL, "gpt2").raw(TOKENS, 9, &head(8, u64::MAX))),
        ("fit", "x", list(File::new().raw("x", 9, &head(10, u64::MAX / 2)))),
        ("expected", "x", list(File::new().raw("x", 8, &huge))),
        ("nested", "x", list(File::new().raw("x", 9, &deep))),
        ("no GGUF type", "x", list(File::new().raw("x", 13, &[]))),
        ("no GGUF type", "x", list(File::new().raw("x", 9, &head(77, 0)))),
        ("twice", MODEL, list(File::new().string(MODEL, "gpt2").string(MODEL, "gpt2"))),
        ("no tokenizer", MODEL, list(File::new())),
        ("a string expected", MODEL, list(File::new().u32(MODEL, 1))),
        ("is not read", MODEL, list(File::new().string(MODEL, "hybriddna"))),
        ("no token list", TOKENS, File::new().string(MODEL, "gpt2")),
        ("array of type", TOKENS, File::new().string(MODEL, "gpt2").i32s(TOKENS, &[1])),
        ("token types", TYPES, list(File::new().string(MODEL, "gpt2").i32s(TYPES, &[]))),
        (
            "<0xNN>",
            "tokens[0]",
            File::new().string(MODEL, "llama").strings(TOKENS, &["<0xG0>"]).i32s(TYPES, &[6]),
        ),
        (
            "out of range",
            "eos_token_id",
            list(File::new().string(MODEL, "gpt2").u32("tokenizer.ggml.eos_token_id", 1)),
        ),
        ("at least one token", "", File::new().string(MODEL, "gpt2").strings(TOKENS, &[])),
    ]
}

#[test]
fn hostile_files_are_errors_that_say_where() {
    for (message, place, file) in hostile() {
        let error = read(&file).unwrap_err();
        assert!(error.message.contains(message), "{message}: {error}");
        assert!(error.place.contains(place), "{place}: {error}");
    }
    for (bytes, message) in [
        (&b"GGUX\x03\0\0\0"[..], "not a GGUF"),
        (b"GGUF\x01\0\0\0", "version 1"),
        (b"GGUF\0\0\0\x03", "version 50331648"),
    ] {
        assert!(Vocabulary::from_gguf_bytes(bytes).unwrap_err().message.contains(message));
    }
    let minus_one = File::new()
        .string(MODEL, "gpt2")
        .strings(TOKENS, &["a"])
        .u32("tokenizer.ggml.eos_token_id", u32::MAX);
    assert_eq!(read(&minus_one).unwrap().end_tokens(), [] as [TokenId; 0]);
}
