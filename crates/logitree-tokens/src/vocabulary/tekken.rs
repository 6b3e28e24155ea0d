//! A vocabulary from a Mistral tekken file (JSON): special tokens first, then the ranks in order.
//!
//! Ids 0 up to `default_num_special_tokens` are the special tokens (control; those that the file does not list are
//! unused and named `<SPECIAL_id>`); the ranks follow, as many as `default_vocab_size` leaves room for. A file
//! without a list of special tokens has the twenty of the first releases. `</s>` ends a generation, `<s>` begins.

use super::json::{parse, Text};
use super::{Builder, TokenKind, Vocabulary, VocabularyOptions};
use crate::file;
use crate::{Error, ErrorKind, Result, TokenId};
use base64::Engine;
use serde::Deserialize;
use std::path::Path;

const MAX_SPECIAL: usize = 1 << 16;

const FIRST_SPECIAL: [&str; 20] = [
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
];

#[derive(Deserialize)]
struct File<'a> {
    config: Config,
    #[serde(borrow)]
    vocab: Vec<Ranked<'a>>,
    #[serde(borrow, default)]
    special_tokens: Option<Vec<Special<'a>>>,
}

#[derive(Deserialize)]
struct Config {
    default_vocab_size: usize,
    default_num_special_tokens: usize,
}

#[derive(Deserialize)]
struct Ranked<'a> {
    rank: usize,
    #[serde(borrow)]
    token_bytes: Text<'a>,
}

#[derive(Deserialize)]
struct Special<'a> {
    rank: usize,
    #[serde(borrow)]
    token_str: Text<'a>,
}

impl Vocabulary {
    /// The vocabulary of the tekken JSON file at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be read; [`ErrorKind::Vocabulary`], naming the field and, where the
    /// JSON itself is at fault, the byte offset, if it is malformed or truncated.
    pub fn from_tekken(path: &Path) -> Result<Self> {
        let vocabulary = file::load_text(path, Self::from_tekken_bytes)?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let about = VocabularyOptions { name: name.unwrap_or_default(), ..vocabulary.about().clone() };
        vocabulary.with_about(about).map(Self::with_trie)
    }

    /// The vocabulary of the tekken file whose text is `json`.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] as [`Vocabulary::from_tekken`].
    pub fn from_tekken_bytes(json: &[u8]) -> Result<Self> {
        let file: File<'_> = parse(json)?;
        let special_count = file.config.default_num_special_tokens;
        let ranks = file.config.default_vocab_size.checked_sub(special_count);
        let Some(ranks) = ranks.filter(|&n| n <= file.vocab.len() && special_count <= MAX_SPECIAL) else {
            let message = format!(
                "{} tokens, {special_count} of them special, do not fit {} ranks",
                file.config.default_vocab_size,
                file.vocab.len()
            );
            return Err(Error::new(ErrorKind::Vocabulary, message).at("field config.default_vocab_size"));
        };
        let specials = special_names(&file, special_count)?;
        let mut builder = Builder::with_capacity(special_count + ranks, 0);
        for (id, name) in specials.iter().enumerate() {
            match name {
                Some(name) if *name == "<unk>" => builder.push(TokenKind::Unknown, name.as_bytes())?,
                Some(name) => builder.push(TokenKind::Control, name.as_bytes())?,
                None => builder.push(TokenKind::Unused, format!("<SPECIAL_{id}>").as_bytes())?,
            };
        }
        for (index, token) in file.vocab.iter().take(ranks).enumerate() {
            if token.rank != index {
                let message = format!("rank {} where {index} is expected", token.rank);
                return Err(
                    Error::new(ErrorKind::Vocabulary, message).at(format!("field vocab[{index}].rank"))
                );
            }
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(token.token_bytes.0.as_bytes())
                .map_err(|e| {
                    Error::new(ErrorKind::Vocabulary, format!("not base64: {e}"))
                        .at(format!("field vocab[{index}].token_bytes"))
                })?;
            builder.push(TokenKind::Normal, &bytes)?;
        }
        let id_of = |name: &str| specials.iter().position(|s| *s == Some(name)).map(|id| id as TokenId);
        builder.build(VocabularyOptions {
            source: "tekken".to_string(),
            bos: id_of("<s>"),
            end_tokens: id_of("</s>").into_iter().collect(),
            ..VocabularyOptions::default()
        })
    }
}

/// The names of the special tokens by id.
fn special_names<'a>(file: &'a File<'_>, count: usize) -> Result<Vec<Option<&'a str>>> {
    let mut names = vec![None; count];
    match &file.special_tokens {
        None => names.iter_mut().zip(FIRST_SPECIAL).for_each(|(slot, name)| *slot = Some(name)),
        Some(list) => {
            for (index, token) in list.iter().enumerate() {
                match names.get_mut(token.rank) {
                    Some(slot @ None) => *slot = Some(&token.token_str.0),
                    _ => {
                        let message = format!("rank {} is taken or not below {count}", token.rank);
                        return Err(Error::new(ErrorKind::Vocabulary, message)
                            .at(format!("field special_tokens[{index}].rank")));
                    }
                }
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: &str = r#"{"config": {"pattern": "x", "num_vocab_tokens": 3, "default_vocab_size": 6,
        "default_num_special_tokens": 4, "version": "v3"}, "vocab": [
        {"rank": 0, "token_bytes": "AA==", "token_str": "\u0000"},
        {"rank": 1, "token_bytes": "/w==", "token_str": null},
        {"rank": 2, "token_bytes": "Ag==", "token_str": "x"}], "special_tokens": [
        {"rank": 0, "token_str": "<unk>", "is_control": true},
        {"rank": 2, "token_str": "</s>", "is_control": true}], "image": {"x": [1, {}]}}"#;

    #[test]
    fn specials_then_ranks() {
        let v = Vocabulary::from_tekken_bytes(TINY.as_bytes()).unwrap();
        let bytes: Vec<&[u8]> = v.ids().map(|id| v.token_bytes(id)).collect();
        assert_eq!(bytes, [&b"<unk>"[..], b"<SPECIAL_1>", b"</s>", b"<SPECIAL_3>", b"\0", b"\xFF"]);
        let kinds: Vec<&str> = v.ids().map(|id| v.kind(id).name()).collect();
        assert_eq!(kinds, ["unknown", "unused", "control", "unused", "normal", "normal"]);
        assert_eq!((v.end_tokens(), v.bos()), (&[2][..], None));
        let old = TINY.replace("\"special_tokens\"", "\"other\"");
        let v = Vocabulary::from_tekken_bytes(old.as_bytes()).unwrap();
        assert_eq!((v.token_bytes(3), v.bos(), v.end_tokens()), (&b"[INST]"[..], Some(1), &[2][..]));
    }

    #[test]
    fn every_truncation_is_an_error_with_its_place() {
        for end in 0..TINY.len() {
            let error = Vocabulary::from_tekken_bytes(&TINY.as_bytes()[..end]).unwrap_err();
            assert!(error.kind == ErrorKind::Vocabulary && error.place.starts_with("offset "), "{error}");
        }
    }

    #[test]
    fn hostile_values_are_errors_that_say_where() {
        for (from, to, place) in [
            ("\"rank\": 1", "\"rank\": 7", "field vocab[1].rank"),
            ("/w==", "/w", "field vocab[1].token_bytes"),
            ("\"rank\": 2, \"token_str\"", "\"rank\": 4, \"token_str\"", "field special_tokens[1].rank"),
            ("\"rank\": 2, \"token_str\"", "\"rank\": 0, \"token_str\"", "field special_tokens[1].rank"),
            ("\"default_vocab_size\": 6", "\"default_vocab_size\": 3", "field config.default_vocab_size"),
            ("\"default_vocab_size\": 6", "\"default_vocab_size\": 8", "field config.default_vocab_size"),
            ("\"default_vocab_size\": 6", "\"default_vocab_size\": -1", "field config.default_vocab_size"),
            (
                "size\": 6,\n        \"default_num_special_tokens\": 4",
                "size\": 4000000000, \"default_num_special_tokens\": 4000000000",
                "field config.default_vocab_size",
            ),
        ] {
            let changed = TINY.replace(from, to);
            assert_ne!(changed, TINY);
            let error = Vocabulary::from_tekken_bytes(changed.as_bytes()).unwrap_err();
            assert!(error.place.contains(place), "{place}: {error}");
        }
    }
}
