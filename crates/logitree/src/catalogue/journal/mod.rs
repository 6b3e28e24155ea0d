//! The journal of an index file: changes that were made after it was built, appended to it, so that recording one costs
//! what the change costs. Opening the file makes them again.
//!
//! The journal begins at the first multiple of 4,096 bytes after the index. All numbers are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 0..64 | a commit: every second one |
//! | 4,096..4,160 | a commit: the others |
//! | 8,192.. | records, one after the other |
//!
//! | a commit | content |
//! |---|---|
//! | 0..8 | `logitjnl` |
//! | 8..12 | version of the journal: 1 |
//! | 16..24 | number of the commit; the later of the two counts |
//! | 24..32 | bytes of all records that are committed |
//! | 32..40 | how many records they are |
//! | 40..48 | the checksum of the last record; that of the index where there is none |
//! | 56..64 | XXH3 of the bytes before it, with the checksum of the index as its seed |
//!
//! | a record | content |
//! |---|---|
//! | 0..4 | 1 = items that were added, 2 = items that were removed |
//! | 4..8 | how many |
//! | 8..16 | bytes of the items |
//! | 16.. | each item: u32 tokens, u32 weights, u32 bytes of its key, u32 zero, u64 number, then tokens (u32), weights (f32) and the key, if it is new |
//! | the last 8 | XXH3 of the bytes before it, with the checksum of the record before it as its seed |
//!
//! A record is written and synchronised before the commit that counts it, so that a change is there as a whole or not at
//! all. What follows the committed records is of a change that was never finished: it is not read, and the next change
//! takes its place. The chain of checksums begins with the index's, so that a journal belongs to one index. Everything
//! else that is not as it should be is an error.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::editor::Editor;
use super::format::checksum::{IndexBytes, PAGE};
use super::{damaged, CatalogueSnapshot, ItemIndex, MAX_KEY_BYTES, MAX_LENGTH};
use crate::{Error, ErrorKind, Result, TokenId};
use logitree_tokens::file;

#[cfg(test)]
mod tests;

const MAGIC: &[u8; 8] = b"logitjnl";
const VERSION: u32 = 1;
const COMMIT: usize = 64;
/// Bytes before the first record.
const HEADER: u64 = 2 * PAGE as u64;
/// Bytes of a record beside its items.
const RECORD: usize = 24;
/// Bytes of an item beside its tokens, weights and key.
const ITEM: usize = 24;

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Add = 1,
    Remove = 2,
}

/// An item that was added or removed.
pub(super) struct Change<'k, T, W> {
    pub tokens: T,
    pub weights: W,
    pub item: u64,
    /// Its key, if this change brought it.
    pub key: &'k str,
}

/// Changes of one kind, to be recorded together.
#[derive(Default)]
pub(super) struct ChangeLog {
    /// The record: its kind and counts are written when it is complete.
    bytes: Vec<u8>,
    kind: Option<Kind>,
    items: u32,
}

impl ChangeLog {
    /// Appends an item. All items of a log are added, or all are removed.
    pub fn push(&mut self, kind: Kind, change: Change<'_, &[TokenId], &[f32]>) {
        self.kind = Some(kind);
        self.items += 1;
        if self.bytes.is_empty() {
            self.bytes.resize(16, 0);
        }
        let lengths = [change.tokens.len(), change.weights.len(), change.key.len(), 0];
        lengths.iter().for_each(|&length| self.bytes.extend_from_slice(&(length as u32).to_le_bytes()));
        self.bytes.extend_from_slice(&change.item.to_le_bytes());
        change.tokens.iter().for_each(|token| self.bytes.extend_from_slice(&token.to_le_bytes()));
        change.weights.iter().for_each(|weight| self.bytes.extend_from_slice(&weight.to_le_bytes()));
        self.bytes.extend_from_slice(change.key.as_bytes());
    }

    /// The record, after the one with this checksum; and its own checksum.
    fn record(&self, before: u64) -> Option<(Vec<u8>, u64)> {
        let (kind, mut bytes) = (self.kind?, self.bytes.clone());
        bytes[..4].copy_from_slice(&(kind as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.items.to_le_bytes());
        let length = bytes.len() as u64 - 16;
        bytes[8..16].copy_from_slice(&length.to_le_bytes());
        let sum = xxh3_64_with_seed(&bytes, before);
        bytes.extend_from_slice(&sum.to_le_bytes());
        Some((bytes, sum))
    }
}

/// What is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Commit {
    number: u64,
    /// Bytes of the records.
    bytes: u64,
    records: u64,
    /// The checksum of the last record.
    sum: u64,
}

impl Commit {
    /// That of a new journal.
    fn first(identity: u64) -> Commit {
        Commit { number: 1, bytes: 0, records: 0, sum: identity }
    }

    /// Where it is written, from the beginning of the journal.
    fn place(&self) -> u64 {
        self.number % 2 * PAGE as u64
    }

    fn write(&self, identity: u64) -> [u8; COMMIT] {
        let mut bytes = [0; COMMIT];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        for (place, value) in (16..).step_by(8).zip([self.number, self.bytes, self.records, self.sum]) {
            bytes[place..place + 8].copy_from_slice(&value.to_le_bytes());
        }
        let sum = xxh3_64_with_seed(&bytes[..COMMIT - 8], identity);
        bytes[COMMIT - 8..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8], identity: u64) -> Result<Commit> {
        let (Some(bytes), true) = (bytes.get(..COMMIT), bytes.starts_with(MAGIC)) else {
            return Err(damaged("what follows it is no journal"));
        };
        let version = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        if version != VERSION {
            let message = format!("a journal of version {version}; version {VERSION} is read");
            return Err(Error::new(ErrorKind::Payload, message).help("use the logitree that wrote it"));
        }
        let long = |at: usize| bytes[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        if xxh3_64_with_seed(&bytes[..COMMIT - 8], identity) != long(COMMIT - 8) {
            return Err(damaged("a commit of its journal is not as its checksum says, or of another index"));
        }
        Ok(Commit { number: long(16), bytes: long(24), records: long(32), sum: long(40) })
    }

    /// The later of the two commits at the beginning of a journal, which lies `at` bytes into a file of so many; `None`
    /// for a journal whose writing stopped at the beginning, so that nothing is committed.
    fn latest(header: &[u8], identity: u64, file: u64, at: u64) -> Result<Option<Commit>> {
        let is_empty = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
        let slots =
            [0, PAGE].map(|from| header.get(from..(from + COMMIT).min(header.len())).unwrap_or_default());
        let is_begun = file <= at + HEADER && slots.iter().any(|slot| is_empty(slot));
        let read = |slot: &[u8]| match is_begun && is_empty(slot) {
            true => Ok(Commit::first(identity)),
            false => Commit::read(slot, identity),
        };
        let (one, other) = (read(slots[0])?, read(slots[1])?);
        if is_begun && one.bytes == 0 && other.bytes == 0 {
            return Ok(None);
        }
        let (before, last) = if one.number < other.number { (one, other) } else { (other, one) };
        if is_begun || before.number.checked_add(1) != Some(last.number) || before.bytes > last.bytes {
            return Err(damaged("the commits of its journal do not follow each other"));
        }
        if last.bytes > file.saturating_sub(at + HEADER) {
            return Err(damaged("its journal is cut short"));
        }
        Ok(Some(last))
    }
}

/// Where the journal of an index begins.
fn begin(index: &ItemIndex) -> u64 {
    index.header().file.next_multiple_of(PAGE as u64)
}

/// The checksum that identifies an index: of the first page, which has the checksums of all others.
fn identity(index: &ItemIndex) -> u64 {
    xxh3_64(index.bytes().get(..PAGE).unwrap_or_default())
}

/// The catalogue with these bytes.
///
/// # Errors
/// [`ErrorKind::Payload`] if they are not an index, or damaged.
pub(super) fn of_bytes(bytes: Vec<u8>) -> Result<CatalogueSnapshot> {
    replayed(Arc::new(ItemIndex::with_journal(IndexBytes::Owned(bytes))?)).map(|(snapshot, _)| snapshot)
}

/// The catalogue of a file, and its journal if later changes are to be recorded there.
///
/// # Errors
/// [`ErrorKind::Io`] if it cannot be opened; [`ErrorKind::Payload`] if it is not an index, or damaged.
pub(super) fn open(path: &Path, is_durable: bool) -> Result<(CatalogueSnapshot, Option<Journal>)> {
    let failed = |error| file::cannot_read(path, error);
    let mut file = OpenOptions::new().read(true).write(is_durable).open(path).map_err(failed)?;
    // No commit is read while it is written. Where files cannot be locked, none is written either.
    let is_locked = file.lock_shared().is_ok();
    let opened = (|| {
        let index = Arc::new(ItemIndex::with_journal(IndexBytes::Mapped(file::map_file(&file, path)?))?);
        let (snapshot, commit) = replayed(Arc::clone(&index))?;
        Ok((index, snapshot, commit))
    })();
    if is_locked {
        file.unlock().map_err(failed)?;
    }
    let (index, snapshot, commit) = opened.map_err(|error| file::naming(path, error))?;
    file.rewind().map_err(failed)?;
    let commit = commit.unwrap_or(Commit::first(identity(&index)));
    let journal = Journal { file, path: path.to_path_buf(), index, commit };
    Ok((snapshot, is_durable.then_some(journal)))
}

/// The index with the changes after it.
fn replayed(index: Arc<ItemIndex>) -> Result<(CatalogueSnapshot, Option<Commit>)> {
    let snapshot = CatalogueSnapshot::of(Arc::clone(&index));
    let (all, end, at) = (index.all_bytes(), index.header().file, begin(&index));
    if all.len() as u64 == end {
        return Ok((snapshot, None));
    }
    let after = |from: u64| all.get(from.min(all.len() as u64) as usize..).unwrap_or_default();
    if all[end as usize..at.min(all.len() as u64) as usize].iter().any(|&byte| byte != 0) {
        return Err(damaged("what follows it is no journal"));
    }
    let identity = identity(&index);
    let Some(commit) = Commit::latest(after(at), identity, all.len() as u64, at)? else {
        return Ok((snapshot, None));
    };
    let mut editor = Editor::new(snapshot, false);
    let records = &after(at + HEADER)[..commit.bytes as usize];
    replay(records, &Commit::first(identity), &commit, &mut editor)?;
    Ok((editor.finish(), Some(commit)))
}

/// Makes the changes of the records between two commits.
fn replay(mut records: &[u8], from: &Commit, to: &Commit, editor: &mut Editor) -> Result<()> {
    let (mut sum, mut count) = (from.sum, from.records);
    while !records.is_empty() {
        let (record, rest) = next_record(records, sum)?;
        replay_record(record, editor)?;
        sum = record_sum(&records[..records.len() - rest.len()]);
        count += 1;
        records = rest;
    }
    if (sum, count) != (to.sum, to.records) {
        return Err(damaged("the records of its journal are not those of its commit"));
    }
    Ok(())
}

/// The first record without its checksum, which is right, and what follows it.
fn next_record(records: &[u8], before: u64) -> Result<(&[u8], &[u8])> {
    let wrong = || damaged("a record of its journal is not as its checksum says");
    let length =
        records.get(8..16).and_then(|bytes| bytes.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b));
    let length =
        usize::try_from(length).ok().and_then(|length| length.checked_add(RECORD)).ok_or_else(wrong)?;
    let (whole, rest) = records.split_at_checked(length).ok_or_else(wrong)?;
    let record = &whole[..length - 8];
    if xxh3_64_with_seed(record, before) != record_sum(whole) {
        return Err(wrong());
    }
    Ok((record, rest))
}

/// The checksum at a record's end.
fn record_sum(record: &[u8]) -> u64 {
    record.last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn replay_record(record: &[u8], editor: &mut Editor) -> Result<()> {
    let wrong = || damaged("a record of its journal makes no sense");
    let int = |bytes: &[u8], at: usize| bytes[at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
    let kind = match int(record, 0) {
        1 => Kind::Add,
        2 => Kind::Remove,
        _ => return Err(wrong()),
    };
    let mut rest = &record[16..];
    for _ in 0..int(record, 4) {
        let (fixed, more) = rest.split_at_checked(ITEM).ok_or_else(wrong)?;
        let [tokens, weights, key] = [0, 4, 8].map(|at| int(fixed, at) as usize);
        if tokens > MAX_LENGTH || weights > tokens || key > MAX_KEY_BYTES {
            return Err(wrong());
        }
        let (of_tokens, more) = more.split_at_checked(tokens * 4).ok_or_else(wrong)?;
        let (of_weights, more) = more.split_at_checked(weights * 4).ok_or_else(wrong)?;
        let (of_key, more) = more.split_at_checked(key).ok_or_else(wrong)?;
        let change = Change {
            tokens: of_tokens.as_chunks().0.iter().map(|&four| u32::from_le_bytes(four)).collect::<Vec<_>>(),
            weights: of_weights
                .as_chunks()
                .0
                .iter()
                .map(|&four| f32::from_le_bytes(four))
                .collect::<Vec<_>>(),
            item: u64::from(int(fixed, 16)) | u64::from(int(fixed, 20)) << 32,
            key: std::str::from_utf8(of_key).map_err(|_| wrong())?,
        };
        editor.replay(kind, &change)?;
        rest = more;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(wrong())
    }
}

/// The journal of an open file, to which changes are appended.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    index: Arc<ItemIndex>,
    /// What this process knows of.
    commit: Commit,
}

/// A journal that no other process changes meanwhile.
pub(super) struct LockedJournal<'j>(&'j mut Journal);

impl Journal {
    /// Waits until no other process changes the file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be locked; [`ErrorKind::State`] if its name is another file's by now.
    pub fn lock(&mut self) -> Result<LockedJournal<'_>> {
        self.file.lock().map_err(|error| self.failed(error))?;
        let locked = LockedJournal(self);
        if !locked.0.is_current() {
            let message = format!("{}: the file was replaced", locked.0.path.display());
            return Err(Error::new(ErrorKind::State, message).help("reload the catalogue, then change it"));
        }
        Ok(locked)
    }

    /// Whether the file's name still is this file's.
    #[cfg(unix)]
    fn is_current(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let place =
            |found: std::io::Result<std::fs::Metadata>| found.ok().map(|file| (file.dev(), file.ino()));
        let own = place(self.file.metadata());
        own.is_some() && place(std::fs::metadata(&self.path)) == own
    }

    /// A file that is open is not replaced.
    #[cfg(not(unix))]
    fn is_current(&self) -> bool {
        true
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::new(ErrorKind::Io, format!("cannot write the journal: {error}"))
            .at(self.path.display().to_string())
            .help("is there room on the disk, and may the file be written to?")
    }

    fn read_at(&mut self, at: u64, bytes: &mut [u8]) -> Result<()> {
        let done = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.read_exact(bytes));
        done.map_err(|error| self.failed(error))
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let done = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(bytes));
        done.and_then(|()| self.file.sync_data()).map_err(|error| self.failed(error))
    }

    fn length(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|error| self.failed(error))?.len())
    }
}

impl LockedJournal<'_> {
    /// Makes the changes that other processes recorded since; whether there were any. Then this version must be published.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] if the journal is damaged.
    pub fn catch_up(&mut self, editor: &mut Editor) -> Result<bool> {
        let journal = &mut *self.0;
        let (at, file, identity) = (begin(&journal.index), journal.length()?, identity(&journal.index));
        let mut header = vec![0; file.saturating_sub(at).min(HEADER) as usize];
        journal.read_at(at, &mut header)?;
        let latest = Commit::latest(&header, identity, file, at)?.unwrap_or(Commit::first(identity));
        let known = journal.commit;
        if latest == known {
            return Ok(false);
        }
        let new = latest.bytes.checked_sub(known.bytes).filter(|_| latest.number > known.number);
        let new = new.ok_or_else(|| damaged("its journal is older than before"))?;
        let mut records = vec![0; usize::try_from(new).unwrap_or(usize::MAX)];
        journal.read_at(at + HEADER + known.bytes, &mut records)?;
        replay(&records, &known, &latest, editor)?;
        journal.commit = latest;
        Ok(true)
    }

    /// Appends a record: afterwards it is in the file, whatever happens to this process or to the machine.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; then the change does not count.
    pub fn append(&mut self, log: &ChangeLog) -> Result<()> {
        let journal = &mut *self.0;
        let Some((record, sum)) = log.record(journal.commit.sum) else { return Ok(()) };
        let (at, identity, file) = (begin(&journal.index), identity(&journal.index), journal.length()?);
        if journal.commit.number == 1 && file <= at + HEADER {
            let mut header = vec![0; (at + HEADER - journal.index.header().file) as usize];
            let pad = header.len() - HEADER as usize;
            for number in [0, 1] {
                let commit = Commit { number, ..Commit::first(identity) };
                let place = pad + commit.place() as usize;
                header[place..place + COMMIT].copy_from_slice(&commit.write(identity));
            }
            let end = journal.index.header().file;
            journal.write_at(end, &header)?;
        }
        let before = journal.commit;
        let end = at + HEADER + before.bytes;
        if file > end {
            // Of a change that was never finished.
            journal.file.set_len(end).map_err(|error| journal.failed(error))?;
        }
        journal.write_at(end, &record)?;
        let next = Commit {
            number: before.number + 1,
            bytes: before.bytes + record.len() as u64,
            records: before.records + 1,
            sum,
        };
        journal.write_at(at + next.place(), &next.write(identity))?;
        journal.commit = next;
        Ok(())
    }
}

impl Drop for LockedJournal<'_> {
    fn drop(&mut self) {
        // Closing the file unlocks it as well.
        drop(self.0.file.unlock());
    }
}
