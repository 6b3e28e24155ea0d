//! A trie over sequences of any symbol, laid out breadth-first so that the children of a node lie side by side:
//! their symbols are one ascending slice. Serves token trees (symbols are ids) and choices (symbols are bytes).
//!
//! The naive version that it must equal is the set of its sequences.

use std::collections::VecDeque;

/// A node's number; the root is 0 and every child's number is greater than its parent's.
pub type Node = u32;

/// The root of every trie.
pub const ROOT: Node = 0;

const NONE: u32 = u32::MAX;

/// An immutable trie. Twelve bytes a node for ids, nine for bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SequenceTrie<S> {
    /// The symbol on the edge into each node; the root's means nothing.
    symbols: Box<[S]>,
    /// `first[n]..first[n + 1]` are the children of `n`.
    first: Box<[Node]>,
    /// Which sequence ends at each node, or `NONE`.
    ends: Box<[u32]>,
}

impl<S: Copy + Ord + Default> SequenceTrie<S> {
    /// The trie of `sequences`, which are sorted and distinct and hold fewer than 2^32 - 1 symbols in all.
    pub fn new<T: AsRef<[S]>>(sequences: &[T]) -> Self {
        debug_assert!(sequences.windows(2).all(|p| p[0].as_ref() < p[1].as_ref()));
        let (mut symbols, mut first, mut ends) = (vec![S::default()], Vec::new(), vec![NONE]);
        let mut ranges = VecDeque::from([(0, sequences.len())]);
        let (mut depth, mut level_end) = (0, 1);
        while let Some((mut low, high)) = ranges.pop_front() {
            let node = first.len();
            if node == level_end {
                depth += 1;
                level_end = symbols.len();
            }
            first.push(symbols.len() as u32);
            if low < high && sequences[low].as_ref().len() == depth {
                ends[node] = low as u32;
                low += 1;
            }
            while low < high {
                let symbol = sequences[low].as_ref()[depth];
                let same = sequences[low..high].iter().take_while(|s| s.as_ref()[depth] == symbol).count();
                symbols.push(symbol);
                ends.push(NONE);
                ranges.push_back((low, low + same));
                low += same;
            }
        }
        first.push(symbols.len() as u32);
        SequenceTrie { symbols: symbols.into(), first: first.into(), ends: ends.into() }
    }

    /// From parts laid out as the fields say, for readers that have a tree already.
    pub fn from_parts(symbols: Vec<S>, first: Vec<Node>, ends: Vec<Option<u32>>) -> Self {
        debug_assert!(symbols.len() == ends.len() && first.len() == ends.len() + 1);
        let ends = ends.into_iter().map(|end| end.unwrap_or(NONE)).collect();
        SequenceTrie { symbols: symbols.into(), first: first.into(), ends }
    }

    /// Number of nodes, the root counted.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// The children's numbers; empty for a number that is no node.
    #[inline]
    pub fn child_range(&self, node: Node) -> std::ops::Range<Node> {
        let at = node as usize;
        match self.first.get(at..at.saturating_add(2)) {
            Some(&[start, end]) => start..end,
            _ => 0..0,
        }
    }

    /// The symbols on the edges to the children, ascending, in the order of [`Self::child_range`].
    #[inline]
    pub fn child_symbols(&self, node: Node) -> &[S] {
        let range = self.child_range(node);
        &self.symbols[range.start as usize..range.end as usize]
    }

    /// The child under `symbol`.
    #[inline]
    pub fn step(&self, node: Node, symbol: S) -> Option<Node> {
        let at = self.child_symbols(node).binary_search(&symbol).ok()?;
        Some(self.child_range(node).start + at as Node)
    }

    /// The symbol on the edge into `node`; `None` for the root and for a number that is no node.
    pub fn symbol(&self, node: Node) -> Option<S> {
        if node == ROOT {
            return None;
        }
        self.symbols.get(node as usize).copied()
    }

    /// Which sequence ends here.
    #[inline]
    pub fn end(&self, node: Node) -> Option<u32> {
        self.ends.get(node as usize).copied().filter(|&end| end != NONE)
    }

    /// Nodes where a sequence ends although others continue, ascending.
    pub fn inner_ends(&self) -> impl Iterator<Item = Node> + '_ {
        (0..self.len() as Node).filter(|&n| self.end(n).is_some() && !self.child_range(n).is_empty())
    }

    /// Nodes in pre-order with their depth, the root first.
    pub fn pre_order(&self) -> impl Iterator<Item = (Node, usize)> + '_ {
        let mut stack = vec![(ROOT, 0)];
        std::iter::from_fn(move || {
            let (node, depth) = stack.pop()?;
            stack.extend(self.child_range(node).rev().map(|child| (child, depth + 1)));
            Some((node, depth))
        })
    }

    /// The symbols from the root to `node`. A binary search per symbol: for messages.
    pub fn sequence(&self, mut node: Node) -> Vec<S> {
        let mut symbols = Vec::new();
        while let Some(symbol) = self.symbol(node) {
            symbols.push(symbol);
            // The parent is the last node whose children begin at or before this one.
            node = self.first.partition_point(|&first| first <= node).saturating_sub(1) as Node;
        }
        symbols.reverse();
        symbols
    }

    /// A sequence that goes through or ends at `node` and ends below: the number of the smallest such one.
    pub fn any_end_below(&self, mut node: Node) -> Option<u32> {
        loop {
            let range = self.child_range(node);
            if range.is_empty() {
                return self.end(node);
            }
            node = range.start;
        }
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.symbols.len() * std::mem::size_of::<S>() + (self.first.len() + self.ends.len()) * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_set_of_its_sequences() {
        let sequences = ["", "a", "ab", "abc", "b", "bcd", "bce"].map(str::as_bytes);
        let trie = SequenceTrie::new(&sequences);
        for (i, sequence) in sequences.iter().enumerate() {
            let node = sequence.iter().try_fold(ROOT, |n, &b| trie.step(n, b)).unwrap();
            assert_eq!(trie.end(node), Some(i as u32));
            assert_eq!(trie.sequence(node), *sequence);
        }
        assert_eq!(trie.len(), 8);
        assert_eq!(trie.child_symbols(ROOT), b"ab");
        assert_eq!(trie.pre_order().count(), trie.len());
        assert_eq!(trie.pre_order().filter(|&(n, _)| trie.end(n).is_some()).count(), sequences.len());
        assert_eq!(trie.inner_ends().count(), 4);
        assert_eq!(trie.step(ROOT, b'z'), None);
        assert_eq!(trie.step(u32::MAX, b'a'), None);
        assert_eq!(SequenceTrie::<u8>::new::<&[u8]>(&[]).len(), 1);
    }
}
