//! Contents on their way out.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use sayso_review::ContentHash;

use super::Contents;
use super::signature::Signature;

/// Never hang on a pipe, never become a terminal's process, never follow a link, never leak to a child.
pub(super) const SAFE: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::NOFOLLOW);

/// When contents go out, so that a batch is worth its transaction and fits into memory.
const BATCH_BYTES: usize = 8 << 20;
const BATCH_CONTENTS: usize = 4096;
/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 4;

/// Contents that were read and not yet handed over, one after the other in one buffer.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Each with the end of its bytes.
    contents: Vec<(ContentHash, usize)>,
    hashes: HashSet<ContentHash>,
}

/// A content that was read. Its bytes are the end of the buffer.
pub(super) struct ReadContent {
    pub(super) hash: ContentHash,
    /// What the file was like before and after.
    pub(super) signature: Signature,
}

/// Why a file was not read.
pub(super) enum NotRead {
    /// It went away, or is something else now.
    Other,
    /// It is larger than it may be.
    TooLarge(u64),
    /// It is not the same before and after.
    KeptChanging(Signature),
    /// The system refuses.
    System(Errno),
}

impl Batch {
    /// Makes room for a content of this size by handing over what is there.
    pub(super) fn make_room<C: Contents>(&mut self, size: u64, store: &mut C) -> Result<(), C::Error> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if self.bytes.len().saturating_add(size) > BATCH_BYTES || self.contents.len() >= BATCH_CONTENTS {
            self.hand_over(store)?;
        }
        Ok(())
    }

    pub(super) fn hand_over<C: Contents>(&mut self, store: &mut C) -> Result<(), C::Error> {
        let mut start = 0;
        let piece = |&(hash, end): &(ContentHash, usize)| {
            let bytes = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            (hash, bytes)
        };
        let pieces: Vec<(ContentHash, &[u8])> = self.contents.iter().map(piece).collect();
        if !pieces.is_empty() {
            store.keep(&pieces)?;
        }
        self.contents.clear();
        self.hashes.clear();
        self.bytes.clear();
        // One that was larger than all others together leaves no mark.
        self.bytes.shrink_to(2 * BATCH_BYTES);
        Ok(())
    }

    /// Reads a regular file by its name in an open directory. It goes out only if it is then [kept](Self::keep).
    pub(super) fn read(&mut self, directory: BorrowedFd<'_>, name: &str, largest: u64) -> Result<ReadContent, NotRead> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            self.forget();
            let handle = match rustix::fs::openat(directory, name, SAFE, Mode::empty()) {
                Ok(handle) => handle,
                Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Err(NotRead::Other),
                Err(errno) => return Err(NotRead::System(errno)),
            };
            let stat = || rustix::fs::fstat(&handle).map(|stat| Signature::of(&stat)).map_err(NotRead::System);
            let before = stat()?;
            if before.file_type() != FileType::RegularFile {
                return Err(NotRead::Other);
            }
            if before.size > largest {
                return Err(NotRead::TooLarge(before.size));
            }
            let start = self.start();
            let size = before.size as usize;
            if self.bytes.capacity() == 0 {
                self.bytes.reserve(BATCH_BYTES);
            }
            // One byte more than it has, to see whether it has more.
            self.bytes.reserve(size + 1);
            while self.bytes.len() - start < size {
                match rustix::io::read(&handle, rustix::buffer::spare_capacity(&mut self.bytes)) {
                    Ok(0) => break,
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(errno) => return Err(NotRead::System(errno)),
                }
            }
            if stat()? == before && self.bytes.len() - start == size {
                let hash = ContentHash::of(self.bytes.get(start..).unwrap_or_default());
                return Ok(ReadContent { hash, signature: before });
            }
            last = Some(before);
        }
        Err(last.map_or(NotRead::Other, NotRead::KeptChanging))
    }

    /// Where the bytes begin that belong to no content yet.
    fn start(&self) -> usize {
        self.contents.last().map_or(0, |(_, end)| *end)
    }

    /// Whether a content is on its way.
    pub(super) fn has(&self, hash: ContentHash) -> bool {
        self.hashes.contains(&hash)
    }

    /// Takes along what was read last, which is not on its way yet.
    pub(super) fn keep(&mut self, hash: ContentHash) {
        self.contents.push((hash, self.bytes.len()));
        self.hashes.insert(hash);
    }

    /// Drops what was read and not kept.
    fn forget(&mut self) {
        self.bytes.truncate(self.start());
    }
}
