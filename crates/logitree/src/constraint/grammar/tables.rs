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
        let trie = vocabulary.trie()?;
        let key = exprs.structure(e);
        if let Some(known) = self.get(key) {
            return Ok(known);
        }
        if let Some(small) = self.small(e, exprs, trie)? {
            return Ok(Arc::new(small));
        }
        let made = match self.near(e, exprs, vocabulary)? {
            Some(near) => Arc::new(near),
            None => Arc::new(wide(e, exprs, vocabulary, self.by_byte(trie))?),
        };
        self.keep(key, &made);
        Ok(made)
    }

    fn by_byte(&self, trie: &TokenTrie) -> &ByByte {
        self.by_byte.get_or_init(|| ByByte::new(trie))
    }

    /// The tables of `e`, if few nodes have to be looked at.
    fn small(&self, e: ExprId, exprs: &mut Exprs, trie: &TokenTrie) -> Result<Option<Terminal>> {
        if self.by_byte(trie).below(&exprs.first_bytes(e)?) > PERHAPS_NARROW {
            return Ok(None);
        }
        narrow(e, exprs, trie, NARROW)
    }

    /// The tables of `e` as others are differences from them; `None` if they are kept as differences themselves. States
    /// may lead to each other in a circle, so no base is looked for here.
    fn base(&self, e: ExprId, exprs: &mut Exprs, vocabulary: &Vocabulary) -> Result<Option<Arc<Terminal>>> {
        let trie = vocabulary.trie()?;
        let key = exprs.structure(e);
        if let Some(known) = self.get(key) {
            return Ok(known.base.is_none().then_some(known));
        }
        if let Some(small) = self.small(e, exprs, trie)? {
            return Ok(Some(Arc::new(small)));
        }
        let made = Arc::new(wide(e, exprs, vocabulary, self.by_byte(trie))?);
        self.keep(key, &made);
        Ok(Some(made))
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
        let Some(base) = self.base(other, exprs, vocabulary)? else { return Ok(None) };
        differing(e, other, &base, exprs, trie)
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
    fn keep(&self, key: StructureHash, terminal: &Arc<Terminal>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = terminal.memory();
        if kept.bytes + bytes > MOST_BYTES {
            kept.tables.clear();
            kept.rounds.clear();
            kept.bytes = 0;
        }
        if kept.tables.insert(key, Arc::clone(terminal)).is_none() {
            kept.bytes += bytes;
        }
    }
}
