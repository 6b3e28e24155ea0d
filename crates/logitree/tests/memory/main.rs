//! What the crate allocates: a counting allocator, which must be the only one of its process, counts the calls and the
//! live bytes of each thread.
#![allow(unsafe_code)]

mod hostile;
mod soak;
mod steady;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Calls that allocated.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Bytes of the largest call.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    /// Bytes in use.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    /// The most bytes that were in use at once.
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn grow(by: isize) {
    let live = LIVE.with(|n| n.replace(n.get() + by)) + by;
    MOST.with(|n| n.set(n.get().max(live)));
}

fn count(size: usize) {
    ALLOCATIONS.with(|n| n.set(n.get() + 1));
    LARGEST.with(|n| n.set(n.get().max(size)));
}

// SAFETY: every call is passed to the system's allocator unchanged; the count is a thread-local number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        grow(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        grow(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // Both stand for a moment, at worst.
        grow(size as isize);
        grow(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
