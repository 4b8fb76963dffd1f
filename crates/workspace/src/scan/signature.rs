//! What `stat` says of a file, and when that can be believed.

use rustix::fs::{FileType, Stat};
use rustix::time::{ClockId, Timespec, clock_gettime};
use sayso_review::FileMode;

/// A point in time, as file systems count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    nanoseconds: i64,
}

impl Moment {
    /// The present by the clock that the kernel stamps files with, which is behind the precise one by up to a tick.
    pub fn now() -> Self {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::RealtimeCoarse);
        Self::new(tv_sec, tv_nsec)
    }

    /// So many nanoseconds after the beginning of 1970.
    pub const fn from_nanoseconds(nanoseconds: i64) -> Self {
        Self { nanoseconds }
    }

    pub(super) fn nanoseconds(self) -> i64 {
        self.nanoseconds
    }

    /// Times beyond 1677 and 2262 are all the same to us.
    fn new(seconds: i64, nanoseconds: i64) -> Self {
        Self::from_nanoseconds(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
    }

    /// The latest moment at which a file with this time may have been written. A file system with coarse times rounds down, and
    /// round numbers are how that shows.
    fn latest(self) -> i64 {
        let coarse = COARSE.iter().find(|(round, _)| self.nanoseconds % round == 0);
        self.nanoseconds.saturating_add(coarse.map_or(0, |(_, step)| *step))
    }
}

/// Times that are a multiple of the first may stand for all times up to the second later: FAT counts in two seconds, exFAT in ten
/// milliseconds, NTFS in 100 nanoseconds.
const COARSE: [(i64, i64); 3] = [(1_000_000_000, 2_000_000_000), (1_000_000, 10_000_000), (100, 1_000)];

/// What `stat` says of a file: if it is the same, the file counts as unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    pub(super) size: u64,
    pub(super) modified: Moment,
    /// Unlike the other time, nobody can set this one.
    pub(super) changed: Moment,
    pub(super) inode: u64,
    pub(super) device: u64,
    /// With the bits that say what it is.
    pub(super) mode: u32,
}

impl Signature {
    /// How many bytes the file holds.
    pub fn size(&self) -> u64 {
        self.size
    }

    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_lossless,
        clippy::cast_possible_wrap,
        reason = "how wide they are depends on the system"
    )]
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: Moment::new(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: Moment::new(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            inode: stat.st_ino as u64,
            device: stat.st_dev as u64,
            mode: stat.st_mode as u32,
        }
    }

    pub(super) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode as _)
    }

    pub(super) fn permissions(&self) -> FileMode {
        FileMode::new(self.mode)
    }

    /// Whether it can be believed from now on: a change in this very moment would show.
    pub fn is_settled(&self) -> bool {
        !self.is_racy(Moment::now())
    }

    /// Whether a change after the scan began might leave it the same: then it says nothing the next time.
    pub(super) fn is_racy(&self, began: Moment) -> bool {
        self.modified.latest() >= began.nanoseconds || self.changed.latest() >= began.nanoseconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(modified: i64, changed: i64) -> Signature {
        let [modified, changed] = [modified, changed].map(Moment::from_nanoseconds);
        Signature { size: 0, modified, changed, inode: 1, device: 1, mode: 0o100_644 }
    }

    #[test]
    fn only_what_is_older_than_the_scan_is_believed() {
        let began = Moment::from_nanoseconds(5_000_000_000_123);
        let before = began.nanoseconds() - 2;
        assert!(!signature(before, before).is_racy(began));
        assert!(signature(began.nanoseconds(), before).is_racy(began));
        assert!(signature(before, began.nanoseconds()).is_racy(began));
        assert!(signature(before, began.nanoseconds() + 9).is_racy(began));
    }

    #[test]
    fn round_times_are_believed_later() {
        let began = Moment::from_nanoseconds(5_001_500_000_123);
        // Whole seconds: two of them have to pass.
        assert!(signature(1, 5_000_000_000_000).is_racy(began));
        assert!(!signature(1, 4_999_000_000_000).is_racy(began));
        // Whole milliseconds: ten.
        assert!(signature(1, 5_001_495_000_000).is_racy(began));
        assert!(!signature(1, 5_001_489_000_000).is_racy(began));
    }

    #[test]
    fn the_clock_is_that_of_our_time() {
        assert!(Moment::now() > Moment::from_nanoseconds(1_700_000_000_000_000_000));
    }
}
