//! How the bytes of a blob are kept.
//!
//! Measured on C and Rust sources: level -3 takes 8 µs for 4 kB and 3.1 ms for 1 MB, level 3 takes 5.1 ms for 1 MB and leaves
//! 27% of it where the other leaves 38%; LZ4 is no quicker than level -3 and leaves more. A megabyte at once is too long to wait for, so large blobs are written as they are and wait.

use std::borrow::Cow;
use std::fmt;

/// The most bytes that a blob or an event's body may have.
pub const MOST_BYTES: usize = 512 << 20;

/// What is larger waits for [`crate::Journal::compact`].
const AT_ONCE: usize = 32 << 10;
/// What is smaller is not worth the trouble.
const WORTH_TRYING: usize = 1 << 10;
/// While an agent waits.
const QUICK: i32 = -3;
/// When nobody does.
const THOROUGH: i32 = 3;

/// How a blob's bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are, until somebody has time to compress them.
    Waiting,
    /// As they are, because they do not shrink.
    Raw,
    /// As one zstd frame.
    Zstd,
}

impl Form {
    pub(crate) fn code(self) -> i64 {
        match self {
            Self::Waiting => 0,
            Self::Raw => 1,
            Self::Zstd => 2,
        }
    }

    pub(crate) fn from_code(code: i64) -> Option<Self> {
        [Self::Waiting, Self::Raw, Self::Zstd].into_iter().find(|form| form.code() == code)
    }

    /// The bytes that were stored in this form, if that can be; whether they are the right ones, their hash tells.
    pub(crate) fn decode(self, stored: Vec<u8>, raw_size: usize) -> Option<Vec<u8>> {
        match self {
            Self::Waiting | Self::Raw => Some(stored),
            Self::Zstd if raw_size > MOST_BYTES => None,
            Self::Zstd => zstd::bulk::decompress(&stored, raw_size).ok(),
        }
    }
}

/// Compresses, and keeps what that needs from one blob to the next.
pub(crate) struct Press {
    compressor: zstd::bulk::Compressor<'static>,
}

impl Press {
    /// For a batch that somebody waits for.
    pub(crate) fn quick() -> std::io::Result<Self> {
        Ok(Self { compressor: zstd::bulk::Compressor::new(QUICK)? })
    }

    /// For what waited.
    pub(crate) fn thorough() -> std::io::Result<Self> {
        Ok(Self { compressor: zstd::bulk::Compressor::new(THOROUGH)? })
    }

    /// Chooses a form while somebody waits.
    pub(crate) fn at_once<'b>(&mut self, bytes: &'b [u8]) -> (Form, Cow<'b, [u8]>) {
        if bytes.len() > AT_ONCE { (Form::Waiting, Cow::Borrowed(bytes)) } else { self.press(bytes) }
    }

    /// Compresses what shrinks.
    pub(crate) fn press<'b>(&mut self, bytes: &'b [u8]) -> (Form, Cow<'b, [u8]>) {
        if bytes.len() < WORTH_TRYING {
            return (Form::Raw, Cow::Borrowed(bytes));
        }
        match self.compressor.compress(bytes) {
            // An eighth is the least that pays for decompressing it.
            Ok(pressed) if pressed.len() < bytes.len() - bytes.len() / 8 => (Form::Zstd, Cow::Owned(pressed)),
            Ok(_) | Err(_) => (Form::Raw, Cow::Borrowed(bytes)),
        }
    }
}

impl fmt::Debug for Press {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Press")
    }
}
