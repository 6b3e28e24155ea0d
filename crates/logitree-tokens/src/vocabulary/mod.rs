//! The vocabulary: token id <-> bytes, kinds, end-of-generation ids, a fingerprint. Immutable once built and shared by
//! reference.

mod builder;
pub(crate) mod byte_level;

mod gguf;
pub(crate) mod gguf_metadata;
pub(crate) mod json;
mod markers;
mod query;
pub(crate) mod reader;
mod sentencepiece;
mod tekken;
mod tokenizer_json;

#[doc(hidden)] // the readers of formats
pub use builder::Builder;

use crate::trie::TokenTrie;
use crate::{Error, ErrorKind, Result, TokenId};
use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

/// The most tokens that a vocabulary may have.
pub const MAX_TOKENS: usize = 1 << 24;

/// What a token is for. The numbers are this crate's own, not a file format's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TokenKind {
    /// Ordinary text.
    Normal = 0,
    /// One raw byte (SentencePiece byte fallback).
    Byte = 1,
    /// Added by the model's owner, still ordinary text.
    UserDefined = 2,
    /// A special marker: its bytes are the marker's name and never stand for ordinary text.
    Control = 3,
    /// The unknown token.
    Unknown = 4,
    /// A reserved or padding id that stands for nothing.
    Unused = 5,
}

impl TokenKind {
    /// Every kind, in the order of its number.
    pub const ALL: [TokenKind; 6] = [
        TokenKind::Normal,
        TokenKind::Byte,
        TokenKind::UserDefined,
        TokenKind::Control,
        TokenKind::Unknown,
        TokenKind::Unused,
    ];

    /// Its name in lower case: "normal", "byte", "user_defined", "control", "unknown", "unused".
    pub const fn name(self) -> &'static str {
        match self {
            TokenKind::Normal => "normal",
            TokenKind::Byte => "byte",
            TokenKind::UserDefined => "user_defined",
            TokenKind::Control => "control",
            TokenKind::Unknown => "unknown",
            TokenKind::Unused => "unused",
        }
    }

    /// Whether the token's bytes are generated text (and so part of the trie).
    pub const fn is_text(self) -> bool {
        matches!(self, TokenKind::Normal | TokenKind::Byte | TokenKind::UserDefined)
    }
}

/// One token while a vocabulary is being built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The bytes it stands for; a special marker's name for [`TokenKind::Control`].
    pub bytes: Vec<u8>,
    /// What it is for.
    pub kind: TokenKind,
}

/// What else a loader knows about a vocabulary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VocabularyOptions {
    /// The model's or tokenizer's own name; empty where the source has none.
    pub name: String,
    /// What it was read from: "gguf", "tokenizer.json", "tekken", ... .
    pub source: String,
    /// Beginning-of-sequence id.
    pub bos: Option<TokenId>,
    /// End-of-generation ids, in any order; duplicates are dropped.
    pub end_tokens: Vec<TokenId>,
    /// Whether the tokenizer puts one space in front of a text, so that its detokeniser takes one leading space
    /// off a whole text (SentencePiece's dummy prefix). The tokens' bytes keep that space: a text generated from
    /// its first token on starts with a space that its owner would not show; one that continues a prompt does not.
    pub adds_prefix_space: bool,
}

/// Tables that another room keeps with a vocabulary, for as long as it lives.
#[derive(Default)]
struct Attached(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Attached {
    /// What is there, or what `make` makes; `None` if it is of another type.
    fn get<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<Arc<T>> {
        Arc::clone(self.0.get_or_init(|| Arc::new(make()))).downcast().ok()
    }
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.get().is_some() { "Attached" } else { "Nothing" })
    }
}

/// What is kept for as long as the vocabulary lives and holds the vocabulary itself: it holds a lent one, which does not
/// keep it alive in turn.
#[derive(Debug)]
enum Holding {
    Own(Arc<Attached>),
    Lent(Weak<Attached>),
}

/// An immutable vocabulary. Cheap to share in an `Arc`.
#[derive(Debug)]
pub struct Vocabulary {
    bytes: Arc<[u8]>,
    /// `offsets[id]..offsets[id + 1]` are the token's bytes.
    offsets: Arc<[u32]>,
    kinds: Arc<[TokenKind]>,
    about: VocabularyOptions,
    fingerprint: u128,
    /// Shared by vocabularies with the same tokens.
    trie: Arc<OnceLock<Result<TokenTrie>>>,
    /// The tokens that are no text, ascending, and so not in the trie.
    others: Arc<OnceLock<Box<[TokenId]>>>,
    attached: Arc<Attached>,
    holding: Holding,
}

impl Vocabulary {
    /// A vocabulary of `tokens`, whose ids are their positions.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if there are no tokens, more than 2^24 of them, more than 4 GiB of bytes, or an
    /// id in `about` is out of range.
    pub fn new(tokens: impl IntoIterator<Item = Token>, about: VocabularyOptions) -> Result<Self> {
        let mut builder = Builder::new();
        for token in tokens {
            builder.push(token.kind, &token.bytes)?;
        }
        builder.build(about)
    }

    /// The one place where a vocabulary comes into being; `offsets` has one more entry than `kinds`.
    fn from_parts(
        bytes: Vec<u8>,
        offsets: Vec<u32>,
        kinds: Vec<TokenKind>,
        mut about: VocabularyOptions,
    ) -> Result<Self> {
        if kinds.is_empty() {
            return Err(Error::new(ErrorKind::Vocabulary, "a vocabulary needs at least one token"));
        }
        about.end_tokens.sort_unstable();
        about.end_tokens.dedup();
        for &id in about.end_tokens.iter().chain(&about.bos) {
            if id as usize >= kinds.len() {
                return Err(Error::new(
                    ErrorKind::Vocabulary,
                    format!("special id {id} is out of range: the vocabulary has {} tokens", kinds.len()),
                ));
            }
        }
        let fingerprint = fingerprint(&bytes, &offsets, &kinds, &about.end_tokens);
        Ok(Vocabulary {
            bytes: bytes.into(),
            offsets: offsets.into(),
            kinds: kinds.into(),
            about,
            fingerprint,
            trie: Arc::default(),
            others: Arc::default(),
            attached: Arc::default(),
            holding: Holding::Own(Arc::default()),
        })
    }

    /// The same tokens with other ends, another name and so on.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if an id in `about` is out of range.
    pub fn with_about(&self, about: VocabularyOptions) -> Result<Self> {
        let mut made =
            Self::from_parts(self.bytes.to_vec(), self.offsets.to_vec(), self.kinds.to_vec(), about)?;
        made.trie = Arc::clone(&self.trie);
        made.others = Arc::clone(&self.others);
        Ok(made)
    }

    /// Number of tokens.
    #[allow(clippy::len_without_is_empty)] // a vocabulary is never empty
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// The bytes that `id` stands for (a special marker's name for control tokens).
    ///
    /// # Panics
    /// If `id` is out of range; see [`Vocabulary::check`].
    pub fn token_bytes(&self, id: TokenId) -> &[u8] {
        let id = id as usize;
        &self.bytes[self.offsets[id] as usize..self.offsets[id + 1] as usize]
    }

    /// Eight of the bytes that `id` stands for, those from `from` on, the first in the highest bits. What the token lacks is
    /// zero.
    #[inline]
    pub(crate) fn eight_bytes(&self, id: TokenId, from: usize) -> u64 {
        let start = self.offsets[id as usize] as usize + from;
        let count = (self.offsets[id as usize + 1] as usize).saturating_sub(start).min(8);
        let rest = self.bytes.get(start..).unwrap_or(&[]);
        match rest.first_chunk() {
            Some(eight) => {
                u64::from_be_bytes(*eight) & u64::MAX.checked_shl(64 - 8 * count as u32).unwrap_or(0)
            }
            None => rest[..count].iter().rev().fold(0, |all, &byte| all >> 8 | u64::from(byte) << 56),
        }
    }

    /// What `id` is for.
    pub fn kind(&self, id: TokenId) -> TokenKind {
        self.kinds[id as usize]
    }

    /// `id` itself, or [`ErrorKind::Token`] if the vocabulary has no such token.
    pub fn check(&self, id: TokenId) -> Result<TokenId> {
        if (id as usize) < self.len() {
            return Ok(id);
        }
        Err(Error::new(ErrorKind::Token, format!("token id {id} is not in the vocabulary"))
            .help(format!("ids run from 0 to {}", self.len() - 1)))
    }

    /// End-of-generation ids, ascending.
    pub fn end_tokens(&self) -> &[TokenId] {
        &self.about.end_tokens
    }

    /// Beginning-of-sequence id.
    pub fn bos(&self) -> Option<TokenId> {
        self.about.bos
    }

    /// The model's or tokenizer's own name, and what it was read from.
    pub fn about(&self) -> &VocabularyOptions {
        &self.about
    }

    /// 128 bits that are equal for vocabularies with equal tokens, kinds and end ids, whatever they were read
    /// from, on every machine (XXH3).
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// The text tokens as a byte trie, built on the first call, or when a file is loaded, and shared by all.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if the vocabulary is beyond the trie's limits, see [`TokenTrie::new`].
    pub fn trie(&self) -> Result<&TokenTrie> {
        self.trie.get_or_init(|| TokenTrie::new(self)).as_ref().map_err(Error::clone)
    }

    /// With its trie. Who loads a model's file is about to constrain its tokens, and the first mask should not wait; a
    /// vocabulary beyond the trie's limits fails where the trie is needed.
    fn with_trie(self) -> Self {
        self.trie.get_or_init(|| TokenTrie::new(&self));
        self
    }

    /// What the room that meets grammars keeps with this vocabulary; `make` makes it on the first call. `None` if
    /// something of another type is kept already.
    pub fn attached<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<Arc<T>> {
        self.attached.get(make)
    }

    /// As [`Vocabulary::attached`], for what holds a vocabulary: it must hold [`Vocabulary::lent`], or the two keep each
    /// other alive. `None` too where this one is lent and its owner is gone.
    pub fn holding<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<Arc<T>> {
        match &self.holding {
            Holding::Own(own) => own.get(make),
            Holding::Lent(lent) => lent.upgrade()?.get(make),
        }
    }

    /// The same vocabulary without a part in what [`Vocabulary::holding`] keeps alive. Tokens, trie and tables are shared.
    pub fn lent(&self) -> Vocabulary {
        Vocabulary {
            bytes: Arc::clone(&self.bytes),
            offsets: Arc::clone(&self.offsets),
            kinds: Arc::clone(&self.kinds),
            about: self.about.clone(),
            fingerprint: self.fingerprint,
            trie: Arc::clone(&self.trie),
            others: Arc::clone(&self.others),
            attached: Arc::clone(&self.attached),
            holding: Holding::Lent(match &self.holding {
                Holding::Own(own) => Arc::downgrade(own),
                Holding::Lent(lent) => Weak::clone(lent),
            }),
        }
    }
}

/// Equal tokens, kinds and end ids.
impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for Vocabulary {}

fn fingerprint(bytes: &[u8], offsets: &[u32], kinds: &[TokenKind], ends: &[TokenId]) -> u128 {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    hash.update(bytes);
    let mut chunk = Vec::with_capacity(4 * 1024);
    for numbers in [offsets, ends] {
        for part in numbers.chunks(1024) {
            chunk.clear();
            part.iter().for_each(|n| chunk.extend_from_slice(&n.to_le_bytes()));
            hash.update(&chunk);
        }
    }
    for part in kinds.chunks(4 * 1024) {
        chunk.clear();
        chunk.extend(part.iter().map(|kind| *kind as u8));
        hash.update(&chunk);
    }
    hash.digest128()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&[u8]]) -> Vocabulary {
        let token = |bytes: &&[u8]| Token { bytes: bytes.to_vec(), kind: TokenKind::Normal };
        Vocabulary::new(texts.iter().map(token), VocabularyOptions::default()).unwrap()
    }

    #[test]
    fn eight_bytes_are_those_of_the_token_and_zeros() {
        let vocabulary = of(&[b"", b"a", b"\xff\xfe0123456789", b"seven b", b"eight by", b"xyz"]);
        for id in 0..vocabulary.len() as TokenId {
            for from in 0..20 {
                let bytes = vocabulary.token_bytes(id).iter().copied().skip(from).chain([0; 8]);
                let want = bytes.take(8).fold(0, |all, byte| all << 8 | u64::from(byte));
                assert_eq!(vocabulary.eight_bytes(id, from), want, "{id} {from}");
            }
        }
    }

    #[test]
    fn a_loaded_vocabulary_and_those_made_from_it_share_a_trie() {
        let path = std::env::temp_dir().join(format!("logitree-{}.json", std::process::id()));
        let json = br#"{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "decoder": {"type": "ByteLevel"}}"#;
        std::fs::write(&path, json).unwrap();
        let loaded = Vocabulary::from_tokenizer_json(&path);
        std::fs::remove_file(&path).unwrap();
        let loaded = loaded.unwrap();
        assert!(loaded.trie.get().is_some());
        let other = loaded
            .with_about(VocabularyOptions { end_tokens: vec![1], ..VocabularyOptions::default() })
            .unwrap();
        assert!(std::ptr::eq(other.trie().unwrap(), loaded.trie().unwrap()));
        let alone = of(&[b"a"]);
        assert!(alone.trie.get().is_none() && alone.trie().is_ok());
    }
}
