//! Queries over all tokens of a vocabulary, or over a list of ids.

use super::markers::ends_turn;
use super::Vocabulary;
use crate::{Result, TokenId};

impl Vocabulary {
    /// Ids of the tokens that are not text (control, unknown, unused), ascending.
    pub fn special(&self) -> Vec<TokenId> {
        self.ids().filter(|&id| !self.kind(id).is_text()).collect()
    }

    /// Every id, ascending.
    pub fn ids(&self) -> impl Iterator<Item = TokenId> + '_ {
        0..self.len() as TokenId
    }

    /// Ids of the tokens of any kind whose bytes are exactly `bytes`, ascending.
    pub fn find(&self, bytes: &[u8]) -> Vec<TokenId> {
        let is_found = |&id: &TokenId| self.token_bytes(id) == bytes;
        let Some(trie) = self.trie().ok().filter(|_| !bytes.is_empty()) else {
            return self.ids().filter(is_found).collect();
        };
        // The trie has the tokens of text, and few others are left to compare.
        let others = self.others.get_or_init(|| self.ids().filter(|&id| !self.kind(id).is_text()).collect());
        let others = others.iter().copied().filter(is_found);
        let mut found: Vec<_> = trie.lookup(bytes).iter().copied().chain(others).collect();
        found.sort_unstable();
        found
    }

    /// The first `limit` ids, ascending, of the tokens of any kind whose bytes contain `part`.
    pub fn search(&self, part: &[u8], limit: usize) -> Vec<TokenId> {
        let contains = |id: &TokenId| {
            let bytes = self.token_bytes(*id);
            part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
        };
        self.ids().filter(contains).take(limit).collect()
    }

    /// The token that ends a turn: the first end-of-generation token with a text that llama.cpp (src/llama-vocab.cpp) knows
    /// for that, else the first end-of-generation token.
    pub fn end_of_turn(&self) -> Option<TokenId> {
        let ends = self.end_tokens();
        ends.iter().find(|&&id| ends_turn(self.token_bytes(id))).or(ends.first()).copied()
    }

    /// The concatenated bytes of `ids`; with `skip_special` those of text tokens only. Nothing is added or
    /// taken off: see [`VocabularyOptions::adds_prefix_space`](super::VocabularyOptions::adds_prefix_space) for the leading space.
    ///
    /// # Errors
    /// [`ErrorKind::Token`](crate::ErrorKind::Token) for an id that is not in the vocabulary.
    pub fn decode(&self, ids: &[TokenId], skip_special: bool) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for &id in ids {
            self.check(id)?;
            if !skip_special || self.kind(id).is_text() {
                out.extend_from_slice(self.token_bytes(id));
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Builder, TokenKind, VocabularyOptions};
    use super::*;

    fn tiny() -> Vocabulary {
        let mut builder = Builder::new();
        for (kind, bytes) in [
            (TokenKind::Control, "</s>"),
            (TokenKind::Normal, "ab"),
            (TokenKind::Normal, "b"),
            (TokenKind::Byte, "b"),
            (TokenKind::Unused, ""),
            (TokenKind::UserDefined, "</s>"),
            (TokenKind::Normal, ""),
        ] {
            builder.push(kind, bytes.as_bytes()).unwrap();
        }
        builder.build(VocabularyOptions { end_tokens: vec![0, 0], ..VocabularyOptions::default() }).unwrap()
    }

    #[test]
    fn answers() {
        let v = tiny();
        assert_eq!(v.special(), [0, 4]);
        assert_eq!(v.find(b"b"), [2, 3]);
        assert_eq!(v.find(b"</s>"), [0, 5]);
        assert_eq!(v.find(b""), [4, 6]);
        assert_eq!(v.find(b"x"), [] as [TokenId; 0]);
        assert_eq!(v.search(b"b", 2), [1, 2]);
        assert_eq!(v.search(b"", 9).len(), 7);
        assert_eq!(v.decode(&[1, 0, 3, 4], true).unwrap(), b"abb");
        assert_eq!(v.decode(&[1, 0, 3, 4], false).unwrap(), b"ab</s>b");
        assert_eq!(v.decode(&[7], true).unwrap_err().kind, crate::ErrorKind::Token);
        assert_eq!(v.end_tokens(), [0]);
    }
}
