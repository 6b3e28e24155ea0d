//! A snapshot of some of another's items, collected state by state: it costs memory for the kept items only.

use std::sync::Arc;

use super::index::no_such;
use super::row_set::RowSet;
use super::state::StateKind;
use super::{damaged, CatalogueSnapshot, WalkState};
use crate::Result;

/// Places of a snapshot whose items are kept.
pub struct SnapshotFilter {
    of: CatalogueSnapshot,
    live: RowSet,
    /// Rows that were looked at.
    visited: u64,
    /// For each node of the overlay, whether the items that were added there are kept.
    nodes: Vec<bool>,
}

impl SnapshotFilter {
    /// No item of the snapshot yet.
    pub fn new(of: &CatalogueSnapshot) -> SnapshotFilter {
        let live = RowSet::none(of.index().header().rows);
        SnapshotFilter { of: of.clone(), live, visited: 0, nodes: vec![false; of.added_nodes()] }
    }

    /// Keeps every item that ends at `state`. Each state is kept once.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Payload`] if the index is damaged there; [`crate::ErrorKind::State`] if the state is not one
    /// of the tree.
    pub fn keep(&mut self, state: WalkState) -> Result<()> {
        let base = match state.kind() {
            StateKind::Added(number) => {
                let node = self.of.node(number).ok_or_else(|| no_such(state))?;
                if let Some(kept) = self.nodes.get_mut(number as usize) {
                    *kept = true;
                }
                node.base
            }
            _ => Some(state),
        };
        let Some(base) = base else { return Ok(()) };
        let rows = self.of.index().items(base)?;
        self.visited = self.visited.saturating_add(rows.end.saturating_sub(rows.start));
        if self.visited > self.of.index().header().rows {
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
    pub fn finish(self, nested: bool) -> CatalogueSnapshot {
        let SnapshotFilter { of, live, nodes, .. } = self;
        let kept = |node: usize, _| nodes.get(node).is_some_and(|&kept| kept);
        let overlay = of.overlay.as_ref().map(|overlay| Arc::new(overlay.only(kept)));
        CatalogueSnapshot { live: Some(Arc::new(live)), overlay, nested: Some(nested), ..of }
    }
}
