//! What may follow the end of a constraint: the tokens that end a generation, or anything.

use std::sync::Arc;

use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::AllowedTokens;

/// What may follow once a constraint is over. It is the same after the first token there as after the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterEnd {
    /// Free text: nothing is masked. Who uses the constraint decides when its region ends.
    Free,
    /// These tokens alone, ascending. Where there is none, nothing may follow, and asking for the allowed tokens is an
    /// error.
    Tokens(Arc<[TokenId]>),
}

impl AfterEnd {
    /// The constraint's `own` end tokens, or the vocabulary's where it has none; in any order.
    pub fn tokens(own: &[TokenId], vocabulary: &[TokenId]) -> AfterEnd {
        let mut ids = if own.is_empty() { vocabulary.to_vec() } else { own.to_vec() };
        ids.sort_unstable();
        ids.dedup();
        AfterEnd::Tokens(ids.into())
    }

    /// Whether anything may follow.
    pub fn is_free(&self) -> bool {
        *self == AfterEnd::Free
    }

    /// The tokens that may follow; empty where anything may.
    pub fn ids(&self) -> &[TokenId] {
        match self {
            AfterEnd::Free => &[],
            AfterEnd::Tokens(ids) => ids,
        }
    }

    /// The allowed tokens.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if no token may follow.
    pub fn allowed(&self) -> Result<AllowedTokens<'_>> {
        match self {
            AfterEnd::Free => Ok(AllowedTokens::All),
            AfterEnd::Tokens(ids) if ids.is_empty() => {
                let message = "the output is complete, and the vocabulary has no token that ends it";
                Err(Error::new(ErrorKind::State, message)
                    .help("stop where the matcher is finished, or name end tokens"))
            }
            AfterEnd::Tokens(ids) => Ok(AllowedTokens::Ids(ids)),
        }
    }

    /// Whether `token` may follow.
    pub fn takes(&self, token: TokenId) -> bool {
        self.is_free() || self.ids().binary_search(&token).is_ok()
    }
}
