//! Items that were added to an index: a small tree over it, whose nodes store the state of the index at the same tokens.
//! Copies share their nodes until one of them is changed, and a node keeps its number, so that the states of an older
//! copy stay valid.

use std::sync::Arc;

use super::shared_vec::SharedVec;
use super::{ItemIndex, WalkState};
use crate::{Result, TokenId};

/// The root's number.
pub(super) const ROOT: usize = 0;

#[derive(Clone, Default)]
pub(super) struct AddedNode {
    /// The state of the index at the same tokens, if it has rows there.
    pub base: Option<WalkState>,
    /// Ascending by token.
    pub children: Arc<Vec<AddedChild>>,
    /// Numbers of the added items that end here.
    pub items: Arc<Vec<u64>>,
    /// Added items that end here or below.
    pub below: u32,
}

#[derive(Clone, Copy)]
pub(super) struct AddedChild {
    pub token: TokenId,
    pub node: u32,
    pub weight: f32,
}

/// The added items.
#[derive(Clone)]
pub(super) struct Overlay {
    nodes: SharedVec<AddedNode>,
    /// The largest token that was ever added.
    largest: TokenId,
    /// The largest item number that was ever added.
    largest_item: Option<u64>,
}

impl Overlay {
    /// Nothing over an index with this root.
    pub fn new(root: WalkState) -> Overlay {
        let mut overlay = Overlay { nodes: SharedVec::default(), largest: 0, largest_item: None };
        overlay.nodes.push(AddedNode { base: Some(root), ..AddedNode::default() });
        overlay
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The largest token that was ever added.
    pub fn largest(&self) -> TokenId {
        self.largest
    }

    /// The largest item number that was ever added.
    pub fn largest_item(&self) -> Option<u64> {
        self.largest_item
    }

    /// How many items are in it.
    pub fn count(&self) -> u64 {
        self.node(ROOT).map_or(0, |root| root.below.into())
    }

    pub fn node(&self, number: usize) -> Option<&AddedNode> {
        self.nodes.get(number)
    }

    /// Changes the node.
    fn change(&mut self, number: usize, change: impl FnOnce(&mut AddedNode)) {
        if let Some(node) = self.nodes.get_mut(number) {
            change(node);
        }
    }

    /// The nodes on the path of these tokens, the root first. Shorter than the path if it leaves the overlay.
    pub fn path(&self, tokens: &[TokenId]) -> Vec<usize> {
        let mut path = vec![ROOT];
        for token in tokens {
            let Some(node) = self.node(path[path.len() - 1]) else { break };
            let Ok(at) = node.children.binary_search_by_key(token, |child| child.token) else { break };
            path.push(node.children[at].node as usize);
        }
        path
    }

    /// Adds an item, and returns whether it is new. Weights of tokens that are here or in the index do not change.
    pub fn add(&mut self, base: &ItemIndex, tokens: &[TokenId], weights: &[f32], item: u64) -> Result<bool> {
        let mut path = self.path(tokens);
        self.weigh(&path, tokens, weights);
        while path.len() <= tokens.len() {
            let depth = path.len() - 1;
            let (parent, token) = (path[depth], tokens[depth]);
            let here = self.node(parent).cloned().unwrap_or_default();
            let below = match here.base {
                Some(state) => base.step(state, token, None)?,
                None => None,
            };
            self.largest = self.largest.max(token);
            let node = self.nodes.len();
            self.nodes.push(AddedNode { base: below, ..AddedNode::default() });
            let weight = match here.base {
                Some(state) if below.is_some() => base.weight_of(state, token)?,
                _ => weights.get(depth).copied().unwrap_or(0.0),
            };
            let at = here.children.partition_point(|child| child.token < token);
            let child = AddedChild { token, node: node as u32, weight };
            // The copy would keep the list from being changed in place.
            drop(here);
            self.change(parent, |parent| Arc::make_mut(&mut parent.children).insert(at, child));
            path.push(node);
        }
        let last = path[tokens.len()];
        let place = self.node(last).map_or(Err(0), |last| last.items.binary_search(&item));
        let Err(at) = place else { return Ok(false) };
        self.change(last, |last| Arc::make_mut(&mut last.items).insert(at, item));
        self.largest_item = self.largest_item.max(Some(item));
        path.iter().for_each(|&node| self.change(node, |node| node.below += 1));
        Ok(true)
    }

    /// Tokens on the path that no item contains any more get these weights.
    fn weigh(&mut self, path: &[usize], tokens: &[TokenId], weights: &[f32]) {
        for (depth, pair) in path.windows(2).enumerate() {
            let gone = self.node(pair[1]).is_some_and(|node| node.below == 0 && node.base.is_none());
            if gone {
                let weight = weights.get(depth).copied().unwrap_or(0.0);
                self.change(pair[0], |parent| {
                    let children = Arc::make_mut(&mut parent.children).iter_mut();
                    let own = children.filter(|child| child.token == tokens[depth]);
                    own.for_each(|child| child.weight = weight);
                });
            }
        }
    }

    /// Takes out the items of these tokens that `which` selects, and returns them.
    pub fn remove(&mut self, tokens: &[TokenId], which: impl Fn(u64) -> bool) -> Vec<u64> {
        let path = self.path(tokens);
        let Some(last) = path.get(tokens.len()).and_then(|&last| self.node(last)) else { return Vec::new() };
        let (gone, kept): (Vec<u64>, Vec<u64>) = last.items.iter().partition(|&&item| which(item));
        if !gone.is_empty() {
            self.change(path[tokens.len()], |last| last.items = kept.into());
            let removed = gone.len() as u32;
            path.iter().for_each(|&node| self.change(node, |node| node.below -= removed));
        }
        gone
    }

    /// The same with only those items whose node and number `keep` selects.
    pub fn only(&self, keep: impl Fn(usize, u64) -> bool) -> Overlay {
        let mut kept = self.clone();
        // A child has a higher number than its parent.
        for number in (0..self.len()).rev() {
            let Some(node) = self.node(number) else { continue };
            let items: Vec<u64> = node.items.iter().copied().filter(|&item| keep(number, item)).collect();
            let below = node.children.iter().filter_map(|child| kept.node(child.node as usize));
            let below = items.len() as u32 + below.map(|child| child.below).sum::<u32>();
            kept.change(number, |node| (node.items, node.below) = (items.into(), below));
        }
        kept
    }

    /// Every item with its tokens and weights, in ascending order.
    pub fn for_each(&self, mut each: impl FnMut(&[TokenId], &[f32], &[u64]) -> Result<()>) -> Result<()> {
        let (mut tokens, mut weights) = (Vec::new(), Vec::new());
        let mut open: Vec<(usize, usize)> = vec![(ROOT, 0)];
        while let Some((number, next)) = open.pop() {
            let Some(node) = self.node(number) else { continue };
            if next == 0 && !node.items.is_empty() {
                each(&tokens, &weights, &node.items)?;
            }
            if let Some(child) = node.children.get(next) {
                open.push((number, next + 1));
                open.push((child.node as usize, 0));
                tokens.push(child.token);
                weights.push(child.weight);
            } else {
                tokens.pop();
                weights.pop();
            }
        }
        Ok(())
    }
}
