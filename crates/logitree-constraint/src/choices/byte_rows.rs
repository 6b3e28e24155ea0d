//! The rows of choices: states are the nodes of the texts' byte trie, and a node's row is computed on the first visit
//! by walking the vocabulary's trie beside it.

use std::sync::{Arc, OnceLock};

use super::{only_empty, quoted};
use crate::row_matcher::{end_tokens, Rows, AFTER_END};
use crate::token_tree::{SequenceTrie, ROOT};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::vocabulary::Vocabulary;

/// The states and rows of one set of texts over one vocabulary.
pub(crate) struct ByteRows {
    vocabulary: Arc<Vocabulary>,
    texts: SequenceTrie<u8>,
    ends: Box<[TokenId]>,
    /// From which nodes whole tokens reach the end of a text; `None` means from all of them.
    alive: Option<Vec<bool>>,
    rows: LazyRows,
}

/// The continuations of a node, by ascending token.
struct Row {
    tokens: Box<[TokenId]>,
    next: Box<[u32]>,
}

/// One row for each node, allocated in blocks when first asked for.
struct LazyRows(Box<[OnceLock<Block>]>);

type Block = Box<[OnceLock<Row>]>;

const BLOCK: usize = 64;

impl LazyRows {
    fn new(nodes: usize) -> Self {
        LazyRows((0..nodes.div_ceil(BLOCK)).map(|_| OnceLock::new()).collect())
    }

    #[inline]
    fn get(&self, node: u32, compute: impl FnOnce() -> Row) -> &Row {
        let at = node as usize;
        let block = self.0[at / BLOCK].get_or_init(|| (0..BLOCK).map(|_| OnceLock::new()).collect());
        block[at % BLOCK].get_or_init(compute)
    }
}

impl ByteRows {
    /// `texts` are sorted and distinct; see [`super::BoundOneOf::new`] for the errors.
    pub fn new(
        texts: &[&[u8]],
        following: &[u8],
        vocabulary: Arc<Vocabulary>,
        ends: &[TokenId],
    ) -> Result<ByteRows> {
        vocabulary.trie()?;
        let ends = end_tokens(ends, Some(vocabulary.len()))?;
        let trie = if following.is_empty() {
            SequenceTrie::new(texts)
        } else {
            let mut whole: Vec<Vec<u8>> = texts.iter().map(|text| [text, following].concat()).collect();
            whole.sort_unstable();
            SequenceTrie::new(&whole)
        };
        if trie.len() == 1 {
            return Err(only_empty());
        }
        let rows = LazyRows::new(trie.len());
        let mut made = ByteRows { vocabulary, texts: trie, ends, alive: None, rows };
        made.prune()?;
        made.check_ends()?;
        Ok(made)
    }

    fn is_alive(&self, node: u32) -> bool {
        self.alive.as_ref().is_none_or(|alive| alive[node as usize])
    }

    /// Calls `found` with every token that leads from `node` to a node of the texts, and that node, until it says
    /// to stop. Tokens that lead into dead ends are left out.
    fn ways_on(&self, node: u32, mut found: impl FnMut(TokenId, u32) -> bool) {
        // Built, or refused, before any row is asked for.
        let Ok(trie) = self.vocabulary.trie() else { return };
        let mut stack = vec![(trie.root(), node)];
        while let Some((above, from)) = stack.pop() {
            for (to, &byte) in self.texts.child_range(from).zip(self.texts.child_symbols(from)) {
                let Some(below) = trie.child(above, byte) else { continue };
                if self.is_alive(to) {
                    for &token in trie.tokens(below) {
                        if !found(token, to) {
                            return;
                        }
                    }
                }
                stack.push((below, to));
            }
        }
    }

    fn has_way_on(&self, node: u32) -> bool {
        let mut any = false;
        self.ways_on(node, |_, _| {
            any = true;
            false
        });
        any
    }

    /// Finds the dead ends: nodes from which no tokens reach the end of a text. With a token for every byte that
    /// occurs there are none.
    fn prune(&mut self) -> Result<()> {
        let trie = self.vocabulary.trie()?;
        let spelled: Vec<bool> = (0..=255).map(|byte| !trie.lookup(&[byte]).is_empty()).collect();
        let nodes = self.texts.len() as u32;
        if (1..nodes).all(|n| self.texts.symbol(n).is_none_or(|byte| spelled[usize::from(byte)])) {
            return Ok(());
        }
        // A child's number is greater than its parent's, so one pass from the back settles every node.
        self.alive = Some(vec![false; nodes as usize]);
        for node in (0..nodes).rev() {
            let alive = self.texts.end(node).is_some() || self.has_way_on(node);
            if let Some(all) = &mut self.alive {
                all[node as usize] = alive;
            }
        }
        let mut reached = vec![false; nodes as usize];
        reached[ROOT as usize] = true;
        for node in 0..nodes {
            if reached[node as usize] {
                self.ways_on(node, |_, to| {
                    reached[to as usize] = true;
                    true
                });
            } else if self.texts.end(node).is_some() {
                let text = self.texts.sequence(node);
                let message = format!("no tokens of the vocabulary spell the choice {}", quoted(&text));
                return Err(Error::new(ErrorKind::Constraint, message)
                    .help("drop it, or use a vocabulary that has a token for each of its bytes"));
            }
        }
        Ok(())
    }

    /// Sees to it that a text which is the beginning of another can end.
    fn check_ends(&self) -> Result<()> {
        for node in self.texts.inner_ends() {
            if !self.has_way_on(node) {
                continue;
            }
            let short = || quoted(&self.texts.sequence(node));
            let long = || quoted(&self.texts.sequence(self.end_below(node)));
            if self.ends.is_empty() {
                let message = format!(
                    "choice {} is the beginning of {}, and nothing says where it ends",
                    short(),
                    long()
                );
                return Err(Error::new(ErrorKind::Constraint, message)
                    .help("pass end_tokens (what may come after a choice), or following text"));
            }
            for &id in &self.ends {
                let bytes = self.vocabulary.token_bytes(id);
                let is_text = self.vocabulary.kind(id).is_text() && !bytes.is_empty();
                let lands = || bytes.iter().try_fold(node, |at, &byte| self.texts.step(at, byte));
                if is_text && lands().is_some_and(|to| self.is_alive(to)) {
                    let message = format!(
                        "end token {id} after choice {} is also the continuation to {}",
                        short(),
                        long()
                    );
                    return Err(Error::new(ErrorKind::Constraint, message)
                        .help("choose end tokens that continue no choice"));
                }
            }
        }
        Ok(())
    }

    /// A node below `node` where a text ends and none is longer.
    fn end_below(&self, mut node: u32) -> u32 {
        while !self.texts.child_range(node).is_empty() {
            node = self.texts.child_range(node).start;
        }
        node
    }

    fn compute(&self, node: u32) -> Row {
        let mut ways = Vec::new();
        self.ways_on(node, |token, to| {
            ways.push((token, to));
            true
        });
        if !ways.is_empty() && self.texts.end(node).is_some() {
            ways.extend(self.ends.iter().map(|&token| (token, AFTER_END)));
        }
        ways.sort_unstable();
        let (tokens, next): (Vec<_>, Vec<_>) = ways.into_iter().unzip();
        Row { tokens: tokens.into(), next: next.into() }
    }
}

impl Rows for ByteRows {
    fn vocabulary_size(&self) -> usize {
        self.vocabulary.len()
    }

    fn start(&self) -> u32 {
        ROOT
    }

    #[inline]
    fn row(&self, node: u32) -> &[TokenId] {
        if node == AFTER_END {
            return &[];
        }
        &self.rows.get(node, || self.compute(node)).tokens
    }

    fn next(&self, node: u32, at: usize) -> u32 {
        self.rows.get(node, || self.compute(node)).next[at]
    }

    fn is_accepting(&self, node: u32) -> bool {
        node == AFTER_END || self.texts.end(node).is_some()
    }
}
