//! The shortest completion of what a matcher has accepted: a best-first search over states, by bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use super::byte_tokens::ByteTokens;
use crate::Matcher;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::vocabulary::Vocabulary;

/// Beginnings that are tried, of an ending that must be spelled in certain tokens.
const MAX_BEGUN: usize = 256;

/// The states that all searches for one ending may still visit.
struct Budget {
    left: usize,
    given: usize,
}

impl Budget {
    /// # Errors
    /// [`ErrorKind::Limit`] if none is left.
    fn spend(&mut self) -> Result<()> {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            return Ok(());
        }
        let message = format!("no ending was found within {} states", self.given);
        Err(Error::new(ErrorKind::Limit, message).help("give more tokens"))
    }
}

/// One state of the search.
struct Visited {
    matcher: Box<dyn Matcher>,
    /// The visited state before, and the token in between.
    from: Option<(usize, TokenId)>,
}

/// The tokens of the shortest continuation, in bytes (a token that matters as itself is one), after which `matcher` is
/// accepting; empty where it is. The matcher is unchanged. Must equal a breadth-first search over all continuations. Where few spellings are allowed, the shortest
/// text in any spelling is found first, and then its tokens: most tokens of one byte are not allowed there. That ending
/// is short, and not always the shortest.
///
/// # Errors
/// [`ErrorKind::Limit`] if none is found among the first `max_states` states of all searches together;
/// [`ErrorKind::Constraint`] if there is none.
pub fn shortest_ending(
    matcher: &dyn Matcher,
    vocabulary: &Vocabulary,
    max_states: usize,
) -> Result<Vec<TokenId>> {
    let mut budget = Budget { left: max_states, given: max_states };
    if matcher.in_any_spelling().is_some() {
        spelled_ending(matcher, vocabulary, &mut budget)
    } else {
        searched(matcher, vocabulary, &mut budget)
    }
}

/// The ending of a matcher that allows few spellings: the fewest bytes after which the shortest text in any spelling has
/// tokens, and these. After `{` alone, `"name"` has none where the tokenizer writes `{"` as one token, but ` "name"` has.
fn spelled_ending(
    matcher: &dyn Matcher,
    vocabulary: &Vocabulary,
    budget: &mut Budget,
) -> Result<Vec<TokenId>> {
    let mut visited: Vec<Visited> = Vec::new();
    let mut queue = BinaryHeap::from([Reverse((0, None))]);
    while let Some(Reverse((length, step))) = queue.pop() {
        if visited.len() >= MAX_BEGUN {
            break;
        }
        budget.spend()?;
        let mut here = step.map_or(matcher, |(before, _): (usize, _)| &*visited[before].matcher).fork();
        if let Some((_, token)) = step {
            here.accept(token)?;
        }
        let at = visited.len();
        visited.push(Visited { matcher: here, from: step });
        let here = &*visited[at].matcher;
        let any = searched(here.in_any_spelling().unwrap_or(here), vocabulary, budget)?;
        let text: Vec<u8> = any.iter().flat_map(|&id| vocabulary.token_bytes(id)).copied().collect();
        if let Some(rest) = spelled(here, vocabulary, &text, budget)? {
            return Ok([path(&visited, at), rest].concat());
        }
        let size = here.vocabulary_size();
        let cost = |token: TokenId| length + vocabulary.token_bytes(token).len().max(1);
        let allowed = visited[at].matcher.allowed()?;
        let mut next: Vec<(usize, TokenId)> = allowed.ids(size).map(|token| (cost(token), token)).collect();
        if next.len() > MAX_BEGUN {
            // More of one state are never looked at.
            next.select_nth_unstable(MAX_BEGUN);
            next.truncate(MAX_BEGUN);
        }
        queue.extend(next.into_iter().map(|(cost, token)| Reverse((cost, Some((at, token))))));
    }
    Err(Error::new(
        ErrorKind::Limit,
        format!("none of {MAX_BEGUN} beginnings of an ending can be spelled on"),
    )
    .help("give more tokens, or allow every tokenization"))
}

/// The tokens of `text` that `matcher` takes and is accepting after, the longest tokens first; `None` if it takes none.
fn spelled(
    matcher: &dyn Matcher,
    vocabulary: &Vocabulary,
    text: &[u8],
    budget: &mut Budget,
) -> Result<Option<Vec<TokenId>>> {
    let trie = vocabulary.trie()?;
    let mut left = vec![(matcher.fork(), Vec::new(), 0)];
    while let Some((matcher, tokens, read)) = left.pop() {
        if read == text.len() && matcher.is_accepting() {
            return Ok(Some(tokens));
        }
        for (ids, length) in trie.prefixes(&text[read..]) {
            for &id in ids {
                budget.spend()?;
                let mut next = matcher.fork();
                if next.take(id)? {
                    left.push((next, [&tokens[..], &[id]].concat(), read + length));
                }
            }
        }
    }
    Ok(None)
}

/// The search over states.
fn searched(matcher: &dyn Matcher, vocabulary: &Vocabulary, budget: &mut Budget) -> Result<Vec<TokenId>> {
    let size = matcher.vocabulary_size();
    let bytes = ByteTokens::new(vocabulary);
    budget.spend()?;
    let mut visited = vec![Visited { matcher: matcher.fork(), from: None }];
    let mut queue = BinaryHeap::from([Reverse((0usize, 0usize))]);
    let (mut known, mut named) = (FxHashSet::<u64>::default(), Vec::new());
    while let Some(Reverse((length, at))) = queue.pop() {
        if visited[at].matcher.state().is_some_and(|state| !known.insert(state)) {
            continue;
        }
        if visited[at].matcher.is_accepting() {
            return Ok(respelled(matcher, vocabulary, path(&visited, at)));
        }
        named.clear();
        visited[at].matcher.named(&mut named);
        for token in bytes.to_try(&visited[at].matcher.allowed()?, size, &named) {
            budget.spend()?;
            let mut next = visited[at].matcher.fork();
            if next.take(token)? {
                let bytes = vocabulary.token_bytes(token).len();
                let cost = length + if named.contains(&token) { 1 } else { bytes.max(1) };
                queue.push(Reverse((cost, visited.len())));
                visited.push(Visited { matcher: next, from: Some((at, token)) });
            }
        }
    }
    Err(Error::new(ErrorKind::Constraint, "the output cannot be completed"))
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
