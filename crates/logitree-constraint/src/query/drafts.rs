//! Masks for a tree of drafted tokens, and runs of tokens: what speculative decoding asks of a matcher in one call.
//!
//! The slow version is a loop of [`Matcher::accept`], [`fill`] and [`Matcher::rollback`].

use super::fill::fill;
use crate::Matcher;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::AllowedTokens;

/// Writes row 0 with the mask of the current state of `matcher`, and row `i + 1` with the mask after node `i` of the tree.
/// `parents[i]` is the node before node `i`, one of those before it in the list; `None` is the current state.
/// Says of each node whether its token is allowed after its parent, and so on up; rows of nodes that are not allowed
/// are 0. The matcher is unchanged.
///
/// # Errors
/// [`ErrorKind::Token`] for parents that are not as many as the tokens, or that do not come before their children;
/// [`ErrorKind::Mask`] if there is not one row more than tokens; [`ErrorKind::Limit`] as [`Matcher::allowed`].
pub fn draft_masks(
    matcher: &mut dyn Matcher,
    parents: &[Option<usize>],
    tokens: &[TokenId],
    mut rows: Vec<&mut [u32]>,
) -> Result<Vec<bool>> {
    check(parents, tokens, rows.len())?;
    let mut first: Vec<Option<usize>> = vec![None; tokens.len() + 1];
    let mut sibling = vec![None; tokens.len()];
    for (node, parent) in parents.iter().enumerate().rev() {
        let above = parent.map_or(0, |parent| parent + 1);
        sibling[node] = first[above].replace(node);
    }
    rows.iter_mut().skip(1).for_each(|row| row.fill(0));
    fill(matcher, rows[0])?;
    let start = matcher.accepted();
    let mut allowed = vec![false; tokens.len()];
    let mut walk = |matcher: &mut dyn Matcher| -> Result<()> {
        // The nodes on the way, the deepest last; each one's token is accepted.
        let mut path = Vec::new();
        let mut next = first[0];
        loop {
            let Some(node) = next else {
                let Some(node) = path.pop() else { return Ok(()) };
                matcher.rollback(1)?;
                next = sibling[node];
                continue;
            };
            // The row above is the allowed tokens before the node: a refusal need not be put into words.
            let above = parents[node].map_or(0, |parent| parent + 1);
            next = sibling[node];
            if AllowedTokens::Mask(rows[above]).contains(tokens[node]) && matcher.take(tokens[node])? {
                path.push(node);
                allowed[node] = true;
                fill(matcher, rows[node + 1])?;
                next = first[node + 1];
            }
        }
    };
    let walked = walk(matcher);
    matcher.rollback(matcher.accepted() - start)?;
    walked.map(|()| allowed)
}

fn check(parents: &[Option<usize>], tokens: &[TokenId], rows: usize) -> Result<()> {
    if parents.len() != tokens.len() {
        let message = format!("{} parents for {} tokens", parents.len(), tokens.len());
        return Err(Error::new(ErrorKind::Token, message).help("give each token its parent"));
    }
    if rows != tokens.len() + 1 {
        let message = format!("{rows} rows of masks for {} drafted tokens", tokens.len());
        let help = "give one row more than tokens: the first is for the current state";
        return Err(Error::new(ErrorKind::Mask, message).help(help));
    }
    let late = |(node, parent): (usize, &Option<usize>)| parent.filter(|&p| p >= node).map(|p| (node, p));
    if let Some((node, parent)) = parents.iter().enumerate().find_map(late) {
        let error = Error::new(ErrorKind::Token, format!("the parent of node {node} is node {parent}"));
        return Err(error.help("a parent comes before its children; -1 is the matcher's current state"));
    }
    Ok(())
}

/// Takes all of `tokens`, or none.
///
/// # Errors
/// That of the first token that is refused, with its place in the list; the matcher is unchanged.
pub fn accept_all(matcher: &mut dyn Matcher, tokens: &[TokenId]) -> Result<()> {
    for (at, &token) in tokens.iter().enumerate() {
        if let Err(error) = matcher.accept(token) {
            matcher.rollback(at)?;
            return Err(error.within(&format!("tokens[{at}]")));
        }
    }
    Ok(())
}

/// How many of `tokens` are allowed, one after the other. The matcher is unchanged.
///
/// # Errors
/// As [`Matcher::allowed`].
pub fn count_allowed(matcher: &mut dyn Matcher, tokens: &[TokenId]) -> Result<usize> {
    let mut taken = 0;
    let mut read = |matcher: &mut dyn Matcher| -> Result<()> {
        while taken < tokens.len() && matcher.take(tokens[taken])? {
            taken += 1;
        }
        Ok(())
    };
    let done = read(matcher);
    matcher.rollback(taken)?;
    done.map(|()| taken)
}
