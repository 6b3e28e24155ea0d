//! One matcher for every constraint whose states are numbered nodes and whose allowed tokens at a node is one
//! ascending row of ids: token trees and choices.

use std::sync::Arc;

use super::history::History;
use super::{AfterEnd, Matcher};
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
pub(crate) struct RowMatcher<R> {
    rows: Arc<R>,
    after: AfterEnd,
    history: History<u32>,
    node: u32,
}

impl<R: Rows> RowMatcher<R> {
    pub fn new(rows: Arc<R>, after: AfterEnd) -> Self {
        let node = rows.start();
        RowMatcher { rows, after, history: History::default(), node }
    }
}

impl<R: Rows> Matcher for RowMatcher<R> {
    fn vocabulary_size(&self) -> usize {
        self.rows.vocabulary_size()
    }

    fn allowed(&mut self) -> Result<AllowedTokens<'_>> {
        match self.rows.row(self.node) {
            [] => self.after.allowed(),
            row => Ok(AllowedTokens::Ids(row)),
        }
    }

    fn accept(&mut self, token: TokenId) -> Result<()> {
        if self.take(token)? {
            return Ok(());
        }
        let row = match self.rows.row(self.node) {
            [] => self.after.ids(),
            row => row,
        };
        Err(not_allowed(token, row, self.accepted(), "region"))
    }

    fn take(&mut self, token: TokenId) -> Result<bool> {
        let row = self.rows.row(self.node);
        if row.is_empty() {
            return Ok(self.history.take_past_end(&self.after, token));
        }
        let Ok(at) = row.binary_search(&token) else { return Ok(false) };
        self.history.push(self.node);
        self.node = self.rows.next(self.node, at);
        Ok(true)
    }

    fn rollback(&mut self, n: usize) -> Result<()> {
        self.node = self.history.rollback(n)?.unwrap_or(self.node);
        Ok(())
    }

    fn fork(&self) -> Box<dyn Matcher> {
        Box::new(RowMatcher {
            rows: Arc::clone(&self.rows),
            after: self.after.clone(),
            history: self.history.clone(),
            node: self.node,
        })
    }

    fn reset(&mut self) {
        self.node = self.history.reset().unwrap_or(self.node);
    }

    fn forced(&mut self, out: &mut Vec<TokenId>) -> Result<()> {
        let mut node = self.node;
        while let [only] = *self.rows.row(node) {
            if self.rows.is_accepting(node) {
                break;
            }
            out.push(only);
            node = self.rows.next(node, 0);
        }
        Ok(())
    }

    fn is_accepting(&self) -> bool {
        self.rows.is_accepting(self.node)
    }

    fn is_finished(&self) -> bool {
        self.rows.row(self.node).is_empty()
    }

    fn after_end(&self) -> &AfterEnd {
        &self.after
    }

    fn state(&self) -> Option<u64> {
        Some(u64::from(self.node))
    }

    fn accepted(&self) -> usize {
        self.history.accepted()
    }
}

/// The error for a token that is not in the row of allowed tokens.
pub fn not_allowed(token: TokenId, row: &[TokenId], accepted: usize, of: &str) -> Error {
    let shown: Vec<String> = row.iter().take(8).map(TokenId::to_string).collect();
    let more = if row.len() > 8 { format!(" and {} more", row.len() - 8) } else { String::new() };
    let error = Error::new(ErrorKind::Token, format!("token {token} is not allowed here"))
        .at(format!("token {accepted} of the {of}"));
    match row {
        [] => error.help("it is complete, and no token ends it"),
        _ => error.help(format!("allowed: {}{more}", shown.join(", "))),
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
