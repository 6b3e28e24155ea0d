//! The memory of all grammars of one vocabulary together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use rustc_hash::FxHashMap;

use super::known::SharedEngine;
use crate::{interrupt, Error, ErrorKind, Result};

/// Past this many bytes, grammars without a matcher forget their automata.
const SOFT_BYTES: usize = 512 << 20;
/// Past this many bytes nothing more is found.
const HARD_BYTES: usize = 1 << 30;

/// A grammar's engine; `None` until a matcher needs it again.
pub(super) type Slot = Mutex<Option<Arc<SharedEngine>>>;

/// What the engines of one vocabulary hold.
pub(super) struct MemoryBudget {
    soft: usize,
    hard: usize,
    used: AtomicUsize,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    /// By address, each with the time of its last use.
    all: FxHashMap<usize, (Weak<Slot>, u64)>,
    time: u64,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        MemoryBudget::new(SOFT_BYTES, HARD_BYTES)
    }
}

impl MemoryBudget {
    pub fn new(soft: usize, hard: usize) -> MemoryBudget {
        MemoryBudget { soft, hard, used: AtomicUsize::new(0), slots: Mutex::default() }
    }

    /// A share for one engine.
    pub fn share(self: &Arc<Self>) -> MemoryShare {
        MemoryShare { budget: Arc::clone(self), bytes: AtomicUsize::new(0) }
    }

    /// Notes that a grammar is used. If there is too much, those that were not used for longest and have no matcher are
    /// emptied.
    pub fn touch(&self, slot: &Arc<Slot>) {
        let mut slots = interrupt::lock(&self.slots);
        slots.time += 1;
        let time = slots.time;
        slots.all.insert(Arc::as_ptr(slot) as usize, (Arc::downgrade(slot), time));
        if self.is_crowded() {
            self.forget_idle(&mut slots);
        }
    }

    /// Whether grammars without a matcher forget their automata.
    pub fn is_crowded(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.soft
    }

    fn forget_idle(&self, slots: &mut Slots) {
        slots.all.retain(|_, (slot, _)| slot.strong_count() > 0);
        let mut by_use: Vec<(u64, Arc<Slot>)> =
            slots.all.values().filter_map(|(slot, time)| Some((*time, slot.upgrade()?))).collect();
        by_use.sort_unstable_by_key(|slot| slot.0);
        // The last one is the one that is used now.
        by_use.pop();
        for (_, idle) in by_use {
            if !self.is_crowded() {
                break;
            }
            // A slot that is locked is being used.
            let Ok(mut engine) = idle.try_lock() else { continue };
            if engine.as_ref().is_some_and(|engine| Arc::strong_count(engine) == 1) {
                *engine = None;
            }
        }
    }

    /// A grammar is dropped.
    pub fn remove(&self, slot: &Arc<Slot>) {
        let mut slots = interrupt::lock(&self.slots);
        slots.all.remove(&(Arc::as_ptr(slot) as usize));
    }
}

/// What one engine holds; given back when it is dropped.
pub(super) struct MemoryShare {
    budget: Arc<MemoryBudget>,
    bytes: AtomicUsize,
}

impl MemoryShare {
    pub fn get(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn set(&self, bytes: usize) {
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.budget.used.fetch_sub(before, Ordering::Relaxed);
    }

    /// # Errors
    /// [`ErrorKind::Limit`] if all engines together hold too much.
    pub fn check(&self) -> Result<()> {
        if self.budget.used.load(Ordering::Relaxed) <= self.budget.hard {
            return Ok(());
        }
        let message = format!("the grammars of this vocabulary hold more than {} bytes", self.budget.hard);
        Err(Error::new(ErrorKind::Limit, message).help("drop matchers that are not needed any more"))
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_count_and_are_given_back() {
        let budget = Arc::new(MemoryBudget::new(10, 20));
        let (a, b) = (budget.share(), budget.share());
        a.set(15);
        b.set(5);
        assert!(a.check().is_ok() && a.get() == 15);
        b.set(6);
        assert_eq!(a.check().unwrap_err().kind, ErrorKind::Limit);
        drop(b);
        assert!(a.check().is_ok());
        a.set(3);
        assert_eq!(budget.used.load(Ordering::Relaxed), 3);
    }
}
