//! At least or at most so many tokens: a matcher beside the number of its tokens.
//!
//! With a minimum, a token is allowed only if a long enough output continues so; with a maximum, only if the output can be
//! completed with the tokens that are left. For that the fewest tokens that complete a state must be known: the shortest
//! ending in bytes, in the longest tokens, is enough where it fits, and where it does not, a search tries all sequences
//! of so many tokens. The slow version tries every sequence.

use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashSet;

use super::search::{Known, MAX_TRIED};
use super::searched::{Key, Searchable, SearchedMatcher};
use super::threads::is_complete;
use crate::query::{shortest_ending, ByteTokens};
use crate::Matcher;
use crate::{interrupt, Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::{ids, remove_bits, words_for};
use logitree_tokens::memo::Memo;
use logitree_tokens::vocabulary::Vocabulary;

/// States that a search for a shortest ending may visit.
const MAX_STATES: usize = 20_000;
/// A longer rest than this is not searched for exactly.
const MAX_REST: usize = 24;
/// States whose followers and endings are remembered.
const MAX_KEPT: usize = 1 << 16;
/// Tokens that are tried between two checks for an interrupt.
const AT_ONCE: usize = 1 << 8;
/// Steps that a token is charged for.
const TAKE: u64 = 8;

/// How many tokens there must be, or may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TokenCount {
    AtLeast(usize),
    AtMost(usize),
}

/// The states after one state: each with its number and a token that leads there.
type Followers = Arc<[(u64, TokenId)]>;

/// What all states share.
struct Shared {
    bound: TokenCount,
    vocabulary: Arc<Vocabulary>,
    spelling: ByteTokens,
    longest: usize,
    followers: Mutex<Memo<u64, Followers, MAX_KEPT>>,
    /// Of states, the number of tokens of an ending, and the fewest bytes of one.
    endings: Mutex<Memo<u64, Option<Ending>, MAX_KEPT>>,
}

/// A shortest ending in bytes.
#[derive(Debug, Clone, Copy)]
struct Ending {
    tokens: usize,
    /// The fewest bytes, where tokens matter only by their bytes.
    bytes: Option<usize>,
}

/// A matcher, and how many tokens it took.
#[derive(Clone)]
pub(super) struct Counted {
    shared: Arc<Shared>,
    inner: Box<dyn Matcher>,
    bytewise: bool,
    count: usize,
}

/// A matcher of the outputs of `inner` with so many tokens, those that end the generation not counted.
///
/// # Errors
/// [`ErrorKind::Constraint`] if there is no such output; [`ErrorKind::Limit`] if that is not decided within the limits.
pub(super) fn counted(
    inner: Box<dyn Matcher>,
    bound: TokenCount,
    vocabulary: &Arc<Vocabulary>,
) -> Result<Box<dyn Matcher>> {
    let longest =
        (0..vocabulary.len() as TokenId).map(|id| vocabulary.token_bytes(id).len()).max().unwrap_or(1).max(1);
    let shared = Shared {
        bound,
        vocabulary: Arc::clone(vocabulary),
        spelling: ByteTokens::new(vocabulary),
        longest,
        followers: Mutex::default(),
        endings: Mutex::default(),
    };
    let bytewise = inner.bytewise().is_some();
    let state = Counted { shared: Arc::new(shared), inner, bytewise, count: 0 };
    let (empty, deep) = match bound {
        TokenCount::AtLeast(n) => (format!("no output has {n} tokens or more"), true),
        TokenCount::AtMost(n) => (format!("no output has {n} tokens or fewer"), false),
    };
    Ok(Box::new(SearchedMatcher::new(state, vocabulary, deep, &empty)?))
}

impl Shared {
    fn endings(&self) -> MutexGuard<'_, Memo<u64, Option<Ending>, MAX_KEPT>> {
        interrupt::lock(&self.endings)
    }

    fn followers(&self) -> MutexGuard<'_, Memo<u64, Followers, MAX_KEPT>> {
        interrupt::lock(&self.followers)
    }

    /// An ending of few tokens; `None` if none was found within the limits.
    fn ending(&self, inner: &dyn Matcher, bytewise: bool) -> Result<Option<Ending>> {
        let state = inner.state();
        if let Some(known) = state.and_then(|state| self.endings().get(&state)) {
            return Ok(known);
        }
        let found = match shortest_ending(inner, &self.vocabulary, MAX_STATES) {
            Ok(tokens) => {
                let bytes = tokens.iter().map(|&id| self.vocabulary.token_bytes(id).len()).sum();
                let bytes = (bytewise && self.spelling.is_whole()).then_some(bytes);
                Some(Ending { tokens: tokens.len(), bytes })
            }
            Err(error) if error.kind == ErrorKind::Limit && !interrupt::must_end() => None,
            Err(error) if error.kind == ErrorKind::Constraint => None,
            Err(error) => return Err(error),
        };
        Ok(state.map_or(found, |state| self.endings().keep(state, found)))
    }
}

impl Counted {
    /// The tokens that may still come, with a maximum.
    fn left(&self) -> usize {
        match self.shared.bound {
            TokenCount::AtLeast(_) => usize::MAX,
            TokenCount::AtMost(most) => most.saturating_sub(self.count),
        }
    }

    /// The tokens that must still come, with a minimum.
    fn missing(&self) -> usize {
        match self.shared.bound {
            TokenCount::AtLeast(least) => least.saturating_sub(self.count),
            TokenCount::AtMost(_) => 0,
        }
    }

    /// The states after this one, each once; `None` where states have no numbers.
    fn followers(&mut self, words: &[u32]) -> Result<Option<Followers>> {
        let Some(state) = self.inner.state() else { return Ok(None) };
        if let Some(known) = self.shared.followers().get(&state) {
            return Ok(Some(known));
        }
        let (mut seen, mut made) = (FxHashSet::default(), Vec::new());
        for (tried, token) in ids(words).enumerate() {
            if tried % AT_ONCE == 0 {
                interrupt::consume(TAKE * AT_ONCE as u64);
                interrupt::check()?;
            }
            if !self.inner.take(token)? {
                continue;
            }
            let state = self.inner.state();
            self.inner.rollback(1)?;
            let Some(state) = state else { return Ok(None) };
            if seen.insert(state) {
                made.push((state, token));
            }
        }
        Ok(Some(self.shared.followers().keep(state, made.into())))
    }

    /// Whether at most `left` tokens complete the output.
    fn ends_within(&mut self, left: usize) -> Result<bool> {
        if is_complete(&mut *self.inner, self.shared.vocabulary.end_tokens())? {
            return Ok(true);
        }
        if left == 0 {
            return Ok(false);
        }
        let shared = Arc::clone(&self.shared);
        if let Some(ending) = shared.ending(&*self.inner, self.bytewise)? {
            if ending.tokens <= left {
                return Ok(true);
            }
            if ending.bytes.is_some_and(|bytes| bytes > left.saturating_mul(shared.longest)) {
                return Ok(false);
            }
        }
        if left > MAX_REST {
            return Err(undecided(left));
        }
        let mut search = Exact { dead: FxHashSet::default(), tried: 0 };
        search.ends(&mut *self.inner, left, &shared)
    }
}

/// A search through all sequences of a few tokens.
struct Exact {
    /// States that cannot be completed with so many tokens.
    dead: FxHashSet<(u64, usize)>,
    tried: usize,
}

impl Exact {
    /// Recurses at most [`MAX_REST`] deep.
    fn ends(&mut self, inner: &mut dyn Matcher, left: usize, shared: &Shared) -> Result<bool> {
        if is_complete(inner, shared.vocabulary.end_tokens())? {
            return Ok(true);
        }
        let key = inner.state().map(|state| (state, left));
        if left == 0 || inner.is_finished() || key.is_some_and(|key| self.dead.contains(&key)) {
            return Ok(false);
        }
        let tokens: Vec<TokenId> = inner.allowed()?.ids(shared.vocabulary.len()).collect();
        for token in tokens {
            self.tried += 1;
            if self.tried > 8 * MAX_TRIED {
                return Err(undecided(left));
            }
            if self.tried.is_multiple_of(AT_ONCE) {
                interrupt::consume(TAKE * AT_ONCE as u64);
                interrupt::check()?;
            }
            if shared.vocabulary.end_tokens().contains(&token) || !inner.take(token)? {
                continue;
            }
            let found = self.ends(inner, left - 1, shared);
            inner.rollback(1)?;
            if found? {
                return Ok(true);
            }
        }
        self.dead.extend(key);
        Ok(false)
    }
}

fn undecided(left: usize) -> Error {
    let message = format!("whether {left} tokens can complete the output is not decided within the limits");
    Error::new(ErrorKind::Limit, message).help("allow more tokens")
}

impl Searchable for Counted {
    fn key(&self) -> Option<Key> {
        let count = match self.shared.bound {
            TokenCount::AtLeast(_) => self.missing(),
            TokenCount::AtMost(_) => self.left(),
        };
        Some((self.inner.state()?, count as u64))
    }

    fn is_complete(&mut self) -> Result<bool> {
        Ok(self.missing() == 0 && is_complete(&mut *self.inner, self.shared.vocabulary.end_tokens())?)
    }

    fn write(&mut self, words: &mut [u32]) -> Result<()> {
        words.fill(0);
        if self.inner.is_finished() || self.left() == 0 {
            return Ok(());
        }
        self.inner.write(words)
    }

    fn tokens(&mut self) -> Result<Vec<TokenId>> {
        let size = self.shared.vocabulary.len();
        let mut words = vec![0; words_for(size)];
        self.write(&mut words)?;
        remove_bits(&mut words, self.shared.vocabulary.end_tokens());
        // The more tokens the better: those of one byte are the most.
        let allowed = logitree_tokens::mask::AllowedTokens::Mask(&words);
        Ok(self.shared.spelling.enough(&allowed, size, self.bytewise))
    }

    fn take(&mut self, token: TokenId) -> Result<bool> {
        if self.left() == 0 || self.inner.is_finished() || !self.inner.take(token)? {
            return Ok(false);
        }
        self.count += 1;
        Ok(true)
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        self.inner.rollback(n)?;
        self.count -= n;
        Ok(())
    }

    fn can_complete(&mut self, known: &Known) -> Result<bool> {
        match self.shared.bound {
            TokenCount::AtMost(_) => self.ends_within(self.left()),
            // Whatever is allowed can be completed.
            TokenCount::AtLeast(_) if self.missing() == 0 => Ok(true),
            TokenCount::AtLeast(_) => known.can_complete(self.clone()),
        }
    }

    fn all_keep_completable(&mut self, known: &Known, words: &[u32]) -> Result<bool> {
        if matches!(self.shared.bound, TokenCount::AtLeast(_)) && self.missing() <= 1 {
            return Ok(true);
        }
        let Some(followers) = self.followers(words)? else { return Ok(false) };
        for &(state, token) in &*followers {
            let fits = match self.shared.bound {
                TokenCount::AtMost(_) => {
                    let ending = self.shared.endings().get(&state).flatten();
                    ending.is_some_and(|ending| ending.tokens < self.left())
                }
                TokenCount::AtLeast(_) => known.get(&(state, self.missing() as u64 - 1)) == Some(true),
            };
            if fits {
                continue;
            }
            if !self.take(token)? {
                return Ok(false);
            }
            let alive = self.can_complete(known);
            self.rollback(1)?;
            if !alive? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn matchers(&self) -> Vec<&dyn Matcher> {
        vec![&*self.inner]
    }

    fn matchers_mut(&mut self) -> Vec<&mut Box<dyn Matcher>> {
        vec![&mut self.inner]
    }
}
