//! A catalogue that changes while it is read. Readers take a snapshot and never wait; writers take turns, make the next
//! version beside the current one, and publish it at once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::thread::{self, ThreadId};

use super::build::{BuildOptions, CatalogueBuilder, Progress};
use super::editor::Editor;
use super::journal::{self, Journal};
use super::{CatalogueSnapshot, ItemIndex};
use crate::{Error, ErrorKind, Result, TokenId};

/// A catalogue that changes.
///
/// ```
/// use logitree::{BuildOptions, Catalogue, CatalogueBuilder};
///
/// let mut builder = CatalogueBuilder::new(BuildOptions::default())?;
/// builder.push(&[5, 6], &[], 1)?;
/// builder.push(&[5, 7, 8], &[], 2)?;
/// let catalogue = Catalogue::new(builder.finish(None, &mut |_| Ok(()))?.index);
/// catalogue.add([(&[9][..], &[][..], 3)].into_iter())?;
/// let snapshot = catalogue.snapshot();
/// assert_eq!(snapshot.len(), 3);
/// let state = snapshot.find(&[5, 7])?.expect("a beginning of an item");
/// assert!(snapshot.step(state, 8)?.is_some());
/// # Ok::<(), logitree::Error>(())
/// ```
pub struct Catalogue {
    current: RwLock<CatalogueSnapshot>,
    /// Held while the next version is made.
    writer: Mutex<WriterState>,
    /// The thread that holds it.
    holder: Mutex<Option<ThreadId>>,
    /// The file that it was opened from or written to.
    path: Mutex<Option<PathBuf>>,
}

/// A writer's turn: no other thread changes the catalogue while it lasts.
pub struct CatalogueTurn<'t> {
    tree: &'t Catalogue,
    state: MutexGuard<'t, WriterState>,
}

/// What only writers need.
#[derive(Default)]
struct WriterState {
    /// The largest item number that merging may have dropped.
    largest_item: Option<u64>,
    /// The file's journal, where changes are recorded.
    journal: Option<Journal>,
}

impl CatalogueTurn<'_> {
    /// Whether changes are recorded in the file.
    pub fn is_durable(&self) -> bool {
        self.state.journal.is_some()
    }

    /// Adds items, all or none, and returns how many were new. Each comes with its tokens, its weights (one a token, or
    /// none: 0) and its number. Weights of tokens that the tree already has in that place do not change.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for an item that no tree can hold, with its place in the list; [`ErrorKind::Limit`] if
    /// too much was added since the index was made; [`ErrorKind::Payload`] if the index is damaged.
    pub fn add<'i>(&mut self, items: impl Iterator<Item = (&'i [TokenId], &'i [f32], u64)>) -> Result<u64> {
        self.change(|editor, _| {
            if editor.next().is_keyed() {
                return Err(needs_keys());
            }
            Self::add_all(editor, items.map(Ok))
        })
    }

    /// As [`CatalogueTurn::add`], with a key for each item. A known key keeps its number. Reads all keys.
    ///
    /// # Errors
    /// As [`CatalogueTurn::add`]; [`ErrorKind::Constraint`] if items have numbers, or a key is empty;
    /// [`ErrorKind::Limit`] if a key is too long.
    pub fn add_keyed<'i>(
        &mut self,
        items: impl Iterator<Item = (&'i [TokenId], &'i [f32])>,
        keys: &[&str],
    ) -> Result<u64> {
        self.change(|editor, _| {
            let numbers = editor.next().add_keys(keys)?;
            let items = items.zip(numbers).map(|((tokens, weights), item)| Ok((tokens, weights, item)));
            Self::add_all(editor, items)
        })
    }

    /// As [`CatalogueTurn::add`], with numbers that continue from the largest this catalogue ever had, since it was opened
    /// or in its index. In an index of an old version it looks at all numbers the first time.
    ///
    /// # Errors
    /// As [`CatalogueTurn::add`]; [`ErrorKind::Limit`] if no number is left.
    pub fn add_numbered<'i>(
        &mut self,
        items: impl Iterator<Item = (&'i [TokenId], &'i [f32])>,
    ) -> Result<u64> {
        self.change(|editor, merged| {
            if editor.next().is_keyed() {
                return Err(needs_keys());
            }
            let mut largest = editor.largest_item()?.max(merged);
            let numbered = items.map(|(tokens, weights)| {
                let next = next_item(largest)?;
                largest = Some(next);
                Ok((tokens, weights, next))
            });
            Self::add_all(editor, numbered)
        })
    }

    /// See [`CatalogueTurn::add`].
    fn add_all<'i>(
        editor: &mut Editor,
        items: impl Iterator<Item = Result<(&'i [TokenId], &'i [f32], u64)>>,
    ) -> Result<u64> {
        let mut added = 0;
        for (at, item) in items.enumerate() {
            let is_new = item.and_then(|(tokens, weights, item)| editor.add(tokens, weights, item));
            added += u64::from(is_new.map_err(|error| error.within(&format!("item {at}")))?);
        }
        Ok(added)
    }

    /// Makes the next version and publishes it. A catalogue with a journal first takes over what other processes wrote
    /// into it, and records the change before anything sees it.
    fn change<R>(&mut self, edit: impl FnOnce(&mut Editor, Option<u64>) -> Result<R>) -> Result<R> {
        let mut editor = Editor::new(self.tree.snapshot(), self.is_durable());
        let largest_item = self.state.largest_item;
        let Some(journal) = &mut self.state.journal else {
            let result = edit(&mut editor, largest_item)?;
            self.tree.publish(editor.finish());
            return Ok(result);
        };
        let mut journal = journal.lock()?;
        if journal.catch_up(&mut editor)? {
            self.tree.publish(editor.finish());
            editor = Editor::new(self.tree.snapshot(), true);
        }
        let result = edit(&mut editor, largest_item)?;
        if let Some(log) = editor.log.take() {
            journal.append(&log)?;
        }
        self.tree.publish(editor.finish());
        Ok(result)
    }

    /// Removes items: those of the given tokens and number, or of the given tokens whatever their number. Returns
    /// their number.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] if the index is damaged.
    pub fn remove<'i>(&mut self, items: impl Iterator<Item = (&'i [TokenId], Option<u64>)>) -> Result<u64> {
        self.change(|editor, _| items.map(|(tokens, item)| editor.remove(tokens, item)).sum())
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
        Catalogue::of(CatalogueSnapshot::of(Arc::new(base)), None, None)
    }

    fn of(snapshot: CatalogueSnapshot, journal: Option<Journal>, path: Option<PathBuf>) -> Catalogue {
        Catalogue {
            current: RwLock::new(snapshot),
            writer: Mutex::new(WriterState { largest_item: None, journal }),
            holder: Mutex::new(None),
            path: Mutex::new(path),
        }
    }

    /// Opens the index at `path` with the changes that its journal records. Reads its first page, its checksums and the
    /// changes. If `is_durable`, later changes are recorded there too, before anything sees them.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be opened; [`ErrorKind::Payload`] if it is not an index, or damaged.
    pub fn open(path: &Path, is_durable: bool) -> Result<Catalogue> {
        let (snapshot, journal) = journal::open(path, is_durable)?;
        Ok(Catalogue::of(snapshot, journal, Some(path.to_path_buf())))
    }

    /// The catalogue with the bytes of such a file.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] if they are not an index, or damaged.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Catalogue> {
        Ok(Catalogue::of(journal::of_bytes(bytes)?, None, None))
    }

    /// The file that it was opened from or written to.
    pub fn path(&self) -> Option<PathBuf> {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Names the file that the index was written to.
    pub fn set_path(&self, path: Option<PathBuf>) {
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = path;
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
        let state = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.begin(state))
    }

    /// As [`Catalogue::turn`] where no other thread has its turn: `None` instead of waiting for it.
    ///
    /// # Errors
    /// As [`Catalogue::turn`].
    pub fn try_turn(&self) -> Result<Option<CatalogueTurn<'_>>> {
        self.check_holder()?;
        match self.writer.try_lock() {
            Ok(state) => Ok(Some(self.begin(state))),
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

    fn begin<'t>(&'t self, state: MutexGuard<'t, WriterState>) -> CatalogueTurn<'t> {
        self.set_holder(Some(thread::current().id()));
        CatalogueTurn { tree: self, state }
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
        self.turn()?.change(|editor, _| editor.remove_items(which))
    }

    /// Replaces all items with those of the file at `path`; a durable catalogue records its changes there from then on.
    ///
    /// # Errors
    /// As [`Catalogue::open`]; [`ErrorKind::State`] from within a change of this tree.
    pub fn reload(&self, path: &Path) -> Result<()> {
        let mut turn = self.turn()?;
        let (snapshot, journal) = journal::open(path, turn.state.journal.is_some())?;
        *turn.state = WriterState { largest_item: None, journal };
        self.set_path(Some(path.to_path_buf()));
        self.publish(snapshot);
        Ok(())
    }

    /// Writes all present items as one new index, to `path` or into memory, and continues with it. Readers continue
    /// meanwhile, writers wait, also those of other processes that would record changes in the file. A durable catalogue
    /// records its changes in the new file from then on.
    ///
    /// # Errors
    /// As [`CatalogueBuilder::finish`], and [`ErrorKind::Payload`] if the index is damaged; [`ErrorKind::State`] for a
    /// durable catalogue without a path; then nothing changes.
    pub fn merge(&self, path: Option<&Path>, options: &BuildOptions, progress: Progress<'_>) -> Result<()> {
        let mut turn = self.turn()?;
        let is_durable = turn.is_durable();
        if is_durable && path.is_none() {
            let message = "a durable catalogue merged into memory";
            return Err(Error::new(ErrorKind::State, message).help("give the path of the new index"));
        }
        let mut state = std::mem::take(&mut *turn.state);
        let merged = self.merge_all(&mut state, path, options, progress);
        *turn.state = state;
        let snapshot = merged?;
        self.set_path(path.map(Path::to_path_buf));
        self.publish(snapshot);
        Ok(())
    }

    /// See [`Catalogue::merge`].
    fn merge_all(
        &self,
        state: &mut WriterState,
        path: Option<&Path>,
        options: &BuildOptions,
        progress: Progress<'_>,
    ) -> Result<CatalogueSnapshot> {
        let mut editor = Editor::new(self.snapshot(), false);
        // Locked until the new file has the place of the old one.
        let mut locked = state.journal.as_mut().map(Journal::lock).transpose()?;
        if let Some(journal) = &mut locked {
            if journal.catch_up(&mut editor)? {
                self.publish(editor.finish());
                editor = Editor::new(self.snapshot(), false);
            }
        }
        let largest_item = editor.largest_item()?.max(state.largest_item);
        let now = editor.finish();
        let mut builder = CatalogueBuilder::new(BuildOptions { keyed: now.is_keyed(), ..options.clone() })?;
        builder.copy_keys(&now)?;
        now.for_each(|tokens, weights, item| builder.push_row(tokens, weights, item))?;
        let index = builder.finish(path, progress)?.index;
        let (snapshot, journal) = match path.filter(|_| locked.is_some()) {
            Some(path) => journal::open(path, true)?,
            None => (CatalogueSnapshot::of(Arc::new(index)), None),
        };
        drop(locked);
        *state = WriterState { largest_item, journal };
        Ok(snapshot)
    }
}

impl std::fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Catalogue({} items)", self.snapshot().len())
    }
}

/// An error for numbers where items have keys.
fn needs_keys() -> Error {
    Error::new(ErrorKind::Constraint, "the items of this catalogue have keys").help("give each item its key")
}

/// The number after the largest that was given.
pub(super) fn next_item(largest: Option<u64>) -> Result<u64> {
    largest.map_or(Some(0), |largest| largest.checked_add(1)).ok_or_else(|| {
        Error::new(ErrorKind::Limit, "no item number is left after the largest that was given")
            .help("give each item its number")
    })
}
