//! Tokens that are enough to spell every continuation where only the bytes of tokens matter: those of one byte.

use crate::TokenId;
use logitree_tokens::mask::AllowedTokens;
use logitree_tokens::vocabulary::Vocabulary;

/// Where at most so many tokens are allowed, each of them is tried even if single bytes would do.
const MAX_LISTED: usize = 512;

/// The token of each byte that has one.
pub(crate) struct ByteTokens([Option<TokenId>; 256]);

impl ByteTokens {
    pub fn new(vocabulary: &Vocabulary) -> ByteTokens {
        let mut found = [None; 256];
        for id in (0..vocabulary.len() as TokenId).rev() {
            let is_text = vocabulary.kind(id).is_text() && !vocabulary.end_tokens().contains(&id);
            if let (true, &[byte]) = (is_text, vocabulary.token_bytes(id)) {
                found[usize::from(byte)] = Some(id);
            }
        }
        ByteTokens(found)
    }

    /// Whether every byte has a token.
    pub fn is_whole(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    /// Whether a token is one of those.
    pub fn contains(&self, token: TokenId) -> bool {
        self.0.contains(&Some(token))
    }

    /// The tokens that spell every continuation with those that are allowed: all, or, where they are many and `bytewise`,
    /// those of one byte.
    pub fn enough(&self, allowed: &AllowedTokens<'_>, size: usize, bytewise: bool) -> Vec<TokenId> {
        match bytewise && self.is_whole() {
            true => self.to_try(allowed, size, &[]),
            false => allowed.ids(size).collect(),
        }
    }

    /// Tokens to try of those that are allowed: all where they are few, else the `named` ones and those of one byte, else
    /// all.
    pub fn to_try(&self, allowed: &AllowedTokens<'_>, size: usize, named: &[TokenId]) -> Vec<TokenId> {
        let mut found = Vec::new();
        if allowed.count(size) > MAX_LISTED {
            found.extend(
                named.iter().chain(self.0.iter().flatten()).copied().filter(|&id| allowed.contains(id)),
            );
        }
        if found.is_empty() {
            found.extend(allowed.ids(size));
        }
        found
    }
}
