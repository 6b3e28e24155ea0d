//! A vocabulary from a GGUF file: a whole model or a vocabulary-only file. It reads the metadata alone, in one pass
//! over the mapped file.
//!
//! What a token stands for, by `tokenizer.ggml.model`:
//!
//! | model | an ordinary token's bytes |
//! |---|---|
//! | gpt2, whitespace | the byte-level table; where `pre` is gemma4, granite-embed-multi-311m or sarvam-moe, as llama |
//! | llama, bert, t5, gemma4 | the text with U+2581 as a space; `<0xNN>` of type byte is that byte |
//! | rwkv | the text with its escapes `\t \n \r \xNN \c` resolved |
//! | plamo2 | the text; `<0xNN>` of type byte is that byte |
//!
//! Tokens of type control, unknown and user-defined stand for their text as written. Type 5 (unused), type 0 and
//! types that do not exist are [`TokenKind::Unused`]. An empty text has no bytes. End-of-generation ids: eos, eot
//! and eom as the file names them, and the markers of `markers.rs`. Where eos or bos is not named, llama.cpp's
//! default id (llama, plamo2: 1 and 2; t5: eos 1; bert: bos 101) counts only if that token is a control token.

use super::gguf_metadata::{Metadata, TYPE_STRING};
use super::markers::{Fim, Markers};
use super::reader::{malformed, Cursor};
use super::{byte_level, Builder, TokenKind, Vocabulary, VocabularyOptions, MAX_TOKENS};
use crate::file;
use crate::{Result, TokenId};
use std::path::Path;

const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const MODEL: &str = "tokenizer.ggml.model";

/// How ordinary tokens are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    ByteLevel,
    Metaspace,
    Escaped,
    Plain,
}

impl Vocabulary {
    /// The vocabulary of the GGUF file at `path`, a whole model or vocabulary-only.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read; [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary), naming the field and the byte
    /// offset, if it is malformed, truncated, or of a kind that is not read.
    pub fn from_gguf(path: &Path) -> Result<Self> {
        file::load(path, Self::from_gguf_bytes).map(Self::with_trie)
    }

    /// The vocabulary of the GGUF file whose bytes are `bytes` (up to the end of its metadata at least).
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`](crate::ErrorKind::Vocabulary) as [`Vocabulary::from_gguf`].
    pub fn from_gguf_bytes(bytes: &[u8]) -> Result<Self> {
        let wanted = |key: &[u8]| key.starts_with(b"tokenizer.ggml.") || key == b"general.name";
        let metadata = Metadata::read(bytes, wanted)?;
        let (model, writing) = writing_of(&metadata)?;
        let (count, mut texts) = metadata.array(TOKENS, &[TYPE_STRING])?.ok_or_else(|| {
            malformed("the file has no token list", 0, TOKENS).help("is it a model's GGUF?")
        })?;
        if count > MAX_TOKENS {
            return Err(texts.fail(format!("{count} tokens, at most {MAX_TOKENS} are read"), TOKENS));
        }
        let mut types = metadata.array(TYPES, &[4, 5])?;
        if let Some((types, at)) = &types {
            if *types < count {
                return Err(at.fail(format!("{types} token types for {count} tokens"), TYPES));
            }
        }
        let mut markers = named_markers(&metadata, count)?;
        let total = texts.remaining().min(count.saturating_mul(16));
        let mut builder = Builder::with_capacity(count, total);
        for index in 0..count {
            let length = texts.u64(format_args!("{TOKENS}[{index}]"))?;
            let text = texts.take(length, format_args!("{TOKENS}[{index}]"))?;
            let kind = match &mut types {
                Some((_, types)) => kind_of(types.u32(TYPES)?),
                None => TokenKind::Normal,
            };
            push(&mut builder, &mut markers, text, kind, writing, &texts)?;
        }
        let about = about(&metadata, model, &mut markers, &mut builder)?;
        builder.build(about)
    }
}

fn writing_of<'a>(metadata: &Metadata<'a>) -> Result<(&'a [u8], Writing)> {
    let (at, model) = metadata
        .string(MODEL)?
        .ok_or_else(|| malformed("the file names no tokenizer", 0, MODEL).help("is it a model's GGUF?"))?;
    let pre = metadata.string("tokenizer.ggml.pre")?.map_or(&[][..], |(_, pre)| pre);
    let writing = match model {
        b"gpt2" | b"whitespace" => match pre {
            b"gemma4" | b"granite-embed-multi-311m" | b"sarvam-moe" => Writing::Metaspace,
            _ => Writing::ByteLevel,
        },
        b"llama" | b"bert" | b"t5" | b"gemma4" => Writing::Metaspace,
        b"rwkv" => Writing::Escaped,
        b"plamo2" => Writing::Plain,
        other => {
            let shown = String::from_utf8_lossy(&other[..other.len().min(100)]).into_owned();
            return Err(malformed(format!("tokenizer {shown:?} is not read"), at, MODEL)
                .help("gpt2, whitespace, llama, bert, t5, gemma4, rwkv and plamo2 are"));
        }
    };
    Ok((model, writing))
}

const fn kind_of(number: u32) -> TokenKind {
    match number {
        1 => TokenKind::Normal,
        2 => TokenKind::Unknown,
        3 => TokenKind::Control,
        4 => TokenKind::UserDefined,
        6 => TokenKind::Byte,
        _ => TokenKind::Unused,
    }
}

fn push(
    builder: &mut Builder,
    markers: &mut Markers,
    text: &[u8],
    kind: TokenKind,
    writing: Writing,
    at: &Cursor<'_>,
) -> Result<()> {
    let id = builder.len() as TokenId;
    let kind = markers.see(id, text, kind);
    match (kind, writing) {
        (TokenKind::Byte, Writing::ByteLevel | Writing::Metaspace | Writing::Plain) => {
            let byte = byte_of(text).ok_or_else(|| {
                let start = at.offset() - text.len();
                malformed("a byte token is written <0xNN>", start, format_args!("{TOKENS}[{id}]"))
            })?;
            builder.push(kind, &[byte])?;
        }
        (TokenKind::Normal, Writing::ByteLevel) => {
            builder.push_with(kind, |out| byte_level::decode_into(text, out))?;
        }
        (TokenKind::Normal, Writing::Metaspace) => {
            builder.push_with(kind, |out| spaces_into(text, out))?;
        }
        (_, Writing::Escaped) => {
            builder.push_with(kind, |out| unescape_into(text, out))?;
        }
        _ => {
            builder.push(kind, text)?;
        }
    }
    Ok(())
}

/// The byte that a SentencePiece byte token `<0xNN>` stands for.
pub(super) fn byte_of(text: &[u8]) -> Option<u8> {
    match text {
        [b'<', b'0', b'x', high, low, b'>'] => {
            let digit = |c: u8| (c as char).to_digit(16);
            Some((digit(*high)? * 16 + digit(*low)?) as u8)
        }
        _ => None,
    }
}

/// Appends `text` with every U+2581 as a space.
pub(super) fn spaces_into(text: &[u8], out: &mut Vec<u8>) {
    const MARK: &[u8] = "\u{2581}".as_bytes();
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        match rest.strip_prefix(MARK) {
            Some(after) => {
                out.push(b' ');
                rest = after;
            }
            None => {
                out.push(byte);
                rest = &rest[1..];
            }
        }
    }
}

/// Appends an RWKV text with its escapes resolved; an escape that breaks off stands for nothing.
fn unescape_into(text: &[u8], out: &mut Vec<u8>) {
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b't') => out.push(b'\t'),
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b'x') => {
                let mut digit = || bytes.next().and_then(|c| (c as char).to_digit(16));
                if let (Some(high), Some(low)) = (digit(), digit()) {
                    out.push((high * 16 + low) as u8);
                }
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
}

/// The id at `key`: none if it is absent or -1 (also as an unsigned number).
fn id_at(metadata: &Metadata<'_>, key: &str, count: usize) -> Result<Option<TokenId>> {
    match metadata.integer(key)? {
        None => Ok(None),
        Some((_, -1 | 0xFFFF_FFFF)) => Ok(None),
        Some((_, id)) if (0..count as i128).contains(&id) => Ok(Some(id as TokenId)),
        Some((at, id)) => Err(malformed(format!("id {id} is out of range: {count} tokens"), at, key)),
    }
}

fn named_markers(metadata: &Metadata<'_>, count: usize) -> Result<Markers> {
    let mut markers = Markers::default();
    for name in ["eos", "eot", "eom"] {
        let id = id_at(metadata, &format!("tokenizer.ggml.{name}_token_id"), count)?;
        markers.named_ends.extend(id);
    }
    for (role, name) in [
        (Fim::Prefix, "fim_pre"),
        (Fim::Suffix, "fim_suf"),
        (Fim::Middle, "fim_mid"),
        (Fim::Pad, "fim_pad"),
        (Fim::Repository, "fim_rep"),
        (Fim::File, "fim_sep"),
        (Fim::Prefix, "prefix"),
        (Fim::Suffix, "suffix"),
        (Fim::Middle, "middle"),
    ] {
        if let Some(id) = id_at(metadata, &format!("tokenizer.ggml.{name}_token_id"), count)? {
            markers.named_fim.push((role, id));
        }
    }
    Ok(markers)
}

fn about(
    metadata: &Metadata<'_>,
    model: &[u8],
    markers: &mut Markers,
    builder: &mut Builder,
) -> Result<VocabularyOptions> {
    let (default_bos, default_eos) = match model {
        b"llama" | b"plamo2" => (Some(1), Some(2)),
        b"t5" => (None, Some(1)),
        b"bert" => (Some(101), None),
        _ => (None, None),
    };
    let control = |id: &TokenId| builder.kind(*id) == Some(TokenKind::Control);
    let eos = metadata.integer("tokenizer.ggml.eos_token_id")?;
    if eos.is_none() {
        markers.named_ends.extend(default_eos.filter(control));
    }
    let bos = match metadata.integer("tokenizer.ggml.bos_token_id")? {
        Some(_) => id_at(metadata, "tokenizer.ggml.bos_token_id", builder.len())?,
        None => default_bos.filter(control).or(markers.begin()),
    };
    let prefix = metadata.bool("tokenizer.ggml.add_space_prefix")?.unwrap_or(model == b"llama");
    let name = metadata.string("general.name")?.map_or(&[][..], |(_, name)| name);
    Ok(VocabularyOptions {
        name: String::from_utf8_lossy(name).into_owned(),
        source: "gguf".to_string(),
        bos,
        end_tokens: markers.ends(builder),
        adds_prefix_space: prefix,
    })
}

#[cfg(test)]
#[path = "gguf_tests.rs"]
mod tests;
