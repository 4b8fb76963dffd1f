//! Parallel disk syncs: threads only wait, and a disk makes many writes durable at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Fewer jobs run on the calling thread.
const MIN_PARALLEL_JOBS: usize = 64;
/// Measured: more threads are not faster.
const MAX_THREADS: usize = 16;

/// Runs a job for each index below `count`, in no particular order, until one fails. Returns the results of all jobs
/// that ran.
pub(super) fn each<T: Send, E: Send>(
    count: usize,
    job: impl Fn(usize) -> Result<T, E> + Sync,
) -> Vec<(usize, Result<T, E>)> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let ended = Mutex::new(Vec::with_capacity(count));
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            let result = job(index);
            if result.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            ended.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    if count < MIN_PARALLEL_JOBS {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..MAX_THREADS {
                scope.spawn(work);
            }
        });
    }
    ended.into_inner().unwrap_or_else(PoisonError::into_inner)
}
