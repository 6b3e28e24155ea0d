//! Token sequences found in a stream of tokens, for reasoning blocks and bans (Aho and Corasick, 1975; one sequence alone is
//! Knuth, Morris and Pratt's automaton, and a node's number is then the number of tokens that match).
//!
//! The slow version that it must equal: keep all tokens, and after each compare their end with every sequence.

use logitree_tokens::TokenId;

/// Where every search starts.
pub(crate) const START: u32 = 0;

/// The automaton. A node is the longest end of the stream that is the beginning of a sequence.
#[derive(Debug)]
pub(crate) struct Finder {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// By ascending token.
    children: Vec<(TokenId, u32)>,
    /// The node of the longest proper end of this one's tokens.
    fail: u32,
    parent: u32,
    token: TokenId,
    /// Whether the stream ends with a sequence here.
    found: bool,
}

impl Finder {
    /// Finds any of `sequences`. None may be empty.
    pub fn new(sequences: &[Vec<TokenId>]) -> Finder {
        let mut finder = Finder { nodes: vec![Node::default()] };
        for sequence in sequences {
            let last = sequence.iter().fold(START, |node, &token| finder.grow(node, token));
            finder.nodes[last as usize].found = true;
        }
        finder.link();
        finder
    }

    fn grow(&mut self, node: u32, token: TokenId) -> u32 {
        match self.nodes[node as usize].children.binary_search_by_key(&token, |c| c.0) {
            Ok(at) => self.nodes[node as usize].children[at].1,
            Err(at) => {
                let child = self.nodes.len() as u32;
                self.nodes[node as usize].children.insert(at, (token, child));
                self.nodes.push(Node { parent: node, token, ..Node::default() });
                child
            }
        }
    }

    /// Sets the fail links, level by level.
    fn link(&mut self) {
        let mut level: Vec<u32> = self.nodes[0].children.iter().map(|c| c.1).collect();
        while !level.is_empty() {
            let mut next = Vec::new();
            for node in level {
                let (parent, token) = (self.nodes[node as usize].parent, self.nodes[node as usize].token);
                let fail = match parent {
                    START => START,
                    _ => self.along(self.nodes[parent as usize].fail, token),
                };
                self.nodes[node as usize].fail = fail;
                self.nodes[node as usize].found |= self.nodes[fail as usize].found;
                next.extend(self.nodes[node as usize].children.iter().map(|c| c.1));
            }
            level = next;
        }
    }

    /// The node after `token`, by fail links where there is no child.
    fn along(&self, mut node: u32, token: TokenId) -> u32 {
        loop {
            match self.child(node, token) {
                Some(child) => return child,
                None if node == START => return START,
                None => node = self.nodes[node as usize].fail,
            }
        }
    }

    /// The node after `token`. What was found stays found.
    pub fn step(&self, node: u32, token: TokenId) -> u32 {
        match self.is_found(node) {
            true => node,
            false => self.along(node, token),
        }
    }

    /// The node after `token`, if a sequence continues with it.
    pub fn child(&self, node: u32, token: TokenId) -> Option<u32> {
        let children = &self.nodes[node as usize].children;
        children.binary_search_by_key(&token, |c| c.0).ok().map(|at| children[at].1)
    }

    /// Whether a sequence is complete.
    pub fn is_found(&self, node: u32) -> bool {
        self.nodes[node as usize].found
    }

    /// The tokens with which a sequence continues, ascending.
    pub fn next(&self, node: u32) -> impl Iterator<Item = TokenId> + '_ {
        self.nodes[node as usize].children.iter().map(|c| c.0)
    }

    /// Adds the tokens that complete a sequence here, unordered.
    pub fn completions(&self, mut node: u32, out: &mut Vec<TokenId>) {
        loop {
            let at = &self.nodes[node as usize];
            out.extend(at.children.iter().filter(|c| self.is_found(c.1)).map(|c| c.0));
            if node == START {
                return;
            }
            node = at.fail;
        }
    }

    /// Of each node, whether tokens of a kind alone may complete a sequence from there on.
    pub fn completable(&self, is_of_kind: impl Fn(TokenId) -> bool) -> Vec<bool> {
        let mut found: Vec<bool> = self.nodes.iter().map(|node| node.found).collect();
        // A child comes after its parent, and a fail link leads to a shorter node.
        for at in (1..self.nodes.len()).rev() {
            let node = &self.nodes[at];
            if found[at] && is_of_kind(node.token) {
                found[node.parent as usize] = true;
            }
        }
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_cached_key(|&at| self.depth(at as u32));
        for at in order {
            found[at] |= found[self.nodes[at].fail as usize];
        }
        found
    }

    fn depth(&self, mut node: u32) -> usize {
        let mut depth = 0;
        while node != START {
            node = self.nodes[node as usize].parent;
            depth += 1;
        }
        depth
    }

    /// The tokens of a node, first to last.
    pub fn path(&self, mut node: u32) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        while node != START {
            tokens.push(self.nodes[node as usize].token);
            node = self.nodes[node as usize].parent;
        }
        tokens.reverse();
        tokens
    }
}
