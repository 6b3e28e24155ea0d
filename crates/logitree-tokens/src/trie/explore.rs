//! A walk that visits every node, with a state for each from a closure. The naive version is the
//! recursion over [`TokenTrie::children`] in `tests/it/trie.rs`.

use std::ops::Range;

use super::below::Below;
use super::sweep::Part;
use super::{Node, TokenTrie};
use crate::mask::insert_bits;
use crate::TokenId;

/// What [`TokenTrie::explore_outline`] asks.
pub trait Explorer {
    /// What is known after some bytes.
    type State: Copy;

    /// The state of `node`, whose parent has `state` and into which `byte` leads; `None` to leave out the node and all
    /// below it.
    fn step(&mut self, state: Self::State, byte: u8, node: Node) -> Option<Self::State>;

    /// Whether every path below a node with this state may come. `first` is the least byte below it.
    fn takes_all(&mut self, state: Self::State, first: u8, below: &Below) -> bool;
}

impl TokenTrie {
    /// Walks the nodes below `from`, depth first, by ascending bytes. `step` gets the state of a node's parent (that of
    /// `from` is `start`), the node's byte and the node; it gives the node's state, or `None` to leave out the node and
    /// all below it.
    pub fn explore<S: Copy>(&self, from: Node, start: S, mut step: impl FnMut(S, u8, Node) -> Option<S>) {
        let nodes = from.index() + 1..from.index() + self.size(from);
        self.explore_run(nodes, self.depth(from), &mut vec![start], &mut step);
    }

    /// Walks the nodes of `starts`, into which the bytes lead, and those below them, as [`TokenTrie::explore`] does. The
    /// parents of all `starts` have the state `start`.
    pub fn explore_each<S: Copy>(
        &self,
        starts: &[(u8, Node)],
        start: S,
        mut step: impl FnMut(S, u8, Node) -> Option<S>,
    ) {
        let mut states = Vec::new();
        for &(byte, node) in starts {
            let Some(state) = step(start, byte, node) else { continue };
            states.clear();
            states.push(state);
            let nodes = node.index() + 1..node.index() + self.size(node);
            self.explore_run(nodes, self.depth(node), &mut states, &mut step);
        }
    }

    /// As [`TokenTrie::explore`] from the root on, but leaves out the nodes below a big one if the explorer takes them
    /// all.
    pub fn explore_outline<E: Explorer>(&self, start: E::State, explorer: &mut E) {
        let mut states = vec![start];
        let mut number = 0;
        while let Some(Part { nodes, below, after }) = self.outline.part(number) {
            let node = self.nodes[nodes.start];
            let Some(below) = below else {
                let step = &mut |state, byte, node| explorer.step(state, byte, node);
                self.explore_run(nodes, 0, &mut states, step);
                number = after;
                continue;
            };
            states.truncate(node.depth());
            let state = explorer.step(states[node.depth() - 1], node.byte(), Node::at(nodes.start));
            let first = self.nodes[nodes.start + 1].byte();
            number = match state {
                Some(state) if !explorer.takes_all(state, first, below) => {
                    states.push(state);
                    number + 1
                }
                _ => after,
            };
        }
    }

    /// Walks these nodes: siblings at a depth of more than `top`, and those below them. `states` has the state of each node
    /// on the path to them, from the depth `top` on.
    fn explore_run<S: Copy>(
        &self,
        nodes: Range<usize>,
        top: usize,
        states: &mut Vec<S>,
        step: &mut impl FnMut(S, u8, Node) -> Option<S>,
    ) {
        let mut at = nodes.start;
        while at < nodes.end {
            let node = self.nodes[at];
            let level = node.depth() - top;
            states.truncate(level);
            match step(states[level - 1], node.byte(), Node::at(at)) {
                Some(state) => {
                    states.push(state);
                    at += 1;
                }
                None => at += node.size(),
            }
        }
    }

    /// The nodes where tokens end for which `wanted` holds, given those tokens: ascending.
    pub fn nodes_where(&self, mut wanted: impl FnMut(Node, &[TokenId]) -> bool) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut from = 0;
        for (at, &to) in self.before.iter().enumerate().skip(1) {
            // `before[at]` counts the tokens of the nodes up to `at - 1`.
            if from != to && wanted(Node::at(at - 1), &self.ids[from as usize..to as usize]) {
                nodes.push(Node::at(at - 1));
            }
            from = to;
        }
        nodes
    }

    /// The nodes of `range`, by their places, where tokens end: ascending.
    pub fn ends_within(&self, range: Range<usize>) -> impl Iterator<Item = Node> + '_ {
        range.filter(|&at| self.before[at] != self.before[at + 1]).map(Node::at)
    }

    /// The node that `bytes` lead to, if some token begins so.
    pub fn node_of(&self, bytes: &[u8]) -> Option<Node> {
        bytes.iter().try_fold(self.root(), |node, &byte| self.child(node, byte))
    }

    /// The nodes where tokens of more than `bytes` bytes end: ascending.
    pub fn nodes_deeper(&self, bytes: usize) -> Vec<Node> {
        let deeper = self.nodes.iter().enumerate().filter(|(_, node)| node.depth() > bytes);
        let ends = |at: usize| self.before.get(at) != self.before.get(at + 1);
        deeper.map(|(at, _)| at).filter(|&at| ends(at)).map(Node::at).collect()
    }

    /// In how many nodes tokens end, by their number of bytes.
    pub fn ends_by_depth(&self) -> Box<[u32]> {
        let mut counts = vec![0; self.max_depth + 1].into_boxed_slice();
        for (at, node) in self.nodes.iter().enumerate() {
            counts[node.depth()] += u32::from(self.before.get(at) != self.before.get(at + 1));
        }
        counts
    }

    /// Adds to `words` all tokens but those in or below the nodes `refused`, which are ascending, and not below each
    /// other.
    pub fn tokens_outside(&self, refused: &[Node], words: &mut [u32]) {
        let mut add = |ids: &[TokenId]| insert_bits(words, ids);
        let mut from = 0;
        for &node in refused {
            add(self.run(from, node.index()));
            from = node.index() + self.size(node);
        }
        add(self.run(from, self.nodes.len()));
    }

    /// All nodes but the root by the byte that leads into them, ascending, and where the nodes of each byte begin.
    pub fn nodes_by_byte(&self) -> (Box<[Node]>, Box<[u32; 257]>) {
        let mut first = Box::new([0u32; 257]);
        for node in self.nodes.iter().skip(1) {
            first[usize::from(node.byte()) + 1] += 1;
        }
        for byte in 0..256 {
            first[byte + 1] += first[byte];
        }
        let mut next = first.clone();
        let mut nodes = vec![self.root(); self.nodes.len() - 1].into_boxed_slice();
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            let to = &mut next[usize::from(node.byte())];
            nodes[*to as usize] = Node::at(at);
            *to += 1;
        }
        (nodes, first)
    }
}
