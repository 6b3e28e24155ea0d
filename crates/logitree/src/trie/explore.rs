//! A walk that visits every node, with a state for each from a closure. The naive version is the
//! recursion over [`TokenTrie::children`] in `tests/trie.rs`.

use super::{Node, TokenTrie};

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
}
