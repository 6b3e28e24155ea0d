//! The rows of a batch in parallel: how many threads are worth starting, and the loop that shares the rows among them.
//!
//! Threads are started for a batch and joined at its end: a forked process cannot wait for a pool of its parent.

use std::sync::{Mutex, OnceLock, PoisonError};

use crate::{interrupt, Result};

/// Nanoseconds of work that make a thread worth its start, which takes some ten microseconds.
const WORTH: u64 = 100_000;

/// The nanoseconds that reading so many logits takes, roughly: 2^20 make a thread worth its start.
pub fn cost_of_logits(n: usize) -> u64 {
    (n as u64).saturating_mul(WORTH) >> 20
}

/// What `work` gives for each row, in order. It runs on as many threads as `cost`, the nanoseconds that all rows take, is
/// worth: the caller's thread alone at least, at most one for each row, and at most `asked` (0: one for each core). Rows
/// start in order and may finish in any order.
pub fn map<T: Send, R: Send>(
    rows: impl ExactSizeIterator<Item = T> + Send,
    asked: usize,
    cost: u64,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let threads = most(asked).min(rows.len()).min(usize::try_from(cost / WORTH).unwrap_or(usize::MAX));
    if threads <= 1 {
        return rows.map(work).collect();
    }
    let mut results: Vec<Option<R>> = Vec::new();
    results.resize_with(rows.len(), || None);
    let rows = Mutex::new(rows.zip(results.iter_mut()));
    let rest = || loop {
        let next = rows.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some((row, result)) = next else { break };
        *result = Some(work(row));
    };
    // The threads work for this one: its deadlines are theirs.
    let interrupts = interrupt::current();
    std::thread::scope(|scope| {
        // Where the system does not start a thread, the others take its rows.
        let worker = || interrupt::under(&interrupts, rest);
        (1..threads).for_each(|_| drop(std::thread::Builder::new().spawn_scoped(scope, worker)));
        rest();
    });
    results.into_iter().flatten().collect()
}

/// All rows' values, or the first row's error with the row in its place (`row 3`).
///
/// # Errors
/// That of the row.
pub fn all<R>(rows: impl IntoIterator<Item = Result<R>>) -> Result<Vec<R>> {
    let named = |(at, row): (usize, Result<R>)| row.map_err(|error| error.within(&format!("row {at}")));
    rows.into_iter().enumerate().map(named).collect()
}

/// The most threads, the caller's included, where `asked` were asked for; 0 is as many as there are cores.
fn most(asked: usize) -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    match asked {
        0 => *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from)),
        asked => asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::thread::ThreadId;

    #[test]
    fn every_row_is_worked_on_once_and_in_its_place_in_any_number_of_threads() {
        for (asked, cost) in [(0, u64::MAX), (1, u64::MAX), (2, 0), (2, u64::MAX), (9, u64::MAX)] {
            assert_eq!(map(0..100, asked, cost, |row| 2 * row), Vec::from_iter((0..200).step_by(2)));
        }
    }

    #[test]
    fn little_work_stays_on_the_callers_thread() {
        let threads = |rows: usize, cost: u64| {
            HashSet::<ThreadId>::from_iter(map(0..rows, 2, cost, |_| std::thread::current().id()))
        };
        let caller = HashSet::from([std::thread::current().id()]);
        assert_eq!(threads(8, cost_of_logits((2 << 20) - 1)), caller);
        assert_eq!(threads(1, u64::MAX), caller);
        assert_eq!(cost_of_logits(2 << 20), 2 * WORTH);
        assert_eq!(cost_of_logits(usize::MAX), u64::MAX >> 20);
    }
}
