//! The run of forced tokens of any matcher, by asking it again after each.

use crate::Matcher;
use crate::{Result, TokenId};
use logitree_tokens::mask::{ids, AllowedTokens};

/// Longer runs are given in pieces.
const MAX_FORCED: usize = 1_000;

/// Accepts the tokens of which each is the only one allowed, and appends them to `run`. The caller rolls them back.
///
/// # Errors
/// Those of the matcher; the tokens before are accepted, and in `run`.
pub(crate) fn forced_run(matcher: &mut dyn Matcher, run: &mut Vec<TokenId>) -> Result<()> {
    while run.len() < MAX_FORCED && !matcher.is_accepting() && !matcher.is_finished() {
        let Some(only) = sole(matcher.allowed()?) else { break };
        matcher.accept(only)?;
        run.push(only);
    }
    Ok(())
}

/// The only token of a set.
fn sole(allowed: AllowedTokens<'_>) -> Option<TokenId> {
    match allowed {
        AllowedTokens::Ids(&[only]) => Some(only),
        AllowedTokens::Mask(words) => {
            let mut ids = ids(words);
            ids.next().filter(|_| ids.next().is_none())
        }
        _ => None,
    }
}
