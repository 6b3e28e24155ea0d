//! The pre-tokenizer: cuts a text into pieces. No token crosses a piece's border.
//!
//! Its patterns work one after the other: the second cuts the pieces that the first left, and so on. A piece is a text of
//! its own for the next pattern, which sees nothing before or after it.

use super::classes::Classes;
use super::ordered_nfa::{Behaviour, Stage};
use super::pattern::{self, Pattern};
use crate::Result;

/// A pre-tokenizer.
pub(super) struct Splitter {
    pub classes: Classes,
    pub stages: Vec<Stage>,
}

impl Splitter {
    /// The pre-tokenizer of these patterns of a GGUF, whose matches are pieces; without any, a text is one piece.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Vocabulary`] if a pattern is not read.
    pub fn new(patterns: &[&str]) -> Result<Splitter> {
        let parsed =
            patterns.iter().map(|text| Ok((pattern::parse_as_llama_cpp(text)?, Behaviour::Isolated)));
        Splitter::of(&parsed.collect::<Result<Vec<_>>>()?)
    }

    /// The pre-tokenizer of patterns and what becomes of their matches.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Vocabulary`] if a pattern is too large.
    pub fn of(patterns: &[(Pattern, Behaviour)]) -> Result<Splitter> {
        let classes = Classes::new(patterns.iter().map(|(pattern, _)| pattern))?;
        let stage = |(pattern, behaviour): &(Pattern, Behaviour)| Stage::new(pattern, *behaviour, &classes);
        let stages = patterns.iter().map(stage).collect::<Result<_>>()?;
        Ok(Splitter { classes, stages })
    }

    /// Calls `each` with the pieces of `text` in order.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn pieces(&self, text: &str, mut each: impl FnMut(&str) -> Result<()>) -> Result<()> {
        if self.stages.is_empty() {
            return if text.is_empty() { Ok(()) } else { each(text) };
        }
        let classes: Vec<u8> = text.chars().map(|c| self.classes.of(c)).collect();
        let (mut ends, mut before, mut scratch) = (vec![classes.len()], Vec::new(), Vec::new());
        for stage in &self.stages {
            std::mem::swap(&mut ends, &mut before);
            ends.clear();
            let mut start = 0;
            for &end in &before {
                stage.split(&classes[start..end], start, &mut scratch, &mut ends);
                start = end;
            }
        }
        let mut rest = Rest { text, at: 0 };
        ends.into_iter().try_for_each(|end| each(rest.up_to(end)))
    }

    /// Calls `each` with the matches of the first pattern and what lies between them, and whether it is a match.
    pub fn matches(&self, text: &str, mut each: impl FnMut(&str, bool)) {
        let classes: Vec<u8> = text.chars().map(|c| self.classes.of(c)).collect();
        let mut rest = Rest { text, at: 0 };
        for stage in self.stages.iter().take(1) {
            stage.parts(&classes, &mut Vec::new(), |end, is_match| each(rest.up_to(end), is_match));
        }
    }
}

/// What is left of a text.
struct Rest<'a> {
    text: &'a str,
    /// The number of its first character.
    at: usize,
}

impl<'a> Rest<'a> {
    /// Takes what is before a character.
    fn up_to(&mut self, end: usize) -> &'a str {
        let bytes = self.text.char_indices().nth(end - self.at).map_or(self.text.len(), |(at, _)| at);
        let (piece, after) = self.text.split_at(bytes);
        (self.text, self.at) = (after, end);
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::patterns::{DEEPSEEK_LLM, GPT2, LLAMA3, QWEN2};

    fn pieces(splitter: &Splitter, text: &str) -> Vec<String> {
        let mut all = Vec::new();
        let keep = |piece: &str| {
            all.push(piece.to_string());
            Ok(())
        };
        splitter.pieces(text, keep).unwrap();
        assert_eq!(all.concat(), text);
        all
    }

    #[test]
    fn pieces_are_those_of_a_backtracking_engine() {
        let gpt2 = Splitter::new(&[GPT2]).unwrap();
        assert_eq!(
            pieces(&gpt2, "I'll run  at \n\n x12 'tis"),
            ["I", "'ll", " run", " ", " at", " \n\n", " x", "12", " '", "tis"]
        );
        assert_eq!(pieces(&gpt2, "a  "), ["a", "  "]);
        let llama = Splitter::new(&[LLAMA3]).unwrap();
        assert_eq!(
            pieces(&llama, "1234567 {\"a\":  \n\n  true}"),
            ["123", "456", "7", " {\"", "a", "\":", "  \n\n", " ", " true", "}"]
        );
        assert_eq!(pieces(&llama, "we'LL"), ["we", "'LL"]);
        let qwen = Splitter::new(&[QWEN2]).unwrap();
        assert_eq!(pieces(&qwen, "12 ab"), ["1", "2", " ab"]);
        let deepseek = Splitter::new(&DEEPSEEK_LLM).unwrap();
        assert_eq!(
            pieces(&deepseek, "ab 12\n\n  \u{4e00}x  "),
            ["ab", " ", "12", "\n", "\n", "  ", "\u{4e00}", "x", "  "]
        );
        assert!(pieces(&gpt2, "").is_empty());
    }

    #[test]
    fn a_run_that_fails_everywhere_takes_time_in_its_length_only() {
        let splitter = Splitter::new(&[r"\s+$"]).unwrap();
        let text = " ".repeat(200_000) + "x";
        assert_eq!(pieces(&splitter, &text), [text]);
    }
}
