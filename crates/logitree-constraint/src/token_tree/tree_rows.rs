//! A descriptor's token tree as rows for the matcher: a node's row is its children, plus the end tokens where a value
//! is complete and others continue.

use std::sync::{Arc, OnceLock};

use super::sequence_trie::ROOT;
use super::{DescriptorTree, TokenTree};
use crate::row_matcher::{end_tokens, merged, Rows, AFTER_END};
use crate::End;
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::vocabulary::MAX_TOKENS;

/// The rows of one descriptor with its end tokens.
pub(crate) struct TreeRows {
    descriptor: Arc<DescriptorTree>,
    /// Keeps the whole tree in use, for the cache's count.
    _tree: Arc<TokenTree>,
    ends: Box<[TokenId]>,
    /// Children and end tokens, for each of the descriptor's inner terminals, filled on the first visit.
    inner_rows: Box<[OnceLock<Box<[TokenId]>>]>,
    vocabulary_size: usize,
}

impl TreeRows {
    /// # Errors
    /// [`ErrorKind::Constraint`] if an id is not in the vocabulary, an inner terminal has nothing to end it, or an end
    /// token is one of its children.
    pub fn new(tree: Arc<TokenTree>, descriptor: Arc<DescriptorTree>, end: &End) -> Result<TreeRows> {
        let known_size = end.vocabulary.as_ref().map(|v| v.len());
        let ends = end_tokens(end.tokens(), known_size)?;
        let outside = |size: &usize| descriptor.largest.is_some_and(|id| id as usize >= *size);
        if let (Some(id), Some(size)) = (descriptor.largest, known_size.filter(outside)) {
            let message = format!("id {id} of the token tree is outside the vocabulary of {size} tokens");
            return Err(Error::new(ErrorKind::Constraint, message)
                .at(format!("path {:?}", descriptor.path()))
                .help("make the payload with this model's tokenizer"));
        }
        for &node in &descriptor.inner {
            let inner = || {
                descriptor.leaf_name(node).map_or(format!("the leaf at node {node}"), |n| format!("{n:?}"))
            };
            let longer = || descriptor.describe_below(node);
            if ends.is_empty() {
                let message =
                    format!("{} is a prefix of {}, and nothing says where it ends", inner(), longer());
                return Err(Error::new(ErrorKind::Constraint, message).at(format!("path {:?}", descriptor.path())).help(
                    "pass end_tokens (what may follow a complete value), or following text with a vocabulary",
                ));
            }
            if let Some(id) = ends.iter().find(|id| descriptor.children(node).binary_search(id).is_ok()) {
                let message =
                    format!("end token {id} after {} is also the continuation to {}", inner(), longer());
                return Err(Error::new(ErrorKind::Constraint, message)
                    .at(format!("path {:?}", descriptor.path()))
                    .help("choose end tokens that continue no value"));
            }
        }
        let largest = descriptor.largest.max(ends.last().copied());
        if let Some(id) = largest.filter(|&id| id as usize >= MAX_TOKENS) {
            let message = format!("id {id} is past the {MAX_TOKENS} tokens that any vocabulary may have");
            return Err(Error::new(ErrorKind::Limit, message).at(format!("path {:?}", descriptor.path())));
        }
        let vocabulary_size = known_size.unwrap_or_else(|| largest.map_or(0, |id| id as usize + 1));
        let inner_rows = descriptor.inner.iter().map(|_| OnceLock::new()).collect();
        Ok(TreeRows { descriptor, _tree: tree, ends, inner_rows, vocabulary_size })
    }

    fn inner_row(&self, node: u32) -> Option<&[TokenId]> {
        let at = self.descriptor.inner.binary_search(&node).ok()?;
        Some(self.inner_rows[at].get_or_init(|| merged(self.descriptor.children(node), &self.ends)))
    }
}

impl Rows for TreeRows {
    fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    fn start(&self) -> u32 {
        ROOT
    }

    #[inline]
    fn row(&self, node: u32) -> &[TokenId] {
        let children = self.descriptor.children(node);
        if self.inner_rows.is_empty() || children.is_empty() || !self.descriptor.is_terminal(node) {
            return children;
        }
        self.inner_row(node).unwrap_or(children)
    }

    fn next(&self, node: u32, at: usize) -> u32 {
        let token = self.row(node)[at];
        self.descriptor.step(node, token).unwrap_or(AFTER_END)
    }

    fn is_accepting(&self, node: u32) -> bool {
        node == AFTER_END || self.descriptor.is_terminal(node)
    }
}
