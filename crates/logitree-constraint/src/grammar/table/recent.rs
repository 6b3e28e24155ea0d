//! The tables of narrow states that were used last: two generations, of which the older is forgotten when the younger is
//! full. What is found in the older one is young again. What is forgotten is freed a few tables at a time: freeing thousands
//! at once took as long as the longest masks.

use std::collections::hash_map::IntoIter;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::grammar::terminal::Terminal;
use logitree_grammar::expr::StructureHash;

/// Bytes of tables in one generation.
const MAX_BYTES: usize = 8 << 20;
/// About how many bytes an entry takes beside its tables.
const ENTRY_BYTES: usize = 48;
/// How many forgotten tables each new one frees.
const FREED_AT_ONCE: usize = 16;

pub(super) struct Recent {
    young: FxHashMap<StructureHash, Arc<Terminal>>,
    old: FxHashMap<StructureHash, Arc<Terminal>>,
    /// Not freed yet.
    forgotten: IntoIter<StructureHash, Arc<Terminal>>,
    /// Of the younger generation.
    bytes: usize,
}

impl Default for Recent {
    fn default() -> Self {
        let [young, old, forgotten] = [(); 3].map(|()| FxHashMap::default());
        Recent { young, old, forgotten: forgotten.into_iter(), bytes: 0 }
    }
}

impl Recent {
    pub fn get(&mut self, key: StructureHash) -> Option<Arc<Terminal>> {
        if let Some(known) = self.young.get(&key) {
            return Some(Arc::clone(known));
        }
        let known = self.old.remove(&key)?;
        self.put(key, &known);
        Some(known)
    }

    pub fn put(&mut self, key: StructureHash, terminal: &Arc<Terminal>) {
        let bytes = terminal.memory() + ENTRY_BYTES;
        if self.bytes + bytes > MAX_BYTES {
            let old = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.forgotten = old.into_iter();
            self.bytes = 0;
        }
        if self.forgotten.len() > 0 {
            self.forgotten.by_ref().take(FREED_AT_ONCE).for_each(drop);
            if self.forgotten.len() == 0 {
                self.forgotten = FxHashMap::default().into_iter();
            }
        }
        self.bytes += bytes;
        self.young.insert(key, Arc::clone(terminal));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logitree_grammar::expr::Exprs;
    use logitree_tokens::mask::TokenSet;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let exprs = Exprs::new(100);
        let terminal =
            || Arc::new(Terminal::new(TokenSet::from_ids((0..1_000).collect(), 1_000), Vec::new(), &exprs));
        let mut recent = Recent::default();
        for key in 0..10_000 {
            recent.put(key, &terminal());
            assert!(recent.get(0).is_some(), "used at every key, forgotten at {key}");
        }
        assert!(recent.get(9_999).is_some() && recent.get(1).is_none());
        let held = recent.young.len() + recent.old.len() + recent.forgotten.len();
        assert!(held * terminal().memory() <= 2 * MAX_BYTES, "{held} tables are kept");
    }
}
