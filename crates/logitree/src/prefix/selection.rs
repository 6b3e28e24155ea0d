//! The same tree with the items of some of its places only, which are told one by one: what it costs is what is kept.
//! It refuses to know why they are kept.

use std::sync::Arc;

use super::live::Live;
use super::segment::no_such;
use super::state::Place;
use super::{damaged, Snapshot, State};
use crate::Result;

/// Places of a snapshot whose items are kept.
pub struct Selection {
    of: Snapshot,
    live: Live,
    /// Rows that were looked at.
    told: u64,
    /// For each node of the overlay, whether the items that were added there are kept.
    nodes: Vec<bool>,
}

impl Selection {
    /// No item of the snapshot yet.
    pub fn new(of: &Snapshot) -> Selection {
        let live = Live::none(of.segment().head().rows);
        Selection { of: of.clone(), live, told: 0, nodes: vec![false; of.added_nodes()] }
    }

    /// Keeps every item that is exactly what leads to `state`. Each place is told once.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Payload`] if the index is damaged there; [`crate::ErrorKind::State`] if the state is none of
    /// the tree.
    pub fn keep(&mut self, state: State) -> Result<()> {
        let base = match state.place() {
            Place::Over(number) => {
                let node = self.of.node(number).ok_or_else(|| no_such(state))?;
                if let Some(kept) = self.nodes.get_mut(number as usize) {
                    *kept = true;
                }
                node.base
            }
            _ => Some(state),
        };
        let Some(base) = base else { return Ok(()) };
        let rows = self.of.segment().items(base)?;
        self.told = self.told.saturating_add(rows.end.saturating_sub(rows.start));
        if self.told > self.of.segment().head().rows {
            return Err(damaged("two places with the same rows"));
        }
        for row in rows {
            if self.of.live().is_none_or(|live| live.contains(row)) {
                self.live.set(row, true);
            }
        }
        Ok(())
    }

    /// The tree of what was kept. `nested`: whether one of these items is the beginning of another.
    pub fn finish(self, nested: bool) -> Snapshot {
        let Selection { of, live, nodes, .. } = self;
        let kept = |node: usize, _| nodes.get(node).is_some_and(|&kept| kept);
        let overlay = of.overlay.as_ref().map(|overlay| Arc::new(overlay.only(kept)));
        Snapshot { base: of.base, live: Some(Arc::new(live)), overlay, nested: Some(nested) }
    }
}
