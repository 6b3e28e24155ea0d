//! Ends long calls early: a deadline, a flag that another thread may set, and a check that the host program installs. What
//! calls share is locked here, because the host's check may wait for a lock of its own.
//!
//! An [`Interrupt`] applies to the calls that a thread makes between [`enter`] and [`leave`]. The work asks
//! [`check`] each time it has consumed a slice of its fuel, so a call ends a few milliseconds after it should, and
//! leaves no half-made table behind.
//!
//! An [`Allowance`] limits a call of several parts, each with limits of its own, to a sum of steps. It is heard where
//! interrupts are.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};

/// A deadline and a flag.
#[derive(Debug)]
pub struct Interrupt {
    deadline: Option<Instant>,
    cancelled: AtomicBool,
}

impl Interrupt {
    /// Ends calls once `timeout` has passed from now on; without one, only when it is cancelled.
    pub fn new(timeout: Option<Duration>) -> Interrupt {
        // A deadline past the clock's range never comes.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Interrupt { deadline, cancelled: AtomicBool::new(false) }
    }

    /// Ends the calls that run, in any thread, and those to come.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether the deadline has passed.
    pub fn is_expired(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The time until the deadline, zero if it has passed; `None` without one.
    pub fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// # Errors
    /// [`ErrorKind::Limit`] if it was cancelled or the deadline has passed.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::new(ErrorKind::Limit, "the call was cancelled"));
        }
        if self.is_expired() {
            return Err(Error::new(ErrorKind::Limit, "the deadline has passed"));
        }
        Ok(())
    }
}

/// How often a lock is tried before a thread waits for it in the host's way: most are held for less than that takes.
const TRIES: usize = 64;

/// Steps of an allowance between two checks of the interrupts: some ten milliseconds.
const SLICE: u64 = 1 << 17;

/// What is left of an allowance.
#[derive(Debug, Clone, Copy)]
struct Left {
    steps: u64,
    /// The steps since the interrupts were checked.
    unchecked: u64,
}

thread_local! {
    static CURRENT: RefCell<Vec<Arc<Interrupt>>> = const { RefCell::new(Vec::new()) };
    static LEFT: Cell<Option<Left>> = const { Cell::new(None) };
}

/// The steps that this thread's calls may take together until it is dropped, in steps of fuel: about a tenth of a
/// microsecond each. What takes fuel takes no more than is left, and consumes that.
#[derive(Debug)]
pub struct Allowance {
    outer: Option<Left>,
    given: u64,
}

impl Allowance {
    /// Gives `steps` to this thread's calls, or what is left of the allowance that they have already.
    #[must_use]
    pub fn new(steps: u64) -> Allowance {
        let outer = LEFT.get();
        let given = outer.map_or(steps, |outer| outer.steps.min(steps));
        // A call under a deadline checks it before it begins.
        LEFT.set(Some(Left { steps: given, unchecked: if is_watched() { SLICE } else { 0 } }));
        Allowance { outer, given }
    }

    /// The steps that were consumed.
    pub fn consumed(&self) -> u64 {
        self.given - left().unwrap_or(0)
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        let consumed = self.consumed();
        LEFT.set(self.outer);
        consume(consumed);
    }
}

/// The steps that are left of this thread's allowance; `None` where there is no allowance.
#[inline]
pub fn left() -> Option<u64> {
    LEFT.get().map(|left| left.steps)
}

/// Takes steps from this thread's allowance: all that are left, where they are fewer.
#[inline]
pub fn consume(steps: u64) {
    if let Some(Left { steps: left, unchecked }) = LEFT.get() {
        let left = left.saturating_sub(steps);
        LEFT.set(Some(Left { steps: left, unchecked: unchecked.saturating_add(steps) }));
    }
}

/// As [`consume`], with the checks that are due.
///
/// # Errors
/// As [`check`].
#[inline]
pub fn spend(steps: u64) -> Result<()> {
    consume(steps);
    match LEFT.get() {
        Some(left) if left.steps == 0 || left.unchecked >= SLICE => {
            LEFT.set(Some(Left { unchecked: 0, ..left }));
            check()
        }
        _ => Ok(()),
    }
}

/// What the host program asks, such as whether the user pressed Ctrl-C.
pub type HostCheck = fn() -> Result<()>;

/// Runs work that waits for another thread, without the lock of the host that this thread may hold.
pub type HostWait = fn(&mut dyn FnMut());

static HOST: OnceLock<(HostCheck, HostWait)> = OnceLock::new();

/// Installs the host's functions; the first ones stay. The check runs in the thread whose call it may end.
pub fn install(check: HostCheck, wait: HostWait) {
    let _first = HOST.set((check, wait));
}

/// Locks what calls share, poisoned or not: entries are written when they are whole.
///
/// The thread that has it may be in [`check`], and wait for the host's lock there. So a thread that waits here lets go of
/// that one.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    for _ in 0..TRIES {
        match mutex.try_lock() {
            Ok(locked) => return locked,
            Err(TryLockError::Poisoned(locked)) => return locked.into_inner(),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    let own = || mutex.lock().unwrap_or_else(PoisonError::into_inner);
    let mut locked = None;
    if let Some((_, wait)) = HOST.get() {
        wait(&mut || locked = Some(own()));
    }
    locked.unwrap_or_else(own)
}

/// Applies `interrupt` to this thread's calls from now on.
pub fn enter(interrupt: &Arc<Interrupt>) {
    CURRENT.with_borrow_mut(|current| current.push(Arc::clone(interrupt)));
}

/// Ends the last [`enter`] of `interrupt` in this thread. Returns whether there was one.
pub fn leave(interrupt: &Arc<Interrupt>) -> bool {
    CURRENT.with_borrow_mut(|current| {
        let at = current.iter().rposition(|other| Arc::ptr_eq(other, interrupt));
        at.map(|at| current.remove(at)).is_some()
    })
}

/// The interrupts of this thread, for a thread that works for it.
pub fn current() -> Vec<Arc<Interrupt>> {
    CURRENT.with_borrow(Vec::clone)
}

/// Runs `work` under these interrupts instead of the thread's own.
pub fn under<R>(interrupts: &[Arc<Interrupt>], work: impl FnOnce() -> R) -> R {
    /// Restores the thread's own, also if the work panics.
    struct Restore(Vec<Arc<Interrupt>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.with_borrow_mut(|current| std::mem::swap(current, &mut self.0));
        }
    }
    let own = CURRENT.with_borrow_mut(|current| std::mem::replace(current, interrupts.to_vec()));
    let _restore = Restore(own);
    work()
}

/// Whether an interrupt applies to this thread.
#[inline]
pub fn is_watched() -> bool {
    CURRENT.with_borrow(|current| !current.is_empty())
}

/// Whether an interrupt of this thread has come: it was cancelled, or its deadline has passed.
pub fn has_come() -> bool {
    CURRENT.with_borrow(|current| current.iter().any(|interrupt| interrupt.check().is_err()))
}

/// Whether this thread's call must end: an interrupt has come, or nothing is left of its allowance.
pub fn must_end() -> bool {
    left() == Some(0) || has_come()
}

/// # Errors
/// The error of the first interrupt of this thread that has come, [`ErrorKind::Limit`] if nothing is left of its allowance,
/// or the error of the host's check.
pub fn check() -> Result<()> {
    CURRENT.with_borrow(|current| current.iter().try_for_each(|interrupt| interrupt.check()))?;
    if left() == Some(0) {
        return Err(Error::new(ErrorKind::Limit, "the call takes more work than its fuel allows")
            .help("give it more fuel"));
    }
    HOST.get().map_or(Ok(()), |(check, _)| check())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::expr::Exprs;

    /// Consumes all the fuel that it gets.
    fn burn(exprs: &mut Exprs) -> Error {
        loop {
            if let Err(error) = exprs.spend(1) {
                return error;
            }
        }
    }

    #[test]
    fn deadlines_and_flags_end_work_in_their_thread_only() {
        let past = Arc::new(Interrupt::new(Some(Duration::ZERO)));
        let open = Arc::new(Interrupt::new(None));
        assert!(past.is_expired() && !open.is_expired() && open.left().is_none());
        let mut exprs = Exprs::new(100);
        let burnt = |exprs: &mut Exprs| {
            exprs.set_fuel(10_000_000);
            (burn(exprs).message, exprs.fuel())
        };
        let own = burnt(&mut exprs);
        enter(&open);
        assert_eq!(burnt(&mut exprs), own);
        enter(&past);
        assert_eq!(burnt(&mut exprs).0, "the deadline has passed");
        let there = std::thread::scope(|scope| scope.spawn(|| check().is_ok()).join().unwrap());
        assert!(there, "another thread has its own");
        let seen = current();
        let there = std::thread::scope(|scope| scope.spawn(|| under(&seen, check)).join().unwrap());
        assert!(there.is_err(), "unless it works for this one");
        assert!(leave(&past) && !leave(&past));
        open.cancel();
        assert_eq!(burnt(&mut exprs).0, "the call was cancelled");
        assert!(under(&[], check).is_ok() && check().is_err() && has_come());
        assert!(leave(&open) && !is_watched());
        assert_eq!(burnt(&mut exprs), own);
    }

    #[test]
    fn an_allowance_is_one_for_all_that_is_done_under_it() {
        assert!(spend(u64::MAX).is_ok() && left().is_none(), "without one, there is no sum");
        let outer = Allowance::new(100);
        assert!(spend(30).is_ok());
        {
            let inner = Allowance::new(50);
            assert!(spend(20).is_ok() && !must_end());
            assert_eq!((left(), inner.consumed()), (Some(30), 20));
        }
        assert_eq!((left(), outer.consumed()), (Some(50), 50));
        {
            let inner = Allowance::new(1_000);
            assert_eq!(left(), Some(50), "no more than what is left");
            assert_eq!(spend(60).unwrap_err().kind, ErrorKind::Limit);
            assert!(must_end() && !has_come() && check().is_err());
            assert_eq!(inner.consumed(), 50);
        }
        assert_eq!(left(), Some(0));
        drop(outer);
        assert!(left().is_none() && !must_end() && check().is_ok());
        // A deadline is heard at the first step, a flag within a slice.
        let flag = Arc::new(Interrupt::new(None));
        enter(&flag);
        let _allowance = Allowance::new(u64::MAX);
        assert!(spend(1).is_ok());
        flag.cancel();
        let ended = (0..=SLICE).find_map(|_| spend(1).err());
        assert_eq!(ended.unwrap().message, "the call was cancelled");
        assert!(leave(&flag));
    }

    #[test]
    fn a_flag_ends_work_that_runs() {
        let flag = Arc::new(Interrupt::new(None));
        let message = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                under(&[Arc::clone(&flag)], || {
                    let mut exprs = Exprs::new(100);
                    exprs.set_fuel(u64::MAX);
                    burn(&mut exprs).message
                })
            });
            flag.cancel();
            worker.join().unwrap()
        });
        assert_eq!(message, "the call was cancelled");
    }

    #[test]
    fn a_thread_waits_for_a_lock_in_the_hosts_way() {
        static WAITS: AtomicUsize = AtomicUsize::new(0);
        install(
            || Ok(()),
            |work| {
                WAITS.fetch_add(1, Ordering::SeqCst);
                work();
            },
        );
        let shared = Mutex::new(0);
        *lock(&shared) += 1;
        assert_eq!(WAITS.load(Ordering::SeqCst), 0, "a free lock is taken at once");
        let held = lock(&shared);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| *lock(&shared) += 1);
            while WAITS.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            drop(held);
            other.join().unwrap();
        });
        let poisoned = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _held = lock(&shared);
            panic!("with the lock");
        }));
        assert!(poisoned.is_err() && *lock(&shared) == 2);
    }
}
