//! The writer's lock.
//!
//! It is an advisory lock on a file of its own, which the system releases however its holder ends. The holder writes
//! its process number into the file, for error messages.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::time::Duration;

use crate::folder::{self, Folder};

/// A held lock, released on drop.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

#[derive(Debug)]
pub(crate) enum LockAttempt {
    Acquired(Lock),
    /// Another process holds the lock; its process number, if the file has one.
    HeldBy(Option<u32>),
}

const RETRY_INTERVAL: Duration = Duration::from_millis(10);

impl Lock {
    /// Acquires the lock, with retries until `wait` has passed. The pauses are added up because this crate reads no
    /// clock.
    pub(crate) fn acquire(folder: &Folder, wait: Duration) -> io::Result<LockAttempt> {
        let mut file = folder::open_private(&folder.lock())?;
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if waited >= wait => return Ok(LockAttempt::HeldBy(holder(&mut file))),
                Err(TryLockError::WouldBlock) => {
                    let pause = RETRY_INTERVAL.min(wait.saturating_sub(waited));
                    std::thread::sleep(pause);
                    waited += pause;
                }
            }
        }
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(LockAttempt::Acquired(Self { file }))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A later attempt must not name a process that is gone. After a crash the number stays until the next holder
        // overwrites it.
        let _ = self.file.set_len(0);
        // Closing the file is not enough: a child process that another thread just forked may still have a copy of the
        // handle.
        let _ = self.file.unlock();
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(20).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
