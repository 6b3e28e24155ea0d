//! Builds the trie: sorts the tokens by their bytes, writes down the bytes of each that the previous one lacks, and sums
//! up what is below each node from the end. It refuses to cut a vocabulary down to the limits.

use super::below::{Below, Bytes, Decodes};
use super::node::{Packed, MAX_DEPTH, MAX_NODES, MAX_SLOT};
use super::sweep::Outline;
use super::{TokenTrie, BOGUS_SLOTS};
use crate::mask::words_for;
use crate::vocabulary::{Vocabulary, MAX_TOKENS};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_automata::expr::ByteSet;

/// The low bits of a sorted token: its id.
const ID_BITS: u32 = MAX_TOKENS.ilog2();
const ID: u64 = (1 << ID_BITS) - 1;
/// How many bytes of a token are sorted with its id: two by their number, the others by what fits beside the id.
const SORTED: usize = 2 + (64 - ID_BITS as usize) / 8;

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
        let mut last = (0, 0, 0);
        for id in sorted.into_iter().map(|key| (key & ID) as TokenId) {
            let (head, length) = (vocabulary.eight_bytes(id, 0), vocabulary.token_bytes(id).len());
            let most = length.min(last.2);
            let shared = match common_prefix(head, last.1) {
                8 => shared_after(8, most, vocabulary, [id, last.0]),
                shared => shared,
            };
            builder.add(id, length, shared.min(most), vocabulary)?;
            last = (id, head, length);
        }
        Ok(builder.finish(vocabulary.len()))
    }
}

fn limit(found: String, most: usize) -> Error {
    Error::new(ErrorKind::Limit, format!("{found}, and the vocabulary trie holds at most {most}"))
        .help("leave the tokens out that are no text of the model (mark them special or unused)")
}

/// How many bytes are equal before the first that differs.
fn common_prefix(a: u64, b: u64) -> usize {
    (a ^ b).leading_zeros() as usize / 8
}

/// As [`common_prefix`], of two tokens whose first `shared` bytes are equal; `most` or more if the first `most` are.
fn shared_after(mut shared: usize, most: usize, vocabulary: &Vocabulary, ids: [TokenId; 2]) -> usize {
    while shared < most {
        let [a, b] = ids.map(|id| vocabulary.eight_bytes(id, shared));
        shared += common_prefix(a, b);
        if a != b {
            break;
        }
    }
    shared
}

/// The text tokens in the order of their bytes, equal ones by id; the ids are the low [`ID_BITS`] bits.
///
/// First by their first two bytes, by counting; then those that have them in common, as numbers: some more bytes, then the
/// id. The numbers are small, and few bytes of memory are new to the process, which takes longer than sorting.
fn sorted_tokens(vocabulary: &Vocabulary) -> Result<Vec<u64>> {
    let mut ends = vec![0usize; 1 << 16];
    for id in text_tokens(vocabulary) {
        let length = vocabulary.token_bytes(id).len();
        if length > MAX_DEPTH {
            return Err(
                limit(format!("token {id} has {length} bytes"), MAX_DEPTH).at(format!("token id {id}"))
            );
        }
        ends[(vocabulary.eight_bytes(id, 0) >> 48) as usize] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        (*end, sum) = (sum, sum + *end);
    }
    let mut keys = vec![0; sum];
    for id in text_tokens(vocabulary) {
        let head = vocabulary.eight_bytes(id, 0);
        let end = &mut ends[(head >> 48) as usize];
        keys[*end] = (head << 16) & !ID | u64::from(id);
        *end += 1;
    }
    let mut from = 0;
    let mut tails = Vec::new();
    for end in ends {
        if end - from > 1 {
            keys[from..end].sort_unstable();
            for run in keys[from..end].chunk_by_mut(|a, b| (a ^ b) <= ID).filter(|run| run.len() > 1) {
                sort_by_tails(run, &mut tails, vocabulary);
            }
        }
        from = end;
    }
    Ok(keys)
}

fn text_tokens(vocabulary: &Vocabulary) -> impl Iterator<Item = TokenId> + '_ {
    (0..vocabulary.len() as TokenId)
        .filter(|&id| vocabulary.kind(id).is_text() && !vocabulary.token_bytes(id).is_empty())
}

/// Sorts tokens whose first [`SORTED`] bytes, filled up with zeros, are equal.
fn sort_by_tails(run: &mut [u64], tails: &mut Vec<(u64, u64)>, vocabulary: &Vocabulary) {
    tails.clear();
    tails.extend(run.iter().map(|&key| (vocabulary.eight_bytes((key & ID) as TokenId, SORTED), key)));
    tails.sort_unstable_by(|(a, x), (b, y)| {
        a.cmp(b).then_with(|| {
            let [p, q] = [x, y].map(|key| vocabulary.token_bytes((key & ID) as TokenId));
            p.cmp(q).then(x.cmp(y))
        })
    });
    run.iter_mut().zip(&*tails).for_each(|(to, (_, key))| *to = *key);
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
        builder.nodes.push(Packed::new(0, bogus as u32, 0));
        builder.before.push(0);
        builder
    }

    /// Adds the next token in byte order, which shares its first `shared` bytes with the one before it.
    fn add(&mut self, id: TokenId, length: usize, shared: usize, vocabulary: &Vocabulary) -> Result<()> {
        let end = self.nodes.len() + length - shared;
        if end > MAX_NODES {
            return Err(limit(format!("more than {} nodes", self.nodes.len()), MAX_NODES));
        }
        // Eight nodes at a time, those too many are taken off again: most tokens have fewer, and to find out how many, one
        // by one, takes longer.
        for from in (shared..length).step_by(8) {
            let bytes = vocabulary.eight_bytes(id, from).to_be_bytes();
            let at = self.nodes.len();
            let eight: [Packed; 8] = std::array::from_fn(|n| {
                let slot = self.bogus + (at + n) % BOGUS_SLOTS;
                Packed::new(bytes[n], slot as u32, from + n + 1)
            });
            self.nodes.extend_from_slice(&eight);
            self.before.extend_from_slice(&[self.ids.len() as u32; 8]);
        }
        self.nodes.truncate(end);
        self.before.truncate(end);
        self.max_depth = self.max_depth.max(length);
        if shared == length {
            self.twins.push((self.nodes[end - 1].slot(), id));
        } else {
            self.nodes[end - 1].set_slot(id);
        }
        self.ids.push(id);
        Ok(())
    }

    /// Sets the sizes of the nodes. Returns the big ones but the root, from the first to the last, each with whether what
    /// is below it is text. From the end, as the nodes below one come after it.
    fn sum_up(&mut self) -> Vec<(u32, bool)> {
        // Per depth: how many nodes there are below the node that is met next, and what they decode.
        let mut sums = vec![(0, Decodes::LEAF); self.max_depth + 2];
        let mut big = Vec::new();
        for at in (1..self.nodes.len()).rev() {
            let node = self.nodes[at];
            let depth = node.depth();
            let (below, decodes) = std::mem::replace(&mut sums[depth + 1], (0, Decodes::LEAF));
            let size = below + 1;
            self.nodes[at].set_size(size);
            if Outline::is_big(size) {
                big.push((at as u32, decodes.is_text()));
            }
            sums[depth].0 += size;
            sums[depth].1.add(node.byte(), decodes);
        }
        let count = self.nodes.len();
        self.nodes[0].set_size(count);
        big.reverse();
        big
    }

    /// What is below each big node, in their order.
    fn below(&self, big: &[(u32, bool)]) -> Vec<(u32, Below)> {
        let mut found: Vec<(u32, Below)> =
            big.iter().map(|&(at, text)| (at, Below { bytes: ByteSet::NONE, text })).collect();
        let mut here = Bytes::default();
        // Every node up to the next big one is below the last one that is open.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut at = 1;
        for number in 0..=found.len() {
            let next = found.get(number).map_or(self.nodes.len(), |&(at, _)| at as usize);
            while let Some(&(top, end)) = open.last() {
                let stop = end.min(next);
                self.nodes[at..stop].iter().for_each(|node| here.see(node.byte()));
                at = stop;
                let bytes = found[top].1.bytes.or(&here.take());
                found[top].1.bytes = bytes;
                if end > next {
                    break;
                }
                open.pop();
                if let Some(&(parent, _)) = open.last() {
                    found[parent].1.bytes = found[parent].1.bytes.or(&bytes);
                }
            }
            if let Some(node) = self.nodes.get(next) {
                if let Some(&(parent, _)) = open.last() {
                    found[parent].1.bytes.insert(node.byte());
                }
                open.push((number, next + node.size()));
                at = next + 1;
            }
        }
        found
    }

    fn finish(mut self, vocabulary_size: usize) -> TokenTrie {
        let big = self.sum_up();
        let below = self.below(&big);
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

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
