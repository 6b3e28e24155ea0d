//! What thinking must be for its matchers to keep their laws. It refuses to know how they run.

use super::{Thinking, MAX_TAG_TOKENS};
use crate::vocabulary::Vocabulary;
use crate::{Error, ErrorKind, Result, TokenId};

fn wrong(message: impl Into<String>, place: &str, help: &str) -> Error {
    Error::new(ErrorKind::Constraint, message).at(place).help(help)
}

/// See [`super::Thought::new`].
pub(super) fn check(thinking: &Thinking, vocabulary: &Vocabulary) -> Result<()> {
    let named = named(thinking);
    let total = named.iter().fold(0usize, |n, (_, tokens)| n.saturating_add(tokens.len()));
    if total > MAX_TAG_TOKENS {
        let message = format!("begins, ends and message have {total} tokens, more than {MAX_TAG_TOKENS}");
        return Err(Error::new(ErrorKind::Limit, message).help("use fewer or shorter ones"));
    }
    for (tags, name) in [(&thinking.begin, "begin"), (&thinking.end, "end")] {
        if tags.is_empty() {
            return Err(wrong(format!("a thought without {name}"), name, "give at least one token sequence"));
        }
    }
    for (place, tokens) in &named {
        tag(place, tokens, vocabulary)?;
    }
    overlaps(&named)?;
    if !thinking.whole {
        first_tokens(thinking)?;
    }
    numbers(thinking)?;
    let mut special: Vec<TokenId> = named.iter().flat_map(|(_, tokens)| tokens.iter().copied()).collect();
    special.extend_from_slice(vocabulary.end_of_generation());
    special.sort_unstable();
    special.dedup();
    if special.len() >= vocabulary.len() {
        return Err(wrong(
            "every token of the vocabulary begins or ends a thought",
            "vocabulary",
            "nothing could be thought: use the vocabulary of the model",
        ));
    }
    Ok(())
}

/// All sequences and how they are called; equal ones once, and the message only if there is one.
fn named(thinking: &Thinking) -> Vec<(String, &[TokenId])> {
    let mut named: Vec<(String, &[TokenId])> = Vec::new();
    for (tags, name) in [(&thinking.begin, "begin"), (&thinking.end, "end")] {
        for (at, tokens) in tags.iter().enumerate() {
            if !tags[..at].contains(tokens) {
                let place = if tags.len() == 1 { name.to_string() } else { format!("{name}[{at}]") };
                named.push((place, tokens));
            }
        }
    }
    if !thinking.message.is_empty() {
        named.push(("message".to_string(), &thinking.message));
    }
    named
}

fn tag(place: &str, tokens: &[TokenId], vocabulary: &Vocabulary) -> Result<()> {
    if tokens.is_empty() {
        return Err(wrong(format!("the {place} of a thought is empty"), place, "give at least one token"));
    }
    for &token in tokens {
        let known = vocabulary.check(token);
        known.map_err(|error| Error { kind: ErrorKind::Constraint, ..error }.at(place))?;
        if vocabulary.end_of_generation().binary_search(&token).is_ok() {
            let message = format!("token {token} of the {place} ends the generation");
            let help = "use another token, or a vocabulary whose end-of-generation ids leave it out";
            return Err(wrong(message, place, help));
        }
    }
    Ok(())
}

/// One that contains another: the inner one would be seen first, or where it may not be.
fn overlaps(named: &[(String, &[TokenId])]) -> Result<()> {
    for (outer, tokens) in named {
        for (inner, part) in named.iter().filter(|(inner, _)| inner != outer && inner != "message") {
            if tokens == part {
                let help = "a thought's begin and its end must differ";
                return Err(wrong(format!("{outer} and {inner} are the same tokens"), outer, help));
            }
            if tokens.windows(part.len()).any(|window| window == *part) {
                let help = "no sequence may contain another: leave the longer one out";
                return Err(wrong(format!("{outer} contains {inner}"), outer, help));
            }
        }
    }
    Ok(())
}

fn first_tokens(thinking: &Thinking) -> Result<()> {
    let first = |tokens: &Vec<TokenId>| tokens.first().copied();
    let shared = thinking
        .begin
        .iter()
        .filter_map(first)
        .find(|token| thinking.end.iter().any(|end| first(end) == Some(*token)));
    shared.map_or(Ok(()), |token| {
        let message = format!("a begin and an end of the thought have the same first token, {token}");
        Err(wrong(message, "begin", "let them count when they are complete: whole"))
    })
}

fn numbers(thinking: &Thinking) -> Result<()> {
    if !(thinking.ramp.is_finite() && thinking.ramp >= 0.0) {
        let message = format!("the ramp is {} logits", thinking.ramp);
        return Err(wrong(message, "ramp", "give a number of 0 or more"));
    }
    match (thinking.soft, thinking.budget) {
        (Some(soft), None) => {
            let message = format!("a soft budget of {soft} tokens without a budget");
            Err(wrong(message, "soft", "give a budget: the end grows likelier up to it"))
        }
        (Some(soft), Some(budget)) if soft >= budget && budget > 0 => {
            let message = format!("the soft budget of {soft} tokens is not below the budget of {budget}");
            Err(wrong(message, "soft", "give fewer tokens"))
        }
        _ => Ok(()),
    }
}
