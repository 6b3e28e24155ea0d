//! Threads for the rows of a batch. They are started for it and joined at its end: a forked process cannot wait for a
//! pool of its parent.

use std::sync::{Mutex, OnceLock, PoisonError};

/// Most threads, the caller's included, that were asked for; 0 is as many as there are cores.
pub(crate) fn most(asked: usize) -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    match asked {
        0 => *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from)),
        asked => asked,
    }
}

/// Runs `work` for every item, on up to `threads` threads including the caller's; items start in order and may finish in
/// any order.
pub(crate) fn each<T: Send>(items: impl Iterator<Item = T> + Send, threads: usize, work: impl Fn(T) + Sync) {
    if threads <= 1 {
        return items.for_each(work);
    }
    let items = Mutex::new(items);
    let rest = || loop {
        let next = items.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some(item) = next else { break };
        work(item);
    };
    std::thread::scope(|scope| {
        // A thread that the system does not grant is done without: its rows are anybody's.
        (1..threads).for_each(|_| drop(std::thread::Builder::new().spawn_scoped(scope, rest)));
        rest();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once_in_any_number_of_threads() {
        for threads in [0, 1, 2, 9] {
            let mut items = vec![0; 100];
            each(items.iter_mut(), threads, |item| *item += 1);
            assert_eq!(items, [1; 100]);
        }
        assert_eq!(most(3), 3);
        assert!(most(0) >= 1);
    }
}
