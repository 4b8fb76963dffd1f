//! Many waits for the disk at once: waiting is not work, and a disk makes many writes durable in one go.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Fewer than this are done one after the other.
const MANY: usize = 64;
/// Measured: more make no difference.
const AT_ONCE: usize = 16;

/// Does a job for each index below `count`, in no particular order, until one fails; says of each that was begun how it ended.
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
    if count < MANY {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(work);
            }
        });
    }
    ended.into_inner().unwrap_or_else(PoisonError::into_inner)
}
