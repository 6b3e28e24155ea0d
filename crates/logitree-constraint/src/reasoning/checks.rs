//! What thinking must be for its matchers to keep their laws.

use super::{ReasoningOptions, MAX_TAG_TOKENS};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::vocabulary::Vocabulary;

fn wrong(message: impl Into<String>, place: &str, help: &str) -> Error {
    Error::new(ErrorKind::Constraint, message).at(place).help(help)
}

/// See [`super::BoundReasoning::new`].
pub(super) fn check(options: &ReasoningOptions, vocabulary: &Vocabulary) -> Result<()> {
    let named = named(options);
    let total = named.iter().fold(0usize, |n, (_, tokens)| n.saturating_add(tokens.len()));
    if total > MAX_TAG_TOKENS {
        let message = format!("begins, ends and message have {total} tokens, more than {MAX_TAG_TOKENS}");
        return Err(Error::new(ErrorKind::Limit, message).help("use fewer or shorter ones"));
    }
    for (tags, name) in [(&options.begin, "begin"), (&options.end, "end")] {
        if tags.is_empty() {
            return Err(wrong(
                format!("a reasoning block without {name}"),
                name,
                "give at least one token sequence",
            ));
        }
    }
    for (place, tokens) in &named {
        tag(place, tokens, vocabulary)?;
    }
    overlaps(&named, options.whole)?;
    if !options.whole {
        first_tokens(options)?;
    }
    numbers(options)?;
    let mut special: Vec<TokenId> = named.iter().flat_map(|(_, tokens)| tokens.iter().copied()).collect();
    special.extend_from_slice(vocabulary.end_tokens());
    special.sort_unstable();
    special.dedup();
    if special.len() >= vocabulary.len() {
        return Err(wrong(
            "every token of the vocabulary begins or ends a reasoning block",
            "vocabulary",
            "no token would be left for the reasoning itself: use the vocabulary of the model",
        ));
    }
    Ok(())
}

/// All sequences and how they are called; equal ones once, and the message only if there is one.
fn named(options: &ReasoningOptions) -> Vec<(String, &[TokenId])> {
    let mut named: Vec<(String, &[TokenId])> = Vec::new();
    for (tags, name) in [(&options.begin, "begin"), (&options.end, "end")] {
        for (at, tokens) in tags.iter().enumerate() {
            if !tags[..at].contains(tokens) {
                let place = if tags.len() == 1 { name.to_string() } else { format!("{name}[{at}]") };
                named.push((place, tokens));
            }
        }
    }
    if !options.message.is_empty() {
        named.push(("message".to_string(), &options.message));
    }
    named
}

fn tag(place: &str, tokens: &[TokenId], vocabulary: &Vocabulary) -> Result<()> {
    if tokens.is_empty() {
        return Err(wrong(
            format!("the {place} of a reasoning block is empty"),
            place,
            "give at least one token",
        ));
    }
    for &token in tokens {
        let known = vocabulary.check(token);
        known.map_err(|error| Error { kind: ErrorKind::Constraint, ..error }.at(place))?;
        if vocabulary.end_tokens().binary_search(&token).is_ok() {
            let message = format!("token {token} of the {place} ends the generation");
            let help = "use another token, or a vocabulary whose end-of-generation ids leave it out";
            return Err(wrong(message, place, help));
        }
    }
    Ok(())
}

/// One that contains another: the inner one would be seen first, or where it may not be. Begins that count when they are
/// complete may end alike: both are complete with the same token.
fn overlaps(named: &[(String, &[TokenId])], whole: bool) -> Result<()> {
    for (outer, tokens) in named {
        for (inner, part) in named.iter().filter(|(inner, _)| inner != outer && inner != "message") {
            if tokens == part {
                let help = "a reasoning block's begin and its end must differ";
                return Err(wrong(format!("{outer} and {inner} are the same tokens"), outer, help));
            }
            let begin_alike = whole && outer.starts_with("begin") && inner.starts_with("begin");
            let apart =
                if begin_alike && tokens.ends_with(part) { &tokens[..tokens.len() - 1] } else { tokens };
            if apart.windows(part.len()).any(|window| window == *part) {
                let help = "no sequence may contain another: leave the longer one out";
                return Err(wrong(format!("{outer} contains {inner}"), outer, help));
            }
        }
    }
    Ok(())
}

fn first_tokens(options: &ReasoningOptions) -> Result<()> {
    let first = |tokens: &Vec<TokenId>| tokens.first().copied();
    let shared = options
        .begin
        .iter()
        .filter_map(first)
        .find(|token| options.end.iter().any(|end| first(end) == Some(*token)));
    shared.map_or(Ok(()), |token| {
        let message = format!("a begin and an end of the reasoning block have the same first token, {token}");
        Err(wrong(message, "begin", "let them count when they are complete: whole"))
    })
}

fn numbers(options: &ReasoningOptions) -> Result<()> {
    if !(options.ramp.is_finite() && options.ramp >= 0.0) {
        let message = format!("the ramp is {} logits", options.ramp);
        return Err(wrong(message, "ramp", "give a number of 0 or more"));
    }
    match (options.soft, options.budget) {
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
