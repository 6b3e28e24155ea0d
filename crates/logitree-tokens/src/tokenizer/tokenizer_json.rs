//! A tokenizer from Hugging Face's tokenizer.json: byte-level byte-pair encodings.
//!
//! | field | read are |
//! |---|---|
//! | model | BPE without dropout, prefixes, suffixes or byte fallback |
//! | pre_tokenizer | ByteLevel without a prefix space; before it in a Sequence: Split of a pattern (Isolated), Digits |
//! | normalizer | none |
//! | added_tokens | special ones as control tokens, others as user-defined ones that strip nothing |

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use super::merges::{pair, Merges, Units, Whole, NO_TOKEN};
use super::patterns::GPT2;
use super::splitter::Splitter;
use super::user::{UserToken, UserTokens};
use super::{Parts, Tokenizer};
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
    #[serde(default)]
    added_tokens: Option<Vec<Added>>,
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
struct Added {
    id: TokenId,
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

fn not_read<T>(what: impl std::fmt::Display, field: &str) -> Result<T> {
    wrong(format!("a tokenizer with {what} is not read, only its vocabulary"), field)
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
            _ if model.byte_fallback => return not_read("byte fallback", "model.byte_fallback"),
            _ if model.dropout.is_some_and(|dropout| dropout > 0.0) => {
                return not_read("dropout", "model.dropout")
            }
            _ if set(&model.continuing_subword_prefix) || set(&model.end_of_word_suffix) => {
                return not_read("prefixes or suffixes of subwords", "model")
            }
            _ => {}
        }
        if let Some(normalizer) = file.normalizer.as_ref().filter(|value| !value.is_null()) {
            return not_read(format_args!("a normalizer ({})", kind_of(normalizer)), "normalizer");
        }
        let splitter = Splitter::new(&patterns(file.pre_tokenizer.as_ref())?)?;
        let whole = if model.ignore_merges { Whole::Always } else { Whole::Never };
        let token = |byte: usize| {
            let text = character_of(byte as u8).to_string();
            model.vocab.get(text.as_str()).copied().unwrap_or(NO_TOKEN)
        };
        let units = Units::Bytes(Box::new(std::array::from_fn(token)));
        let merges = Merges { units, pairs: pairs(model)? };
        let user = UserTokens::new(user_tokens(&vocabulary, &file.added_tokens.unwrap_or_default())?);
        Ok(Tokenizer::new(Parts { vocabulary, splitter, merges, user, whole, prefix_space: false }))
    }
}

fn kind_of(value: &Value) -> &str {
    value.get("type").and_then(Value::as_str).unwrap_or("?")
}

/// The patterns of a pre-tokenizer.
fn patterns(value: Option<&Value>) -> Result<Vec<String>> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return not_read("no pre-tokenizer", "pre_tokenizer");
    };
    let steps = match kind_of(value) {
        "Sequence" => {
            value.get("pretokenizers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
        }
        _ => std::slice::from_ref(value),
    };
    let (mut patterns, mut in_bytes) = (Vec::new(), false);
    for (n, step) in steps.iter().enumerate() {
        let field = format!("pre_tokenizer.pretokenizers[{n}]");
        let flag = |name: &str, default: bool| step.get(name).and_then(Value::as_bool).unwrap_or(default);
        match kind_of(step) {
            _ if in_bytes => return not_read("a step after ByteLevel", &field),
            "ByteLevel" if flag("add_prefix_space", true) => return not_read("a prefix space", &field),
            "ByteLevel" => {
                in_bytes = true;
                if flag("use_regex", true) {
                    patterns.push(GPT2.to_string());
                }
            }
            "Digits" => {
                patterns
                    .push(if flag("individual_digits", false) { r"\p{N}" } else { r"\p{N}+" }.to_string());
            }
            "Split" => {
                let isolated = step.get("behavior").and_then(Value::as_str) == Some("Isolated");
                let pattern =
                    step.get("pattern").and_then(|pattern| pattern.get("Regex")).and_then(Value::as_str);
                match pattern.filter(|_| isolated && !flag("invert", false)) {
                    Some(pattern) => patterns.push(pattern.to_string()),
                    None => return not_read("this Split", &field),
                }
            }
            other => return not_read(format_args!("the pre-tokenizer {other:?}"), &field),
        }
    }
    if !in_bytes {
        return not_read("a pre-tokenizer other than ByteLevel", "pre_tokenizer");
    }
    Ok(patterns)
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

fn user_tokens(vocabulary: &Vocabulary, added: &[Added]) -> Result<Vec<UserToken>> {
    let mut tokens = Vec::new();
    for (n, token) in added.iter().enumerate() {
        if vocabulary.kind(vocabulary.check(token.id)?) != TokenKind::UserDefined {
            continue;
        }
        if token.lstrip || token.rstrip || token.single_word {
            return not_read("an added token that strips, or is a word", &format!("added_tokens[{n}]"));
        }
        let text = vocabulary.token_bytes(token.id).into();
        tokens.push(UserToken { text, token: token.id, strips: false });
    }
    Ok(tokens)
}
