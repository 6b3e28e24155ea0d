//! A tokenizer from Hugging Face's tokenizer.json: byte-pair encodings of bytes, or of characters with byte fallback.
//!
//! | field | read are |
//! |---|---|
//! | model | BPE without dropout, prefixes or suffixes |
//! | normalizer | NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, Sequence |
//! | pre_tokenizer | Split, Digits, Punctuation, Metaspace, ByteLevel (the last of a Sequence), Sequence; none that removes text |
//! | added_tokens | special ones as control tokens, others as user-defined ones |

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use super::merges::{pair, Merges, Units, Whole, NO_TOKEN};
use super::normalizer::{Normalizer, MARK};
use super::pipeline::{not_read, Pipeline};
use super::splitter::Splitter;
use super::user::{UserToken, UserTokens};
use super::{Model as Kind, Parts, Tokenizer};
use crate::file;
use crate::vocabulary::byte_level::character_of;
use crate::vocabulary::json::{parse, Text};
use crate::vocabulary::{TokenKind, Vocabulary};
use crate::{Error, ErrorKind, Result, TokenId};

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    model: Model<'a>,
    #[serde(default)]
    pre_tokenizer: Option<Value>,
    #[serde(default)]
    normalizer: Option<Value>,
    #[serde(borrow, default)]
    added_tokens: Option<Vec<Added<'a>>>,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    vocab: FxHashMap<Cow<'a, str>, TokenId>,
    #[serde(borrow, default)]
    merges: Option<Vec<Merge<'a>>>,
    #[serde(default)]
    ignore_merges: bool,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    dropout: Option<f64>,
    #[serde(default)]
    continuing_subword_prefix: Option<String>,
    #[serde(default)]
    end_of_word_suffix: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Merge<'a> {
    Joined(#[serde(borrow)] Text<'a>),
    Pair(#[serde(borrow)] Text<'a>, Text<'a>),
}

#[derive(Deserialize)]
struct Added<'a> {
    id: TokenId,
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(default)]
    normalized: Option<bool>,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    single_word: bool,
}

fn wrong<T>(message: impl Into<String>, field: impl std::fmt::Display) -> Result<T> {
    Err(Error::new(ErrorKind::Vocabulary, message).at(format!("field {field}")))
}

impl Tokenizer {
    /// The tokenizer of the tokenizer.json at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be read; [`ErrorKind::Vocabulary`], naming the field, if it is malformed or its
    /// tokenizer is of a kind that is not read.
    pub fn from_tokenizer_json(path: &Path) -> Result<Self> {
        file::load_text(path, Self::from_tokenizer_json_bytes)
    }

    /// The tokenizer of the tokenizer.json whose text is `json`.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] as [`Tokenizer::from_tokenizer_json`].
    pub fn from_tokenizer_json_bytes(json: &[u8]) -> Result<Self> {
        let vocabulary = Arc::new(Vocabulary::from_tokenizer_json_bytes(json)?);
        let file: File<'_> = parse(json)?;
        let model = &file.model;
        let set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        match &model.kind {
            Some(kind) if kind != "BPE" => return not_read(format_args!("the model {kind:?}"), "model.type"),
            None if model.merges.is_none() => return not_read("a model without merges", "model"),
            _ if model.dropout.is_some_and(|dropout| dropout > 0.0) => {
                return not_read("dropout", "model.dropout")
            }
            _ if set(&model.continuing_subword_prefix) || set(&model.end_of_word_suffix) => {
                return not_read("prefixes or suffixes of subwords", "model")
            }
            _ => {}
        }
        let pipeline = Pipeline::new(file.normalizer.as_ref(), file.pre_tokenizer.as_ref())?;
        let units = match (pipeline.is_bytes, pipeline.marks, model.byte_fallback) {
            (true, false, false) => byte_units(model),
            (true, ..) => return not_read("ByteLevel and U+2581 or byte fallback", "pre_tokenizer"),
            (false, true, true) => char_units(model)?,
            (false, false, _) => return not_read("neither ByteLevel nor U+2581 for spaces", "pre_tokenizer"),
            (false, true, false) => return not_read("no byte fallback", "model.byte_fallback"),
        };
        let Pipeline { normalizer, patterns, lead, .. } = pipeline;
        let whole = if model.ignore_merges { Whole::Always } else { Whole::Never };
        let merges = Merges { units, pairs: pairs(model)? };
        let added = file.added_tokens.unwrap_or_default();
        let user = UserTokens::leftmost(user_tokens(&vocabulary, &added, &normalizer)?);
        let splitter = Splitter::of(&patterns)?;
        Ok(Tokenizer::new(Parts {
            vocabulary,
            splitter,
            merges,
            model: Kind::Merges,
            user,
            whole,
            normalizer,
            lead,
        }))
    }
}

fn byte_units(model: &Model<'_>) -> Units {
    let token = |byte: usize| {
        let text = character_of(byte as u8).to_string();
        model.vocab.get(text.as_str()).copied().unwrap_or(NO_TOKEN)
    };
    Units::Bytes(Box::new(std::array::from_fn(token)))
}

fn char_units(model: &Model<'_>) -> Result<Units> {
    let mut chars = FxHashMap::default();
    for (text, &id) in &model.vocab {
        let mut all = text.chars();
        match (all.next(), all.next()) {
            // A space in a text is written as the mark, so that no other space is met.
            (Some(' '), None) => {}
            (Some(c), None) => {
                chars.insert(if c == MARK { ' ' } else { c }, id);
            }
            _ => {}
        }
    }
    let token = |byte: usize| model.vocab.get(&*format!("<0x{byte:02X}>")).copied().unwrap_or(NO_TOKEN);
    let bytes: Box<[TokenId; 256]> = Box::new(std::array::from_fn(token));
    if bytes.contains(&NO_TOKEN) {
        return not_read("byte fallback without a token for every byte", "model.vocab");
    }
    Ok(Units::Chars(chars, bytes))
}

fn pairs(model: &Model<'_>) -> Result<FxHashMap<u64, (u32, TokenId)>> {
    let merges = model.merges.as_deref().unwrap_or_default();
    let mut pairs = FxHashMap::with_capacity_and_hasher(merges.len(), Default::default());
    for (rank, merge) in merges.iter().enumerate() {
        let (left, right) = match merge {
            Merge::Pair(left, right) => (&*left.0, &*right.0),
            Merge::Joined(text) => match text.0.split_once(' ') {
                Some(both) => both,
                None => {
                    return wrong(
                        "a merge is two texts with a space between them",
                        format_args!("model.merges[{rank}]"),
                    )
                }
            },
        };
        let known = |text: &str| model.vocab.get(text).copied();
        match (known(left), known(right), known(&format!("{left}{right}"))) {
            (Some(left), Some(right), Some(both)) => {
                pairs.entry(pair(left, right)).or_insert((rank as u32, both));
            }
            _ => return wrong("a merge of texts that are no tokens", format_args!("model.merges[{rank}]")),
        }
    }
    Ok(pairs)
}

fn user_tokens(
    vocabulary: &Vocabulary,
    added: &[Added<'_>],
    normalizer: &Normalizer,
) -> Result<Vec<UserToken>> {
    let mut tokens = Vec::new();
    for token in added {
        if vocabulary.kind(vocabulary.check(token.id)?) != TokenKind::UserDefined {
            continue;
        }
        // Special ones are not user-defined: these are normalised if nothing else is said.
        let is_normalized = token.normalized != Some(false);
        let normalized = normalizer.apply(&token.content.0);
        tokens.push(UserToken {
            text: if is_normalized { vocabulary.token_bytes(token.id) } else { token.content.0.as_bytes() }
                .into(),
            token: token.id,
            strips_left: token.lstrip,
            strips_right: token.rstrip,
            is_word: token.single_word,
            normalized: is_normalized.then(|| normalized.as_bytes().into()),
        });
    }
    Ok(tokens)
}
