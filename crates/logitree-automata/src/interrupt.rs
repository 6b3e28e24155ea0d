//! Ends long calls early: a deadline, a flag that another thread may set, and a check that the host program installs.
//!
//! An [`Interrupt`] applies to the calls that a thread makes between [`enter`] and [`leave`]. The work asks
//! [`check`] each time it has consumed a slice of its fuel, so a call ends a few milliseconds after it should, and
//! leaves no half-made table behind.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
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

thread_local! {
    static CURRENT: RefCell<Vec<Arc<Interrupt>>> = const { RefCell::new(Vec::new()) };
}

/// What the host program asks, such as whether the user pressed Ctrl-C.
pub type HostCheck = fn() -> Result<()>;

static HOST: OnceLock<HostCheck> = OnceLock::new();

/// Installs the host's check; the first one stays. It runs in the thread whose call it may end.
pub fn install(check: HostCheck) {
    let _first = HOST.set(check);
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

/// # Errors
/// The error of the first interrupt of this thread that has come, or of the host's check.
pub fn check() -> Result<()> {
    CURRENT.with_borrow(|current| current.iter().try_for_each(|interrupt| interrupt.check()))?;
    HOST.get().map_or(Ok(()), |check| check())
}

#[cfg(test)]
mod tests {
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
}
