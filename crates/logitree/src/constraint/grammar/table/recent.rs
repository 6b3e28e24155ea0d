//! The tables of narrow states that were used last: two generations, of which the older is forgotten when the younger is
//! full. What is found in the older one is young again.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::constraint::grammar::terminal::Terminal;
use crate::grammar::expr::StructureHash;

/// Bytes of tables in one generation.
const MAX_BYTES: usize = 8 << 20;
/// About how many bytes an entry takes beside its tables.
const ENTRY_BYTES: usize = 48;

#[derive(Default)]
pub(super) struct Recent {
    young: FxHashMap<StructureHash, Arc<Terminal>>,
    old: FxHashMap<StructureHash, Arc<Terminal>>,
    /// Of the younger generation.
    bytes: usize,
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
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.young.insert(key, Arc::clone(terminal));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::grammar::entry::IdSet;
    use crate::grammar::expr::Exprs;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let exprs = Exprs::new(100);
        let terminal = || Arc::new(Terminal::new(IdSet::new((0..1_000).collect(), 32), Vec::new(), &exprs));
        let mut recent = Recent::default();
        for key in 0..10_000 {
            recent.put(key, &terminal());
            assert!(recent.get(0).is_some(), "used at every key, forgotten at {key}");
        }
        assert!(recent.get(9_999).is_some() && recent.get(1).is_none());
        let held = recent.young.len() + recent.old.len();
        assert!(held * terminal().memory() <= 2 * MAX_BYTES, "{held} tables are kept");
    }
}
