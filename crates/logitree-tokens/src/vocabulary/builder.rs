//! Puts a vocabulary together token by token, without an allocation per token.

use super::markers::Markers;
use super::{TokenKind, Vocabulary, VocabularyOptions, MAX_TOKENS};
use crate::{Error, ErrorKind, Result, TokenId};

/// A vocabulary in the making: tokens get the ids 0, 1, 2, ... in the order they are pushed.
#[derive(Debug)]
pub struct Builder {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    kinds: Vec<TokenKind>,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// An empty one.
    pub fn new() -> Self {
        Self::with_capacity(0, 0)
    }

    /// An empty one with room for `tokens` tokens of `bytes` bytes together.
    pub fn with_capacity(tokens: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(tokens + 1);
        offsets.push(0);
        Builder { bytes: Vec::with_capacity(bytes), offsets, kinds: Vec::with_capacity(tokens) }
    }

    /// Number of tokens so far, which is the next token's id.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is no token yet.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Adds a token of `kind` that stands for `bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] past 2^24 tokens or 4 GiB of bytes.
    pub fn push(&mut self, kind: TokenKind, bytes: &[u8]) -> Result<TokenId> {
        self.push_with(kind, |out| out.extend_from_slice(bytes))
    }

    /// Adds a token of `kind` whose bytes `write` appends to the buffer that it is given.
    ///
    /// # Errors
    /// As [`Builder::push`].
    pub(crate) fn push_with(&mut self, kind: TokenKind, write: impl FnOnce(&mut Vec<u8>)) -> Result<TokenId> {
        let id = self.kinds.len();
        if id >= MAX_TOKENS {
            return Err(Error::new(ErrorKind::Vocabulary, format!("more than {MAX_TOKENS} tokens")));
        }
        write(&mut self.bytes);
        let end = u32::try_from(self.bytes.len())
            .map_err(|_| Error::new(ErrorKind::Vocabulary, "the tokens hold more than 4 GiB of bytes"))?;
        self.offsets.push(end);
        self.kinds.push(kind);
        Ok(id as TokenId)
    }

    /// What an already pushed token is for.
    pub fn kind(&self, id: TokenId) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    /// Changes what an already pushed token is for; ids that are not there are left alone.
    pub fn set_kind(&mut self, id: TokenId, kind: TokenKind) {
        if let Some(slot) = self.kinds.get_mut(id as usize) {
            *slot = kind;
        }
    }

    /// Gives the control and user-defined tokens with well-known texts the kinds that llama.cpp gives them, and
    /// says which begin a sequence and which end a generation; `ends` are ends already known.
    pub fn find_markers(&mut self, ends: Vec<TokenId>) -> (Option<TokenId>, Vec<TokenId>) {
        let mut markers = Markers::naming(ends);
        for id in 0..self.kinds.len() {
            let kind = self.kinds[id];
            if matches!(kind, TokenKind::Control | TokenKind::UserDefined) {
                let text = &self.bytes[self.offsets[id] as usize..self.offsets[id + 1] as usize];
                self.kinds[id] = markers.see(id as TokenId, text, kind);
            }
        }
        (markers.begin(), markers.ends(self))
    }

    /// The vocabulary.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if there are no tokens or an id in `about` is out of range.
    pub fn build(self, about: VocabularyOptions) -> Result<Vocabulary> {
        Vocabulary::from_parts(self.bytes, self.offsets, self.kinds, about)
    }
}
