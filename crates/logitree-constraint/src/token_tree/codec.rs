//! The binary form of one descriptor's tree, little-endian: u32 magic, u32 version, u32 path length, the path in
//! UTF-8, u32 number of nodes; then per node, in pre-order with children ascending by token: i32 id (-1 for the
//! root), u8 terminal, u32 number of children, and each child's index as u32. Leaf names are not part of it.
//!
//! Reading is one pass without recursion; memory is a small multiple of the input.

use std::collections::VecDeque;

use super::payload::{MAX_TOKENS, MAX_TOKEN_ID};
use super::sequence_trie::{SequenceTrie, ROOT};
use super::DescriptorTree;
use crate::{Error, ErrorKind, Result, TokenId};

/// The first four bytes, as a little-endian number.
pub const MAGIC: u32 = 0x544B_5452;
/// The only version there is.
pub const VERSION: u32 = 1;

/// Bytes of the shortest header, and of a node without children.
const HEADER: usize = 16;
const NODE: usize = 9;

impl DescriptorTree {
    /// The binary form. Equal trees give equal bytes.
    pub fn to_binary(&self) -> Vec<u8> {
        let nodes = self.node_count();
        let mut out = Vec::with_capacity(HEADER + self.path().len() + NODE * nodes + 4 * nodes);
        let put = |out: &mut Vec<u8>, n: u32| out.extend_from_slice(&n.to_le_bytes());
        put(&mut out, MAGIC);
        put(&mut out, VERSION);
        put(&mut out, self.path().len() as u32);
        out.extend_from_slice(self.path().as_bytes());
        put(&mut out, nodes as u32);
        let mut index = vec![0u32; nodes];
        for (i, (node, _)) in self.trie.pre_order().enumerate() {
            index[node as usize] = i as u32;
        }
        for (node, _) in self.trie.pre_order() {
            out.extend_from_slice(&self.token(node).map_or(-1, |id| id as i32).to_le_bytes());
            out.push(u8::from(self.is_terminal(node)));
            let children = self.trie.child_range(node);
            put(&mut out, children.len() as u32);
            children.for_each(|child| put(&mut out, index[child as usize]));
        }
        out
    }

    /// Reads the binary form. Leaf names are unknown in the tree it gives.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`], naming the byte offset, for: fewer than 16 bytes, a wrong magic number or version, a
    /// path that is not UTF-8, anything cut short or left over, a root whose id is not -1 or that is terminal, an
    /// id outside 0 to 2^31 - 1, a terminal flag other than 0 and 1, a child index not greater than its parent's or
    /// out of range, a node with several parents or none, two children with one token, and a node without
    /// children that is no terminal (a dead end). [`ErrorKind::Limit`] past 2^28 nodes.
    pub fn from_binary(bytes: &[u8]) -> Result<DescriptorTree> {
        let mut from = Reader { bytes, at: 0 };
        if bytes.len() < HEADER {
            return Err(bad(format!("{} bytes, and the shortest header has {HEADER}", bytes.len()), 0));
        }
        let magic = from.u32("the magic number")?;
        if magic != MAGIC {
            let error = bad(format!("the magic number is {magic:#010x}, expected {MAGIC:#010x}"), 0);
            return Err(error.help("this is not a binary token tree; JSON goes to token_tree()"));
        }
        let version = from.u32("the version")?;
        if version != VERSION {
            return Err(bad(format!("version {version}, and only version {VERSION} is read"), 4));
        }
        let path_len = from.u32("the path length")? as usize;
        let path = from.take(path_len, "the path")?;
        let path = std::str::from_utf8(path)
            .map_err(|e| bad("the path is not UTF-8".into(), 12 + e.valid_up_to()))?
            .to_string();
        let nodes = read_nodes(&mut from)?;
        if from.at < bytes.len() {
            return Err(bad(format!("{} bytes after the last node", bytes.len() - from.at), from.at));
        }
        let trie = nodes.into_trie()?;
        Ok(DescriptorTree::from_trie(path, trie, Vec::new()))
    }
}

fn bad(message: String, offset: usize) -> Error {
    Error::new(ErrorKind::Payload, format!("the binary token tree cannot be read: {message}"))
        .at(format!("byte {offset}"))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..n) else {
            return Err(bad(format!("{what} needs {n} bytes and {} are left", rest.len()), self.at));
        };
        self.at += n;
        Ok(taken)
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        let bytes = self.take(4, what)?;
        Ok(bytes.iter().rev().fold(0, |n, &b| n << 8 | u32::from(b)))
    }
}

/// The nodes as they were written.
struct Nodes {
    /// Token and terminal flag of each node; the root's token means nothing.
    nodes: Vec<(TokenId, bool)>,
    /// `first[n]..first[n + 1]` are the positions in `children` that belong to node n.
    first: Vec<u32>,
    children: Vec<u32>,
    /// Byte offset of each node, for errors.
    offsets: Vec<usize>,
}

fn read_nodes(from: &mut Reader<'_>) -> Result<Nodes> {
    let count_at = from.at;
    let count = from.u32("the number of nodes")? as usize;
    if count == 0 {
        return Err(bad("0 nodes, and the root is one".into(), count_at));
    }
    let left = from.bytes.len() - from.at;
    if count > left / NODE {
        return Err(bad(format!("{count} nodes cannot be in the {left} bytes left"), count_at));
    }
    if count > MAX_TOKENS {
        return Err(Error::new(ErrorKind::Limit, format!("{count} nodes, and {MAX_TOKENS} is the most"))
            .at(format!("byte {count_at}")));
    }
    let mut all = Nodes {
        nodes: Vec::with_capacity(count),
        first: Vec::with_capacity(count + 1),
        children: Vec::with_capacity(count - 1),
        offsets: Vec::with_capacity(count),
    };
    let mut has_parent = vec![false; count];
    for node in 0..count {
        let at = from.at;
        all.offsets.push(at);
        all.first.push(all.children.len() as u32);
        let id = from.u32("a node's id")?;
        match (node, id) {
            (0, u32::MAX) => {}
            (0, _) => return Err(bad(format!("the root's id is {}, expected -1", id as i32), at)),
            (_, 0..=MAX_TOKEN_ID) => {}
            _ => return Err(bad(format!("node {node} has id {}", id as i32), at)),
        }
        let terminal = match from.take(1, "a terminal flag")? {
            [0] => false,
            [1] if node > 0 => true,
            flag => return Err(bad(format!("node {node} has terminal flag {flag:?}"), from.at - 1)),
        };
        all.nodes.push((id, terminal));
        let n = from.u32("a number of children")? as usize;
        if n == 0 && !terminal && node > 0 {
            return Err(bad(format!("node {node} is a dead end: no children and no terminal"), at));
        }
        for _ in 0..n {
            let child_at = from.at;
            let child = from.u32("a child's index")? as usize;
            if child <= node || child >= count {
                return Err(bad(format!("node {node} of {count} has child {child}"), child_at));
            }
            if std::mem::replace(&mut has_parent[child], true) {
                return Err(bad(format!("node {child} has several parents"), child_at));
            }
            all.children.push(child as u32);
        }
    }
    all.first.push(all.children.len() as u32);
    if let Some(node) = (1..count).find(|&n| !has_parent[n]) {
        return Err(bad(format!("node {node} is connected to nothing"), all.offsets[node]));
    }
    Ok(all)
}

impl Nodes {
    /// The same tree breadth-first. Every node has one parent with a smaller index: it is a tree and this ends.
    fn into_trie(mut self) -> Result<SequenceTrie<TokenId>> {
        let count = self.nodes.len();
        let (mut symbols, mut first, mut ends) =
            (Vec::with_capacity(count), Vec::with_capacity(count + 1), Vec::with_capacity(count));
        let mut leaves = 0;
        let mut queue = VecDeque::from([ROOT]);
        symbols.push(0);
        while let Some(node) = queue.pop_front() {
            let node = node as usize;
            first.push(symbols.len() as u32);
            ends.push(self.nodes[node].1.then_some(leaves));
            leaves += u32::from(self.nodes[node].1);
            let children = &mut self.children[self.first[node] as usize..self.first[node + 1] as usize];
            children.sort_unstable_by_key(|&child| self.nodes[child as usize].0);
            let token = |child: u32| self.nodes[child as usize].0;
            if let Some(twins) = children.windows(2).find(|pair| token(pair[0]) == token(pair[1])) {
                let message = format!("node {node} has two children with token {}", token(twins[0]));
                return Err(bad(message, self.offsets[node]));
            }
            symbols.extend(children.iter().map(|&child| token(child)));
            queue.extend(children.iter());
        }
        first.push(symbols.len() as u32);
        Ok(SequenceTrie::from_parts(symbols, first, ends))
    }
}
