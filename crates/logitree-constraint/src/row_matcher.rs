//! One matcher for every constraint whose states are numbered nodes and whose allowed tokens at a node is one
//! ascending row of ids: token trees and choices.

use std::sync::Arc;

use super::sequence::MAX_FORCED;
use super::{AfterEnd, Sequence, States};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::mask::AllowedTokens;

/// The node after an end token: nothing may follow.
pub(crate) const AFTER_END: u32 = u32::MAX;

/// A graph of nodes with rows, shared by all matchers over it. Node [`AFTER_END`] belongs to every graph.
pub(crate) trait Rows: Send + Sync + 'static {
    /// Number of token ids that masks cover.
    fn vocabulary_size(&self) -> usize;
    /// Where every sequence starts.
    fn start(&self) -> u32;
    /// The ids that are allowed at `node`, ascending; empty exactly at finished nodes.
    fn row(&self, node: u32) -> &[TokenId];
    /// The node after the id at position `at` of the row of `node`.
    fn next(&self, node: u32, at: usize) -> u32;
    /// Whether something is complete at `node`.
    fn is_accepting(&self, node: u32) -> bool;
}

/// A matcher over [`Rows`].
pub(crate) type RowMatcher<R> = Sequence<RowStates<R>>;

/// The nodes of [`Rows`].
pub(crate) struct RowStates<R> {
    rows: Arc<R>,
    after: AfterEnd,
}

impl<R> Clone for RowStates<R> {
    fn clone(&self) -> Self {
        RowStates { rows: Arc::clone(&self.rows), after: self.after.clone() }
    }
}

impl<R: Rows> RowMatcher<R> {
    /// At the first node.
    pub fn new(rows: Arc<R>, after: AfterEnd) -> Self {
        let states = RowStates { rows, after };
        let start = states.at(states.rows.start());
        Sequence::begin(states, start)
    }
}

/// A node, and whether its row is empty.
#[derive(Clone, Copy)]
pub(crate) struct At {
    node: u32,
    finished: bool,
}

impl<R: Rows> RowStates<R> {
    fn at(&self, node: u32) -> At {
        At { node, finished: self.rows.row(node).is_empty() }
    }
}

impl<R: Rows> States for RowStates<R> {
    type At = At;

    const TEXT: &'static str = "region";

    fn vocabulary_size(&self) -> usize {
        self.rows.vocabulary_size()
    }

    fn after_end(&self) -> &AfterEnd {
        &self.after
    }

    fn is_accepting(&self, at: &At) -> bool {
        self.rows.is_accepting(at.node)
    }

    fn is_finished(&self, at: &At) -> bool {
        at.finished
    }

    fn allowed<'a>(&'a mut self, at: &'a At) -> Result<AllowedTokens<'a>> {
        Ok(AllowedTokens::Ids(self.rows.row(at.node)))
    }

    fn next(&mut self, at: &At, token: TokenId) -> Result<Option<At>> {
        let found = self.rows.row(at.node).binary_search(&token).ok();
        Ok(found.map(|way| self.at(self.rows.next(at.node, way))))
    }

    fn forced(&mut self, at: &At, out: &mut Vec<TokenId>) -> Result<bool> {
        let (mut node, most) = (at.node, out.len() + MAX_FORCED);
        while let &[only] = self.rows.row(node) {
            if out.len() == most || self.rows.is_accepting(node) {
                break;
            }
            out.push(only);
            node = self.rows.next(node, 0);
        }
        Ok(true)
    }

    fn state(&self, at: &At) -> Option<u64> {
        Some(u64::from(at.node))
    }
}

/// Two ascending rows as one, without repeats.
pub(crate) fn merged(a: &[TokenId], b: &[TokenId]) -> Box<[TokenId]> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    all.dedup();
    all.into()
}

/// The end tokens of a constraint, sorted and distinct, once checked against the vocabulary.
///
/// # Errors
/// [`ErrorKind::Constraint`] if one is not in the vocabulary.
pub(crate) fn end_tokens(tokens: &[TokenId], vocabulary_size: Option<usize>) -> Result<Box<[TokenId]>> {
    if let Some(size) = vocabulary_size {
        if let Some(id) = tokens.iter().find(|&&id| id as usize >= size) {
            return Err(Error::new(
                ErrorKind::Constraint,
                format!("end token {id} is not in the vocabulary of {size} tokens"),
            ));
        }
    }
    Ok(merged(tokens, &[]))
}
