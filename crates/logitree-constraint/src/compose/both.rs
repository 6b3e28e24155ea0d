//! What two constraints both allow, token by token: their matchers take the same tokens. Where both look at bytes only, their
//! languages meet instead (`language/product.rs`); the slow version compares all sequences of tokens of both.

use std::sync::Arc;

use super::searched::{Key, Searchable, SearchedMatcher};
use super::threads::is_complete;
use crate::Matcher;
use crate::{Result, TokenId};
use logitree_tokens::mask::{ids, remove_bits, words_for};
use logitree_tokens::vocabulary::Vocabulary;

/// Two matchers that took the same tokens.
#[derive(Clone)]
pub(super) struct Both {
    sides: [Box<dyn Matcher>; 2],
    ends: Arc<[TokenId]>,
    size: usize,
}

/// A matcher of what both allow.
///
/// # Errors
/// [`crate::ErrorKind::Constraint`] if they have no output in common; [`crate::ErrorKind::Limit`] if that is not decided
/// within the limits; those of the matchers.
pub(super) fn both(
    a: Box<dyn Matcher>,
    b: Box<dyn Matcher>,
    vocabulary: &Arc<Vocabulary>,
) -> Result<Box<dyn Matcher>> {
    let state = Both { sides: [a, b], ends: vocabulary.end_tokens().into(), size: vocabulary.len() };
    Ok(Box::new(SearchedMatcher::new(state, vocabulary, false, "the intersection is empty")?))
}

impl Searchable for Both {
    fn key(&self) -> Option<Key> {
        Some((self.sides[0].state()?, self.sides[1].state()?))
    }

    fn is_complete(&mut self) -> Result<bool> {
        for side in &mut self.sides {
            if !is_complete(&mut **side, &self.ends)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn write(&mut self, words: &mut [u32]) -> Result<()> {
        words.fill(0);
        if self.sides.iter().any(|side| side.is_finished()) {
            return Ok(());
        }
        self.sides[0].write(words)?;
        let mut others = vec![0; words.len()];
        self.sides[1].write(&mut others)?;
        words.iter_mut().zip(others).for_each(|(word, other)| *word &= other);
        Ok(())
    }

    fn tokens(&mut self) -> Result<Vec<TokenId>> {
        let mut words = vec![0; words_for(self.size)];
        self.write(&mut words)?;
        remove_bits(&mut words, &self.ends);
        Ok(ids(&words).collect())
    }

    fn take(&mut self, token: TokenId) -> Result<bool> {
        if self.sides.iter().any(|side| side.is_finished()) || !self.sides[0].take(token)? {
            return Ok(false);
        }
        let taken = self.sides[1].take(token);
        if !matches!(taken, Ok(true)) {
            self.sides[0].rollback(1)?;
        }
        taken
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        self.sides.iter_mut().try_for_each(|side| side.rollback(n))
    }

    fn matchers(&self) -> Vec<&dyn Matcher> {
        self.sides.iter().map(|side| &**side).collect()
    }

    fn matchers_mut(&mut self) -> Vec<&mut Box<dyn Matcher>> {
        self.sides.iter_mut().collect()
    }
}
