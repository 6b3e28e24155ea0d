//! The rests of tokens after the end of a lexeme, as a trie: equal rests of many tokens are one node.

use logitree_tokens::trie::{Node, TokenTrie};
use logitree_tokens::TokenId;

/// Rests of tokens that begin with one byte. Laid out depth-first, as the vocabulary's trie is.
#[derive(Debug)]
pub(super) struct Suffixes {
    nodes: Vec<Suffix>,
    ids: Vec<TokenId>,
}

#[derive(Debug, Clone, Copy)]
struct Suffix {
    byte: u8,
    /// Bytes from the first one to here.
    depth: u16,
    /// Nodes of the subtree, this one included.
    size: u32,
    /// `ids[from..to]` end here.
    from: u32,
    to: u32,
}

impl Suffixes {
    /// The rests that begin in `nodes`, all reached by `byte`, of the tokens for which `wanted` holds.
    pub fn new(trie: &TokenTrie, byte: u8, nodes: &[Node], wanted: &impl Fn(TokenId) -> bool) -> Suffixes {
        let mut made = Suffixes { nodes: Vec::new(), ids: Vec::new() };
        let mut waiting: Vec<(u8, Node)> = nodes.iter().map(|&node| (byte, node)).collect();
        made.add(trie, byte, &mut waiting, 0, 1, wanted);
        made
    }

    /// Adds what begins in the nodes of `waiting` from `from` on, all reached by `byte`; those before wait for others.
    /// Recursion is as deep as the longest token, which the vocabulary's trie bounds.
    fn add(
        &mut self,
        trie: &TokenTrie,
        byte: u8,
        waiting: &mut Vec<(u8, Node)>,
        from: usize,
        depth: u16,
        wanted: &impl Fn(TokenId) -> bool,
    ) {
        let here = self.nodes.len();
        let first = self.ids.len() as u32;
        for &(_, node) in &waiting[from..] {
            self.ids.extend(trie.tokens(node).iter().copied().filter(|&id| wanted(id)));
        }
        self.nodes.push(Suffix { byte, depth, size: 0, from: first, to: self.ids.len() as u32 });
        let nodes = from..waiting.len();
        let below = nodes.end;
        for at in nodes {
            let node = waiting[at].1;
            waiting.extend(trie.children(node));
        }
        // Runs are taken from the end: the first byte last.
        let order = |a: &(u8, Node), b: &(u8, Node)| (b.0, a.1).cmp(&(a.0, b.1));
        waiting[below..].sort_unstable_by(order);
        while waiting.len() > below {
            let byte = waiting[waiting.len() - 1].0;
            let run = waiting[below..].partition_point(|way| way.0 > byte);
            self.add(trie, byte, waiting, below + run, depth + 1, wanted);
        }
        waiting.truncate(from);
        if self.ids.len() as u32 == first {
            self.nodes.truncate(here);
            return;
        }
        self.nodes[here].size = (self.nodes.len() - here) as u32;
    }

    /// Adds to `found` the ids of the rests all of whose bytes `step` takes, from `start` on. It gets whether no rest is
    /// longer, too. `states` is memory for the walk.
    ///
    /// # Errors
    /// What `step` fails with.
    pub fn viable<S: Copy, E>(
        &self,
        start: S,
        mut step: impl FnMut(S, u8, bool) -> Result<Option<S>, E>,
        states: &mut Vec<S>,
        found: &mut Vec<TokenId>,
    ) -> Result<(), E> {
        states.clear();
        states.push(start);
        let mut at = 0;
        while let Some(node) = self.nodes.get(at) {
            let level = usize::from(node.depth);
            states.truncate(level);
            match step(states[level - 1], node.byte, node.size == 1)? {
                Some(state) => {
                    states.push(state);
                    found.extend_from_slice(&self.ids[node.from as usize..node.to as usize]);
                    at += 1;
                }
                None => at += node.size as usize,
            }
        }
        Ok(())
    }

    /// The tokens, each with the length of its rest.
    #[cfg(test)]
    pub fn all(&self) -> impl Iterator<Item = (TokenId, usize)> + '_ {
        let ids = |node: &Suffix| &self.ids[node.from as usize..node.to as usize];
        self.nodes.iter().flat_map(move |node| ids(node).iter().map(|&id| (id, usize::from(node.depth))))
    }

    pub fn memory(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.ids)
    }
}
