//! Room on the stack for descents whose depth is limited: a nested pattern or schema takes up to some 700 KiB in an optimised
//! build, and a thread that the host program made may have less.

/// What a descent may take. Without optimisation a frame is many times as large.
const ROOM: usize = if cfg!(debug_assertions) { 16 << 20 } else { 1 << 20 };

/// Runs `f`, on a stack of its own where the thread's has too little room. That stack has room for a descent inside of it.
pub fn with_room<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ROOM, 2 * ROOM, f)
}

/// What a descent takes between two calls of [`with_step_room`], at most.
const STEP_ROOM: usize = 128 << 10;

/// [`with_room`] inside a descent, for each step of it: however large its frames are, they find room.
pub fn with_step_room<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STEP_ROOM, 2 << 20, f)
}

/// What calls on automata may take: a third of it in the worst of the texts that the tests hold, optimised.
const CALL_ROOM: usize = 1 << 20;

/// [`with_room`] for calls that are many. They need the same room in all builds, so that the threads of tests have it.
pub fn with_call_room<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(CALL_ROOM, 2 * ROOM, f)
}
