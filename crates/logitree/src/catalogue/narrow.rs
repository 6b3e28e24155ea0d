//! Nodes of few rows, whose children are found row by row: a child begins where a row shares exactly the node's tokens
//! with the row before it.

use super::format::header;
use super::index::{number, ItemIndex};
use super::row_set::RowSet;
use super::{Continuations, WalkState, NARROW};
use crate::Result;

/// The most bytes of tokens that are compared at once.
const AT_ONCE: usize = 2048;

/// A node whose rows are read one at a time.
pub(super) struct NarrowNode<'s> {
    index: &'s ItemIndex,
    /// How many tokens each row after the first shares with the one before it.
    shared: &'s [u8],
    width: usize,
    row: u64,
    depth: u32,
}

impl ItemIndex {
    /// The narrow node of so many tokens that begins at `row`.
    #[inline]
    pub(super) fn narrow(&self, row: u64, depth: u32) -> Result<NarrowNode<'_>> {
        let header = self.header();
        let following = (header.rows.saturating_sub(row + 1)).min(NARROW as u64) as usize;
        let width = header.shared_bytes;
        let shared = self.section(header::SHARED, row + 1, following, width)?;
        Ok(NarrowNode { index: self, shared, width, row, depth })
    }

    /// The children of the narrow node, appended to `out`; only those with a row in `live`.
    pub(super) fn append_narrow(
        &self,
        row: u64,
        depth: u32,
        live: Option<&RowSet>,
        out: &mut Continuations,
    ) -> Result<()> {
        let narrow = self.narrow(row, depth)?;
        if live.is_none() && narrow.is_plain() {
            return narrow.append_plain(out);
        }
        if narrow.is_sole()? {
            if live.is_none_or(|live| live.contains(row)) {
                let weight = self.weight(row, depth)?;
                out.push(self.token(row, depth)?, WalkState::narrow(row, depth + 1), weight);
            }
            return Ok(());
        }
        let items = narrow.items()?;
        out.is_item = items > 0 && live.is_none_or(|live| live.any(row, row + items));
        narrow.groups(items, |from, to| {
            if live.is_none_or(|live| live.any(from, to)) {
                let weight = self.weight(from, depth)?;
                out.push(self.token(from, depth)?, WalkState::narrow(from, depth + 1), weight);
            }
            Ok(true)
        })
    }
}

impl NarrowNode<'_> {
    /// Whether no other row is the node's, and the row does not end there.
    #[inline]
    fn is_sole(&self) -> Result<bool> {
        let others = self.rows().next().is_some_and(|shared| shared >= self.depth);
        Ok(!others && self.depth < self.index.span(self.row)?.1)
    }

    /// Whether the node's rows have one length, continue, and have no weights: then a child is its token alone.
    #[inline]
    fn is_plain(&self) -> bool {
        let header = self.index.header();
        !header.ragged && !header.weighted && self.depth < header.longest
    }

    /// The children of a plain node with all its rows: what [`NarrowNode::groups`] finds, with one look at the tokens
    /// from the first child's to the last one's.
    #[inline]
    fn append_plain(&self, out: &mut Continuations) -> Result<()> {
        let (header, depth) = (self.index.header(), self.depth);
        let from = out.states.len();
        out.states.push(WalkState::narrow(self.row, depth + 1));
        let mut last = self.row;
        for (row, shared) in (self.row + 1..).zip(self.rows()) {
            if shared < depth {
                break;
            }
            if shared == depth {
                out.states.push(WalkState::narrow(row, depth + 1));
                last = row;
            }
        }
        let (length, width) = (header.longest as usize, header.token_bytes);
        let place = |row: u64| (row - self.row) as usize * length;
        if place(last) * width > AT_ONCE {
            // The tokens between the children would be read for nothing.
            for at in from..out.states.len() {
                out.tokens.push(self.index.token(out.states[at].row(), depth)?);
            }
            return Ok(());
        }
        let first = self.row * u64::from(header.longest) + u64::from(depth);
        let tokens = self.index.section(header::TOKENS, first, place(last) + 1, width)?;
        let each = out.states[from..].iter().map(|state| number(tokens, place(state.row()), width));
        out.tokens.extend(each);
        Ok(())
    }

    /// How many rows end here: the first of the node's.
    pub(super) fn items(&self) -> Result<u64> {
        let header = self.index.header();
        if !header.ragged {
            let ends = self.depth >= header.longest;
            return Ok(if ends {
                1 + self.rows().take_while(|&s| s >= self.depth).count() as u64
            } else {
                0
            });
        }
        let mut items = 0;
        if self.index.span(self.row)?.1 <= self.depth {
            items = 1;
            for shared in self.rows().take_while(|&s| s >= self.depth) {
                if shared > self.depth || self.index.span(self.row + items)?.1 > self.depth {
                    break;
                }
                items += 1;
            }
        }
        Ok(items)
    }

    /// Shared tokens of the rows after the first.
    #[inline]
    fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.shared.len() / self.width).map(|at| number(self.shared, at, self.width))
    }

    /// Calls `each` with the first row of every child and the row after its last, until it returns false.
    #[inline]
    pub(super) fn groups(&self, items: u64, mut each: impl FnMut(u64, u64) -> Result<bool>) -> Result<()> {
        let mut from = self.row + items;
        let mut row = self.row + 1;
        for shared in self.rows() {
            if shared <= self.depth && row > from {
                if !each(from, row)? {
                    return Ok(());
                }
                from = row;
            }
            if shared < self.depth {
                return Ok(());
            }
            row += 1;
        }
        // The index ends here, or the node has as many rows as a narrow one may.
        if row > from && row <= self.index.header().rows {
            each(from, row)?;
        }
        Ok(())
    }
}
