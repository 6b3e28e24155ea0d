//! The next version of a catalogue, made from the one before it, and the changes that a journal records.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use super::journal::{Change, ChangeLog, Kind};
use super::overlay::Overlay;
use super::row_set::RowSet;
use super::{damaged, CatalogueSnapshot, ItemIndex, MAX_LENGTH, MAX_TOKEN};
use crate::{Error, ErrorKind, Result, TokenId};

/// The most nodes over an index; merge it before it has more.
const MAX_ADDED_NODES: usize = 1 << 26;

/// A version that is being made.
pub(super) struct Editor {
    next: CatalogueSnapshot,
    base: Arc<ItemIndex>,
    overlay: Option<Overlay>,
    /// What was changed, where it is to be recorded.
    pub log: Option<ChangeLog>,
}

impl Editor {
    pub fn new(mut next: CatalogueSnapshot, is_recorded: bool) -> Editor {
        let overlay = next.overlay.take().map(|overlay| Overlay::clone(&overlay));
        let base = Arc::clone(&next.base);
        Editor { next, base, overlay, log: is_recorded.then(ChangeLog::default) }
    }

    /// The version so far, without what was added to the index.
    pub fn next(&mut self) -> &mut CatalogueSnapshot {
        &mut self.next
    }

    /// The largest item number of the index and of what was added to it.
    pub fn largest_item(&self) -> Result<Option<u64>> {
        let added = self.overlay.as_ref().and_then(Overlay::largest_item);
        Ok(self.base.largest_item()?.max(added))
    }

    pub fn finish(self) -> CatalogueSnapshot {
        CatalogueSnapshot { overlay: self.overlay.map(Arc::new), ..self.next }
    }

    /// Adds an item, and returns whether it is new.
    pub fn add(&mut self, tokens: &[TokenId], weights: &[f32], item: u64) -> Result<bool> {
        check(tokens, weights, self.base.header().weighted)?;
        let is_new = match row_of(&self.base, tokens, item)? {
            Some(row) => self.next.live.as_mut().is_some_and(|live| Arc::make_mut(live).set(row, true)),
            None => {
                let root = self.base.header().root;
                let overlay = self.overlay.get_or_insert_with(|| Overlay::new(root));
                let is_new = overlay.add(&self.base, tokens, weights, item)?;
                if overlay.len() > MAX_ADDED_NODES {
                    let message = format!("more than {MAX_ADDED_NODES} nodes were added to the index");
                    return Err(Error::new(ErrorKind::Limit, message).help("merge it into a new index"));
                }
                is_new
            }
        };
        if let Some(log) = self.log.as_mut().filter(|_| is_new) {
            let keys = self.base.header().keys;
            let key = if self.next.is_keyed() && item >= keys { self.next.key(item)? } else { None };
            log.push(Kind::Add, Change { tokens, weights, item, key: key.unwrap_or_default() });
        }
        Ok(is_new)
    }

    /// Removes the items of these tokens that have this number, or any, and returns their number.
    pub fn remove(&mut self, tokens: &[TokenId], item: Option<u64>) -> Result<u64> {
        let rows = match item {
            None => rows_of(&self.base, tokens)?,
            Some(item) => row_of(&self.base, tokens, item)?.map_or(0..0, |row| row..row + 1),
        };
        let mut removed = 0;
        for row in rows {
            removed += u64::from(self.remove_row(row, tokens)?);
        }
        if let Some(overlay) = &mut self.overlay {
            let gone = overlay.remove(tokens, |known| item.is_none_or(|item| item == known));
            removed += gone.len() as u64;
            for item in gone {
                if let Some(log) = &mut self.log {
                    log.push(Kind::Remove, Change { tokens, weights: &[], item, key: "" });
                }
            }
        }
        Ok(removed)
    }

    fn remove_row(&mut self, row: u64, tokens: &[TokenId]) -> Result<bool> {
        let rows = self.base.header().rows;
        let live = self.next.live.get_or_insert_with(|| Arc::new(RowSet::all(rows)));
        let was_there = Arc::make_mut(live).set(row, false);
        if let Some(log) = self.log.as_mut().filter(|_| was_there) {
            let item = self.base.item(row)?;
            log.push(Kind::Remove, Change { tokens, weights: &[], item, key: "" });
        }
        Ok(was_there)
    }

    /// Removes every item whose number `which` says, and returns their number. Reads all numbers.
    pub fn remove_items(&mut self, which: impl Fn(u64) -> bool) -> Result<u64> {
        let (mut rows, mut tokens, mut removed) = (Vec::new(), Vec::new(), 0);
        self.base.for_each_item(|row, item| {
            if which(item) {
                rows.push(row);
            }
        })?;
        for row in rows {
            if self.log.is_some() {
                self.base.row(row, &mut tokens)?;
            }
            removed += u64::from(self.remove_row(row, &tokens)?);
        }
        let mut added = Vec::new();
        if let Some(overlay) = &self.overlay {
            overlay.for_each(|tokens, _, items| {
                let gone = items.iter().filter(|&&item| which(item));
                added.extend(gone.map(|&item| (tokens.to_vec(), item)));
                Ok(())
            })?;
        }
        for (tokens, item) in added {
            removed += self.remove(&tokens, Some(item))?;
        }
        Ok(removed)
    }

    /// Makes a change that a journal recorded.
    pub fn replay(&mut self, kind: Kind, change: &Change<'_, Vec<TokenId>, Vec<f32>>) -> Result<()> {
        let item = change.item;
        let was_made = match kind {
            Kind::Add => {
                if self.next.is_keyed() && item >= self.next.key_count() {
                    self.next.push_recorded_key(item, change.key)?;
                }
                self.add(&change.tokens, &change.weights, item)
            }
            Kind::Remove => self.remove(&change.tokens, Some(item)).map(|removed| removed == 1),
        };
        match was_made {
            Ok(true) => Ok(()),
            Ok(false) => Err(damaged("its journal records a change that does nothing")),
            Err(error) if error.kind == ErrorKind::Constraint => {
                Err(damaged(&format!("its journal records what no catalogue holds: {}", error.message)))
            }
            Err(error) => Err(error),
        }
    }
}

/// The rows of the index that are exactly these tokens.
fn rows_of(base: &ItemIndex, tokens: &[TokenId]) -> Result<Range<u64>> {
    let mut state = base.header().root;
    for &token in tokens {
        match base.step(state, token, None)? {
            Some(next) => state = next,
            None => return Ok(0..0),
        }
    }
    base.items(state)
}

/// The row of the index with these tokens and this number.
fn row_of(base: &ItemIndex, tokens: &[TokenId], item: u64) -> Result<Option<u64>> {
    let mut rows = rows_of(base, tokens)?;
    // Rows of the same tokens ascend by their number.
    while !rows.is_empty() {
        let middle = rows.start + (rows.end - rows.start) / 2;
        match base.item(middle)?.cmp(&item) {
            Ordering::Equal => return Ok(Some(middle)),
            Ordering::Less => rows.start = middle + 1,
            Ordering::Greater => rows.end = middle,
        }
    }
    Ok(None)
}

/// Whether a catalogue can hold the item.
pub(super) fn check(tokens: &[TokenId], weights: &[f32], weighted: bool) -> Result<()> {
    let fail = |message: String, help: &str| Err(Error::new(ErrorKind::Constraint, message).help(help));
    if tokens.is_empty() {
        return fail("an item without tokens".into(), "every item has at least one");
    }
    if tokens.len() > MAX_LENGTH {
        let message = format!("an item of {} tokens; {MAX_LENGTH} are the most", tokens.len());
        return Err(Error::new(ErrorKind::Limit, message));
    }
    if let Some(token) = tokens.iter().find(|&&token| token > MAX_TOKEN) {
        return fail(format!("token {token}"), "tokens are from 0 to 2,147,483,647");
    }
    if !weighted && !weights.is_empty() {
        return fail("weights for a catalogue without weights".into(), "build it with weights");
    }
    if !weights.is_empty() && weights.len() != tokens.len() {
        let message = format!("{} weights for {} tokens", weights.len(), tokens.len());
        return fail(message, "give one weight a token");
    }
    if let Some(weight) = weights.iter().find(|weight| !weight.is_finite()) {
        return fail(format!("the weight {weight}"), "weights are finite: they are added to logits");
    }
    Ok(())
}
