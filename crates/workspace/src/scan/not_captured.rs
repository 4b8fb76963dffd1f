//! What a scan had to leave behind.

use std::fmt;

use rustix::fs::FileType;

/// Something that is there and that could not be brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCaptured {
    /// Where, as it can be shown: a name that is not UTF-8 has marks in place of what cannot be read.
    pub path: String,
    /// Why.
    pub reason: Reason,
}

/// Why something was not captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It has more bytes than a file may.
    TooLarge {
        /// How many.
        size: u64,
        /// How many it may have.
        limit: u64,
    },
    /// The scan would have kept more new bytes than it may.
    TooMuch {
        /// How many it may.
        limit: u64,
    },
    /// The scan ended here: neither this nor anything after it was looked at.
    TooMany {
        /// How many files it may look at.
        limit: usize,
    },
    /// A directory within more directories than any source tree has.
    TooDeep,
    /// Its name is not UTF-8.
    Name,
    /// The target of a symbolic link is not UTF-8.
    Target,
    /// A pipe, which has no content of its own.
    Pipe,
    /// A socket, which has none either.
    Socket,
    /// A device, which is never read.
    Device,
    /// It changed whenever it was read.
    KeptChanging,
    /// The system refuses.
    Unreadable {
        /// What it says.
        reason: String,
    },
}

impl Reason {
    /// For what is neither a file nor a link nor a directory.
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
                write!(f, "it has {size} bytes, more than the {limit} that are kept of a file")
            }
            Self::TooMuch { limit } => write!(f, "no more than {limit} new bytes are kept at a time"),
            Self::TooMany { limit } => {
                write!(f, "no more than {limit} files are looked at: neither this nor what comes after it was")
            }
            Self::TooDeep => f.write_str("it is in more directories than are looked into"),
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
