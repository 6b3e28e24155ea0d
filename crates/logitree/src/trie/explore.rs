//! A walk that visits every node, with a state for each from a closure. The naive version is the
//! recursion over [`TokenTrie::children`] in `tests/trie.rs`.

use super::{Node, TokenTrie};
use crate::TokenId;

impl TokenTrie {
    /// Walks the nodes below `from`, depth first, by ascending bytes. `step` gets the state of a node's parent (that of
    /// `from` is `start`), the node's byte and the node; it gives the node's state, or `None` to leave out the node and
    /// all below it.
    pub(crate) fn explore<S: Copy>(
        &self,
        from: Node,
        start: S,
        mut step: impl FnMut(S, u8, Node) -> Option<S>,
    ) {
        let top = self.depth(from);
        let mut states = vec![start; self.max_depth + 1 - top.min(self.max_depth)];
        let mut at = from.index() + 1;
        let end = from.index() + self.size(from);
        while at < end {
            let node = self.nodes[at];
            let level = node.depth() - top;
            match step(states[level - 1], node.byte(), Node::at(at)) {
                Some(state) => {
                    states[level] = state;
                    at += 1;
                }
                None => at += node.size(),
            }
        }
    }

    /// The nodes where tokens end for which `wanted` holds, given those tokens: ascending.
    pub(crate) fn nodes_where(&self, mut wanted: impl FnMut(Node, &[TokenId]) -> bool) -> Vec<Node> {
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

    /// Adds to `words` all tokens but those in or below the nodes `refused`, which are ascending, and not below each
    /// other.
    pub(crate) fn tokens_outside(&self, refused: &[Node], words: &mut [u32]) {
        let mut add = |ids: &[TokenId]| {
            for &id in ids {
                words[id as usize / 32] |= 1 << (id % 32);
            }
        };
        let mut from = 0;
        for &node in refused {
            add(self.run(from, node.index()));
            from = node.index() + self.size(node);
        }
        add(self.run(from, self.nodes.len()));
    }

    /// All nodes but the root by the byte that leads into them, ascending, and where the nodes of each byte begin.
    pub(crate) fn nodes_by_byte(&self) -> (Box<[Node]>, Box<[u32; 257]>) {
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
