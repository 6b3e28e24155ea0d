//! The state after a prompt. A tag of ordinary tokens counts however the prompt's text was tokenised, because the text
//! before it and after it may share a token with it.
//!
//! The slow version: look for the last begin and the last end, in the tokens and in the text.

use super::plan::{Plan, ReasoningStart};
use crate::finder::{Finder, START};
use logitree_tokens::vocabulary::{TokenKind, Vocabulary};
use logitree_tokens::TokenId;

/// One kind of tag: as tokens, and as text where it is text.
struct Tags<'a> {
    tokens: &'a Finder,
    text: Finder,
}

impl<'a> Tags<'a> {
    fn new(tokens: &'a Finder, tags: &[Vec<TokenId>], vocabulary: &Vocabulary) -> Self {
        let is_text = |tag: &&Vec<TokenId>| tag.iter().all(|&id| is_ordinary(id, vocabulary));
        let spelled = |tag: &Vec<TokenId>| -> Vec<u32> {
            tag.iter().flat_map(|&id| vocabulary.token_bytes(id)).copied().map(u32::from).collect()
        };
        let texts: Vec<Vec<u32>> =
            tags.iter().filter(is_text).map(spelled).filter(|text| !text.is_empty()).collect();
        Tags { tokens, text: Finder::new(&texts) }
    }
}

fn is_ordinary(id: TokenId, vocabulary: &Vocabulary) -> bool {
    (id as usize) < vocabulary.len() && matches!(vocabulary.kind(id), TokenKind::Normal | TokenKind::Byte)
}

/// Inside a reasoning block if the last begin has no end after it.
pub(super) fn after(plan: &Plan, prompt: &[TokenId]) -> ReasoningStart {
    let vocabulary = &plan.vocabulary;
    let begins = Tags::new(&plan.begins, &plan.options.begin, vocabulary);
    let ends = Tags::new(&plan.ends, &plan.options.end, vocabulary);
    let (mut inside, mut token_node, mut byte_node) = (false, START, START);
    for &token in prompt {
        let tags = if inside { &ends } else { &begins };
        token_node = tags.tokens.step(token_node, token);
        if tags.tokens.is_found(token_node) {
            (inside, token_node, byte_node) = (!inside, START, START);
            continue;
        }
        if !is_ordinary(token, vocabulary) {
            byte_node = START;
            continue;
        }
        for &byte in vocabulary.token_bytes(token) {
            let text = if inside { &ends.text } else { &begins.text };
            byte_node = text.step(byte_node, u32::from(byte));
            if text.is_found(byte_node) {
                (inside, token_node, byte_node) = (!inside, START, START);
            }
        }
    }
    if inside {
        ReasoningStart::Inside
    } else {
        ReasoningStart::Outside
    }
}
