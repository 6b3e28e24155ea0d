//! Masks of one matcher or of many, written where the caller wants them.
//!
//! A batch is a loop of [`fill`]: a row depends on its matcher alone, so that the number of rows, their order and the
//! number of threads change nothing.

use crate::Matcher;
use crate::{Error, ErrorKind, Result};
use logitree_tokens::mask::words_for;
use logitree_tokens::threads;

/// Nanoseconds that a row takes, roughly: one whose mask is cached, and one whose mask must be computed. A second thread
/// is worth its start from 200 of the one or 3 of the other.
const COPIED: u64 = 1_000;
const COMPUTED: u64 = 67_000;

/// Writes the allowed tokens of `matcher` over `words`. Words past the vocabulary are 0, or all ones where nothing is
/// masked.
///
/// # Errors
/// [`ErrorKind::Mask`] if there are fewer words than the vocabulary needs; else those of [`Matcher::allowed`].
pub fn fill(matcher: &mut dyn Matcher, words: &mut [u32]) -> Result<()> {
    let least = words_for(matcher.vocabulary_size());
    if words.len() < least {
        let message = format!("the mask has {} words, and the vocabulary needs {least}", words.len());
        return Err(
            Error::new(ErrorKind::Mask, message).help("give one word for each 32 token ids, rounded up")
        );
    }
    if words.len() > least && matcher.is_finished() && matcher.after_end().is_free() {
        words.fill(u32::MAX);
        return Ok(());
    }
    matcher.write(words)
}

/// [`fill`] for each matcher and its row, in at most `threads` threads; 0 means as many as there are cores.
///
/// # Errors
/// [`ErrorKind::Mask`] if there are not as many rows as matchers; nothing is written then. Else the first row's error,
/// with the row in its place (`row 3`): all other rows are written.
pub fn fill_batch(
    matchers: &mut [&mut Box<dyn Matcher>],
    rows: Vec<&mut [u32]>,
    threads: usize,
) -> Result<()> {
    if rows.len() != matchers.len() {
        let message = format!("{} rows of masks for {} matchers", rows.len(), matchers.len());
        return Err(Error::new(ErrorKind::Mask, message).help("give one row for each matcher"));
    }
    let cost = matchers.iter().map(|matcher| if matcher.is_ready() { COPIED } else { COMPUTED }).sum();
    let items = matchers.iter_mut().zip(rows);
    let filled = threads::map(items, threads, cost, |(matcher, row)| fill(&mut ***matcher, row));
    threads::all(filled).map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{BoundOneOf, End};
    use logitree_tokens::vocabulary::{Builder, TokenKind, VocabularyOptions};
    use logitree_tokens::TokenId;

    fn matcher(text: &str) -> Box<dyn Matcher> {
        bound(text, &[])
    }

    fn bound(text: &str, ends: &[TokenId]) -> Box<dyn Matcher> {
        let mut builder = Builder::new();
        for byte in b'a'..=b'z' {
            builder.push(TokenKind::Normal, &[byte]).unwrap();
        }
        let about = VocabularyOptions { end_tokens: ends.to_vec(), ..VocabularyOptions::default() };
        let vocabulary = Arc::new(builder.build(about).unwrap());
        BoundOneOf::new(&[text], &vocabulary, &End::default()).unwrap().matcher()
    }

    #[test]
    fn rows_are_those_of_single_calls_in_any_number_of_threads() {
        let texts = ["a", "b", "cd", "zz", "q", "x"];
        for threads in [0, 1, 2, 7] {
            let mut all: Vec<_> = texts.iter().map(|text| matcher(text)).collect();
            let mut borrowed: Vec<_> = all.iter_mut().collect();
            let mut words = vec![[7u32; 2]; texts.len()];
            fill_batch(&mut borrowed, words.iter_mut().map(|w| &mut w[..]).collect(), threads).unwrap();
            for (text, row) in texts.iter().zip(&words) {
                assert_eq!(row, &[1 << (text.as_bytes()[0] - b'a'), 0]);
            }
        }
    }

    #[test]
    fn a_matcher_that_is_over_leaves_its_end_tokens_and_short_rows_are_refused() {
        let mut over = bound("a", &[5, 9]);
        over.accept(0).unwrap();
        let mut words = [7; 2];
        fill(&mut *over, &mut words).unwrap();
        assert_eq!(words, [1 << 5 | 1 << 9, 0]);
        over.accept(9).unwrap();
        fill(&mut *over, &mut words).unwrap();
        assert_eq!(words, [1 << 5 | 1 << 9, 0]);
        let mut endless = matcher("a");
        endless.accept(0).unwrap();
        assert_eq!(fill(&mut *endless, &mut words).unwrap_err().kind, ErrorKind::State);
        assert_eq!(fill(&mut *over, &mut []).unwrap_err().kind, ErrorKind::Mask);
        let mut good = matcher("b");
        let mut row = [0; 1];
        let error = fill_batch(&mut [&mut over, &mut good], vec![&mut [], &mut row], 1).unwrap_err();
        assert_eq!((error.place.as_str(), row), ("row 0", [2]));
        assert!(fill_batch(&mut [&mut over], vec![], 1).is_err());
    }
}
