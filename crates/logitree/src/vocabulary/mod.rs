//! The vocabulary: token id <-> bytes, kinds, end-of-generation ids, a fingerprint. Immutable once built and
//! shared by reference. It refuses to know grammars, logits and tokenizer algorithms: how text becomes tokens
//! is its owner's business; it knows only what bytes each token stands for.

use crate::trie::TokenTrie;
use crate::{Error, ErrorKind, Result, TokenId};
use std::sync::OnceLock;

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
pub struct About {
    /// The model's or tokenizer's own name; empty where the source has none.
    pub name: String,
    /// What it was read from: "gguf", "tokenizer.json", "tekken", ... .
    pub source: String,
    /// Beginning-of-sequence id.
    pub bos: Option<TokenId>,
    /// End-of-generation ids, in any order; duplicates are dropped.
    pub end_of_generation: Vec<TokenId>,
}

/// An immutable vocabulary. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct Vocabulary {
    bytes: Box<[u8]>,
    /// `offsets[id]..offsets[id + 1]` are the token's bytes.
    offsets: Box<[u32]>,
    kinds: Box<[TokenKind]>,
    about: About,
    fingerprint: u128,
    trie: OnceLock<Result<TokenTrie>>,
}

impl Vocabulary {
    /// A vocabulary of `tokens`, whose ids are their positions.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if there are no tokens, more than 2^24 of them, more than 4 GiB of bytes, or an
    /// id in `about` is out of range.
    pub fn new(tokens: impl IntoIterator<Item = Token>, mut about: About) -> Result<Self> {
        let mut bytes = Vec::new();
        let mut offsets = vec![0u32];
        let mut kinds = Vec::new();
        for token in tokens {
            bytes.extend_from_slice(&token.bytes);
            let end = u32::try_from(bytes.len())
                .map_err(|_| Error::new(ErrorKind::Vocabulary, "the tokens hold more than 4 GiB of bytes"))?;
            offsets.push(end);
            kinds.push(token.kind);
        }
        if kinds.is_empty() || kinds.len() > 1 << 24 {
            return Err(Error::new(
                ErrorKind::Vocabulary,
                format!("{} tokens, expected 1 to {}", kinds.len(), 1 << 24),
            ));
        }
        about.end_of_generation.sort_unstable();
        about.end_of_generation.dedup();
        for &id in about.end_of_generation.iter().chain(&about.bos) {
            if id as usize >= kinds.len() {
                return Err(Error::new(
                    ErrorKind::Vocabulary,
                    format!("special id {id} is out of range: the vocabulary has {} tokens", kinds.len()),
                ));
            }
        }
        let fingerprint = fingerprint(&bytes, &offsets, &kinds, &about.end_of_generation);
        Ok(Vocabulary {
            bytes: bytes.into(),
            offsets: offsets.into(),
            kinds: kinds.into(),
            about,
            fingerprint,
            trie: OnceLock::new(),
        })
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
    pub fn end_of_generation(&self) -> &[TokenId] {
        &self.about.end_of_generation
    }

    /// Beginning-of-sequence id.
    pub fn bos(&self) -> Option<TokenId> {
        self.about.bos
    }

    /// The model's or tokenizer's own name, and what it was read from.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// 128 bits that are equal for vocabularies with equal tokens, kinds and end ids, whatever they were read
    /// from, on every machine (XXH3).
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// The text tokens as a byte trie, built on the first call and shared by all.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if the vocabulary is beyond the trie's limits, see [`TokenTrie::new`].
    pub fn trie(&self) -> Result<&TokenTrie> {
        self.trie.get_or_init(|| TokenTrie::new(self)).as_ref().map_err(Error::clone)
    }
}

fn fingerprint(bytes: &[u8], offsets: &[u32], kinds: &[TokenKind], ends: &[TokenId]) -> u128 {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    hash.update(bytes);
    let mut little_endian = |n: u32| hash.update(&n.to_le_bytes());
    offsets.iter().copied().for_each(&mut little_endian);
    ends.iter().copied().for_each(&mut little_endian);
    for kind in kinds {
        hash.update(&[*kind as u8]);
    }
    hash.digest128()
}
