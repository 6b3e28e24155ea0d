//! What the rules of a grammar captured of a text.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::bytewise::with_controls;
use crate::grammar::{BoundGrammar, GrammarLimits};
use crate::{Error, ErrorKind, Matcher, Result, TokenId};
use logitree_grammar::expr::{Encoding, Exprs, NOTHING};
use logitree_grammar::rules::{borders, Captured, CapturedEnd, Rules};
use logitree_grammar::Regex;

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
    let Some((rules, captured)) = rules.with_borders() else { return Ok(Some(Vec::new())) };
    let vocabulary = Arc::new(with_controls((0..captured.len()).flat_map(borders))?);
    let grammar = BoundGrammar::new(Arc::new(rules), &vocabulary, Some(&[]), GrammarLimits::default())?;
    let mut matcher = grammar.matcher()?;
    let Some(path) = path(&mut *matcher, text)? else { return Ok(None) };
    let (mut found, mut open, mut at) = (Vec::new(), Vec::new(), 0);
    for token in path {
        match border_of(token) {
            None => at += 1,
            Some((number, true)) => {
                open.push(found.len());
                found.push((number, at..at));
            }
            Some((_, false)) => {
                if let Some(begun) = open.pop() {
                    found[begun].1.end = at;
                }
            }
        }
    }
    let mut exprs = Exprs::new(MAX_VISITED);
    exprs.set_fuel(16 * MAX_VISITED as u64);
    let mut named = Vec::with_capacity(found.len());
    for (number, range) in found {
        name(&captured[number], text, range, &mut exprs, &mut named)?;
    }
    Ok(Some(named))
}

/// Appends what a rule captured of its text, which is at `range`: the text, without a suffix, and what ended it.
fn name(
    captured: &Captured,
    text: &[u8],
    range: Range<usize>,
    exprs: &mut Exprs,
    named: &mut Vec<Capture>,
) -> Result<()> {
    let (mut inner, mut ending) = (range.clone(), None);
    if let Some(CapturedEnd { language, before, .. }) = &captured.end {
        ending = match before {
            Some(before) => suffix(before, language, &text[range.clone()], exprs)?,
            None => {
                shortest(language, &text[range.end..], exprs)?.map(|length| range.len()..range.len() + length)
            }
        }
        .map(|end| range.start + end.start..range.start + end.end);
        if let (Some(end), true) = (&ending, before.is_some()) {
            inner.end = end.start;
        }
    }
    named.extend(captured.name.clone().map(|name| (name, inner)));
    let end_name = captured.end.as_ref().and_then(|end| end.name.clone());
    named.extend(end_name.zip(ending));
    Ok(())
}

/// Where the suffix of the shortest text that is one of `before` and a suffix begins and ends in `text`: the shortest such
/// suffix.
fn suffix(before: &Regex, suffix: &Regex, text: &[u8], exprs: &mut Exprs) -> Result<Option<Range<usize>>> {
    let whole = Regex::concat([before.clone(), suffix.clone()]);
    let Some(end) = shortest(&whole, text, exprs)? else { return Ok(None) };
    let begins = ends(before, &text[..end], exprs)?;
    for begin in begins.into_iter().rev() {
        if ends(suffix, &text[begin..end], exprs)?.last() == Some(&(end - begin)) {
            return Ok(Some(begin..end));
        }
    }
    Ok(None)
}

/// The length of the shortest beginning of `text` that `regex` matches.
fn shortest(regex: &Regex, text: &[u8], exprs: &mut Exprs) -> Result<Option<usize>> {
    walk(regex, text, exprs, Some)
}

/// The lengths of all beginnings of `text` that `regex` matches, ascending.
fn ends(regex: &Regex, text: &[u8], exprs: &mut Exprs) -> Result<Vec<usize>> {
    let mut all = Vec::new();
    walk(regex, text, exprs, |length| {
        all.push(length);
        None::<()>
    })?;
    Ok(all)
}

/// Calls `found` with the length of each beginning of `text` that `regex` matches, up to the first for which it gives
/// something.
fn walk<R>(
    regex: &Regex,
    text: &[u8],
    exprs: &mut Exprs,
    mut found: impl FnMut(usize) -> Option<R>,
) -> Result<Option<R>> {
    let mut expr = exprs.compile(regex, Encoding::Utf8)?;
    for length in 0..=text.len() {
        if exprs.is_complete(expr) {
            if let Some(result) = found(length) {
                return Ok(Some(result));
            }
        }
        let Some(&byte) = text.get(length) else { break };
        exprs.charge(1)?;
        expr = exprs.derive(expr, byte)?;
        if expr == NOTHING {
            break;
        }
    }
    Ok(None)
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
