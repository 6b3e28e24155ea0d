//! WordPiece as llama.cpp reads it: the words of a text, each spelled in the longest tokens from its start, or as one that is
//! unknown.
//!
//! White space, and with the options case and accents, are lost, so there is no canonical spelling.

use logitree_automata::{pattern, CharSet};
use unicode_normalization::UnicodeNormalization;

use super::normalizer::MARK;
use super::user::Trie;
use crate::TokenId;

/// A model.
pub(super) struct WordPiece {
    /// The texts of tokens, U+2581 before those that begin a word.
    pub texts: Trie,
    pub unknown: TokenId,
    pub lowercase: bool,
    pub strip_accents: bool,
    /// Control characters, which are left out.
    controls: CharSet,
    accents: CharSet,
    /// Characters that are words by themselves: punctuation, signs of ASCII, Han.
    alone: CharSet,
}

/// Han, in the ranges of BERT.
const HAN: [(u32, u32); 8] = [
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
];

impl WordPiece {
    pub fn new(texts: Trie, unknown: TokenId, lowercase: bool, strip_accents: bool) -> WordPiece {
        let named = |name: &str| pattern::property(name).unwrap_or_default();
        let signs = named("S").and(&CharSet::range('\0', '\x7e'));
        WordPiece {
            texts,
            unknown,
            lowercase,
            strip_accents,
            controls: named("C").and(&named("Cn").not()).or(&CharSet::one('\u{fffd}')),
            accents: named("M"),
            alone: named("P").or(&signs).or(&CharSet::from_ranges(HAN)),
        }
    }

    /// Appends the tokens of a text.
    pub fn encode(&self, text: &str, out: &mut Vec<TokenId>) {
        let mut word = String::new();
        for c in text.chars() {
            if c.is_whitespace() {
                self.end_word(&mut word, out);
                continue;
            }
            // Of a character that is decomposed llama.cpp keeps the first.
            let c = if self.strip_accents { c.nfd().next().unwrap_or(c) } else { c };
            if self.controls.contains(c) || self.strip_accents && self.accents.contains(c) {
                continue;
            }
            let is_alone = self.alone.contains(c);
            if is_alone {
                self.end_word(&mut word, out);
            }
            word.push(if self.lowercase { c.to_lowercase().next().unwrap_or(c) } else { c });
            if is_alone {
                self.end_word(&mut word, out);
            }
        }
        self.end_word(&mut word, out);
    }

    fn end_word(&self, word: &mut String, out: &mut Vec<TokenId>) {
        if word.is_empty() {
            return;
        }
        let text = format!("{MARK}{word}");
        let (mut at, first) = (0, out.len());
        while let Some((token, length)) = self.texts.longest(&text.as_bytes()[at..]) {
            out.push(token as TokenId);
            at += length;
        }
        if at < text.len() {
            out.truncate(first);
            out.push(self.unknown);
        }
        word.clear();
    }
}
