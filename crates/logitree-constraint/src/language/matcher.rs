//! The matcher of a language over bytes: the vocabulary's trie walked with it. The naive version feeds each token's bytes
//! to the language.
//!
//! Where states are numbered, their transitions and masks are kept for all matchers of the language; else a walk asks the
//! language at every node.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::{ByteLanguage, ByteState, Bytewise};
use crate::{AfterEnd, ByteWalk, Certain, Matcher, Sequence, States};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_grammar::expr::ByteSet;
use logitree_tokens::mask::{self, words_for, AllowedTokens, TokenSet};
use logitree_tokens::trie::Recognizer;
use logitree_tokens::vocabulary::Vocabulary;

/// Bytes of transitions and masks that are kept; then all are forgotten.
const MAX_KEPT: usize = 64 << 20;
/// Past this length a list is slower to search than a row is to index.
const FEW: usize = 12;
/// No text continues so.
const DEAD: u32 = u32::MAX;
/// Not computed yet.
const UNKNOWN: u32 = u32::MAX - 1;

/// A numbered state and what is known of its transitions.
struct Row {
    number: u64,
    few: Vec<(u8, u32)>,
    all: Option<Box<[u32; 256]>>,
}

#[derive(Default)]
struct Tables {
    index: FxHashMap<u64, u32>,
    rows: Vec<Row>,
    masks: FxHashMap<u64, TokenSet>,
    overs: FxHashMap<u64, bool>,
    bytes: usize,
}

impl Tables {
    fn make_room(&mut self) {
        if self.bytes > MAX_KEPT {
            *self = Tables::default();
        }
    }

    fn row(&mut self, number: u64) -> u32 {
        *self.index.entry(number).or_insert_with(|| {
            self.rows.push(Row { number, few: Vec::new(), all: None });
            self.bytes += size_of::<Row>() + 32;
            self.rows.len() as u32 - 1
        })
    }

    #[inline]
    fn get(&self, row: u32, byte: u8) -> u32 {
        let row = &self.rows[row as usize];
        match &row.all {
            Some(all) => all[usize::from(byte)],
            None => row.few.iter().find(|step| step.0 == byte).map_or(UNKNOWN, |step| step.1),
        }
    }

    fn put(&mut self, row: u32, byte: u8, to: u32) {
        let row = &mut self.rows[row as usize];
        match &mut row.all {
            Some(all) => all[usize::from(byte)] = to,
            None if row.few.len() < FEW => {
                row.few.push((byte, to));
                self.bytes += 8;
            }
            None => {
                let mut all = Box::new([UNKNOWN; 256]);
                row.few.drain(..).for_each(|(byte, to)| all[usize::from(byte)] = to);
                all[usize::from(byte)] = to;
                row.all = Some(all);
                self.bytes += 1 << 10;
            }
        }
    }
}

/// What all matchers of a language and a vocabulary share.
struct Shared {
    language: Arc<dyn ByteLanguage>,
    vocabulary: Arc<Vocabulary>,
    after: AfterEnd,
    tables: Mutex<Tables>,
}

impl Shared {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The allowed tokens of a state at which the text is not over.
    fn allowed(&self, state: &ByteState, accepting: bool) -> Result<TokenSet> {
        let mut words = vec![0; words_for(self.vocabulary.len())];
        let trie = self.vocabulary.trie()?;
        let mut numbered = false;
        if let ByteState::Number(number) = state {
            let mut tables = self.tables();
            tables.make_room();
            let stack = vec![tables.row(*number)];
            let language = &*self.language;
            let mut walk = Numbered { language, tables, stack, failed: None, unnumbered: false };
            trie.allowed(&mut walk, &mut words)?;
            numbered = !walk.unnumbered;
            walk.failed.map_or(Ok(()), Err)?;
        }
        if !numbered {
            self.language.fill(state, trie, &mut words)?;
        }
        // What ends the generation is never text.
        let ends = self.vocabulary.end_of_generation();
        match accepting {
            true => mask::insert_bits(&mut words, ends),
            false => mask::remove_bits(&mut words, ends),
        }
        let allowed = TokenSet::from_words(words);
        if allowed.is_empty() {
            return Err(Error::new(
                ErrorKind::Constraint,
                "no token of the vocabulary continues the text here, although the constraint may",
            )
            .help("use a vocabulary that has a token for each byte that the text needs; a recogniser takes only bytes after which a text continues"));
        }
        Ok(allowed)
    }

    /// Keeps the mask of a numbered state.
    fn keep(&self, number: u64, made: TokenSet) -> TokenSet {
        let mut tables = self.tables();
        tables.bytes += made.bytes() + 32;
        tables.masks.insert(number, made.clone());
        made
    }

    /// Whether no byte may follow.
    fn is_over(&self, state: &ByteState) -> Result<bool> {
        if let Some(known) = state.number().and_then(|number| self.tables().overs.get(&number).copied()) {
            return Ok(known);
        }
        let over = self.language.is_over(state)?;
        if let Some(number) = state.number() {
            let mut tables = self.tables();
            tables.bytes += 24;
            tables.overs.insert(number, over);
        }
        Ok(over)
    }
}

/// A walk over numbered states.
struct Numbered<'a> {
    language: &'a dyn ByteLanguage,
    tables: MutexGuard<'a, Tables>,
    stack: Vec<u32>,
    failed: Option<Error>,
    /// Whether a state without a number was met, so that the walk says nothing.
    unnumbered: bool,
}

impl Numbered<'_> {
    #[cold]
    fn derive(&mut self, from: u32, byte: u8) -> u32 {
        if self.failed.is_some() || self.unnumbered {
            return DEAD;
        }
        let state = ByteState::Number(self.tables.rows[from as usize].number);
        let to = match self.language.step(&state, byte) {
            Ok(None) => DEAD,
            Ok(Some(next)) => match next.number() {
                Some(number) => self.tables.row(number),
                None => {
                    self.unnumbered = true;
                    return DEAD;
                }
            },
            Err(error) => {
                self.failed = Some(error);
                return DEAD;
            }
        };
        self.tables.put(from, byte, to);
        to
    }
}

impl Recognizer for Numbered<'_> {
    fn push(&mut self, byte: u8) -> bool {
        let Some(&from) = self.stack.last() else { return false };
        let to = match self.tables.get(from, byte) {
            UNKNOWN => self.derive(from, byte),
            known => known,
        };
        if to == DEAD {
            return false;
        }
        self.stack.push(to);
        true
    }

    fn pop(&mut self, n: usize) {
        self.stack.truncate(self.stack.len() - n);
    }
}

/// A walk over states without numbers.
pub(super) struct Plain<'a, L: ?Sized> {
    pub language: &'a L,
    pub stack: Vec<ByteState>,
    pub failed: Option<Error>,
}

impl<L: ByteLanguage + ?Sized> Recognizer for Plain<'_, L> {
    fn push(&mut self, byte: u8) -> bool {
        let Some(from) = self.stack.last().filter(|_| self.failed.is_none()) else { return false };
        match self.language.step(from, byte) {
            Ok(Some(next)) => {
                self.stack.push(next);
                true
            }
            Ok(None) => false,
            Err(error) => {
                self.failed = Some(error);
                false
            }
        }
    }

    fn pop(&mut self, n: usize) {
        self.stack.truncate(self.stack.len() - n);
    }
}

/// Where a sequence is.
#[derive(Clone)]
pub(crate) struct At {
    state: ByteState,
    accepting: bool,
    finished: bool,
    /// Whether a token ended the generation.
    ended: bool,
}

/// A walk over the states of a language whose states are all numbers.
struct LanguageWalk<'a>(&'a Shared);

impl ByteWalk for LanguageWalk<'_> {
    fn step(&mut self, state: u64, byte: u8) -> Result<Option<u64>> {
        let mut tables = self.0.tables();
        tables.make_room();
        let row = tables.row(state);
        let mut to = tables.get(row, byte);
        if to == UNKNOWN {
            let language = &*self.0.language;
            let mut walk = Numbered { language, tables, stack: Vec::new(), failed: None, unnumbered: false };
            to = walk.derive(row, byte);
            if let Some(error) = walk.failed {
                return Err(error);
            }
            if walk.unnumbered {
                return Err(Error::new(ErrorKind::State, "a state without a number"));
            }
            tables = walk.tables;
        }
        Ok((to != DEAD).then(|| tables.rows[to as usize].number))
    }

    fn bytes(&mut self, state: u64) -> Result<ByteSet> {
        let mut found = ByteSet::NONE;
        for byte in self.0.language.bytes(&ByteState::Number(state))?.iter() {
            if self.step(state, byte)?.is_some() {
                found = found.or(&ByteSet::one(byte));
            }
        }
        Ok(found)
    }

    fn ways(&mut self, state: u64) -> Result<Vec<(ByteSet, u64)>> {
        let mut ways: Vec<(ByteSet, u64)> = Vec::new();
        for byte in self.0.language.bytes(&ByteState::Number(state))?.iter() {
            let Some(next) = self.step(state, byte)? else { continue };
            match ways.iter_mut().find(|way| way.1 == next) {
                Some(way) => way.0 = way.0.or(&ByteSet::one(byte)),
                None => ways.push((ByteSet::one(byte), next)),
            }
        }
        Ok(ways)
    }

    fn is_end(&mut self, state: u64) -> Result<bool> {
        self.0.language.is_end(&ByteState::Number(state))
    }

    fn few(&mut self, state: u64, most: usize) -> Result<Option<Vec<TokenId>>> {
        let known = self.0.tables().masks.get(&state).cloned();
        let kept = match known {
            Some(kept) => kept,
            None => {
                let at = ByteState::Number(state);
                let accepting = self.0.language.is_end(&at)?;
                if accepting && self.0.is_over(&at)? {
                    return Ok(Some(self.0.vocabulary.end_of_generation().to_vec()));
                }
                self.0.keep(state, self.0.allowed(&at, accepting)?)
            }
        };
        Ok(kept.ids_up_to(most, self.0.vocabulary.len()))
    }
}

/// A matcher over a language.
pub(crate) type LanguageMatcher = Sequence<LanguageStates>;

/// The states of a language.
#[derive(Clone)]
pub(crate) struct LanguageStates {
    shared: Arc<Shared>,
    /// The mask of the present state, once it was asked for.
    mask: Option<TokenSet>,
}

impl LanguageMatcher {
    /// # Errors
    /// Those of the language and of the vocabulary's trie; [`ErrorKind::Constraint`] if no token may come first.
    pub fn new(language: Arc<dyn ByteLanguage>, vocabulary: &Arc<Vocabulary>) -> Result<LanguageMatcher> {
        vocabulary.trie()?;
        let state = language.start()?;
        let after = AfterEnd::tokens(&[], vocabulary.end_of_generation());
        let (vocabulary, tables) = (Arc::clone(vocabulary), Mutex::new(Tables::default()));
        let shared = Arc::new(Shared { language, vocabulary, after, tables });
        let states = LanguageStates { shared, mask: None };
        let at = states.at(state)?;
        let mut made = Sequence::begin(states, at);
        if !made.is_finished() {
            made.allowed()?;
        }
        Ok(made)
    }
}

impl LanguageStates {
    fn at(&self, state: ByteState) -> Result<At> {
        let accepting = self.shared.language.is_end(&state)?;
        let finished = accepting && self.shared.is_over(&state)?;
        Ok(At { state, accepting, finished, ended: false })
    }

    /// The state after as many of the bytes as may come, and how many those are.
    fn walked(&self, at: &At, bytes: &[u8]) -> Result<(ByteState, usize)> {
        let mut state = at.state.clone();
        for (n, &byte) in bytes.iter().enumerate() {
            match self.shared.language.step(&state, byte)? {
                Some(next) => state = next,
                None => return Ok((state, n)),
            }
        }
        Ok((state, bytes.len()))
    }
}

impl States for LanguageStates {
    type At = At;

    fn vocabulary_size(&self) -> usize {
        self.shared.vocabulary.len()
    }

    fn after_end(&self) -> &AfterEnd {
        &self.shared.after
    }

    fn is_accepting(&self, at: &At) -> bool {
        at.accepting
    }

    fn is_finished(&self, at: &At) -> bool {
        at.finished
    }

    fn allowed<'a>(&'a mut self, at: &'a At) -> Result<AllowedTokens<'a>> {
        let number = at.state.number();
        let mask = match self.mask.take() {
            Some(mask) => mask,
            None => match number.and_then(|number| self.shared.tables().masks.get(&number).cloned()) {
                Some(known) => known,
                None => {
                    let made = self.shared.allowed(&at.state, at.accepting)?;
                    match number {
                        Some(number) => self.shared.keep(number, made),
                        None => made,
                    }
                }
            },
        };
        self.mask.insert(mask).borrow().ok_or_else(|| Error::new(ErrorKind::State, "no mask"))
    }

    fn next(&mut self, at: &At, token: TokenId) -> Result<Option<At>> {
        let vocabulary = &self.shared.vocabulary;
        let next = if vocabulary.end_of_generation().contains(&token) {
            at.accepting.then(|| At { finished: true, ended: true, ..at.clone() })
        } else if token as usize >= vocabulary.len() || !vocabulary.kind(token).is_text() {
            None
        } else {
            let bytes = vocabulary.token_bytes(token);
            let (state, taken) = self.walked(at, bytes)?;
            if taken == 0 || taken < bytes.len() {
                return Ok(None);
            }
            Some(self.at(state)?)
        };
        if next.is_some() {
            self.mask = None;
        }
        Ok(next)
    }

    fn back(&mut self, _to: &At, _left: &mut [At]) -> Result<()> {
        self.mask = None;
        Ok(())
    }

    fn state(&self, at: &At) -> Option<u64> {
        if at.ended {
            return Some(u64::MAX);
        }
        at.state.number()
    }

    fn bytewise(&self, at: &At) -> Option<Bytewise> {
        let state = at.state.clone();
        (!at.ended).then(|| Bytewise { language: Arc::clone(&self.shared.language), state })
    }

    fn byte_walk(&self) -> Option<Box<dyn ByteWalk + '_>> {
        let is_numbered = self.shared.language.is_numbered();
        is_numbered.then(|| Box::new(LanguageWalk(&self.shared)) as Box<dyn ByteWalk>)
    }

    fn expected(&self, at: &At) -> Vec<String> {
        self.shared.language.expected(&at.state)
    }

    fn expected_after(&mut self, at: &At, bytes: &[u8]) -> Result<Vec<String>> {
        Ok(match self.walked(at, bytes)? {
            (state, taken) if taken == bytes.len() => self.shared.language.expected(&state),
            _ => Vec::new(),
        })
    }

    fn taken(&mut self, at: &At, bytes: &[u8]) -> Result<usize> {
        self.walked(at, bytes).map(|(_, taken)| taken)
    }

    fn certain(&mut self, at: &At, most: usize) -> Result<Option<Certain>> {
        self.shared.language.certain(at.state.clone(), most).map(Some)
    }

    fn is_ready(&self, at: &At) -> bool {
        let known = |number| self.shared.tables().masks.contains_key(&number);
        self.mask.is_some() || at.state.number().is_some_and(known)
    }
}
