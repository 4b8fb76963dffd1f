//! Batches of contents for a store.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use sayso_review::ContentHash;

use super::Contents;
use super::signature::Signature;

/// Never block on a pipe, never acquire a controlling terminal, never follow a link, never leak to a child.
pub(super) const SAFE: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::NOFOLLOW);

/// Limits of a batch, which make a transaction worth its cost and bound the memory.
const BATCH_BYTES: usize = 8 << 20;
const BATCH_CONTENTS: usize = 4096;
/// Maximum number of reads of a file that changes meanwhile.
const ATTEMPTS: usize = 4;

/// Contents that were read and not stored yet, one after the other in one buffer.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Hashes with the end of their bytes.
    contents: Vec<(ContentHash, usize)>,
    hashes: HashSet<ContentHash>,
}

/// A content that was read. Its bytes are the end of the buffer.
pub(super) struct ReadContent {
    pub(super) hash: ContentHash,
    /// Equal before and after the read.
    pub(super) signature: Signature,
}

/// Reason why a file was not read.
pub(super) enum NotRead {
    /// The file was removed or replaced.
    Other,
    /// The file has more bytes than the limit.
    TooLarge(u64),
    /// The file changed during each read.
    KeptChanging(Signature),
    System(Errno),
}

impl Batch {
    /// Makes room for a content of this size. Stores the batch if it would exceed its limits.
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
        // Releases the memory of an exceptionally large content.
        self.bytes.shrink_to(2 * BATCH_BYTES);
        Ok(())
    }

    /// Reads a regular file by its name in an open directory. The content is stored only after [`keep`](Self::keep).
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
            // One byte more than its size, to detect a file that grew.
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

    /// Returns the start of the bytes that belong to no content.
    fn start(&self) -> usize {
        self.contents.last().map_or(0, |(_, end)| *end)
    }

    /// `true` if the batch has a content.
    pub(super) fn has(&self, hash: ContentHash) -> bool {
        self.hashes.contains(&hash)
    }

    /// Adds the content that was read last.
    pub(super) fn keep(&mut self, hash: ContentHash) {
        self.contents.push((hash, self.bytes.len()));
        self.hashes.insert(hash);
    }

    /// Drops bytes that were read and not kept.
    fn forget(&mut self) {
        self.bytes.truncate(self.start());
    }
}
