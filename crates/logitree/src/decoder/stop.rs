//! Stop conditions: end of generation, a number of tokens, stop strings (bytes).

use crate::vocabulary::Vocabulary;
use crate::{Error, ErrorKind, Result, TokenId};

/// Why decoding is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The constraint is over.
    Constraint,
    /// The model ended its turn.
    EndOfGeneration,
    /// A stop string appeared: its index.
    StopString(usize),
    /// The greatest number of tokens was reached.
    MaxTokens,
}

impl Finish {
    /// The lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Finish::Constraint => "constraint",
            Finish::EndOfGeneration => "end_of_generation",
            Finish::StopString(_) => "stop",
            Finish::MaxTokens => "max_tokens",
        }
    }
}

/// When to stop, apart from the constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    max_tokens: Option<usize>,
    strings: Vec<Vec<u8>>,
    longest: usize,
    at_end_of_generation: bool,
}

impl Default for Stop {
    /// Stops at an end-of-generation token only.
    fn default() -> Self {
        Stop { max_tokens: None, strings: Vec::new(), longest: 0, at_end_of_generation: true }
    }
}

impl Stop {
    /// Stops at an end-of-generation token (unless `at_end_of_generation` is false), after `max_tokens`, and where
    /// one of the byte strings appears in the text. A special token's name is no text.
    ///
    /// # Errors
    /// [`ErrorKind::State`] for an empty stop string: it would stop before the first token.
    pub fn new(max_tokens: Option<usize>, strings: Vec<Vec<u8>>, at_end_of_generation: bool) -> Result<Self> {
        if let Some(at) = strings.iter().position(Vec::is_empty) {
            return Err(Error::new(ErrorKind::State, "an empty stop string stops before the first token")
                .at(format!("stop[{at}]"))
                .help("leave it out"));
        }
        let longest = strings.iter().map(Vec::len).max().unwrap_or(0);
        Ok(Stop { max_tokens, strings, longest, at_end_of_generation })
    }

    /// How many tokens may still come after `length` of them.
    pub(super) fn left(&self, length: usize) -> usize {
        self.max_tokens.map_or(usize::MAX, |max| max.saturating_sub(length))
    }

    /// Whether decoding is over after `tokens`. Inside a constraint the end-of-generation ids and stop strings are
    /// the constraint's business: what it allows is wanted. The token that completes it counts as outside, so that an
    /// end of generation that ends a span ends decoding too.
    pub(super) fn check(
        &self,
        vocabulary: &Vocabulary,
        tokens: &[TokenId],
        constrained: bool,
    ) -> Option<Finish> {
        if !constrained {
            let last = tokens.last();
            if self.at_end_of_generation
                && last.is_some_and(|id| vocabulary.end_tokens().binary_search(id).is_ok())
            {
                return Some(Finish::EndOfGeneration);
            }
            if let Some(at) = self.string_at_end(vocabulary, tokens) {
                return Some(Finish::StopString(at));
            }
        }
        (self.left(tokens.len()) == 0).then_some(Finish::MaxTokens)
    }

    /// The first stop string that the last token completed. Only the bytes that can matter are put together: the last
    /// token's and the `longest - 1` before them.
    fn string_at_end(&self, vocabulary: &Vocabulary, tokens: &[TokenId]) -> Option<usize> {
        let (&last, before) = tokens.split_last()?;
        if self.strings.is_empty() {
            return None;
        }
        let text_of = |id: TokenId| match vocabulary.kind(id).is_text() {
            true => vocabulary.token_bytes(id),
            false => &[],
        };
        let mut from = before.len();
        let mut reach = 0;
        while from > 0 && reach + 1 < self.longest {
            from -= 1;
            reach += text_of(before[from]).len();
        }
        let mut text: Vec<u8> = before[from..].iter().flat_map(|&id| text_of(id)).copied().collect();
        let old = text.len();
        text.extend_from_slice(text_of(last));
        self.strings.iter().position(|stop| {
            let first = (old + 1).saturating_sub(stop.len());
            text[first..].windows(stop.len()).any(|window| window == stop)
        })
    }
}
