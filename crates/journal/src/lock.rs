//! One writer at a time.
//!
//! An advisory lock on a file of its own, which the system releases however its holder ends. The holder's process number is
//! written into it for whoever finds it taken.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::time::Duration;

use crate::folder::{self, Folder};

/// The lock, held.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

/// What came of asking for it.
#[derive(Debug)]
pub(crate) enum Taken {
    /// It is ours.
    Ours(Lock),
    /// It is this process's.
    Theirs(Option<u32>),
}

const INTERVAL: Duration = Duration::from_millis(10);

impl Lock {
    /// Takes the lock, asking again until `wait` is over. The waits are added up, for no clock is asked.
    pub(crate) fn take(folder: &Folder, wait: Duration) -> io::Result<Taken> {
        let mut file = folder::open_private(&folder.lock())?;
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if waited >= wait => return Ok(Taken::Theirs(holder(&mut file))),
                Err(TryLockError::WouldBlock) => {
                    let pause = INTERVAL.min(wait.saturating_sub(waited));
                    std::thread::sleep(pause);
                    waited += pause;
                }
            }
        }
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Taken::Ours(Self { file }))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // So that nobody is named who is gone. A crash leaves the number, and the next holder overwrites it.
        let _ = self.file.set_len(0);
        // Closing is not enough: a child that another thread is just starting holds a copy of the handle until it is itself.
        let _ = self.file.unlock();
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(20).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
