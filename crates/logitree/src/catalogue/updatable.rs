//! A catalogue that changes while it is read. Readers take a snapshot and never wait; writers take turns, make the next
//! version beside the current one, and publish it at once.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::thread::{self, ThreadId};

use super::build::{BuildOptions, CatalogueBuilder, Progress};
use super::overlay::Overlay;
use super::row_set::RowSet;
use super::{CatalogueSnapshot, ItemIndex, MAX_LENGTH, MAX_TOKEN};
use crate::{Error, ErrorKind, Result, TokenId};

/// The most nodes over an index; merge it before it has more.
const MAX_ADDED_NODES: usize = 1 << 26;

/// A catalogue that changes.
pub struct Catalogue {
    current: RwLock<CatalogueSnapshot>,
    /// Held while the next version is made: the largest item number that merging may have dropped.
    writer: Mutex<Option<u64>>,
    /// The thread that holds it.
    holder: Mutex<Option<ThreadId>>,
}

/// A writer's turn: no other thread changes the catalogue while it lasts.
pub struct CatalogueTurn<'t> {
    tree: &'t Catalogue,
    largest_item: MutexGuard<'t, Option<u64>>,
}

impl CatalogueTurn<'_> {
    /// Adds items, all or none, and returns how many were new. Each comes with its tokens, its weights (one a token, or
    /// none: 0) and its number. Weights of tokens that the tree already has in that place do not change.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for an item that no tree can hold, with its place in the list; [`ErrorKind::Limit`] if
    /// too much was added since the index was made; [`ErrorKind::Payload`] if the index is damaged.
    pub fn add<'i>(&self, items: impl Iterator<Item = (&'i [TokenId], &'i [f32], u64)>) -> Result<u64> {
        let next = self.tree.snapshot();
        if next.is_keyed() {
            return Err(needs_keys());
        }
        self.add_all(next, items.map(Ok))
    }

    /// As [`CatalogueTurn::add`], with a key for each item. A known key keeps its number. Reads all keys.
    ///
    /// # Errors
    /// As [`CatalogueTurn::add`]; [`ErrorKind::Constraint`] if items have numbers, or a key is empty;
    /// [`ErrorKind::Limit`] if a key is too long.
    pub fn add_keyed<'i>(
        &self,
        items: impl Iterator<Item = (&'i [TokenId], &'i [f32])>,
        keys: &[&str],
    ) -> Result<u64> {
        let mut next = self.tree.snapshot();
        let numbers = next.add_keys(keys)?;
        self.add_all(next, items.zip(numbers).map(|((tokens, weights), item)| Ok((tokens, weights, item))))
    }

    /// As [`CatalogueTurn::add`], with numbers that continue from the largest this catalogue ever had, since it was opened
    /// or in its index. In an index of an old version it looks at all numbers the first time.
    ///
    /// # Errors
    /// As [`CatalogueTurn::add`]; [`ErrorKind::Limit`] if no number is left.
    pub fn add_numbered<'i>(&self, items: impl Iterator<Item = (&'i [TokenId], &'i [f32])>) -> Result<u64> {
        let next = self.tree.snapshot();
        if next.is_keyed() {
            return Err(needs_keys());
        }
        let mut largest = self.largest_item(&next)?;
        self.add_all(
            next,
            items.map(|(tokens, weights)| {
                let next = next_item(largest)?;
                largest = Some(next);
                Ok((tokens, weights, next))
            }),
        )
    }

    /// See [`CatalogueTurn::add`].
    fn add_all<'i>(
        &self,
        mut next: CatalogueSnapshot,
        items: impl Iterator<Item = Result<(&'i [TokenId], &'i [f32], u64)>>,
    ) -> Result<u64> {
        let base = Arc::clone(&next.base);
        let weighted = base.header().weighted;
        let mut overlay = match next.overlay.take() {
            Some(overlay) => Overlay::clone(&overlay),
            None => Overlay::new(base.header().root),
        };
        let mut added = 0;
        for (at, item) in items.enumerate() {
            let (tokens, weights, item) = item.map_err(|error| error.within(&format!("item {at}")))?;
            check(tokens, weights, weighted).map_err(|error| error.within(&format!("item {at}")))?;
            added += u64::from(match row_of(&base, tokens, item)? {
                Some(row) => next.live.as_mut().is_some_and(|live| Arc::make_mut(live).set(row, true)),
                None => overlay.add(&base, tokens, weights, item)?,
            });
            if overlay.len() > MAX_ADDED_NODES {
                let message = format!("more than {MAX_ADDED_NODES} nodes were added to the index");
                return Err(Error::new(ErrorKind::Limit, message).help("merge it into a new index"));
            }
        }
        next.overlay = Some(Arc::new(overlay));
        self.tree.publish(next);
        Ok(added)
    }

    /// Removes items: those of the given tokens and number, or of the given tokens whatever their number. Returns
    /// their number.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] if the index is damaged.
    pub fn remove<'i>(&self, items: impl Iterator<Item = (&'i [TokenId], Option<u64>)>) -> Result<u64> {
        let mut next = self.tree.snapshot();
        let base = Arc::clone(&next.base);
        let mut live = next.live.take().unwrap_or_else(|| Arc::new(RowSet::all(base.header().rows)));
        let mut overlay = next.overlay.take().map(|overlay| Overlay::clone(&overlay));
        let mut removed = 0;
        for (tokens, item) in items {
            let rows = match item {
                None => rows_of(&base, tokens)?,
                Some(item) => row_of(&base, tokens, item)?.map_or(0..0, |row| row..row + 1),
            };
            for row in rows {
                removed += u64::from(Arc::make_mut(&mut live).set(row, false));
            }
            if let Some(overlay) = &mut overlay {
                removed += u64::from(overlay.remove(tokens, |known| item.is_none_or(|item| item == known)));
            }
        }
        next.live = Some(live);
        next.overlay = overlay.map(Arc::new);
        self.tree.publish(next);
        Ok(removed)
    }

    /// The largest item number that ever was in the tree.
    fn largest_item(&self, now: &CatalogueSnapshot) -> Result<Option<u64>> {
        let added = now.overlay.as_ref().and_then(|overlay| overlay.largest_item());
        Ok(now.base.largest_item()?.max(added).max(*self.largest_item))
    }
}

impl Drop for CatalogueTurn<'_> {
    fn drop(&mut self) {
        self.tree.set_holder(None);
    }
}

impl Catalogue {
    /// The tree of an index.
    pub fn new(base: ItemIndex) -> Catalogue {
        Catalogue {
            current: RwLock::new(CatalogueSnapshot::of(Arc::new(base))),
            writer: Mutex::new(None),
            holder: Mutex::new(None),
        }
    }

    /// The tree as it is now.
    pub fn snapshot(&self) -> CatalogueSnapshot {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_holder(&self, holder: Option<ThreadId>) {
        *self.holder.lock().unwrap_or_else(PoisonError::into_inner) = holder;
    }

    /// Waits for other writers. A writer that calls this from its own `progress` would deadlock, so that is an error.
    ///
    /// # Errors
    /// [`ErrorKind::State`] for that.
    pub fn turn(&self) -> Result<CatalogueTurn<'_>> {
        self.check_holder()?;
        let largest_item = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.begin(largest_item))
    }

    /// As [`Catalogue::turn`] where no other thread has its turn: `None` instead of waiting for it.
    ///
    /// # Errors
    /// As [`Catalogue::turn`].
    pub fn try_turn(&self) -> Result<Option<CatalogueTurn<'_>>> {
        self.check_holder()?;
        match self.writer.try_lock() {
            Ok(largest_item) => Ok(Some(self.begin(largest_item))),
            Err(TryLockError::Poisoned(poisoned)) => Ok(Some(self.begin(poisoned.into_inner()))),
            Err(TryLockError::WouldBlock) => Ok(None),
        }
    }

    fn check_holder(&self) -> Result<()> {
        let own = Some(thread::current().id());
        if *self.holder.lock().unwrap_or_else(PoisonError::into_inner) != own {
            return Ok(());
        }
        let message = "the catalogue is changed while it is being changed";
        Err(Error::new(ErrorKind::State, message).help("change it after the call that reports progress"))
    }

    fn begin<'t>(&'t self, largest_item: MutexGuard<'t, Option<u64>>) -> CatalogueTurn<'t> {
        self.set_holder(Some(thread::current().id()));
        CatalogueTurn { tree: self, largest_item }
    }

    fn publish(&self, next: CatalogueSnapshot) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, next);
        drop(current);
        // No reader waits while what only the version before had is freed.
        drop(before);
    }

    /// As [`CatalogueTurn::add`], in a turn of its own.
    ///
    /// # Errors
    /// As [`CatalogueTurn::add`].
    pub fn add<'i>(&self, items: impl Iterator<Item = (&'i [TokenId], &'i [f32], u64)>) -> Result<u64> {
        self.turn()?.add(items)
    }

    /// As [`CatalogueTurn::add_keyed`], in a turn of its own.
    ///
    /// # Errors
    /// As [`CatalogueTurn::add_keyed`].
    pub fn add_keyed<'i>(
        &self,
        items: impl Iterator<Item = (&'i [TokenId], &'i [f32])>,
        keys: &[&str],
    ) -> Result<u64> {
        self.turn()?.add_keyed(items, keys)
    }

    /// As [`CatalogueTurn::add_numbered`], in a turn of its own.
    ///
    /// # Errors
    /// As [`CatalogueTurn::add_numbered`].
    pub fn add_numbered<'i>(&self, items: impl Iterator<Item = (&'i [TokenId], &'i [f32])>) -> Result<u64> {
        self.turn()?.add_numbered(items)
    }

    /// As [`CatalogueTurn::remove`], in a turn of its own.
    ///
    /// # Errors
    /// As [`CatalogueTurn::remove`].
    pub fn remove<'i>(&self, items: impl Iterator<Item = (&'i [TokenId], Option<u64>)>) -> Result<u64> {
        self.turn()?.remove(items)
    }

    /// Removes every item whose number `which` says; and returns their number. Reads all items.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] if the index is damaged.
    pub fn remove_items(&self, which: impl Fn(u64) -> bool) -> Result<u64> {
        let _turn = self.turn()?;
        let before = self.snapshot();
        let after = before.only(|item| !which(item))?;
        let removed = before.len() - after.len();
        self.publish(after);
        Ok(removed)
    }

    /// Replaces all items with those of another index.
    ///
    /// # Errors
    /// [`ErrorKind::State`] from within a change of this tree.
    pub fn reload(&self, base: ItemIndex) -> Result<()> {
        let mut turn = self.turn()?;
        *turn.largest_item = None;
        self.publish(CatalogueSnapshot::of(Arc::new(base)));
        Ok(())
    }

    /// Writes all present items as one new index, to `path` or into memory, and continues with it. Readers continue
    /// meanwhile, writers wait.
    ///
    /// # Errors
    /// As [`CatalogueBuilder::finish`], and [`ErrorKind::Payload`] if the index is damaged; then nothing changes.
    pub fn merge(&self, path: Option<&Path>, options: &BuildOptions, progress: Progress<'_>) -> Result<()> {
        let mut turn = self.turn()?;
        let now = self.snapshot();
        let largest_item = turn.largest_item(&now)?;
        let mut builder = CatalogueBuilder::new(BuildOptions { keyed: now.is_keyed(), ..options.clone() })?;
        builder.copy_keys(&now)?;
        now.for_each(|tokens, weights, item| builder.push_row(tokens, weights, item))?;
        let index = builder.finish(path, progress)?.index;
        *turn.largest_item = largest_item;
        self.publish(CatalogueSnapshot::of(Arc::new(index)));
        Ok(())
    }
}

/// An error for numbers where items have keys.
fn needs_keys() -> Error {
    Error::new(ErrorKind::Constraint, "the items of this catalogue have keys").help("give each item its key")
}

/// The rows of the index that are exactly these tokens.
fn rows_of(base: &ItemIndex, tokens: &[TokenId]) -> Result<std::ops::Range<u64>> {
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

/// The number after the largest that was given.
pub(super) fn next_item(largest: Option<u64>) -> Result<u64> {
    largest.map_or(Some(0), |largest| largest.checked_add(1)).ok_or_else(|| {
        Error::new(ErrorKind::Limit, "no item number is left after the largest that was given")
            .help("give each item its number")
    })
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
