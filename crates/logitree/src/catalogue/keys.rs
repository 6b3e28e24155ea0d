//! Keys: names that callers give to items. Item number n has the n-th key of the index, and later keys are kept in
//! memory until the catalogue is merged.

use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_128;

use super::build::{Room, Sink};
use super::format::checksum::damaged;
use super::format::header;
use super::{CatalogueSnapshot, ItemIndex, MAX_KEY_BYTES};
use crate::{Error, ErrorKind, Result};

/// Writes keys into an index. A key takes about 30 bytes of memory; the text goes to `ends` and `bytes`.
pub(super) struct KeyWriter {
    pub ends: Sink,
    pub bytes: Sink,
    /// Bytes of all keys.
    pub written: u64,
    /// How many keys.
    pub count: u64,
    hashes: FxHashSet<u128>,
}

impl KeyWriter {
    pub fn new(room: &Room) -> Result<KeyWriter> {
        Ok(KeyWriter {
            ends: Sink::new(room)?,
            bytes: Sink::new(room)?,
            written: 0,
            count: 0,
            hashes: FxHashSet::default(),
        })
    }

    /// Appends a key, which must be new.
    pub fn push(&mut self, key: &str) -> Result<()> {
        check_key(key)?;
        if !self.hashes.insert(xxh3_128(key.as_bytes())) {
            return Err(Error::new(ErrorKind::Constraint, format!("the key {key:?} is given twice"))
                .help("give every item a key of its own"));
        }
        self.write(key)
    }

    /// Appends a key of an index, where all keys differ.
    pub fn write(&mut self, key: &str) -> Result<()> {
        self.count += 1;
        self.written += key.len() as u64;
        self.bytes.write(key.as_bytes())?;
        self.ends.write(&self.written.to_le_bytes())
    }
}

/// Whether an index can hold the key.
pub(super) fn check_key(key: &str) -> Result<()> {
    if key.is_empty() {
        return Err(
            Error::new(ErrorKind::Constraint, "an empty key").help("a key has at least one character")
        );
    }
    if key.len() > MAX_KEY_BYTES {
        let message = format!("a key of {} bytes; {MAX_KEY_BYTES} are the most", key.len());
        return Err(Error::new(ErrorKind::Limit, message));
    }
    Ok(())
}

impl ItemIndex {
    /// The key of an item number.
    fn key(&self, item: u64) -> Result<&str> {
        let end = |at: u64| -> Result<u64> {
            let bytes = self.section(header::KEY_ENDS, at, 1, 8)?;
            Ok(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
        };
        let from = if item == 0 { 0 } else { end(item - 1)? };
        let length = end(item)?.checked_sub(from).filter(|&length| length <= MAX_KEY_BYTES as u64);
        let length = length.ok_or_else(|| damaged("a key that ends before it begins"))?;
        let bytes = self.section(header::KEY_BYTES, from, length as usize, 1)?;
        std::str::from_utf8(bytes).map_err(|_| damaged("a key that is not UTF-8"))
    }
}

impl CatalogueSnapshot {
    /// Whether items have keys.
    pub fn is_keyed(&self) -> bool {
        self.base.header().keyed
    }

    /// Number of keys, including those of removed items.
    pub(crate) fn key_count(&self) -> u64 {
        self.base.header().keys + self.added_keys.len() as u64
    }

    /// The key of an item number; `None` if no item was given this number.
    ///
    /// # Errors
    /// [`ErrorKind::Payload`] if the index is damaged there.
    pub fn key(&self, item: u64) -> Result<Option<&str>> {
        match item.checked_sub(self.base.header().keys) {
            None => self.base.key(item).map(Some),
            Some(added) => Ok(self.added_keys.get(added as usize).map(|key| &**key)),
        }
    }

    /// The item number of each key; `None` for an unknown one. Reads all keys.
    ///
    /// # Errors
    /// As [`CatalogueSnapshot::key`]; [`ErrorKind::Constraint`] if items have numbers instead of keys.
    pub fn items_of_keys(&self, keys: &[&str]) -> Result<Vec<Option<u64>>> {
        if !self.is_keyed() {
            return Err(Error::new(ErrorKind::Constraint, "keys of a catalogue whose items have numbers")
                .help("give item numbers, or build the catalogue with keys"));
        }
        let mut wanted: FxHashMap<&str, Option<u64>> = keys.iter().map(|&key| (key, None)).collect();
        for item in 0..self.key_count() {
            if let Some(found) = self.key(item)?.and_then(|key| wanted.get_mut(key)) {
                *found = Some(item);
            }
        }
        Ok(keys.iter().map(|key| wanted.get(key).copied().flatten()).collect())
    }

    /// Takes a key that a journal recorded for the next number.
    pub(super) fn push_recorded_key(&mut self, item: u64, key: &str) -> Result<()> {
        if item != self.key_count() || check_key(key).is_err() {
            return Err(damaged("its journal records a number without its key"));
        }
        self.added_keys.push(key.into());
        Ok(())
    }

    /// The item number of each key; an unknown key is added and gets the next number.
    pub(super) fn add_keys(&mut self, keys: &[&str]) -> Result<Vec<u64>> {
        let known = self.items_of_keys(keys)?;
        let mut added: FxHashMap<&str, u64> = FxHashMap::default();
        let first = self.base.header().keys;
        let mut numbers = Vec::with_capacity(keys.len());
        for (at, (&key, known)) in keys.iter().zip(known).enumerate() {
            numbers.push(match (known, added.entry(key)) {
                (Some(item), _) => item,
                (None, Entry::Occupied(entry)) => *entry.get(),
                (None, Entry::Vacant(entry)) => {
                    check_key(key).map_err(|error| error.within(&format!("item {at}")))?;
                    self.added_keys.push(key.into());
                    *entry.insert(first + self.added_keys.len() as u64 - 1)
                }
            });
        }
        Ok(numbers)
    }
}
