//! The tables of terminals that a vocabulary keeps for all its grammars, by structure. An entry is a pure function of
//! its key, so that forgetting it costs time and nothing else. It refuses to know grammars.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::near::{differing, mostly, Rounds};
use super::terminal::Terminal;
use super::walk::{narrow, wide, ByByte};
use crate::grammar::expr::{ExprId, Exprs, StructureHash};
use crate::trie::TokenTrie;
use crate::vocabulary::Vocabulary;
use crate::Result;

/// Bytes of tables kept with one vocabulary before they are forgotten.
const MOST_BYTES: usize = 128 << 20;
/// Terminals that look at more nodes of the trie than this are kept with the vocabulary.
const NARROW: usize = 2_500;
/// Terminals whose first bytes lead to more nodes than this are not narrow.
const PERHAPS_NARROW: usize = 60_000;

#[derive(Default)]
struct Kept {
    tables: FxHashMap<StructureHash, Arc<Terminal>>,
    rounds: FxHashMap<StructureHash, Arc<Rounds>>,
    bytes: usize,
}

/// The tables of one vocabulary.
#[derive(Default)]
pub(super) struct Tables {
    kept: Mutex<Kept>,
    by_byte: OnceLock<ByByte>,
}

impl Tables {
    /// The tables of `e`, kept or found.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the automaton needs more than the limits of `exprs`.
    pub fn terminal(&self, e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary) -> Result<Arc<Terminal>> {
        if let Some(known) = self.get(exprs.structure(e)) {
            return Ok(known);
        }
        if let Some(small) = self.narrow(e, exprs, vocabulary)? {
            return Ok(small);
        }
        match self.near(e, exprs, vocabulary)? {
            Some(near) => Ok(self.keep(exprs.structure(e), near)),
            None => self.wide(e, exprs, vocabulary),
        }
    }

    /// The tables of a state that others are near to: its own, whatever it is near to.
    fn base(&self, e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary) -> Result<Option<Arc<Terminal>>> {
        let found = match self.get(exprs.structure(e)) {
            Some(known) => known,
            None => match self.narrow(e, exprs, vocabulary)? {
                Some(small) => small,
                None => self.wide(e, exprs, vocabulary)?,
            },
        };
        Ok(found.base.is_none().then_some(found))
    }

    fn narrow(&self, e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary) -> Result<Option<Arc<Terminal>>> {
        let trie = vocabulary.trie()?;
        let by_byte = self.by_byte.get_or_init(|| ByByte::new(trie));
        if by_byte.below(&exprs.first_bytes(e)?) > PERHAPS_NARROW {
            return Ok(None);
        }
        Ok(narrow(e, exprs, trie, NARROW)?.map(Arc::new))
    }

    fn wide(&self, e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary) -> Result<Arc<Terminal>> {
        let trie = vocabulary.trie()?;
        let by_byte = self.by_byte.get_or_init(|| ByByte::new(trie));
        let made = wide(e, exprs, vocabulary, by_byte)?;
        Ok(self.keep(exprs.structure(e), made))
    }

    /// The tables of `e` as differences from those of another state, where there is one.
    fn near(&self, e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary) -> Result<Option<Terminal>> {
        let trie = vocabulary.trie()?;
        if let Some(bounds) = exprs.bounded_loop(e)? {
            if let Some(base) = self.base(bounds.endless, exprs, vocabulary)? {
                let rounds = self.rounds(bounds.endless, exprs, trie)?;
                return Ok(Some(rounds.bounded(&bounds, &base, exprs)));
            }
        }
        let Some(other) = mostly(e, exprs)? else { return Ok(None) };
        match self.base(other, exprs, vocabulary)? {
            Some(base) => differing(e, other, &base, exprs, trie),
            None => Ok(None),
        }
    }

    fn rounds(&self, endless: ExprId, exprs: &mut Exprs, trie: &TokenTrie) -> Result<Arc<Rounds>> {
        let key = exprs.structure(endless);
        let known = |kept: &Kept| kept.rounds.get(&key).map(Arc::clone);
        if let Some(known) = known(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(known);
        }
        let made = Arc::new(Rounds::new(endless, exprs, trie)?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += made.memory();
        kept.rounds.insert(key, Arc::clone(&made));
        Ok(made)
    }

    fn get(&self, key: StructureHash) -> Option<Arc<Terminal>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.tables.get(&key).map(Arc::clone)
    }

    /// Keeps `terminal`; when there is too much, everything else is forgotten.
    fn keep(&self, key: StructureHash, terminal: Terminal) -> Arc<Terminal> {
        let terminal = Arc::new(terminal);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = terminal.memory();
        if kept.bytes + bytes > MOST_BYTES {
            kept.tables.clear();
            kept.rounds.clear();
            kept.bytes = 0;
        }
        if kept.tables.insert(key, Arc::clone(&terminal)).is_none() {
            kept.bytes += bytes;
        }
        terminal
    }
}
