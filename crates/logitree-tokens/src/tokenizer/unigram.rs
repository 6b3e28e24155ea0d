//! SentencePiece's unigram models as llama.cpp reads them: of all ways to spell a text in tokens, the one with the highest sum of
//! scores.
//!
//! The text is normalised first, by the file's own map of characters. What the map changes cannot be found again in the tokens, so
//! there is no canonical spelling.

use super::normalizer::MARK;
use super::user::Trie;
use crate::{Error, ErrorKind, Result, TokenId};

/// How much less than the lowest score a character that is no token counts.
const PENALTY: f64 = 10.0;

/// A model.
pub(super) struct Unigram {
    /// The texts of tokens, by number of `scores`.
    pub texts: Trie,
    /// The score of each token.
    pub scores: Box<[f64]>,
    /// The texts of user-defined tokens: as much as a text has of the beginning of one is not normalised.
    pub user: Trie,
    pub unknown: TokenId,
    /// The lowest score of an ordinary token.
    pub lowest: f64,
    pub map: Option<CharsMap>,
    /// Whether a space is put in front of a text.
    pub leads: bool,
    /// Whether a run of spaces is one space, without those at the ends.
    pub merges_spaces: bool,
}

impl Unigram {
    /// Appends the tokens of a text.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if the map of characters is damaged.
    pub fn encode(&self, text: &str, out: &mut Vec<TokenId>) -> Result<()> {
        let text = self.normalized(text)?;
        // The best spelling of the text up to each byte: its sum, its last token, and where that begins.
        let mut best = vec![(f64::MIN, self.unknown, 0); text.len() + 1];
        best[0].0 = 0.0;
        for (at, c) in text.char_indices() {
            let (sum, mut is_known) = (best[at].0, false);
            let mut offer = |token: TokenId, score: f64, end: usize| {
                if sum + score > best[end].0 {
                    best[end] = (sum + score, token, at);
                }
            };
            self.texts.prefixes(&text.as_bytes()[at..], |token, length| {
                is_known |= length == c.len_utf8();
                offer(token as TokenId, self.scores[token], at + length);
            });
            if !is_known {
                offer(self.unknown, self.lowest - PENALTY, at + c.len_utf8());
            }
        }
        let (first, mut end, mut after) = (out.len(), text.len(), None);
        while end > 0 {
            let (_, token, start) = best[end];
            // Neighbours that are unknown are one.
            if token != self.unknown || after != Some(token) {
                out.push(token);
            }
            (end, after) = (start, Some(token));
        }
        out[first..].reverse();
        Ok(())
    }

    fn normalized(&self, text: &str) -> Result<String> {
        let (mut out, mut at) = (String::with_capacity(text.len() * 2), 0);
        let (mut in_word, mut is_led) = (false, false);
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let mut kept = self.user.depth(rest.as_bytes());
            while !rest.is_char_boundary(kept) {
                kept -= 1;
            }
            let mapped = match &self.map {
                Some(map) if kept == 0 => map.longest(rest.as_bytes())?,
                _ => None,
            };
            let (part, length) = match mapped {
                Some((part, length)) => (part, length),
                None => {
                    let length = if kept > 0 { kept } else { c.len_utf8() };
                    (&rest[..length], length)
                }
            };
            for c in part.chars() {
                if c == ' ' {
                    in_word = false;
                    if !self.merges_spaces {
                        out.push(MARK);
                    }
                    continue;
                }
                if !in_word && (self.merges_spaces || self.leads && !is_led) {
                    out.push(MARK);
                    is_led = true;
                }
                in_word = true;
                out.push(c);
            }
            at += length;
        }
        Ok(out)
    }
}

/// What texts become, as SentencePiece stores it: a double array of the texts (Yata et al. 2007), then the replacements, each
/// ended by a zero.
pub(super) struct CharsMap {
    units: Box<[u32]>,
    replacements: Box<[u8]>,
}

impl CharsMap {
    /// Reads the bytes of `precompiled_charsmap`; `None` if they are malformed.
    pub fn new(bytes: &[u8]) -> Option<CharsMap> {
        let (size, rest) = bytes.split_first_chunk::<4>()?;
        let (units, replacements) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
        let units = units.chunks_exact(4).map(|unit| u32::from_le_bytes(unit.try_into().unwrap_or_default()));
        (replacements.last() == Some(&0))
            .then(|| CharsMap { units: units.collect(), replacements: replacements.into() })
    }

    /// The longest text that `text` begins with: what it becomes, and its length.
    ///
    /// # Errors
    /// [`ErrorKind::Vocabulary`] if the map points outside of itself.
    fn longest(&self, text: &[u8]) -> Result<Option<(&str, usize)>> {
        let unit = |at: u32| self.units.get(at as usize).copied().ok_or_else(damaged);
        let base = |unit: u32| (unit >> 10) << ((unit & 1 << 9) >> 6);
        let (mut at, mut found) = (base(unit(0)?), None);
        for (n, &byte) in text.iter().enumerate().take_while(|(_, &byte)| byte != 0) {
            at ^= u32::from(byte);
            let here = unit(at)?;
            if here & (1 << 31 | 0xff) != u32::from(byte) {
                break;
            }
            at ^= base(here);
            if here >> 8 & 1 == 1 {
                found = Some((unit(at)? & !(1 << 31), n + 1));
            }
        }
        let Some((start, length)) = found else { return Ok(None) };
        let text = self.replacements.get(start as usize..).ok_or_else(damaged)?;
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        std::str::from_utf8(text).map(|text| Some((text, length))).map_err(|_| damaged())
    }
}

fn damaged() -> Error {
    Error::new(ErrorKind::Vocabulary, "the map of characters points outside of itself")
        .at("field tokenizer.ggml.precompiled_charsmap")
}
