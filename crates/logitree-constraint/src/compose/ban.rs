//! A constraint without some sequences of tokens: its matcher beside an automaton that finds the sequences (the finder of
//! reasoning blocks). Banned words are languages over bytes, and met as those.

use std::sync::Arc;

use super::searched::{Key, Searchable, SearchedMatcher};
use super::threads::is_complete;
use crate::finder::{Finder, START};
use crate::query::ByteTokens;
use crate::Matcher;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::{ids, remove_bits, words_for, AllowedTokens};
use logitree_tokens::vocabulary::Vocabulary;

/// Tokens that banned sequences may have together.
pub const MAX_BANNED_TOKENS: usize = 1 << 20;

/// What all states share.
struct Banned {
    finder: Finder,
    ends: Box<[TokenId]>,
    size: usize,
    spelling: ByteTokens,
    /// Of each node, whether a text that tokens of one byte spell may still complete a sequence.
    risky: Vec<bool>,
}

/// A matcher, and the node of the finder after its tokens.
#[derive(Clone)]
pub(super) struct BanState {
    banned: Arc<Banned>,
    inner: Box<dyn Matcher>,
    bytewise: bool,
    nodes: Vec<u32>,
}

/// A matcher that allows what `inner` does, but none of `sequences` anywhere in the output.
///
/// # Errors
/// [`ErrorKind::Constraint`] if a sequence is empty or has a token that is not in the vocabulary, or if nothing is left;
/// [`ErrorKind::Limit`] past [`MAX_BANNED_TOKENS`], or if what is left is not decided within the limits.
pub(super) fn without(
    inner: Box<dyn Matcher>,
    sequences: &[Vec<TokenId>],
    vocabulary: &Arc<Vocabulary>,
) -> Result<Box<dyn Matcher>> {
    let total: usize = sequences.iter().map(Vec::len).sum();
    if total > MAX_BANNED_TOKENS {
        let message = format!("banned sequences of {total} tokens, more than {MAX_BANNED_TOKENS}");
        return Err(Error::new(ErrorKind::Limit, message));
    }
    if sequences.iter().any(Vec::is_empty) {
        return Err(Error::new(ErrorKind::Constraint, "an empty sequence of tokens is banned")
            .help("it is in every output: leave it out"));
    }
    for &token in sequences.iter().flatten() {
        vocabulary.check(token).map_err(|error| Error { kind: ErrorKind::Constraint, ..error })?;
    }
    let spelling = ByteTokens::new(vocabulary);
    let finder = Finder::new(sequences);
    let risky = finder.completable(|token| spelling.contains(token) || !spelling.is_whole());
    let banned =
        Banned { finder, ends: vocabulary.end_tokens().into(), size: vocabulary.len(), spelling, risky };
    let bytewise = inner.bytewise().is_some();
    let state = BanState { banned: Arc::new(banned), inner, bytewise, nodes: vec![START] };
    Ok(Box::new(SearchedMatcher::new(state, vocabulary, false, "everything is banned")?))
}

impl BanState {
    fn node(&self) -> u32 {
        self.nodes.last().copied().unwrap_or(START)
    }
}

impl Searchable for BanState {
    fn key(&self) -> Option<Key> {
        Some((self.inner.state()?, u64::from(self.node())))
    }

    fn is_complete(&mut self) -> Result<bool> {
        is_complete(&mut *self.inner, &self.banned.ends)
    }

    fn write(&mut self, words: &mut [u32]) -> Result<()> {
        words.fill(0);
        if self.inner.is_finished() {
            return Ok(());
        }
        self.inner.write(words)?;
        let mut completing = Vec::new();
        self.banned.finder.completions(self.node(), &mut completing);
        remove_bits(words, &completing);
        Ok(())
    }

    fn tokens(&mut self) -> Result<Vec<TokenId>> {
        let mut words = vec![0; words_for(self.banned.size)];
        self.write(&mut words)?;
        remove_bits(&mut words, &self.banned.ends);
        // Where a byte is banned, longer tokens may still spell it.
        let first =
            self.banned.spelling.enough(&AllowedTokens::Mask(&words), self.banned.size, self.bytewise);
        let mut rest: Vec<TokenId> = ids(&words).filter(|id| !first.contains(id)).collect();
        let mut all = first;
        all.append(&mut rest);
        Ok(all)
    }

    fn take(&mut self, token: TokenId) -> Result<bool> {
        let node = self.banned.finder.step(self.node(), token);
        if self.banned.finder.is_found(node) || self.inner.is_finished() || !self.inner.take(token)? {
            return Ok(false);
        }
        self.nodes.push(node);
        Ok(true)
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        self.inner.rollback(n)?;
        self.nodes.truncate(self.nodes.len() - n);
        Ok(())
    }

    /// What matters only by its bytes can be completed in tokens of one byte, unless those complete a sequence.
    fn keeps_completable(&mut self, token: TokenId) -> bool {
        self.bytewise && !self.banned.risky[self.banned.finder.step(self.node(), token) as usize]
    }

    fn matchers(&self) -> Vec<&dyn Matcher> {
        vec![&*self.inner]
    }

    fn matchers_mut(&mut self) -> Vec<&mut Box<dyn Matcher>> {
        vec![&mut self.inner]
    }
}
