//! A catalogue at one moment: which tokens may follow, which items exist. Later changes do not affect it.

use std::sync::Arc;

use super::continuations::Continuations;
use super::index::{no_such, ItemIndex, WideChildren, WideRecord};
use super::overlay::{AddedNode, Overlay, ROOT};
use super::row_set::{RowSet, RowSetBuilder};
use super::shared_vec::SharedVec;
use super::state::StateKind;
use super::WalkState;
use crate::{Result, TokenId};

/// A catalogue that does not change.
#[derive(Clone)]
pub struct CatalogueSnapshot {
    pub(super) base: Arc<ItemIndex>,
    /// The present rows of the index; `None`: all of them.
    pub(super) live: Option<Arc<RowSet>>,
    /// What was added; `None`: nothing.
    pub(super) overlay: Option<Arc<Overlay>>,
    /// Whether an item is the beginning of another, where all were looked at; `None`: as the index says. A tree that
    /// changes never holds such a snapshot.
    pub(super) nested: Option<bool>,
    /// Keys that were added to those of the index.
    pub(super) added_keys: SharedVec<Arc<str>>,
}

impl CatalogueSnapshot {
    /// The whole of an index.
    pub fn of(base: Arc<ItemIndex>) -> CatalogueSnapshot {
        CatalogueSnapshot { base, live: None, overlay: None, nested: None, added_keys: SharedVec::default() }
    }

    /// The index below what was added.
    pub fn index(&self) -> &ItemIndex {
        &self.base
    }

    /// Number of items; an item with several numbers counts several times.
    pub fn len(&self) -> u64 {
        let rows = self.live.as_ref().map_or(self.base.header().rows, |live| live.count());
        rows + self.overlay.as_ref().map_or(0, |overlay| overlay.count())
    }

    /// Whether the index says which item number is its largest: those of old versions do not.
    pub fn knows_largest_item(&self) -> bool {
        self.base.header().largest_item.is_some()
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The state where every item begins.
    pub fn root(&self) -> WalkState {
        if self.overlay.is_some() {
            WalkState::added(ROOT)
        } else {
            self.base.header().root
        }
    }

    /// The largest token of an item.
    pub fn largest(&self) -> TokenId {
        self.base.header().largest.max(self.overlay.as_ref().map_or(0, |overlay| overlay.largest()))
    }

    /// Whether an item is the beginning of another, or was when the index was made.
    ///
    /// # Errors
    /// As [`CatalogueSnapshot::children`].
    pub fn may_nest(&self) -> Result<bool> {
        if let Some(nested) = self.nested {
            return Ok(nested);
        }
        if self.base.header().nested {
            return Ok(true);
        }
        let mut children = Continuations::default();
        for number in 0..self.added_nodes() {
            let Some(node) = self.node(number as u64) else { continue };
            let ends = match node.base {
                Some(base) => !self.base.items(base)?.is_empty(),
                None => false,
            };
            if ends || !node.items.is_empty() {
                self.children(WalkState::added(number), &mut children)?;
                if children.is_item && !children.tokens.is_empty() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Number of nodes over the index.
    pub fn added_nodes(&self) -> usize {
        self.overlay.as_ref().map_or(0, |overlay| overlay.len())
    }

    pub(super) fn node(&self, number: u64) -> Option<&AddedNode> {
        self.overlay.as_ref()?.node(number as usize)
    }

    pub(super) fn live(&self) -> Option<&RowSet> {
        self.live.as_deref()
    }

    /// Whether any item of the index is below `base`.
    fn base_lives(&self, base: WalkState) -> Result<bool> {
        let Some(live) = self.live() else { return Ok(true) };
        let rows = self.base.header().rows;
        match base.kind() {
            StateKind::Wide(number) => {
                let record = self.base.record(number)?;
                Ok(live.any(record.first, record.end))
            }
            StateKind::Narrow { row, .. } if row < rows => {
                if live.contains(row) {
                    return Ok(true);
                }
                let mut children = Continuations::default();
                self.base.children(base, Some(live), &mut children)?;
                Ok(children.is_item || !children.tokens.is_empty())
            }
            _ => Ok(false),
        }
    }

    fn node_lives(&self, number: u64) -> Result<bool> {
        let Some(node) = self.node(number) else { return Ok(false) };
        Ok(node.below > 0
            || match node.base {
                Some(base) => self.base_lives(base)?,
                None => false,
            })
    }

    /// The continuations of `state`, written over `out`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Payload`] if the index is damaged there; [`crate::ErrorKind::State`] if the state is not one of
    /// this tree.
    pub fn children(&self, state: WalkState, out: &mut Continuations) -> Result<()> {
        out.clear();
        match state.kind() {
            StateKind::Added(number) => {
                let node = self.node(number).ok_or_else(|| no_such(state))?;
                if let Some(base) = node.base {
                    self.base.children(base, self.live(), out)?;
                }
                out.is_item |= !node.items.is_empty();
                self.merge(node, out)
            }
            StateKind::Terminal => over(state),
            _ => self.base.children(state, self.live(), out),
        }
    }

    /// As [`CatalogueSnapshot::children`], appended to `out`.
    pub(crate) fn append(
        &self,
        state: WalkState,
        out: &mut Continuations,
        scratch: &mut Continuations,
    ) -> Result<()> {
        match state.kind() {
            StateKind::Added(_) => {
                self.children(state, scratch)?;
                out.is_item = scratch.is_item;
                out.tokens.append(&mut scratch.tokens);
                out.states.append(&mut scratch.states);
                out.weights.append(&mut scratch.weights);
                Ok(())
            }
            place => {
                out.is_item = false;
                if place == StateKind::Terminal {
                    return over(state);
                }
                self.base.children(state, self.live(), out)
            }
        }
    }

    /// Prefetches what [`CatalogueSnapshot::children`] will read first.
    #[inline]
    pub(crate) fn prefetch(&self, state: WalkState) {
        self.base.prefetch(state);
    }

    /// Merges the children of `node` with those of the index in `out`.
    fn merge(&self, node: &AddedNode, out: &mut Continuations) -> Result<()> {
        let weighted = self.base.header().weighted;
        for child in node.children.iter() {
            let state = WalkState::added(child.node as usize);
            match out.tokens.binary_search(&child.token) {
                Ok(at) => out.states[at] = state,
                Err(at) => {
                    if self.node_lives(child.node.into())? {
                        out.tokens.insert(at, child.token);
                        out.states.insert(at, state);
                        if weighted {
                            out.weights.insert(at, child.weight);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The state after `token`; `None` if no item continues with it.
    ///
    /// # Errors
    /// As [`CatalogueSnapshot::children`].
    #[inline]
    pub fn step(&self, state: WalkState, token: TokenId) -> Result<Option<WalkState>> {
        match state.kind() {
            StateKind::Added(number) => {
                let node = self.node(number).ok_or_else(|| no_such(state))?;
                if let Ok(at) = node.children.binary_search_by_key(&token, |child| child.token) {
                    let child = u64::from(node.children[at].node);
                    return Ok(self.node_lives(child)?.then(|| WalkState::added(child as usize)));
                }
                match node.base {
                    Some(base) => self.base.step(base, token, self.live()),
                    None => Ok(None),
                }
            }
            StateKind::Terminal => over(state).map(|()| None),
            _ => self.base.step(state, token, self.live()),
        }
    }

    /// The state after all of these tokens.
    ///
    /// # Errors
    /// As [`CatalogueSnapshot::children`].
    pub fn find(&self, tokens: &[TokenId]) -> Result<Option<WalkState>> {
        let mut state = self.root();
        for &token in tokens {
            let Some(next) = self.step(state, token)? else { return Ok(None) };
            state = next;
        }
        Ok(Some(state))
    }

    /// The children of a node that is wide in the index, without a copy of them; `None` for other nodes.
    ///
    /// # Errors
    /// As [`CatalogueSnapshot::children`].
    #[inline]
    pub(crate) fn wide(&self, state: WalkState) -> Result<Option<WideNode<'_>>> {
        let (node, base) = match state.kind() {
            StateKind::Added(number) => {
                let node = self.node(number).ok_or_else(|| no_such(state))?;
                (Some(node), node.base.map(WalkState::kind))
            }
            place => (None, Some(place)),
        };
        let Some(StateKind::Wide(number)) = base else { return Ok(None) };
        let record = self.base.record(number)?;
        let children = self.base.wide(&record)?;
        Ok(Some(WideNode { snapshot: self, record, children, node }))
    }

    /// Numbers of the items that are exactly what leads to `state`, ascending, written over `out`.
    ///
    /// # Errors
    /// As [`CatalogueSnapshot::children`].
    pub fn items(&self, state: WalkState, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        let base = match state.kind() {
            StateKind::Added(number) => {
                let node = self.node(number).ok_or_else(|| no_such(state))?;
                out.extend_from_slice(&node.items);
                node.base
            }
            StateKind::Terminal => {
                over(state)?;
                None
            }
            _ => Some(state),
        };
        if let Some(base) = base {
            for row in self.base.items(base)? {
                if self.live().is_none_or(|live| live.contains(row)) {
                    out.push(self.base.item(row)?);
                }
            }
            out.sort_unstable();
        }
        Ok(())
    }

    /// The same tree with only those items whose number `keep` selects.
    ///
    /// # Errors
    /// As [`CatalogueSnapshot::children`].
    pub fn only(&self, keep: impl Fn(u64) -> bool) -> Result<CatalogueSnapshot> {
        let mut live = RowSetBuilder::new();
        self.base.for_each_item(|row, item| {
            live.push(keep(item) && self.live().is_none_or(|live| live.contains(row)));
        })?;
        let overlay = self.overlay.as_ref().map(|overlay| Arc::new(overlay.only(|_, item| keep(item))));
        let live = Some(Arc::new(live.finish()));
        Ok(CatalogueSnapshot { live, overlay, ..self.clone() })
    }

    /// Calls `each` with the tokens, weights and number of every item: those of the index in ascending order, then
    /// those that were added.
    ///
    /// # Errors
    /// As [`CatalogueSnapshot::children`], and what `each` returns.
    pub fn for_each(&self, mut each: impl FnMut(&[TokenId], &[f32], u64) -> Result<()>) -> Result<()> {
        let (mut tokens, mut weights) = (Vec::new(), Vec::new());
        for row in 0..self.base.header().rows {
            if self.live().is_none_or(|live| live.contains(row)) {
                weights.clear();
                self.base.row(row, &mut tokens)?;
                self.base.row_weights(row, &mut weights)?;
                each(&tokens, &weights, self.base.item(row)?)?;
            }
        }
        let Some(overlay) = &self.overlay else { return Ok(()) };
        let weighted = self.base.header().weighted;
        overlay.for_each(|tokens, weights, items| {
            let weights = if weighted { weights } else { &[] };
            items.iter().try_for_each(|&item| each(tokens, weights, item))
        })
    }
}

/// Accepts the two states without continuations, which are not nodes.
fn over(state: WalkState) -> Result<()> {
    if state == WalkState::FINISHED || state == WalkState::FAILED {
        return Ok(());
    }
    Err(no_such(state))
}

/// A wide node with what was removed below it and added to it.
pub(crate) struct WideNode<'s> {
    snapshot: &'s CatalogueSnapshot,
    record: WideRecord,
    /// The children in the index. Some may have been removed since.
    pub children: WideChildren<'s>,
    node: Option<&'s AddedNode>,
}

impl WideNode<'_> {
    /// The first and the last token of the children in the index.
    pub fn span(&self) -> (TokenId, TokenId) {
        self.record.tokens
    }

    /// Whether nothing was removed below it or added to it.
    pub fn is_whole(&self) -> bool {
        self.node.is_none() && self.snapshot.live.is_none()
    }

    /// Whether an item ends here.
    pub fn is_item(&self) -> bool {
        let (first, items) = (self.record.first, self.record.items);
        let base =
            items > 0 && self.snapshot.live().is_none_or(|live| live.any(first, first.saturating_add(items)));
        base || self.node.is_some_and(|node| !node.items.is_empty())
    }

    /// The state of the child at `at` in the index; `None` if no item is left below it.
    #[inline]
    pub fn state(&self, at: usize) -> Result<Option<WalkState>> {
        if let Some(node) = self.node {
            let token = self.children.token(at);
            if let Ok(over) = node.children.binary_search_by_key(&token, |child| child.token) {
                let over = node.children[over].node;
                return Ok(self.snapshot.node_lives(over.into())?.then(|| WalkState::added(over as usize)));
            }
        }
        self.snapshot.base.child(&self.record, &self.children, at, self.snapshot.live())
    }

    /// The state after `token`.
    pub fn step(&self, token: TokenId) -> Result<Option<WalkState>> {
        match self.children.find_near(token, self.span()) {
            Some(at) => self.state(at),
            None => Ok(self.added().find(|child| child.0 == token).map(|child| child.1)),
        }
    }

    /// Continuations that the index does not have: token, place and weight.
    pub fn added(&self) -> impl Iterator<Item = (TokenId, WalkState, f32)> + '_ {
        let children = self.node.map_or(&[][..], |node| &node.children[..]);
        children.iter().filter_map(|child| {
            let lives = self.snapshot.node(child.node.into()).is_some_and(|node| node.below > 0);
            (lives && self.children.find(child.token).is_err())
                .then(|| (child.token, WalkState::added(child.node as usize), child.weight))
        })
    }
}
