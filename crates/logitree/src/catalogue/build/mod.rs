//! Builds an index from items in any order: rows are sorted in bounded memory, in runs on disk if they are too many, and
//! written in one pass. The same items give the same bytes.

mod join;
mod order;
mod runs;
mod sink;
mod writer;

use std::path::{Path, PathBuf};

use self::join::join;
use self::order::{Buffer, Merge};
use self::runs::Run;
pub(super) use self::sink::{Room, Sink};
use self::writer::{Shape, Writer};
use super::editor::check;
use super::keys::KeyWriter;
use super::updatable::next_item;
use super::{CatalogueSnapshot, ItemIndex, MAX_ROWS};
use crate::{Error, ErrorKind, Result, TokenId};

/// Called with the finished part of the work, from 0 to 1; an error ends it.
pub type Progress<'p> = &'p mut (dyn FnMut(f64) -> Result<()> + Send);

/// How to build.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Whether tokens have weights.
    pub weighted: bool,
    /// Whether items have keys instead of numbers.
    pub keyed: bool,
    /// Bytes that unsorted rows may take, about; what is more goes to disk.
    pub memory: usize,
    /// Where that is; `None`: where the index will be, or the system's folder for such files.
    pub folder: Option<PathBuf>,
    /// Threads that sort.
    pub threads: usize,
}

impl Default for BuildOptions {
    fn default() -> BuildOptions {
        BuildOptions { weighted: false, keyed: false, memory: 3 << 30, folder: None, threads: 2 }
    }
}

/// What was built.
#[derive(Debug)]
pub struct BuiltIndex {
    /// The index.
    pub index: ItemIndex,
    /// Items that were given more than once with the same number, beyond the first.
    pub repeated: u64,
}

/// Takes items, then writes an index.
pub struct CatalogueBuilder {
    options: BuildOptions,
    buffer: Buffer,
    runs: Vec<Run>,
    shape: Shape,
    rows: u64,
    keys: Option<KeyWriter>,
}

impl CatalogueBuilder {
    /// Nothing yet.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if there is no memory to work in.
    pub fn new(options: BuildOptions) -> Result<CatalogueBuilder> {
        if options.memory < 1 << 10 || options.threads == 0 {
            return Err(Error::new(
                ErrorKind::Limit,
                "less than a KiB, or no thread, to build an index with",
            ));
        }
        let shape = Shape::new(options.weighted);
        let room = || options.folder.as_deref().map_or(Room::Memory, |folder| Room::on_disk(Some(folder)));
        let keys = options.keyed.then(|| KeyWriter::new(&room())).transpose()?;
        Ok(CatalogueBuilder { options, buffer: Buffer::default(), runs: Vec::new(), shape, rows: 0, keys })
    }

    /// One more item: its tokens, a weight for each (none: 0), and its number.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for an item that no index can hold, [`ErrorKind::Limit`] for one too many or too
    /// long, each with its place; [`ErrorKind::Io`] if a run cannot be written.
    pub fn push(&mut self, tokens: &[TokenId], weights: &[f32], item: u64) -> Result<()> {
        if self.keys.is_some() {
            return Err(mixed("a number in an index of keys").within(&format!("item {}", self.rows)));
        }
        self.push_row(tokens, weights, item)
    }

    /// As [`CatalogueBuilder::push`], whether items have keys or not.
    pub(super) fn push_row(&mut self, tokens: &[TokenId], weights: &[f32], item: u64) -> Result<()> {
        let place = |error: Error| error.within(&format!("item {}", self.rows));
        check(tokens, weights, self.options.weighted).map_err(place)?;
        if self.rows >= MAX_ROWS {
            return Err(place(Error::new(ErrorKind::Limit, "too many items for one index")));
        }
        self.shape.see(tokens, item);
        self.rows += 1;
        self.buffer.push(tokens, weights, self.options.weighted, item);
        if self.buffer.bytes() >= self.options.memory {
            self.spill()?;
        }
        Ok(())
    }

    /// One more item with a key of its own; as [`CatalogueBuilder::push`].
    ///
    /// # Errors
    /// As [`CatalogueBuilder::push`]; [`ErrorKind::Constraint`] for a key that is empty or given twice, or if the items
    /// have numbers; [`ErrorKind::Limit`] for a key that is too long.
    pub fn push_keyed(&mut self, tokens: &[TokenId], weights: &[f32], key: &str) -> Result<()> {
        let rows = self.rows;
        let keys = self.keys.as_mut().ok_or_else(|| mixed("a key in an index of numbers"))?;
        let item = keys.count;
        keys.push(key).map_err(|error| error.within(&format!("item {rows}")))?;
        self.push_row(tokens, weights, item)
    }

    /// Takes the keys of a catalogue, whose items then come with their numbers.
    pub(super) fn copy_keys(&mut self, of: &CatalogueSnapshot) -> Result<()> {
        let Some(keys) = &mut self.keys else { return Ok(()) };
        (0..of.key_count()).try_for_each(|item| of.key(item)?.map_or(Ok(()), |key| keys.write(key)))
    }

    /// The number of an item that is given without one: one more than the largest so far, or 0.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if no number is left.
    pub fn next_item(&self) -> Result<u64> {
        next_item(self.shape.largest_item)
    }

    /// Items so far.
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    fn spill(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let room = Room::on_disk(self.options.folder.as_deref());
        self.runs.push(Run::write(&buffer.sorted(self.options.threads), &room)?);
        Ok(())
    }

    /// Writes the index to `path`, at once and whole, or keeps it in memory.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] if a place has two weights; [`ErrorKind::Io`] if something cannot be written; what
    /// `progress` returns. Then `path` is as it was.
    pub fn finish(self, path: Option<&Path>, progress: Progress<'_>) -> Result<BuiltIndex> {
        progress(0.0)?;
        let beside = path.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
        let room = match path {
            Some(_) => Room::on_disk(self.options.folder.as_deref().or(beside.or(Some(Path::new("."))))),
            None => Room::Memory,
        };
        let sorted = self.buffer.sorted(self.options.threads);
        let runs = self.runs.into_iter().map(Run::read).collect::<Result<Vec<_>>>()?;
        let mut writer = Writer::new(self.shape, &room)?;
        let (mut merge, mut seen) = (Merge::new(&sorted, runs)?, 0u64);
        while let Some(row) = merge.row() {
            writer.row(&row.tokens, &row.weights, row.item)?;
            merge.advance()?;
            seen += 1;
            if seen.is_multiple_of(1 << 16) {
                progress(0.9 * seen as f64 / self.rows as f64)?;
            }
        }
        drop(merge);
        drop(sorted);
        let (header, sections, repeated) = writer.finish(self.keys)?;
        progress(0.9)?;
        let index = match path {
            None => {
                let mut out = Sink::memory();
                join(header, sections, &mut out)?;
                progress(1.0)?;
                ItemIndex::trusted(out.into_bytes())?
            }
            Some(path) => {
                let mut out = Sink::new(&Room::on_disk(beside.or(Some(Path::new(".")))))?;
                join(header, sections, &mut out)?;
                progress(1.0)?;
                out.rename(path)?;
                ItemIndex::open(path)?
            }
        };
        Ok(BuiltIndex { index, repeated })
    }
}

/// An error for an index whose items would have keys and numbers.
fn mixed(message: &str) -> Error {
    Error::new(ErrorKind::Constraint, message).help("all items have keys, or all have numbers")
}
