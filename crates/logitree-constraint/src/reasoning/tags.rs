//! Which token a tag's text is.

use super::super::choices::quoted;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::vocabulary::{TokenKind, Vocabulary};

/// The one token that is written `text`: a special one before any other. `None` if there is none.
///
/// # Errors
/// [`ErrorKind::Constraint`] if there are several to choose from.
pub fn tag(text: &[u8], vocabulary: &Vocabulary) -> Result<Option<TokenId>> {
    let all = vocabulary.find(text);
    let is_special =
        |id: &&TokenId| matches!(vocabulary.kind(**id), TokenKind::Control | TokenKind::UserDefined);
    let special: Vec<TokenId> = all.iter().filter(is_special).copied().collect();
    let found = if special.is_empty() { all } else { special };
    if found.len() > 1 {
        let message = format!("{} is {} tokens of the vocabulary", quoted(text), found.len());
        let few: Vec<String> = found.iter().take(8).map(TokenId::to_string).collect();
        return Err(
            Error::new(ErrorKind::Constraint, message).help(format!("give its id: {}", few.join(", ")))
        );
    }
    Ok(found.first().copied())
}
