//! A payload against what it is to be used for: leaves that have tokens, the model's name, the range of the ids, and each
//! leaf's name against the bytes of its tokens.

use super::payload::{Leaf, Payload};
use crate::{Error, ErrorKind, Result};
use logitree_tokens::vocabulary::Vocabulary;

/// What to do where a payload does not fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OnMismatch {
    /// The first mismatch is the error.
    #[default]
    Error,
    /// All mismatches are handed back as warnings. Leaves without tokens and those with ids outside the vocabulary can
    /// never be generated: they are left out.
    Warn,
}

/// What a payload is held against, the vocabulary and the model only if they are there. A descriptor without leaves and a
/// leaf without tokens never fit.
#[derive(Debug, Clone, Copy, Default)]
pub struct PayloadCheck<'a> {
    /// The vocabulary the model's logits are over.
    pub vocabulary: Option<&'a Vocabulary>,
    /// The model id that the payload must carry. A payload that carries none is taken.
    pub model_id: Option<&'a str>,
    /// Error or warn.
    pub on_mismatch: OnMismatch,
}

impl PayloadCheck<'_> {
    /// Holds `payload` against the vocabulary and the model id; returns the warnings. What is without tokens is a mismatch
    /// too: it is nothing that could be generated.
    ///
    /// A leaf's tokens spell its name if their bytes are the name, or the name as a JSON string with or without
    /// its quotes, each with or without one space before it.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] with the first mismatch, without the option to warn.
    pub fn run(&self, payload: &mut Payload) -> Result<Vec<Error>> {
        let mut found = without_tokens(payload);
        if let (Some(expected), Some(given)) = (self.model_id, payload.model_id.as_deref()) {
            if expected != given {
                let message = format!("the payload was made for model {given:?}, not {expected:?}");
                let help = "make the payload with this model's tokenizer";
                found.push(Error::new(ErrorKind::Payload, message).at("/modelId").help(help));
            }
        }
        if let Some(vocabulary) = self.vocabulary {
            let mut spelled = Vec::new();
            for (d, descriptor) in payload.descriptors.iter_mut().enumerate() {
                let mut l = 0;
                descriptor.leaves.retain(|leaf| {
                    let place = || format!("/descriptors/{d}/leaves/{l}");
                    let (problem, keep) = check_leaf(leaf, vocabulary, &mut spelled);
                    if let Some(problem) = problem {
                        found.push(problem.at(place()));
                    }
                    l += 1;
                    keep
                });
                if self.on_mismatch == OnMismatch::Error && !found.is_empty() {
                    break;
                }
            }
        }
        match self.on_mismatch {
            OnMismatch::Error if !found.is_empty() => {
                let mut first = found.swap_remove(0);
                if !found.is_empty() {
                    first.message.push_str(&format!(" (the first of {} mismatches)", found.len() + 1));
                }
                Err(first)
            }
            _ => Ok(found),
        }
    }
}

/// The descriptors without leaves and the leaves without tokens.
fn without_tokens(payload: &Payload) -> Vec<Error> {
    let mut found = Vec::new();
    for (d, descriptor) in payload.descriptors.iter().enumerate() {
        let path = &descriptor.path;
        if descriptor.leaves.is_empty() {
            let message = format!("the descriptor {path:?} has no leaves");
            found.push(
                Error::new(ErrorKind::Payload, message)
                    .at(format!("/descriptors/{d}/leaves"))
                    .help("leave a descriptor without values out of the payload"),
            );
        }
        for (l, leaf) in descriptor.leaves.iter().enumerate().filter(|(_, leaf)| leaf.tokens.is_empty()) {
            let message = format!("the leaf {:?} of the descriptor {path:?} has no tokens", leaf.name);
            found.push(
                Error::new(ErrorKind::Payload, message)
                    .at(format!("/descriptors/{d}/leaves/{l}/tokens"))
                    .help("give the tokens of its name, or leave it out"),
            );
        }
    }
    found
}

/// What is wrong with `leaf`, and whether it can be generated at all.
fn check_leaf(leaf: &Leaf, vocabulary: &Vocabulary, spelled: &mut Vec<u8>) -> (Option<Error>, bool) {
    let name = &leaf.name;
    if let Some(t) = leaf.tokens.iter().position(|&id| id as usize >= vocabulary.len()) {
        let message = format!(
            "token {t} of leaf {name:?} is id {}, outside the vocabulary of {} tokens",
            leaf.tokens[t],
            vocabulary.len()
        );
        let help = "make the payload with this model's tokenizer";
        return (Some(Error::new(ErrorKind::Payload, message).help(help)), false);
    }
    if leaf.tokens.is_empty() {
        return (None, true);
    }
    spelled.clear();
    leaf.tokens.iter().for_each(|&id| spelled.extend_from_slice(vocabulary.token_bytes(id)));
    if spells(spelled, name) {
        return (None, true);
    }
    let shown = String::from_utf8_lossy(&spelled[..spelled.len().min(80)]).into_owned();
    let message = format!("the tokens of leaf {name:?} spell {shown:?} in this vocabulary");
    let help = "make the payload with this model's tokenizer, or have mismatches reported as warnings";
    (Some(Error::new(ErrorKind::Payload, message).help(help)), true)
}

/// Whether `bytes` are `name`: see [`PayloadCheck::run`].
fn spells(bytes: &[u8], name: &str) -> bool {
    let is_name = |bytes: &[u8]| {
        if bytes == name.as_bytes() {
            return true;
        }
        if !bytes.contains(&b'"') && !bytes.contains(&b'\\') {
            return false;
        }
        let inner = bytes.strip_prefix(b"\"").unwrap_or(bytes);
        let unquoted = [Some(inner), inner.strip_suffix(b"\"")];
        unquoted.into_iter().flatten().any(|inner| {
            let quoted = [b"\"", inner, b"\""].concat();
            serde_json::from_slice::<String>(&quoted).is_ok_and(|text| text == name)
        })
    };
    is_name(bytes) || bytes.strip_prefix(b" ").is_some_and(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_to_spell_a_name() {
        for text in ["é\"x", " é\"x", r#""é\"x""#, r#" "é\"x""#, r#"é\"x""#, r#""\u00e9\"x"#] {
            assert!(spells(text.as_bytes(), "é\"x"), "{text}");
        }
        for text in ["", "A ", "  A", "\"A\" ", "B", "\" A\""] {
            assert!(!spells(text.as_bytes(), "A"), "{text}");
        }
    }
}
