//! The matcher of a language over bytes: the vocabulary's trie walked with it. The naive version feeds each token's bytes
//! to the language.
//!
//! Where states are numbered, their transitions and masks are kept for all matchers of the language; else a walk asks the
//! language at every node.

use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use super::{ByteLanguage, ByteState, ByteWalk, Bytewise, SharedLanguage};
use crate::{interrupt, AfterEnd, Certain, Matcher, Sequence, States};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_grammar::expr::ByteSet;
use logitree_tokens::mask::{self, words_for, AllowedTokens, TokenSet};
use logitree_tokens::trie::{Recognizer, TokenTrie};
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
    language: SharedLanguage,
    vocabulary: Arc<Vocabulary>,
    after: AfterEnd,
    tables: Mutex<Tables>,
}

impl Shared {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        interrupt::lock(&self.tables)
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
        let ends = self.vocabulary.end_tokens();
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

    /// As [`Shared::allowed`], with the masks of numbered states kept.
    fn mask(&self, state: &ByteState, accepting: bool) -> Result<TokenSet> {
        let Some(number) = state.number() else { return self.allowed(state, accepting) };
        let known = self.tables().masks.get(&number).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let made = self.allowed(state, accepting)?;
        let mut tables = self.tables();
        tables.bytes += made.bytes() + 32;
        tables.masks.insert(number, made.clone());
        Ok(made)
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

/// The language with the transitions and masks of its numbered states, which are kept.
struct Kept<'a>(&'a Shared);

impl ByteLanguage for Kept<'_> {
    fn start(&self) -> Result<ByteState> {
        self.0.language.start()
    }

    fn step(&self, state: &ByteState, byte: u8) -> Result<Option<ByteState>> {
        let ByteState::Number(number) = *state else { return self.0.language.step(state, byte) };
        let mut tables = self.0.tables();
        tables.make_room();
        let row = tables.row(number);
        let mut to = tables.get(row, byte);
        if to == UNKNOWN {
            let language = &*self.0.language;
            let mut walk = Numbered { language, tables, stack: Vec::new(), failed: None, unnumbered: false };
            to = walk.derive(row, byte);
            walk.failed.map_or(Ok(()), Err)?;
            if walk.unnumbered {
                return language.step(state, byte);
            }
            tables = walk.tables;
        }
        Ok((to != DEAD).then(|| ByteState::Number(tables.rows[to as usize].number)))
    }

    fn is_end(&self, state: &ByteState) -> Result<bool> {
        self.0.language.is_end(state)
    }

    fn bytes(&self, state: &ByteState) -> Result<ByteSet> {
        let mut found = ByteSet::NONE;
        for byte in self.0.language.bytes(state)?.iter() {
            if self.step(state, byte)?.is_some() {
                found = found.or(&ByteSet::one(byte));
            }
        }
        Ok(found)
    }

    fn fill(&self, state: &ByteState, _trie: &TokenTrie, words: &mut [u32]) -> Result<()> {
        let accepting = self.is_end(state)?;
        if accepting && self.0.is_over(state)? {
            words.fill(0);
            return Ok(());
        }
        self.0.mask(state, accepting)?.write(self.0.vocabulary.len(), words);
        Ok(())
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
    pub fn new(language: SharedLanguage, vocabulary: &Arc<Vocabulary>) -> Result<LanguageMatcher> {
        vocabulary.trie()?;
        let state = language.start()?;
        let after = AfterEnd::tokens(&[], vocabulary.end_tokens());
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
        Ok(At { state, accepting, finished })
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

    fn ends(&self) -> &[TokenId] {
        self.shared.vocabulary.end_tokens()
    }

    fn is_accepting(&self, at: &At) -> bool {
        at.accepting
    }

    fn is_finished(&self, at: &At) -> bool {
        at.finished
    }

    fn allowed<'a>(&'a mut self, at: &'a At) -> Result<AllowedTokens<'a>> {
        let mask = match self.mask.take() {
            Some(mask) => mask,
            None => self.shared.mask(&at.state, at.accepting)?,
        };
        self.mask.insert(mask).borrow().ok_or_else(|| Error::new(ErrorKind::State, "no mask"))
    }

    fn next(&mut self, at: &At, token: TokenId) -> Result<Option<At>> {
        let vocabulary = &self.shared.vocabulary;
        let is_text = |token| !self.ends().contains(&token) && vocabulary.kind(token).is_text();
        if token as usize >= vocabulary.len() || !is_text(token) {
            return Ok(None);
        }
        let bytes = vocabulary.token_bytes(token);
        let (state, taken) = self.shared.language.walked(at.state.clone(), bytes)?;
        if taken == 0 || taken < bytes.len() {
            return Ok(None);
        }
        let next = self.at(state)?;
        self.mask = None;
        Ok(Some(next))
    }

    fn back(&mut self, _to: &At, _left: &mut [At]) -> Result<()> {
        self.mask = None;
        Ok(())
    }

    fn state(&self, at: &At) -> Option<u64> {
        at.state.number()
    }

    fn bytewise(&self, at: &At) -> Option<Bytewise> {
        Some(Bytewise { language: Arc::clone(&self.shared.language), state: at.state.clone() })
    }

    fn byte_walk(&self) -> Option<ByteWalk<'_>> {
        self.shared.language.is_numbered().then(|| ByteWalk(Box::new(Kept(&self.shared))))
    }

    fn expected(&self, at: &At) -> Vec<String> {
        self.shared.language.expected(&at.state)
    }

    fn expected_after(&mut self, at: &At, bytes: &[u8]) -> Result<Vec<String>> {
        self.shared.language.expected_after(at.state.clone(), bytes)
    }

    fn accepted_prefix(&mut self, at: &At, bytes: &[u8]) -> Result<usize> {
        self.shared.language.walked(at.state.clone(), bytes).map(|(_, taken)| taken)
    }

    fn certain(&mut self, at: &At, most: usize) -> Result<Option<Certain>> {
        self.shared.language.certain(at.state.clone(), most).map(Some)
    }

    fn is_ready(&self, at: &At) -> bool {
        let known = |number| self.shared.tables().masks.contains_key(&number);
        self.mask.is_some() || at.state.number().is_some_and(known)
    }
}
