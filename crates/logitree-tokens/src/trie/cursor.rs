//! Lookups in the trie, and stepping through it node by node.

use super::TokenTrie;
use crate::TokenId;

/// A place in one trie: the end of the bytes that lead to it. Only meaningful with the trie it came from; with
/// another it names some other node, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(u32);

impl Node {
    pub(super) fn at(index: usize) -> Node {
        Node(index as u32)
    }

    /// The node's number: 0 for the root, depth-first.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The children of a node, by ascending byte.
#[derive(Clone)]
pub struct Children<'a> {
    trie: &'a TokenTrie,
    at: usize,
    end: usize,
}

impl Iterator for Children<'_> {
    type Item = (u8, Node);

    fn next(&mut self) -> Option<(u8, Node)> {
        if self.at >= self.end {
            return None;
        }
        let node = self.trie.nodes[self.at];
        let here = Node(self.at as u32);
        self.at += node.size();
        Some((node.byte(), here))
    }
}

impl TokenTrie {
    /// The root: no bytes read yet.
    pub fn root(&self) -> Node {
        Node(0)
    }

    /// The children of `node` with their bytes, ascending.
    pub fn children(&self, node: Node) -> Children<'_> {
        let at = node.index();
        let size = self.nodes.get(at).map_or(0, |n| n.size());
        Children { trie: self, at: at + 1, end: at + size }
    }

    /// The child of `node` by `byte`.
    pub fn child(&self, node: Node, byte: u8) -> Option<Node> {
        if node.index() == 0 {
            let at = self.first[usize::from(byte)];
            return (at < self.first[usize::from(byte) + 1]).then_some(Node(at));
        }
        self.children(node).take_while(|(b, _)| *b <= byte).find(|(b, _)| *b == byte).map(|(_, child)| child)
    }

    /// The byte that leads into `node`; 0 for the root.
    pub fn byte(&self, node: Node) -> u8 {
        self.nodes.get(node.index()).map_or(0, |n| n.byte())
    }

    /// Number of bytes from the root to `node`.
    pub fn depth(&self, node: Node) -> usize {
        self.nodes.get(node.index()).map_or(0, |n| n.depth())
    }

    /// Number of nodes in the subtree of `node`, itself included.
    pub fn size(&self, node: Node) -> usize {
        self.nodes.get(node.index()).map_or(0, |n| n.size())
    }

    /// The ids of the tokens that end in `node`, ascending; several where tokens have equal bytes.
    pub fn tokens(&self, node: Node) -> &[TokenId] {
        self.run(node.index(), node.index() + 1)
    }

    /// The ids of the tokens that end in `node` or below it, in the order of their bytes.
    pub fn tokens_below(&self, node: Node) -> &[TokenId] {
        self.run(node.index(), node.index() + self.size(node))
    }

    /// The ids that end in the nodes `from..to`.
    pub(super) fn run(&self, from: usize, to: usize) -> &[TokenId] {
        match (self.before.get(from), self.before.get(to)) {
            (Some(&a), Some(&b)) => &self.ids[a as usize..b as usize],
            _ => &[],
        }
    }

    /// The node that `bytes` lead to from the root.
    pub fn find(&self, bytes: &[u8]) -> Option<Node> {
        bytes.iter().try_fold(self.root(), |node, &byte| self.child(node, byte))
    }

    /// Whether some token begins with `bytes`. True of no bytes, if there are tokens at all.
    pub fn has_prefix(&self, bytes: &[u8]) -> bool {
        !self.with_prefix(bytes).is_empty()
    }

    /// The ids of the tokens that are exactly `bytes`, ascending; empty if there are none.
    pub fn lookup(&self, bytes: &[u8]) -> &[TokenId] {
        self.find(bytes).map_or(&[], |node| self.tokens(node))
    }

    /// The ids of the tokens that begin with `bytes`, in the order of their bytes.
    pub fn with_prefix(&self, bytes: &[u8]) -> &[TokenId] {
        self.find(bytes).map_or(&[], |node| self.tokens_below(node))
    }

    /// The longest token that `bytes` begin with: its (lowest) id and its length.
    pub fn longest_match(&self, bytes: &[u8]) -> Option<(TokenId, usize)> {
        self.prefixes(bytes).last().map(|(ids, length)| (ids[0], length))
    }

    /// All tokens that `bytes` begin with, shortest first: the ids with equal bytes, and their length.
    pub fn prefixes<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = (&'a [TokenId], usize)> + 'a {
        let mut node = Some(self.root());
        let path = bytes.iter().map_while(move |&byte| {
            node = node.and_then(|n| self.child(n, byte));
            node
        });
        path.zip(1..).map(|(node, length)| (self.tokens(node), length)).filter(|(ids, _)| !ids.is_empty())
    }
}
