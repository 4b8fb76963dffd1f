//! Files that a scan could not capture.

use std::fmt;

use rustix::fs::FileType;

/// A file that was not captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCaptured {
    /// Path for display. Bytes that are not UTF-8 are replaced.
    pub path: String,
    pub reason: Reason,
}

/// Reason why a file was not captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The file has more bytes than the limit.
    TooLarge {
        size: u64,
        limit: u64,
    },
    /// The scan would store more new bytes than the limit.
    TooMuch {
        limit: u64,
    },
    /// The scan ended at this path because of the limit on files.
    TooMany {
        limit: usize,
    },
    /// The directory is nested too deeply.
    TooDeep,
    Name,
    Target,
    Pipe,
    Socket,
    Device,
    /// The file changed during each read.
    KeptChanging,
    Unreadable {
        reason: String,
    },
}

impl Reason {
    /// Returns the reason for a special file.
    pub(super) fn special(kind: FileType) -> Self {
        match kind {
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            _ => Self::Device,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { size, limit } => {
                write!(f, "it has {size} bytes, more than the limit of {limit}")
            }
            Self::TooMuch { limit } => write!(f, "the scan reached its limit of {limit} new bytes"),
            Self::TooMany { limit } => {
                write!(f, "the scan ended here at its limit of {limit} files")
            }
            Self::TooDeep => f.write_str("it is nested too deeply"),
            Self::Name => f.write_str("its name is not UTF-8"),
            Self::Target => f.write_str("the target of this symbolic link is not UTF-8"),
            Self::Pipe => f.write_str("it is a pipe"),
            Self::Socket => f.write_str("it is a socket"),
            Self::Device => f.write_str("it is a device"),
            Self::KeptChanging => f.write_str("it kept changing while it was read"),
            Self::Unreadable { reason } => write!(f, "it cannot be read: {reason}"),
        }
    }
}

impl fmt::Display for NotCaptured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.path, self.reason)
    }
}
