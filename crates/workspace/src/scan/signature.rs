//! File signatures from `stat`, and the conditions under which an equal signature means an unchanged file.

use rustix::fs::{FileType, Stat};
use rustix::time::{ClockId, Timespec, clock_gettime};
use sayso_review::FileMode;

/// Point in time of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    nanoseconds: i64,
}

impl Moment {
    /// Returns the time of the clock that the kernel uses for file times. It is up to one tick behind the precise
    /// clock.
    pub fn now() -> Self {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::RealtimeCoarse);
        Self::new(tv_sec, tv_nsec)
    }

    /// Creates a moment from nanoseconds since 1970.
    pub const fn from_nanoseconds(nanoseconds: i64) -> Self {
        Self { nanoseconds }
    }

    pub(super) fn nanoseconds(self) -> i64 {
        self.nanoseconds
    }

    /// Saturates outside the years 1677 to 2262.
    fn new(seconds: i64, nanoseconds: i64) -> Self {
        Self::from_nanoseconds(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
    }

    /// Returns the latest time at which a file with this timestamp may have been written. File systems with coarse
    /// times round down, which round numbers reveal.
    fn latest(self) -> i64 {
        let coarse = COARSE.iter().find(|(round, _)| self.nanoseconds % round == 0);
        self.nanoseconds.saturating_add(coarse.map_or(0, |(_, step)| *step))
    }
}

/// A timestamp that is a multiple of the first number of nanoseconds may stand for a time up to the second number later:
/// FAT counts in 2 s, exFAT in 10 ms, NTFS in 100 ns. The last pair also covers microseconds.
const COARSE: [(i64, i64); 3] = [(1_000_000_000, 2_000_000_000), (1_000_000, 10_000_000), (100, 1_000)];

/// Result of `stat`. A file with an equal signature counts as unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    pub(super) size: u64,
    pub(super) modified: Moment,
    /// Programs cannot set this time, unlike `modified`.
    pub(super) changed: Moment,
    pub(super) inode: u64,
    pub(super) device: u64,
    /// Includes the file type.
    pub(super) mode: u32,
}

impl Signature {
    /// Returns the file's size in bytes.
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

    /// `true` if every change of the file from now on changes the signature.
    pub fn is_settled(&self) -> bool {
        !self.is_racy(Moment::now())
    }

    /// `true` if a change after the scan began may leave the signature equal. An equal signature in the next scan then
    /// proves nothing.
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
    fn signatures_newer_than_scan_are_racy() {
        let began = Moment::from_nanoseconds(5_000_000_000_123);
        let before = began.nanoseconds() - 2;
        assert!(!signature(before, before).is_racy(began));
        assert!(signature(began.nanoseconds(), before).is_racy(began));
        assert!(signature(before, began.nanoseconds()).is_racy(began));
        assert!(signature(before, began.nanoseconds() + 9).is_racy(began));
    }

    #[test]
    fn round_times_stay_racy_longer() {
        let began = Moment::from_nanoseconds(5_001_500_000_123);
        // Whole seconds: two of them have to pass.
        assert!(signature(1, 5_000_000_000_000).is_racy(began));
        assert!(!signature(1, 4_999_000_000_000).is_racy(began));
        // Whole milliseconds: ten.
        assert!(signature(1, 5_001_495_000_000).is_racy(began));
        assert!(!signature(1, 5_001_489_000_000).is_racy(began));
    }

    #[test]
    fn clock_returns_present_time() {
        assert!(Moment::now() > Moment::from_nanoseconds(1_700_000_000_000_000_000));
    }
}
