//! A vocabulary from Hugging Face's tokenizer.json: BPE and Unigram models, byte-level or SentencePiece style.
//!
//! An id's bytes are what the file's own `decoder` makes of its piece. An added token's piece is its text as the
//! file's normaliser leaves it (Prepend, Replace of a string and ByteLevel are known), unless it says that it is not
//! normalised, which special ones are not by default:
//!
//! | decoder | effect on one piece |
//! |---|---|
//! | ByteLevel | the byte-level table; a piece with a character that is not in it stands for itself |
//! | Metaspace | the replacement character becomes a space |
//! | Replace (of a string) | the replacement |
//! | ByteFallback | `<0xNN>` becomes that byte |
//! | Fuse | nothing: bytes are joined anyway |
//! | Strip | takes characters off each piece; after Fuse or ByteLevel, off the whole text |
//! | Sequence | the steps in turn |
//!
//! The leading space: Metaspace (unless its prepend scheme is "never") and a Strip of one space after Fuse take it
//! off a whole text; then [`VocabularyOptions::adds_prefix_space`] is set, and the tokens' bytes keep their space. (Metaspace
//! takes every replacement character off the first piece of a text, not one alone.)
//!
//! Special added tokens are control tokens with their text as bytes; other added tokens are user-defined; ids that
//! nothing names are unused. Ends of generation are the added tokens that `markers.rs` knows: the file itself does
//! not say. Other decoders (WordPiece, BPEDecoder, CTC), whose output for one piece depends on its neighbours, are
//! an error.

use super::gguf::byte_of;
use super::json::{parse, short_list, Text};
use super::markers::Markers;
use super::{byte_level, Builder, TokenKind, Vocabulary, VocabularyOptions, MAX_TOKENS};
use crate::file;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_automata::Chunks;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::path::Path;

/// How long `length` bytes may become by normalising: without a limit a small file could ask for much memory.
const fn longest_normalized(length: usize) -> usize {
    64 + length.saturating_mul(3)
}

/// The longest text that a Replace may look for: looking for it takes as long as text and piece multiplied.
const MAX_PATTERN: usize = 256;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    model: Model<'a>,
    #[serde(borrow, default)]
    added_tokens: Option<Vec<Added<'a>>>,
    #[serde(borrow, default)]
    decoder: Option<Pipeline<'a>>,
    #[serde(borrow, default)]
    normalizer: Option<Pipeline<'a>>,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(borrow)]
    vocab: Pieces<'a>,
    #[serde(borrow, default)]
    unk_token: Option<Text<'a>>,
    #[serde(default)]
    unk_id: Option<u32>,
}

#[derive(Deserialize)]
struct Added<'a> {
    id: u32,
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(default)]
    special: bool,
    #[serde(default)]
    normalized: Option<bool>,
}

/// A decoder or normaliser; `N` is what a Sequence holds. Steps inside a Sequence hold nothing further.
#[derive(Deserialize)]
#[serde(bound(deserialize = "N: Deserialize<'de>"))]
struct Step<'a, N> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    pattern: Option<Pattern<'a>>,
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(default)]
    start: usize,
    #[serde(default)]
    stop: usize,
    #[serde(borrow, default)]
    replacement: Option<Text<'a>>,
    #[serde(borrow, default)]
    prepend_scheme: Option<Text<'a>>,
    #[serde(default)]
    add_prefix_space: Option<bool>,
    #[serde(borrow, default)]
    prepend: Option<Text<'a>>,
    #[serde(default, alias = "normalizers", deserialize_with = "short_list")]
    decoders: Option<Vec<N>>,
}

type Pipeline<'a> = Step<'a, Step<'a, IgnoredAny>>;

#[derive(Deserialize)]
struct Pattern<'a> {
    #[serde(borrow, default, rename = "String")]
    string: Option<Text<'a>>,
}

/// Pieces with their ids: `{piece: id}`, or Unigram's `[[piece, score], ...]`.
struct Pieces<'a>(Chunks<(Cow<'a, str>, u32)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pieces<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Pieces<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of pieces and ids or a list of pieces and scores")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pieces = Chunks::default();
                while let Some((piece, id)) = map.next_entry::<Text<'de>, u32>()? {
                    pieces.push((piece.0, id));
                }
                Ok(Pieces(pieces))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut pieces = Chunks::default();
                while let Some((piece, _)) = list.next_element::<(Text<'de>, IgnoredAny)>()? {
                    let id = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
                    pieces.push((piece.0, id));
                }
                Ok(Pieces(pieces))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Vocabulary {
    /// The vocabulary of the tokenizer.json at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be read; [`ErrorKind::Vocabulary`], naming the field and, where the
    /// JSON itself is at fault, the byte offset, if it is malformed, truncated, or of a kind that is not read.
    pub fn from_tokenizer_json(path: &Path) -> Result<Self> {
        file::load_text(path, Self::from_tokenizer_json_bytes).map(Self::with_trie)
    }

    /// The vocabulary of the tokenizer.json whose text is `json`.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] as [`Vocabulary::from_tokenizer_json`].
    pub fn from_tokenizer_json_bytes(json: &[u8]) -> Result<Self> {
        let file: File<'_> = parse(json)?;
        let steps = Steps::new(&file.decoder)?;
        let added = file.added_tokens.unwrap_or_default();
        let slots = place(&file.model, &added)?;
        let normalized: rustc_hash::FxHashSet<TokenId> =
            added.iter().filter(|a| a.normalized.unwrap_or(!a.special)).map(|a| a.id).collect();
        let (mut builder, mut markers) = (Builder::with_capacity(slots.len(), 0), Markers::default());
        let mut scratch = Vec::new();
        for (id, slot) in slots.iter().enumerate() {
            let Some((text, kind)) = slot else {
                builder.push(TokenKind::Unused, b"")?;
                continue;
            };
            let mut kind = *kind;
            if matches!(kind, TokenKind::Control | TokenKind::UserDefined) {
                kind = markers.see(id as TokenId, text.as_bytes(), kind);
            }
            if !kind.is_text() {
                builder.push(kind, text.as_bytes())?;
                continue;
            }
            scratch.clear();
            scratch.extend_from_slice(text.as_bytes());
            if normalized.contains(&(id as TokenId)) {
                normalize(&file.normalizer, &mut scratch)?;
            }
            let is_byte = steps.apply(&mut scratch);
            let kind = if is_byte && kind == TokenKind::Normal { TokenKind::Byte } else { kind };
            builder.push(kind, &scratch)?;
        }
        let about = VocabularyOptions {
            name: String::new(),
            source: "tokenizer.json".to_string(),
            bos: markers.begin(),
            end_tokens: markers.ends(&mut builder),
            adds_prefix_space: steps.strips_first,
        };
        builder.build(about)
    }
}

type Slot<'a> = Option<(&'a str, TokenKind)>;

/// Every id's piece and kind, holes left empty.
fn place<'a>(model: &'a Model<'_>, added: &'a [Added<'_>]) -> Result<Vec<Slot<'a>>> {
    let listed = model.vocab.0.len() + added.len();
    let ids = model.vocab.0.iter().map(|(_, id)| *id).chain(added.iter().map(|a| a.id));
    let size = ids.max().map_or(0, |id| id as usize + 1);
    // Holes cost memory that the file did not, so there is a limit to them: no real file has many.
    if size > MAX_TOKENS.min(listed.saturating_mul(8).saturating_add(1 << 16)) {
        let message = format!("the highest id is {} but only {listed} tokens are listed", size - 1);
        return Err(Error::new(ErrorKind::Vocabulary, message).at("field model.vocab, added_tokens"));
    }
    let unknown = |text: &str, id: u32| {
        model.unk_token.as_ref().is_some_and(|unk| unk.0 == text) || model.unk_id == Some(id)
    };
    let mut slots: Vec<Slot<'a>> = vec![None; size];
    for (text, id) in model.vocab.0.iter() {
        let slot = &mut slots[*id as usize];
        if let Some((other, _)) = slot {
            let message = format!("{:?} and {:?} have the same id {id}", cut(other), cut(text));
            return Err(Error::new(ErrorKind::Vocabulary, message).at("field model.vocab"));
        }
        let kind = if unknown(text, *id) { TokenKind::Unknown } else { TokenKind::Normal };
        *slot = Some((text, kind));
    }
    for token in added {
        let kind = match token.special {
            _ if unknown(&token.content.0, token.id) => TokenKind::Unknown,
            true => TokenKind::Control,
            false => TokenKind::UserDefined,
        };
        slots[token.id as usize] = Some((&token.content.0, kind));
    }
    Ok(slots)
}

/// What Prepend, Replace (of a string) and ByteLevel normalisers make of an added token's text; others are taken to
/// leave it as it is.
fn normalize(normalizer: &Option<Pipeline<'_>>, text: &mut Vec<u8>) -> Result<()> {
    let longest = longest_normalized(text.len());
    match normalizer {
        None => Ok(()),
        Some(pipeline) if pipeline.kind.0 == "Sequence" => {
            pipeline.decoders.iter().flatten().try_for_each(|step| step.normalize(text, longest))
        }
        Some(pipeline) => pipeline.normalize(text, longest),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

/// One thing that is done to a piece.
enum Action<'a> {
    ByteLevel,
    ByteFallback,
    Replace(&'a str, &'a str),
    Strip(&'a str, usize, usize),
}

/// What a decoder does to each piece.
#[derive(Default)]
struct Steps<'a> {
    actions: Vec<Action<'a>>,
    /// Whether the pieces are joined by now, so that what follows would act on the whole text.
    fused: bool,
    strips_first: bool,
}

fn not_read<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::Vocabulary, message)
        .at("field decoder")
        .help("ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip and Sequence are read"))
}

impl<'a> Steps<'a> {
    fn new(decoder: &'a Option<Pipeline<'a>>) -> Result<Self> {
        let mut steps = Steps::default();
        match decoder {
            None => return not_read("the file has no decoder, so nothing says what its pieces stand for"),
            Some(decoder) if decoder.kind.0 == "Sequence" => match &decoder.decoders {
                Some(list) => list.iter().try_for_each(|step| steps.add(step))?,
                None => return not_read("a Sequence without decoders"),
            },
            Some(decoder) => steps.add(decoder)?,
        }
        steps.check_replacing()?;
        Ok(steps)
    }

    fn add<N>(&mut self, step: &'a Step<'a, N>) -> Result<()> {
        match (&step.kind.0[..], self.fused) {
            ("Fuse", _) => self.fused = true,
            ("Strip", true) if step.content() == " " && step.start <= 1 && step.stop == 0 => {
                self.strips_first |= step.start == 1;
            }
            ("ByteLevel", false) => {
                self.actions.push(Action::ByteLevel);
                self.fused = true;
            }
            ("ByteFallback", false) => self.actions.push(Action::ByteFallback),
            ("Strip", false) => self.actions.push(Action::Strip(step.content(), step.start, step.stop)),
            ("Metaspace", false) => {
                let replacement = step.replacement.as_ref().map_or("\u{2581}", |text| &text.0);
                self.actions.push(Action::Replace(replacement, " "));
                let never = match &step.prepend_scheme {
                    Some(scheme) => scheme.0 == "never",
                    None => step.add_prefix_space == Some(false),
                };
                self.strips_first |= !never;
            }
            ("Replace", false) => match step.pattern.as_ref().and_then(|p| p.string.as_ref()) {
                Some(pattern) => self.actions.push(Action::Replace(&pattern.0, step.content())),
                None => return not_read("a Replace whose pattern is not a string is not read"),
            },
            (other, false) => return not_read(format!("decoder {:?} is not read", cut(other))),
            (other, true) => {
                return not_read(format!("decoder {:?} after the pieces are joined is not read", cut(other)))
            }
        }
        Ok(())
    }

    /// Replacing may lengthen each piece, or look for a long text in it; without limits a small file could ask for
    /// much memory or time.
    fn check_replacing(&self) -> Result<()> {
        let mut growing = 0;
        for action in &self.actions {
            match action {
                Action::Replace("", _) => {
                    return not_read("a Replace of nothing");
                }
                Action::Replace(from, _) if from.len() > MAX_PATTERN => {
                    return not_read(format!("a Replace of more than {MAX_PATTERN} bytes is not read"));
                }
                Action::Replace(from, to) if to.len() > from.len() => growing += to.len(),
                _ => {}
            }
        }
        if growing > 8 {
            return Err(Error::new(ErrorKind::Vocabulary, "Replace steps that lengthen pieces a lot")
                .at("field decoder.content"));
        }
        Ok(())
    }

    /// Does the steps to `piece`; says whether it was a byte-fallback piece.
    fn apply(&self, piece: &mut Vec<u8>) -> bool {
        let mut is_byte = false;
        for action in &self.actions {
            match action {
                Action::ByteLevel => {
                    let mut out = Vec::with_capacity(piece.len());
                    byte_level::decode_into(piece, &mut out);
                    *piece = out;
                }
                Action::ByteFallback => {
                    if let Some(byte) = byte_of(piece) {
                        *piece = vec![byte];
                        is_byte = true;
                    }
                }
                Action::Replace(from, to) => replace(piece, from.as_bytes(), to.as_bytes()),
                Action::Strip(content, start, stop) => strip(piece, content.as_bytes(), *start, *stop),
            }
        }
        is_byte
    }
}

impl<N> Step<'_, N> {
    fn normalize(&self, text: &mut Vec<u8>, longest: usize) -> Result<()> {
        let length = match (&self.kind.0[..], &self.pattern) {
            ("Replace", Some(Pattern { string: Some(from) })) if from.0.len() > MAX_PATTERN => {
                let message = format!("a Replace of more than {MAX_PATTERN} bytes is not read");
                return Err(Error::new(ErrorKind::Vocabulary, message).at("field normalizer"));
            }
            ("Prepend", _) => text.len() + self.prepend().len(),
            ("Replace", Some(Pattern { string: Some(from) })) if !from.0.is_empty() => {
                let times = count(text, from.0.as_bytes());
                text.len() - times * from.0.len() + times.saturating_mul(self.content().len())
            }
            ("ByteLevel", _) => text.len() * 2,
            _ => return Ok(()),
        };
        if length > longest {
            let message = format!("an added token becomes longer than {longest} bytes by normalising");
            return Err(Error::new(ErrorKind::Vocabulary, message).at("field normalizer"));
        }
        match (&self.kind.0[..], &self.pattern) {
            ("Prepend", _) if !text.is_empty() => {
                text.splice(0..0, self.prepend().bytes());
            }
            ("Replace", Some(Pattern { string: Some(from) })) => {
                replace(text, from.0.as_bytes(), self.content().as_bytes());
            }
            ("ByteLevel", _) => {
                let characters: String = text.iter().map(|&b| byte_level::character_of(b)).collect();
                *text = characters.into_bytes();
            }
            _ => {}
        }
        Ok(())
    }

    fn prepend(&self) -> &str {
        self.prepend.as_ref().map_or("", |prepend| &prepend.0)
    }

    fn content(&self) -> &str {
        self.content.as_ref().map_or("", |content| &content.0)
    }
}

fn replace(piece: &mut Vec<u8>, from: &[u8], to: &[u8]) {
    if !piece.windows(from.len()).any(|window| window == from) {
        return;
    }
    let (mut out, mut at) = (Vec::with_capacity(piece.len()), 0);
    while at < piece.len() {
        if piece[at..].starts_with(from) {
            out.extend_from_slice(to);
            at += from.len();
        } else {
            out.push(piece[at]);
            at += 1;
        }
    }
    *piece = out;
}

/// How often `part` occurs in `text`, without overlaps.
fn count(text: &[u8], part: &[u8]) -> usize {
    let (mut found, mut at) = (0, 0);
    while at + part.len() <= text.len() {
        let here = text[at..].starts_with(part);
        found += usize::from(here);
        at += if here { part.len() } else { 1 };
    }
    found
}

fn strip(piece: &mut Vec<u8>, content: &[u8], start: usize, stop: usize) {
    if content.is_empty() {
        return;
    }
    let mut rest: &[u8] = piece;
    for _ in 0..start {
        let Some(after) = rest.strip_prefix(content) else { break };
        rest = after;
    }
    for _ in 0..stop {
        let Some(before) = rest.strip_suffix(content) else { break };
        rest = before;
    }
    *piece = rest.to_vec();
}

#[cfg(test)]
#[path = "tokenizer_json_tests.rs"]
mod tests;
