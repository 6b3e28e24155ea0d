//! The tables of terminals that a vocabulary keeps for all its grammars, by structure. An entry is a pure function of
//! its key, so that forgetting it costs time and nothing else. It refuses to know grammars.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::terminal::Terminal;
use crate::grammar::expr::StructureHash;

/// Bytes of tables kept with one vocabulary before they are forgotten.
const MOST_BYTES: usize = 128 << 20;

#[derive(Default)]
struct Kept {
    tables: FxHashMap<StructureHash, Arc<Terminal>>,
    bytes: usize,
}

/// The tables of one vocabulary.
#[derive(Default)]
pub(super) struct Tables(Mutex<Kept>);

impl Tables {
    pub fn get(&self, key: StructureHash) -> Option<Arc<Terminal>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.tables.get(&key).map(Arc::clone)
    }

    /// Keeps `terminal`; when there is too much, everything else is forgotten.
    pub fn keep(&self, key: StructureHash, terminal: &Arc<Terminal>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = terminal.memory();
        if kept.bytes + bytes > MOST_BYTES {
            kept.tables.clear();
            kept.bytes = 0;
        }
        if kept.tables.insert(key, Arc::clone(terminal)).is_none() {
            kept.bytes += bytes;
        }
    }
}
