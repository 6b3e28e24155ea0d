//! Handles: numbers in the form of pointers, looked up in a table, so that NULL, a freed handle, a handle of another kind,
//! one that another call uses and any other pointer are errors and never a read of foreign memory.
//!
//! A handle is the index of a slot and the slot's generation, which grows with each value that leaves it. A slot's state is
//! one atomic word: generation, kind, and how many calls use the value. Slots are never given back, so looking one up is
//! always a read of memory that exists; it takes no lock. Handles fit into 52 bits, which JavaScript's numbers hold.
#![allow(unsafe_code)] // a table whose slots are shared by their states

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::status::{failure, Failure, Outcome};
use crate::LogitreeStatus;

/// Bits of a slot's index, and of its generation.
const INDEX_BITS: u32 = if usize::BITS >= 64 { 24 } else { 20 };
const GENERATION_BITS: u32 = if usize::BITS >= 64 { 28 } else { 12 };

/// Slots of the first chunk; each further one has twice as many.
const FIRST_CHUNK: usize = 256;
const CHUNKS: usize = 17;

/// How many calls use a value is in the lowest bits of a state; all ones: one call that may change it.
const EXCLUSIVE: u64 = (1 << 24) - 1;
const KIND_SHIFT: u32 = 24;
const GENERATION_SHIFT: u32 = 32;

/// A kind of handle: an opaque type of the header.
pub trait Handle {
    /// What the handle leads to.
    type Value: Send + Sync + 'static;
    /// Its number; 0 is no kind.
    const KIND: u8;
    /// What errors call it.
    const NAME: &'static str;
}

/// Declares the opaque type of a handle.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $value:ty, $kind:literal, $called:literal) => {
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            opaque: [u8; 0],
        }

        impl $crate::handles::Handle for $name {
            type Value = $value;
            const KIND: u8 = $kind;
            const NAME: &'static str = $called;
        }
    };
}
pub(crate) use handle;

/// The kinds' names by number, for errors.
const NAMES: [&str; 8] = ["", "vocabulary", "constraint", "matcher", "chain", "decoder", "walk", "record"];

#[derive(Default)]
struct Slot {
    state: AtomicU64,
    /// A `Box` of the kind's value.
    value: UnsafeCell<usize>,
    /// What drops such a box.
    drop: UnsafeCell<Option<fn(usize)>>,
}

struct Free {
    /// Slots that were used before, oldest first.
    slots: std::collections::VecDeque<usize>,
    /// Slots that were never used begin here.
    fresh: usize,
    /// Values in the table.
    live: usize,
}

static TABLE: [AtomicPtr<Slot>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];
static FREE: Mutex<Free> = Mutex::new(Free { slots: std::collections::VecDeque::new(), fresh: 0, live: 0 });

/// Chunk and position of a slot.
fn place(index: usize) -> (usize, usize) {
    let chunk = (index / FIRST_CHUNK + 1).ilog2() as usize;
    (chunk, index - FIRST_CHUNK * ((1 << chunk) - 1))
}

/// The slot with this index, if there is one.
fn slot(index: usize) -> Option<&'static Slot> {
    let (chunk, at) = place(index);
    let first = TABLE.get(chunk)?.load(Ordering::Acquire);
    if first.is_null() {
        return None;
    }
    // SAFETY: a chunk that is published has `FIRST_CHUNK << chunk` slots, is never freed, and `at` is below that.
    Some(unsafe { &*first.add(at) })
}

fn generation_of(state: u64) -> u64 {
    state >> GENERATION_SHIFT
}

fn kind_of(state: u64) -> u8 {
    (state >> KIND_SHIFT) as u8
}

fn wrong(name: &str, why: &str) -> Failure {
    failure(LogitreeStatus::ErrorHandle, format!("the {name} {why}"))
}

/// The slot and the state without users of a handle of any kind that is alive; errors call it `name`.
fn alive(handle: *const c_void, name: &str) -> Outcome<(&'static Slot, u64)> {
    let number = handle.addr();
    if number == 0 {
        return Err(wrong(name, "is NULL"));
    }
    let index = number & ((1 << INDEX_BITS) - 1);
    let generation = (number >> INDEX_BITS) as u64;
    let Some(slot) = index.checked_sub(1).and_then(slot) else { return Err(wrong(name, "is no handle")) };
    let state = slot.state.load(Ordering::Acquire);
    if generation_of(state) != generation || kind_of(state) == 0 {
        return Err(wrong(name, "was freed, or is no handle"));
    }
    Ok((slot, state & !EXCLUSIVE))
}

/// The same of a handle of this kind.
fn find<H: Handle>(handle: *const H) -> Outcome<(&'static Slot, u64)> {
    let (slot, state) = alive(handle.cast(), H::NAME)?;
    if kind_of(state) != H::KIND {
        return Err(other(H::NAME, state));
    }
    Ok((slot, state))
}

/// The error for a handle of another kind.
fn other(name: &str, state: u64) -> Failure {
    let kind = NAMES.get(usize::from(kind_of(state))).unwrap_or(&"handle");
    wrong(name, &format!("is a handle of a {kind}"))
}

/// The kind of a handle.
pub fn kind(handle: *const c_void) -> Outcome<u8> {
    Ok(kind_of(alive(handle, "handle")?.1))
}

fn busy(name: &str) -> Failure {
    let mut made = failure(LogitreeStatus::ErrorBusy, format!("the {name} is in use by another call"));
    made.error.help = "use a handle in one thread at a time, and once in a call".into();
    made
}

/// A value of any kind that only this call uses.
pub struct Taken {
    slot: &'static Slot,
    idle: u64,
}

/// A value that only this call uses.
pub struct Exclusive<H: Handle> {
    taken: Taken,
    kind: PhantomData<*mut H::Value>,
}

/// A value that no call changes while this one reads it.
pub struct Shared<H: Handle> {
    slot: &'static Slot,
    kind: PhantomData<*const H::Value>,
}

impl Taken {
    fn lock(slot: &'static Slot, idle: u64) -> Option<Taken> {
        let locked =
            slot.state.compare_exchange(idle, idle | EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // Made only where it holds the lock: dropping it unlocks.
        locked.then(|| Taken { slot, idle })
    }

    /// The value, if it is of this kind.
    pub fn of<H: Handle>(self) -> Result<Exclusive<H>, Taken> {
        if kind_of(self.idle) == H::KIND {
            Ok(Exclusive { taken: self, kind: PhantomData })
        } else {
            Err(self)
        }
    }

    /// The error where only other kinds, called `name`, are taken.
    pub fn is_no(self, name: &str) -> Failure {
        other(name, self.idle)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.slot.state.store(self.idle, Ordering::Release);
    }
}

/// The value of a handle of any kind, for this call alone.
pub fn take(handle: *const c_void) -> Outcome<Taken> {
    let (slot, idle) = alive(handle, "handle")?;
    Taken::lock(slot, idle).ok_or_else(|| alive(handle, "handle").err().unwrap_or_else(|| busy("handle")))
}

/// The value of a handle, for this call alone.
pub fn exclusive<H: Handle>(handle: *const H) -> Outcome<Exclusive<H>> {
    let (slot, idle) = find(handle)?;
    match Taken::lock(slot, idle) {
        Some(taken) => Ok(Exclusive { taken, kind: PhantomData }),
        None => Err(find(handle).err().unwrap_or_else(|| busy(H::NAME))),
    }
}

/// The value of a handle, to be read.
pub fn shared<H: Handle>(handle: *const H) -> Outcome<Shared<H>> {
    loop {
        let (slot, idle) = find(handle)?;
        let state = slot.state.load(Ordering::Relaxed);
        let users = state & EXCLUSIVE;
        if state & !EXCLUSIVE != idle {
            continue;
        }
        if users >= EXCLUSIVE - 1 {
            return Err(busy(H::NAME));
        }
        if slot.state.compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return Ok(Shared { slot, kind: PhantomData });
        }
    }
}

impl<H: Handle> Deref for Exclusive<H> {
    type Target = H::Value;

    fn deref(&self) -> &H::Value {
        // SAFETY: the state says that the slot holds a `Box<H::Value>` and that this call alone uses it.
        unsafe { &*(*self.taken.slot.value.get() as *const H::Value) }
    }
}

impl<H: Handle> DerefMut for Exclusive<H> {
    fn deref_mut(&mut self) -> &mut H::Value {
        // SAFETY: as for `deref`.
        unsafe { &mut *(*self.taken.slot.value.get() as *mut H::Value) }
    }
}

impl<H: Handle> Deref for Shared<H> {
    type Target = H::Value;

    fn deref(&self) -> &H::Value {
        // SAFETY: the state says that the slot holds a `Box<H::Value>` and that no call changes or frees it.
        unsafe { &*(*self.slot.value.get() as *const H::Value) }
    }
}

impl<H: Handle> Drop for Shared<H> {
    fn drop(&mut self) {
        self.slot.state.fetch_sub(1, Ordering::Release);
    }
}

/// A new handle of `value`.
///
/// # Errors
/// [`LogitreeStatus::ErrorLimit`] if there are 2^24 handles.
pub fn insert<H: Handle>(value: H::Value) -> Outcome<*mut H> {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    // A slot rests until as many others were freed after it, so that its generations last.
    let index = match free.slots.pop_front() {
        Some(index) => index,
        None if free.fresh + 1 < 1 << INDEX_BITS => {
            let (chunk, at) = place(free.fresh);
            if at == 0 {
                let slots: Box<[Slot]> = (0..FIRST_CHUNK << chunk).map(|_| Slot::default()).collect();
                TABLE[chunk].store(Box::leak(slots).as_mut_ptr(), Ordering::Release);
            }
            free.fresh += 1;
            free.fresh - 1
        }
        None => return Err(failure(LogitreeStatus::ErrorLimit, "there are too many handles")),
    };
    let Some(slot) = slot(index) else {
        return Err(failure(LogitreeStatus::ErrorInternal, "a slot is missing"));
    };
    let generation = generation_of(slot.state.load(Ordering::Relaxed));
    // SAFETY: what `remove` hands over is the slot's box of this type from `Box::into_raw`.
    let drop_value: fn(usize) = |value| drop(unsafe { Box::from_raw(value as *mut H::Value) });
    // SAFETY: the slot is free: no handle of it is valid, and the lock is held.
    unsafe {
        *slot.value.get() = Box::into_raw(Box::new(value)) as usize;
        *slot.drop.get() = Some(drop_value);
    }
    slot.state.store(generation << GENERATION_SHIFT | u64::from(H::KIND) << KIND_SHIFT, Ordering::Release);
    free.live += 1;
    Ok(ptr::without_provenance_mut(((generation as usize) << INDEX_BITS) | (index + 1)))
}

/// Frees a handle of any kind and its value; NULL is no error.
///
/// # Errors
/// Those of [`take`]; nothing has changed then.
pub fn remove(handle: *mut c_void) -> Outcome {
    if handle.is_null() {
        return Ok(());
    }
    let taken = take(handle)?;
    let (slot, idle) = (taken.slot, taken.idle);
    std::mem::forget(taken);
    // SAFETY: this call alone uses the slot, which `insert` filled.
    let (value, drop_value) = unsafe { (*slot.value.get(), *slot.drop.get()) };
    let next = (generation_of(idle) + 1) & ((1 << GENERATION_BITS) - 1);
    slot.state.store(next << GENERATION_SHIFT, Ordering::Release);
    let index = (handle.addr() & ((1 << INDEX_BITS) - 1)) - 1;
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    free.slots.push_back(index);
    free.live -= 1;
    drop(free);
    if let Some(drop_value) = drop_value {
        drop_value(value);
    }
    Ok(())
}

/// Number of handles that are alive.
pub fn live() -> usize {
    FREE.lock().unwrap_or_else(PoisonError::into_inner).live
}

#[cfg(test)]
mod tests {
    use super::*;

    handle!(Left, String, 1, "vocabulary");
    handle!(Right, u64, 2, "constraint");

    fn status<T>(outcome: Outcome<T>) -> Option<LogitreeStatus> {
        outcome.err().map(|failed| failed.status)
    }

    #[test]
    fn slots_are_numbered_without_gaps() {
        let mut expected = (0, 0);
        for index in 0..100_000 {
            assert_eq!(place(index), expected);
            expected.1 += 1;
            if expected.1 == FIRST_CHUNK << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(place((1 << INDEX_BITS) - 1).0 < CHUNKS);
    }

    #[test]
    fn what_is_no_live_handle_of_the_kind_is_an_error() {
        let left = insert::<Left>("a".into()).unwrap();
        let right = insert::<Right>(7).unwrap();
        assert_eq!((shared(left).unwrap().as_str(), *exclusive(right).unwrap()), ("a", 7));
        for strange in [
            ptr::null::<Left>(),
            right.cast(),
            ptr::without_provenance(usize::MAX),
            ptr::without_provenance(left.addr() + (1 << INDEX_BITS)),
            ptr::from_ref(&left).cast(),
            ptr::without_provenance(0xff_ffff),
        ] {
            assert_eq!(status(shared(strange)), Some(LogitreeStatus::ErrorHandle), "{strange:?}");
            assert_eq!(status(exclusive(strange)), Some(LogitreeStatus::ErrorHandle), "{strange:?}");
        }
        remove(left.cast()).unwrap();
        assert_eq!(status(remove(left.cast())), Some(LogitreeStatus::ErrorHandle));
        let others: Vec<*mut Left> = (0..600).map(|_| insert("b".into()).unwrap()).collect();
        assert_eq!(status(shared(left)), Some(LogitreeStatus::ErrorHandle));
        others.into_iter().chain([ptr::null_mut()]).for_each(|one| remove(one.cast()).unwrap());
        remove(right.cast()).unwrap();
    }

    #[test]
    fn a_value_in_use_is_neither_changed_nor_freed() {
        let one = insert::<Right>(1).unwrap();
        let reading = (shared(one).unwrap(), shared(one).unwrap());
        assert_eq!(status(exclusive(one)), Some(LogitreeStatus::ErrorBusy));
        assert_eq!(status(remove(one.cast())), Some(LogitreeStatus::ErrorBusy));
        drop(reading);
        let mut writing = exclusive(one).unwrap();
        *writing += 1;
        assert_eq!(status(shared(one)), Some(LogitreeStatus::ErrorBusy));
        drop(writing);
        assert_eq!(*shared(one).unwrap(), 2);
        remove(one.cast()).unwrap();
    }

    #[test]
    fn threads_never_share_what_one_changes() {
        let one = insert::<Right>(0).unwrap().addr();
        let add = || {
            let mut done = 0;
            while done < 10_000 {
                if let Ok(mut value) = exclusive(ptr::without_provenance::<Right>(one)) {
                    *value += 1;
                    done += 1;
                }
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(add))));
        assert_eq!(*shared(ptr::without_provenance::<Right>(one)).unwrap(), 40_000);
        remove(ptr::without_provenance_mut(one)).unwrap();
    }
}
