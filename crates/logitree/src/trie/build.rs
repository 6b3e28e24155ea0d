//! Builds the trie: sorts the tokens by their bytes, then appends each to the previous one, opening a node for
//! every byte the two do not share. It refuses to cut a vocabulary down to the limits.

use super::below::{Below, Gathering};
use super::node::{Packed, MAX_DEPTH, MAX_NODES, MAX_SLOT};
use super::sweep::Outline;
use super::{TokenTrie, BOGUS_SLOTS};
use crate::mask::words_for;
use crate::vocabulary::Vocabulary;
use crate::{Error, ErrorKind, Result, TokenId};

impl TokenTrie {
    /// The trie over the text tokens of `vocabulary` (special markers and empty tokens are not in it).
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if a text token is longer than 1,023 bytes, the trie would need more than
    /// 4,194,303 nodes, or the vocabulary has more than 16,775,135 ids.
    pub fn new(vocabulary: &Vocabulary) -> Result<TokenTrie> {
        let bogus = words_for(vocabulary.len()) * 32;
        if bogus + BOGUS_SLOTS > MAX_SLOT {
            return Err(limit(format!("{} token ids", vocabulary.len()), MAX_SLOT - BOGUS_SLOTS));
        }
        let sorted = sorted_ids(vocabulary)?;
        let mut builder = Builder::new(bogus, sorted.len());
        let mut previous: &[u8] = &[];
        for &(_, id) in &sorted {
            let bytes = vocabulary.token_bytes(id);
            builder.add(id, bytes, common_prefix(previous, bytes))?;
            previous = bytes;
        }
        Ok(builder.finish(vocabulary.len()))
    }
}

fn limit(found: String, most: usize) -> Error {
    Error::new(ErrorKind::Limit, format!("{found}, and the vocabulary trie holds at most {most}"))
        .help("leave the tokens out that are no text of the model (mark them special or unused)")
}

/// The text tokens in the order of their bytes, equal ones by id. The first eight bytes ride along as a number,
/// so that almost every comparison is one of integers.
fn sorted_ids(vocabulary: &Vocabulary) -> Result<Vec<(u64, TokenId)>> {
    let mut keys = Vec::with_capacity(vocabulary.len());
    for id in 0..vocabulary.len() as TokenId {
        let bytes = vocabulary.token_bytes(id);
        if bytes.is_empty() || !vocabulary.kind(id).is_text() {
            continue;
        }
        if bytes.len() > MAX_DEPTH {
            return Err(limit(format!("token {id} has {} bytes", bytes.len()), MAX_DEPTH)
                .at(format!("token id {id}")));
        }
        let mut head = [0u8; 8];
        let n = bytes.len().min(8);
        head[..n].copy_from_slice(&bytes[..n]);
        keys.push((u64::from_be_bytes(head), id));
    }
    keys.sort_unstable();
    for run in keys.chunk_by_mut(|a, b| a.0 == b.0) {
        if run.len() > 1 {
            run.sort_unstable_by(|a, b| {
                let (x, y) = (vocabulary.token_bytes(a.1), vocabulary.token_bytes(b.1));
                x.cmp(y).then(a.1.cmp(&b.1))
            });
        }
    }
    Ok(keys)
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

struct Builder {
    nodes: Vec<Packed>,
    /// Per node: how many ids end in nodes before it.
    before: Vec<u32>,
    ids: Vec<TokenId>,
    twins: Vec<(TokenId, TokenId)>,
    /// The open nodes, root first: the path of the token added last.
    open: Vec<(usize, Gathering)>,
    /// What is below the big nodes closed so far.
    below: Vec<(u32, Below)>,
    bogus: usize,
}

impl Builder {
    fn new(bogus: usize, tokens: usize) -> Self {
        let guess = tokens.saturating_mul(3).min(MAX_NODES);
        let mut builder = Builder {
            nodes: Vec::with_capacity(guess),
            before: Vec::with_capacity(guess),
            ids: Vec::with_capacity(tokens),
            twins: Vec::new(),
            open: Vec::with_capacity(MAX_DEPTH + 1),
            below: Vec::new(),
            bogus,
        };
        builder.open(0);
        builder
    }

    fn open(&mut self, byte: u8) {
        let slot = self.bogus + self.nodes.len() % BOGUS_SLOTS;
        let node = Packed::new(byte, slot as u32, self.open.len());
        self.open.push((self.nodes.len(), Gathering::LEAF));
        self.nodes.push(node);
        self.before.push(self.ids.len() as u32);
    }

    /// Closes the open nodes deeper than `depth`.
    fn close(&mut self, depth: usize) {
        while self.open.len() > depth + 1 {
            let Some((at, gathered)) = self.open.pop() else { break };
            let size = self.nodes.len() - at;
            self.nodes[at].set_size(size);
            if Outline::is_big(size) {
                self.below.push((at as u32, gathered.below()));
            }
            if let Some((_, parent)) = self.open.last_mut() {
                parent.add(self.nodes[at].byte(), &gathered);
            }
        }
    }

    /// Adds the next token in byte order, which shares its first `shared` bytes with the one before it.
    fn add(&mut self, id: TokenId, bytes: &[u8], shared: usize) -> Result<()> {
        self.close(shared);
        if self.nodes.len() + bytes.len() - shared > MAX_NODES {
            return Err(limit(format!("more than {} nodes", self.nodes.len()), MAX_NODES));
        }
        for &byte in &bytes[shared..] {
            self.open(byte);
        }
        let last = self.nodes.len() - 1;
        if shared == bytes.len() {
            self.twins.push((self.nodes[last].slot() as TokenId, id));
        } else {
            self.nodes[last].set_slot(id);
        }
        self.ids.push(id);
        Ok(())
    }

    fn finish(mut self, vocabulary_size: usize) -> TokenTrie {
        self.close(0);
        let count = self.nodes.len();
        self.nodes[0].set_size(count);
        self.before.push(self.ids.len() as u32);
        let mut first = [0u32; 257];
        let mut at = 1;
        for (byte, entry) in first.iter_mut().enumerate() {
            *entry = at as u32;
            if self.nodes.get(at).is_some_and(|node| usize::from(node.byte()) == byte) {
                at += self.nodes[at].size();
            }
        }
        TokenTrie {
            outline: Outline::new(&self.nodes, self.below),
            max_depth: self.nodes.iter().map(|node| node.depth()).max().unwrap_or(0),
            nodes: self.nodes.into(),
            before: self.before.into(),
            ids: self.ids.into(),
            twins: self.twins.into(),
            first: Box::new(first),
            vocabulary_size,
        }
    }
}
