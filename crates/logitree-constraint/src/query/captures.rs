//! What the rules of a grammar captured of a text.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::bytewise::with_controls;
use crate::grammar::{BoundGrammar, GrammarLimits};
use crate::{Error, ErrorKind, Matcher, Result, TokenId};
use logitree_grammar::rules::{borders, Rules};

/// A text may have so many bytes.
const MAX_BYTES: usize = 1 << 20;
/// The search visits at most so many pairs of a state and a place in the text.
const MAX_VISITED: usize = 1 << 22;

/// A text that a rule captured: the name, and where it is.
pub type Capture = (Arc<str>, Range<usize>);

/// What the rules of a whole text captured, in the order in which they begin; `None` if the text does not match. Of several
/// ways to read the text, the one whose captures begin first and are longest.
///
/// The grammar is matched over single bytes, with a token where a capture begins and where it ends
/// ([`Rules::with_borders`]); the search puts in these tokens.
///
/// # Errors
/// As [`BoundGrammar::new`]; [`ErrorKind::Limit`] for a text of more than a mebibyte, or if the search takes too long.
pub fn captures(rules: &Rules, text: &[u8]) -> Result<Option<Vec<Capture>>> {
    if text.len() > MAX_BYTES {
        return Err(limit(format!("captures of {} bytes, more than {MAX_BYTES}", text.len())));
    }
    let Some((rules, names)) = rules.with_borders() else { return Ok(Some(Vec::new())) };
    let vocabulary = Arc::new(with_controls((0..names.len()).flat_map(borders))?);
    let grammar = BoundGrammar::new(Arc::new(rules), &vocabulary, Some(&[]), GrammarLimits::default())?;
    let mut matcher = grammar.matcher()?;
    let Some(path) = path(&mut *matcher, text)? else { return Ok(None) };
    let (mut found, mut open, mut at) = (Vec::new(), Vec::new(), 0);
    for token in path {
        match border_of(token) {
            None => at += 1,
            Some((number, true)) => {
                open.push(found.len());
                found.push((Arc::clone(&names[number]), at..at));
            }
            Some((_, false)) => {
                if let Some(begun) = open.pop() {
                    found[begun].1.end = at;
                }
            }
        }
    }
    Ok(Some(found))
}

/// The number of a border's capture, and whether it begins it; `None` for a byte.
fn border_of(token: TokenId) -> Option<(usize, bool)> {
    let border = (token as usize).checked_sub(256)?;
    Some((border / 2, border % 2 == 0))
}

/// The bytes of `text` with borders between them that the matcher takes to its end.
fn path(matcher: &mut dyn Matcher, text: &[u8]) -> Result<Option<Vec<TokenId>>> {
    let mut visited: FxHashSet<(usize, u64)> = FxHashSet::default();
    // For each token of the path what else may come in its place, the best last.
    let mut left: Vec<Vec<TokenId>> = Vec::new();
    let (mut path, mut at) = (Vec::new(), 0);
    loop {
        if at == text.len() && matcher.is_accepting() {
            return Ok(Some(path));
        }
        if visited.len() >= MAX_VISITED {
            return Err(limit(format!("finding captures takes more than {MAX_VISITED} steps")));
        }
        let is_new = matcher.state().is_none_or(|state| visited.insert((at, state)));
        left.push(if is_new { choices(matcher, text.get(at))? } else { Vec::new() });
        // The next token to try, here or at the last place that has one.
        loop {
            let Some(choices) = left.last_mut() else { return Ok(None) };
            if let Some(token) = choices.pop() {
                if matcher.take(token)? {
                    at += usize::from(border_of(token).is_none());
                    path.push(token);
                    break;
                }
            } else {
                left.pop();
                let Some(token) = path.pop() else { return Ok(None) };
                at -= usize::from(border_of(token).is_none());
                matcher.rollback(1)?;
            }
        }
    }
}

/// What may come next: the ends of captures, then the byte, then their beginnings, so that the last is tried first.
fn choices(matcher: &mut dyn Matcher, byte: Option<&u8>) -> Result<Vec<TokenId>> {
    if matcher.is_finished() {
        return Ok(Vec::new());
    }
    let mut named = Vec::new();
    matcher.named(&mut named);
    named.sort_unstable();
    named.dedup();
    let (begins, ends): (Vec<TokenId>, Vec<TokenId>) =
        named.into_iter().partition(|&token| border_of(token).is_some_and(|(_, begins)| begins));
    Ok(ends.into_iter().chain(byte.map(|&byte| TokenId::from(byte))).chain(begins).collect())
}

fn limit(message: String) -> Error {
    Error::new(ErrorKind::Limit, message).help("capture less, or read the text by other means")
}
