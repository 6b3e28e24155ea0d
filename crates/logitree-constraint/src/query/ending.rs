//! The shortest completion of what a matcher has accepted: a best-first search over states, by bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use crate::Matcher;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::AllowedTokens;
use logitree_tokens::vocabulary::Vocabulary;

/// Where at most so many tokens are allowed, each of them is tried; elsewhere those of one byte, which spell every
/// continuation.
const MAX_LISTED: usize = 512;

/// One state of the search.
struct Visited {
    matcher: Box<dyn Matcher>,
    /// The visited state before, and the token in between.
    from: Option<(usize, TokenId)>,
}

/// The tokens of the shortest continuation, in bytes, after which `matcher` is accepting; empty where it is. The matcher
/// is unchanged. Must equal a breadth-first search over all continuations.
///
/// # Errors
/// [`ErrorKind::Limit`] if none is found among the first `max_states` states; [`ErrorKind::Constraint`] if there is none.
pub fn shortest_ending(
    matcher: &dyn Matcher,
    vocabulary: &Vocabulary,
    max_states: usize,
) -> Result<Vec<TokenId>> {
    let bytes = single_bytes(vocabulary);
    let mut visited = vec![Visited { matcher: matcher.fork(), from: None }];
    let mut queue = BinaryHeap::from([Reverse((0usize, 0usize))]);
    let mut known: FxHashSet<u64> = FxHashSet::default();
    while let Some(Reverse((length, at))) = queue.pop() {
        if visited[at].matcher.state().is_some_and(|state| !known.insert(state)) {
            continue;
        }
        if visited[at].matcher.is_accepting() {
            return Ok(respelled(matcher, vocabulary, path(&visited, at)));
        }
        for token in candidates(&mut *visited[at].matcher, &bytes)? {
            if visited.len() >= max_states {
                let message = format!("no ending was found within {max_states} states");
                return Err(Error::new(ErrorKind::Limit, message).help("give more tokens"));
            }
            let mut next = visited[at].matcher.fork();
            if next.take(token)? {
                let cost = length + vocabulary.token_bytes(token).len().max(1);
                queue.push(Reverse((cost, visited.len())));
                visited.push(Visited { matcher: next, from: Some((at, token)) });
            }
        }
    }
    Err(Error::new(ErrorKind::Constraint, "the output cannot be completed"))
}

/// One token for each byte that has one.
fn single_bytes(vocabulary: &Vocabulary) -> Vec<TokenId> {
    let mut found: [Option<TokenId>; 256] = [None; 256];
    for id in (0..vocabulary.len() as TokenId).rev() {
        if let &[byte] = vocabulary.token_bytes(id) {
            found[usize::from(byte)] = Some(id);
        }
    }
    found.into_iter().flatten().collect()
}

/// The tokens to try from a state: all where they are few, else those of one byte, else all.
fn candidates(matcher: &mut dyn Matcher, bytes: &[TokenId]) -> Result<Vec<TokenId>> {
    let size = matcher.vocabulary_size();
    let allowed = matcher.allowed()?;
    if allowed.count(size) <= MAX_LISTED {
        return Ok(ids(&allowed, size));
    }
    let single: Vec<TokenId> = bytes.iter().copied().filter(|&id| allowed.contains(id)).collect();
    Ok(if single.is_empty() { ids(&allowed, size) } else { single })
}

fn ids(allowed: &AllowedTokens<'_>, size: usize) -> Vec<TokenId> {
    match allowed {
        AllowedTokens::All => (0..size as TokenId).collect(),
        AllowedTokens::Ids(ids) => ids.to_vec(),
        AllowedTokens::Mask(words) => logitree_tokens::mask::ids(words).collect(),
    }
}

fn path(visited: &[Visited], mut at: usize) -> Vec<TokenId> {
    let mut tokens = Vec::new();
    while let Some((before, token)) = visited[at].from {
        tokens.push(token);
        at = before;
    }
    tokens.reverse();
    tokens
}

/// The same bytes in the longest tokens that the matcher takes, if that ends it too; else the tokens as they are.
fn respelled(matcher: &dyn Matcher, vocabulary: &Vocabulary, tokens: Vec<TokenId>) -> Vec<TokenId> {
    let Ok(trie) = vocabulary.trie() else { return tokens };
    let text: Vec<u8> = tokens.iter().flat_map(|&id| vocabulary.token_bytes(id)).copied().collect();
    let (mut matcher, mut longer, mut rest) = (matcher.fork(), Vec::new(), text.as_slice());
    while let Some((id, length)) = trie.longest_match(rest) {
        if !matcher.take(id).unwrap_or(false) {
            return tokens;
        }
        longer.push(id);
        rest = &rest[length..];
    }
    if rest.is_empty() && matcher.is_accepting() && longer.len() < tokens.len() {
        longer
    } else {
        tokens
    }
}
