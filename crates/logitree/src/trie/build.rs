//! Builds the trie: sorts the tokens by their bytes, writes down the bytes of each that the previous one lacks, and sums
//! up what is below each node from the end. It refuses to cut a vocabulary down to the limits.

use super::below::{Below, Gathering};
use super::node::{Packed, MAX_DEPTH, MAX_NODES, MAX_SLOT};
use super::sweep::Outline;
use super::{TokenTrie, BOGUS_SLOTS};
use crate::mask::words_for;
use crate::vocabulary::Vocabulary;
use crate::{Error, ErrorKind, Result, TokenId};

/// Shorter runs are sorted by comparisons.
const FEW: usize = 32;

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
        let sorted = sorted_tokens(vocabulary)?;
        let mut builder = Builder::new(bogus, sorted.len());
        let mut last = Key { head: 0, id: 0, length: 0 };
        for key in sorted {
            let equal = (key.head ^ last.head).leading_zeros() / 8;
            // Heads of short tokens are filled up with zeros.
            let shared = match equal {
                8 => common_prefix(last.bytes(vocabulary), key.bytes(vocabulary)),
                equal => equal.min(last.length).min(key.length) as usize,
            };
            builder.add(&key, shared, vocabulary)?;
            last = key;
        }
        Ok(builder.finish(vocabulary.len()))
    }
}

fn limit(found: String, most: usize) -> Error {
    Error::new(ErrorKind::Limit, format!("{found}, and the vocabulary trie holds at most {most}"))
        .help("leave the tokens out that are no text of the model (mark them special or unused)")
}

/// A token while they are sorted. The bytes of most tokens are not looked up again: that many places of memory in any
/// order take longer than all else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The first eight bytes, filled up with zeros.
    head: u64,
    id: TokenId,
    /// How many bytes there are.
    length: u32,
}

impl Key {
    fn bytes<'a>(&self, vocabulary: &'a Vocabulary) -> &'a [u8] {
        match self.length {
            0 => &[],
            _ => vocabulary.token_bytes(self.id),
        }
    }

    /// The byte at `at`, one of the first eight.
    fn byte(&self, at: u32) -> u8 {
        (self.head >> (56 - 8 * at)) as u8
    }
}

/// The text tokens in the order of their bytes, equal ones by id.
fn sorted_tokens(vocabulary: &Vocabulary) -> Result<Vec<Key>> {
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
        keys.push(Key { head: head(bytes), id, length: bytes.len() as u32 });
    }
    let mut scratch = keys.clone();
    sort_by_heads(&mut keys, &mut scratch, 0);
    for run in keys.chunk_by_mut(|a, b| a.head == b.head) {
        if run.len() > 1 {
            run.sort_unstable_by(|a, b| a.bytes(vocabulary).cmp(b.bytes(vocabulary)).then(a.id.cmp(&b.id)));
        }
    }
    Ok(keys)
}

/// The first eight bytes, filled up with zeros.
fn head(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => bytes.iter().rev().fold(0, |head, &byte| head >> 8 | u64::from(byte) << 56),
    }
}

/// Sorts by the byte at `at` of the heads, and each run of equal ones by the bytes after it. `scratch` is as long.
fn sort_by_heads(keys: &mut [Key], scratch: &mut [Key], at: u32) {
    if keys.len() <= FEW || at == 8 {
        keys.sort_unstable();
        return;
    }
    let mut ends = [0usize; 256];
    keys.iter().for_each(|key| ends[usize::from(key.byte(at))] += 1);
    let mut sum = 0;
    for end in &mut ends {
        (*end, sum) = (sum, sum + *end);
    }
    for key in &*keys {
        let end = &mut ends[usize::from(key.byte(at))];
        scratch[*end] = *key;
        *end += 1;
    }
    keys.copy_from_slice(scratch);
    let mut from = 0;
    for end in ends {
        if end - from > 1 {
            sort_by_heads(&mut keys[from..end], &mut scratch[from..end], at + 1);
        }
        from = end;
    }
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
    bogus: usize,
    max_depth: usize,
}

impl Builder {
    fn new(bogus: usize, tokens: usize) -> Self {
        let guess = tokens.saturating_mul(3).min(MAX_NODES);
        let mut builder = Builder {
            nodes: Vec::with_capacity(guess),
            before: Vec::with_capacity(guess),
            ids: Vec::with_capacity(tokens),
            twins: Vec::new(),
            bogus,
            max_depth: 0,
        };
        builder.open(0, 0);
        builder
    }

    fn open(&mut self, byte: u8, depth: usize) {
        let slot = self.bogus + self.nodes.len() % BOGUS_SLOTS;
        self.nodes.push(Packed::new(byte, slot as u32, depth));
        self.before.push(self.ids.len() as u32);
    }

    /// Adds the next token in byte order, which shares its first `shared` bytes with the one before it.
    fn add(&mut self, key: &Key, shared: usize, vocabulary: &Vocabulary) -> Result<()> {
        let length = key.length as usize;
        if self.nodes.len() + length - shared > MAX_NODES {
            return Err(limit(format!("more than {} nodes", self.nodes.len()), MAX_NODES));
        }
        for depth in shared..length.min(8) {
            self.open(key.byte(depth as u32), depth + 1);
        }
        if length > 8 {
            let from = shared.max(8);
            for (&byte, depth) in key.bytes(vocabulary)[from..].iter().zip(from + 1..) {
                self.open(byte, depth);
            }
        }
        self.max_depth = self.max_depth.max(length);
        let last = self.nodes.len() - 1;
        if shared == length {
            self.twins.push((self.nodes[last].slot() as TokenId, key.id));
        } else {
            self.nodes[last].set_slot(key.id);
        }
        self.ids.push(key.id);
        Ok(())
    }

    /// Sets the sizes of the nodes. Returns what is below the big ones but the root, from the last to the first: the nodes
    /// below one come after it.
    fn sum_up(&mut self) -> Vec<(u32, Below)> {
        // Per depth: how many nodes there are below the node that is met next, and what they have.
        let mut sizes = vec![0usize; self.max_depth + 2];
        let mut gathered = vec![Gathering::LEAF; self.max_depth + 2];
        let mut found = Vec::new();
        for at in (1..self.nodes.len()).rev() {
            let node = self.nodes[at];
            let depth = node.depth();
            let size = std::mem::take(&mut sizes[depth + 1]) + 1;
            self.nodes[at].set_size(size);
            sizes[depth] += size;
            let below = std::mem::replace(&mut gathered[depth + 1], Gathering::LEAF);
            if Outline::is_big(size) {
                found.push((at as u32, below.below()));
            }
            gathered[depth].add(node.byte(), &below);
        }
        let count = self.nodes.len();
        self.nodes[0].set_size(count);
        found
    }

    fn finish(mut self, vocabulary_size: usize) -> TokenTrie {
        let mut below = self.sum_up();
        below.reverse();
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
            outline: Outline::new(&self.nodes, below),
            max_depth: self.max_depth,
            nodes: self.nodes.into(),
            before: self.before.into(),
            ids: self.ids.into(),
            twins: self.twins.into(),
            first: Box::new(first),
            vocabulary_size,
        }
    }
}
