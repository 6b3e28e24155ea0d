//! Built constraints, found again by content: what a caller hands over in every request is built once.
//!
//! Looking up takes a shared lock for the time of one hash look-up and one comparison, so threads do not wait for each
//! other; the exclusive lock is taken only to add or clear. The per-token path never comes here. Whole contents are
//! compared, so two contents with one digest cannot be confused.

use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::FxHasher;
use xxhash_rust::xxh3::{xxh3_128_with_seed, xxh3_64};

use super::{PayloadCheck, TokenTree};
use crate::Result;
use logitree_tokens::vocabulary::Vocabulary;

/// Entries in [`token_trees`].
pub const TOKEN_TREE_ENTRIES: usize = 128;

/// Contents longer than this are not kept: a cache of them would be a leak in all but name.
pub const MAX_CONTENT: usize = 16 << 20;

/// The process-wide cache of built token trees.
pub fn token_trees() -> &'static ContentCache<TokenTree> {
    static TREES: LazyLock<ContentCache<TokenTree>> = LazyLock::new(|| ContentCache::new(TOKEN_TREE_ENTRIES));
    &TREES
}

/// The tree of a payload's JSON text, from [`token_trees`] where it is there. With a vocabulary its ids and names are checked.
///
/// # Errors
/// As [`TokenTree::from_json`].
pub fn cached(payload: &[u8], vocabulary: Option<&Vocabulary>) -> Result<Arc<TokenTree>> {
    let check = PayloadCheck { vocabulary, ..PayloadCheck::default() };
    let context = vocabulary.map_or(0, Vocabulary::fingerprint).to_le_bytes();
    let context = [b"c", &context[..]].concat();
    token_trees()
        .get_or_build(Key { content: payload, context: &context }, || TokenTree::from_json(payload, &check))
}

/// What an entry is known by: the content itself, and what else its building depended on.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// The payload, byte for byte.
    pub content: &'a [u8],
    /// Everything else: format, vocabulary fingerprint, options. Short.
    pub context: &'a [u8],
}

impl Key<'_> {
    fn digest(&self) -> u128 {
        xxh3_128_with_seed(self.content, xxh3_64(self.context))
    }
}

/// A bounded cache of shared values, least recently used out first, but never one that is in use.
///
/// With every entry in use, a new value is built and handed out but not kept (counted as `bypassed`): the cache
/// never holds more than its capacity.
#[derive(Debug)]
pub struct ContentCache<V> {
    capacity: usize,
    entries: RwLock<Entries<V>>,
    clock: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    bypassed: AtomicU64,
    evicted: AtomicU64,
}

type Entries<V> = std::collections::HashMap<u128, Entry<V>, BuildHasherDefault<FxHasher>>;

#[derive(Debug)]
struct Entry<V> {
    content: Box<[u8]>,
    context: Box<[u8]>,
    value: Arc<V>,
    last_used: AtomicU64,
    hits: AtomicU64,
}

/// One entry, as [`ContentCache::entries`] shows it.
#[derive(Debug, Clone)]
pub struct EntryInfo<V> {
    /// The content's digest (XXH3, 128 bits).
    pub digest: u128,
    /// Bytes of content and context that are kept to compare with.
    pub content_bytes: usize,
    /// Times it was found.
    pub hits: u64,
    /// Whether someone besides the cache (and this very value) holds it.
    pub in_use: bool,
    /// The value.
    pub value: Arc<V>,
}

/// The cache's counters since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheCounts {
    /// Most entries kept.
    pub capacity: usize,
    /// Entries now.
    pub len: usize,
    /// Look-ups that found an entry.
    pub hits: u64,
    /// Look-ups that built.
    pub misses: u64,
    /// Values built and not kept: all entries in use, content too long, or an equal digest.
    pub bypassed: u64,
    /// Entries pushed out by newer ones.
    pub evicted: u64,
}

impl<V> ContentCache<V> {
    /// An empty cache of at most `capacity` entries.
    pub fn new(capacity: usize) -> Self {
        ContentCache {
            capacity,
            entries: RwLock::default(),
            clock: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            bypassed: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Entries<V>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries<V>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, entries: &Entries<V>, digest: u128, key: &Key<'_>) -> Option<Arc<V>> {
        let entry = entries.get(&digest)?;
        if *entry.content != *key.content || *entry.context != *key.context {
            return None;
        }
        entry.last_used.store(self.clock.fetch_add(1, Relaxed), Relaxed);
        entry.hits.fetch_add(1, Relaxed);
        self.hits.fetch_add(1, Relaxed);
        Some(Arc::clone(&entry.value))
    }

    /// The value kept for `key`, or the one that `build` makes, which is then kept. Errors are not kept. Two
    /// threads that miss at once both build and share the value that was in first.
    ///
    /// # Errors
    /// Whatever `build` gives.
    pub fn get_or_build(&self, key: Key<'_>, build: impl FnOnce() -> Result<V>) -> Result<Arc<V>> {
        let digest = key.digest();
        if let Some(value) = self.find(&self.read(), digest, &key) {
            return Ok(value);
        }
        let value = Arc::new(build()?);
        self.misses.fetch_add(1, Relaxed);
        if key.content.len() > MAX_CONTENT {
            self.bypassed.fetch_add(1, Relaxed);
            return Ok(value);
        }
        let entry = Entry {
            content: key.content.into(),
            context: key.context.into(),
            value: Arc::clone(&value),
            last_used: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        };
        let mut evicted = None; // declared before the lock, so that a large tree is dropped outside it
        let mut entries = self.write();
        if let Some(first) = self.find(&entries, digest, &key) {
            return Ok(first);
        }
        if entries.contains_key(&digest) || !self.make_room(&mut entries, &mut evicted) {
            self.bypassed.fetch_add(1, Relaxed);
            return Ok(value);
        }
        entry.last_used.store(self.clock.fetch_add(1, Relaxed), Relaxed);
        entries.insert(digest, entry);
        Ok(value)
    }

    /// Moves the least recently used entry that is not in use to `evicted`, if the cache is full. Under the exclusive
    /// lock a value that only the cache holds cannot be taken by anyone else.
    fn make_room(&self, entries: &mut Entries<V>, evicted: &mut Option<Entry<V>>) -> bool {
        if entries.len() < self.capacity {
            return true;
        }
        let idle = entries.iter().filter(|(_, entry)| Arc::strong_count(&entry.value) == 1);
        let oldest = idle.min_by_key(|(_, entry)| entry.last_used.load(Relaxed)).map(|(&digest, _)| digest);
        let Some(digest) = oldest else { return false };
        *evicted = entries.remove(&digest);
        self.evicted.fetch_add(1, Relaxed);
        true
    }

    /// Every entry, most recently used first.
    pub fn entries(&self) -> Vec<EntryInfo<V>> {
        let entries = self.read();
        let mut all: Vec<_> = entries.iter().collect();
        all.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.last_used.load(Relaxed)));
        let info = |(&digest, entry): (&u128, &Entry<V>)| EntryInfo {
            digest,
            content_bytes: entry.content.len() + entry.context.len(),
            hits: entry.hits.load(Relaxed),
            in_use: Arc::strong_count(&entry.value) > 1,
            value: Arc::clone(&entry.value),
        };
        all.into_iter().map(info).collect()
    }

    /// The counters.
    pub fn counts(&self) -> CacheCounts {
        CacheCounts {
            capacity: self.capacity,
            len: self.read().len(),
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            bypassed: self.bypassed.load(Relaxed),
            evicted: self.evicted.load(Relaxed),
        }
    }

    /// Forgets every entry. Values in use live on with their holders.
    pub fn clear(&self) {
        let dropped = std::mem::take(&mut *self.write());
        drop(dropped); // outside the lock: dropping a large tree takes its time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(cache: &ContentCache<u32>, n: u32) -> Arc<u32> {
        let content = n.to_le_bytes();
        cache.get_or_build(Key { content: &content, context: b"" }, || Ok(n)).unwrap()
    }

    #[test]
    fn the_least_recently_used_goes_first_and_never_one_in_use() {
        let cache = ContentCache::new(2);
        let held = get(&cache, 1);
        get(&cache, 2);
        get(&cache, 3);
        assert!(Arc::ptr_eq(&held, &get(&cache, 1)));
        let counts = cache.counts();
        assert_eq!((counts.len, counts.hits, counts.misses, counts.evicted), (2, 1, 3, 1));
        let also_held = get(&cache, 3);
        let entry = |cache: &ContentCache<u32>| cache.entries().iter().map(|e| *e.value).collect::<Vec<_>>();
        assert_eq!(entry(&cache), [3, 1]);
        assert_eq!(*get(&cache, 4), 4);
        assert_eq!((entry(&cache), cache.counts().bypassed), (vec![3, 1], 1));
        drop(also_held);
        get(&cache, 4);
        assert_eq!(entry(&cache), [4, 1]);
        cache.clear();
        assert_eq!((cache.counts().len, *held), (0, 1));
    }

    #[test]
    fn what_is_pushed_out_is_dropped_outside_the_lock() {
        struct Asks(&'static ContentCache<Asks>, Arc<AtomicU64>);
        impl Drop for Asks {
            fn drop(&mut self) {
                self.1.store(u64::from(self.0.entries.try_read().is_ok()), Relaxed);
            }
        }
        let cache: &'static ContentCache<Asks> = Box::leak(Box::new(ContentCache::new(1)));
        let free = Arc::new(AtomicU64::new(9));
        for content in [b"1", b"2"] {
            let build = || Ok(Asks(cache, Arc::clone(&free)));
            cache.get_or_build(Key { content, context: b"" }, build).unwrap();
        }
        assert_eq!((free.load(Relaxed), cache.counts().evicted), (1, 1));
    }

    #[test]
    fn context_and_errors_are_kept_apart() {
        let cache = ContentCache::new(4);
        let key = |context| Key { content: b"same", context };
        let one = cache.get_or_build(key(b"a"), || Ok(1)).unwrap();
        let two = cache.get_or_build(key(b"b"), || Ok(2)).unwrap();
        assert_eq!((*one, *two), (1, 2));
        let wrong = || Err(crate::Error::new(crate::ErrorKind::Payload, "no"));
        assert!(cache.get_or_build(key(b"c"), wrong).is_err());
        assert_eq!(*cache.get_or_build(key(b"c"), || Ok(3)).unwrap(), 3);
    }
}
