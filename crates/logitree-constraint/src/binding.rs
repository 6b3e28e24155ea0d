//! What constraints make for a vocabulary, made once and kept by the vocabulary, so that the sequences of equal constraints
//! share what they find out: masks, automata, rows.
//!
//! Constraints are compared by content. The vocabulary keeps what was used last, within [`MAX_BINDINGS`] and
//! [`MAX_KEY_BYTES`]; matchers keep what they need themselves.

use std::any::{Any, TypeId};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::{FxHashMap, FxHasher};

use crate::grammar::is_crowded;
use crate::{interrupt, Constraint, Matcher, Result};
pub(crate) use logitree_grammar::ast::recorded;
use logitree_tokens::vocabulary::Vocabulary;

/// The most bindings that a vocabulary keeps.
pub const MAX_BINDINGS: usize = 256;
/// The most bytes of contents of constraints, by which the bindings are found.
pub const MAX_KEY_BYTES: usize = 24 << 20;
/// The most bytes of the content of a constraint made of others: each holds those of its parts.
pub(crate) const MAX_NESTED_BYTES: usize = 1 << 20;
/// The most matchers that are kept to be copied: each holds masks and automata of its own.
const MAX_COPIED: usize = 8;
/// After so many copies a matcher is made again: its automata may be near their limits, and copies share them.
const MAX_COPIES: u32 = 16;
/// How many samples of a content are hashed.
const SAMPLES: usize = 8;

/// The content of a constraint: equal for constraints that allow the same with every vocabulary.
#[derive(Debug, Clone)]
pub struct Key {
    kind: TypeId,
    content: Arc<[u8]>,
    options: Vec<u8>,
}

impl Key {
    /// The key of a constraint of type `T`: its content, and what else it is bound with.
    pub fn new<T: Any>(content: impl Into<Arc<[u8]>>, options: &impl Hash) -> Key {
        Key { kind: TypeId::of::<T>(), content: content.into(), options: recorded(options) }
    }

    /// The key of a constraint of type `T` around another one; none beyond [`MAX_NESTED_BYTES`].
    pub(crate) fn nested<T: Any>(of: &Key, options: &impl Hash) -> Option<Key> {
        (of.bytes() <= MAX_NESTED_BYTES).then(|| Key::new::<T>(recorded(of), options))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.content.len() + self.options.len()
    }

    /// A hash of a few samples: contents are long, and there are few bindings.
    fn sampled(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.kind, self.content.len(), &self.options).hash(&mut hasher);
        let step = self.content.len() / SAMPLES + 1;
        self.content.chunks(step).for_each(|part| part[..part.len().min(16)].hash(&mut hasher));
        hasher.finish()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        let is_same = Arc::ptr_eq(&self.content, &other.content);
        self.kind == other.kind && self.options == other.options && (is_same || self.content == other.content)
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind, &self.content, &self.options).hash(state);
    }
}

/// A matcher at the beginning of the output, which is copied for every sequence.
struct Born {
    matcher: Box<dyn Matcher>,
    copies: AtomicU32,
    /// The constraint: a part of its key may be an address.
    _of: Box<dyn Any + Send + Sync>,
}

/// A copy of the matcher of `constraint`, which `make` makes where the vocabulary has none, or there is no key.
pub(crate) fn copied(
    vocabulary: &Arc<Vocabulary>,
    key: Option<Key>,
    constraint: &(impl Constraint + Clone + 'static),
    make: impl FnOnce(&Arc<Vocabulary>) -> Result<Box<dyn Matcher>>,
) -> Result<Box<dyn Matcher>> {
    let Some(key) = key else { return make(vocabulary) };
    let born = |known: &_| {
        Ok(Born { matcher: make(known)?, copies: AtomicU32::new(0), _of: Box::new(constraint.clone()) })
    };
    let found = kept(vocabulary, key.clone(), born)?;
    if found.copies.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_COPIES {
        if let Some(bindings) = bindings(vocabulary) {
            let worn = bindings.lock().take(|binding| binding.key == key);
            drop(worn);
        }
    }
    Ok(found.matcher.fork())
}

/// What the vocabulary keeps for this constraint, or what `make` makes. It is made without a lock: two threads may make it
/// at once, and one of the two is kept.
///
/// # Errors
/// Those of `make`.
pub(crate) fn kept<T: Any + Send + Sync>(
    vocabulary: &Arc<Vocabulary>,
    key: Key,
    make: impl FnOnce(&Arc<Vocabulary>) -> Result<T>,
) -> Result<Arc<T>> {
    let Some(bindings) = bindings(vocabulary).filter(|_| key.bytes() <= MAX_KEY_BYTES) else {
        return make(vocabulary).map(Arc::new);
    };
    let hash = key.sampled();
    if let Some(found) = bindings.lock().find(hash, &key) {
        return Ok(found);
    }
    if is_crowded(vocabulary) {
        // They keep automata alive that the vocabulary could forget.
        let copied = bindings.lock().take(|binding| binding.value.is::<Born>());
        drop(copied);
    }
    let made = Arc::new(make(&bindings.vocabulary)?);
    let mut all = bindings.lock();
    if let Some(found) = all.find(hash, &key) {
        return Ok(found);
    }
    let dropped = all.add(hash, key, Arc::clone(&made) as Arc<dyn Any + Send + Sync>);
    drop(all);
    drop(dropped);
    Ok(made)
}

/// How many bindings the vocabulary keeps.
pub fn binding_count(vocabulary: &Arc<Vocabulary>) -> usize {
    bindings(vocabulary).map_or(0, |bindings| bindings.lock().count)
}

/// Forgets what the vocabulary keeps of constraints. Matchers live on.
pub fn clear_bindings(vocabulary: &Arc<Vocabulary>) {
    if let Some(bindings) = bindings(vocabulary) {
        let forgotten = std::mem::take(&mut *bindings.lock());
        drop(forgotten);
    }
}

/// The bindings of one vocabulary.
struct Bindings {
    /// What they are bound to: a vocabulary that does not keep them alive.
    vocabulary: Arc<Vocabulary>,
    all: Mutex<All>,
}

fn bindings(vocabulary: &Arc<Vocabulary>) -> Option<Arc<Bindings>> {
    vocabulary.holding(|| Bindings { vocabulary: Arc::new(vocabulary.lent()), all: Mutex::default() })
}

impl Bindings {
    fn lock(&self) -> MutexGuard<'_, All> {
        interrupt::lock(&self.all)
    }
}

#[derive(Default)]
struct All {
    by_hash: FxHashMap<u64, Vec<Binding>>,
    count: usize,
    bytes: usize,
    time: u64,
}

struct Binding {
    key: Key,
    value: Arc<dyn Any + Send + Sync>,
    /// The time of its last use.
    used: u64,
}

impl All {
    fn find<T: Any + Send + Sync>(&mut self, hash: u64, key: &Key) -> Option<Arc<T>> {
        let is_it = |binding: &&mut Binding| binding.key == *key && binding.value.is::<T>();
        let found = self.by_hash.get_mut(&hash)?.iter_mut().find(is_it)?;
        self.time += 1;
        found.used = self.time;
        Arc::clone(&found.value).downcast().ok()
    }

    /// Adds a binding; those that it displaces, to be dropped without the lock.
    fn add(&mut self, hash: u64, key: Key, value: Arc<dyn Any + Send + Sync>) -> Vec<Binding> {
        let mut displaced = Vec::new();
        let copied = self.times(|binding| binding.value.is::<Born>());
        if value.is::<Born>() && copied.len() >= MAX_COPIED {
            let oldest = copied.into_iter().min();
            displaced = self.take(|binding| Some(binding.used) == oldest);
        }
        while self.count >= MAX_BINDINGS || self.bytes + key.bytes() > MAX_KEY_BYTES {
            let oldest = self.times(|_| true).into_iter().min().unwrap_or_default();
            displaced.extend(self.take(|binding| binding.used == oldest));
        }
        self.time += 1;
        (self.count, self.bytes) = (self.count + 1, self.bytes + key.bytes());
        self.by_hash.entry(hash).or_default().push(Binding { key, value, used: self.time });
        displaced
    }

    fn times(&self, of: impl Fn(&Binding) -> bool) -> Vec<u64> {
        self.by_hash.values().flatten().filter(|binding| of(binding)).map(|binding| binding.used).collect()
    }

    /// Removes bindings, to be dropped without the lock.
    fn take(&mut self, which: impl Fn(&Binding) -> bool) -> Vec<Binding> {
        let mut removed = Vec::new();
        self.by_hash.retain(|_, all| {
            removed.extend(all.extract_if(.., |binding| which(binding)));
            !all.is_empty()
        });
        self.count -= removed.len();
        self.bytes -= removed.iter().map(|binding| binding.key.bytes()).sum::<usize>();
        removed
    }
}
