//! Compression of blobs.
//!
//! Measured on C and Rust sources: zstd level -3 takes 8 µs for 4 kB and 3.1 ms for 1 MB. Level 3 takes 5.1 ms for 1 MB
//! and leaves 27 % of it, level -3 leaves 38 %. LZ4 is no faster than level -3 and compresses less. Even 3 ms would
//! delay an agent, so larger blobs are stored uncompressed and compressed later.

use std::borrow::Cow;
use std::fmt;

/// Maximum size of a blob or an event body.
pub const MAX_BLOB_BYTES: usize = 512 << 20;

/// [`crate::Journal::compact`] compresses larger blobs later.
const MAX_INLINE_COMPRESSED_BYTES: usize = 32 << 10;
/// Compression of smaller blobs does not pay.
const MIN_COMPRESSED_BYTES: usize = 1 << 10;
/// Level for blobs that are compressed while an agent waits.
const FAST_LEVEL: i32 = -3;
/// Level of [`crate::Journal::compact`].
const THOROUGH_LEVEL: i32 = 3;

/// Stored form of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlobEncoding {
    /// Uncompressed until [`crate::Journal::compact`] runs.
    Pending,
    /// Uncompressed, because the bytes do not shrink.
    Raw,
    /// One zstd frame.
    Zstd,
}

impl BlobEncoding {
    pub(crate) fn code(self) -> i64 {
        match self {
            Self::Pending => 0,
            Self::Raw => 1,
            Self::Zstd => 2,
        }
    }

    pub(crate) fn from_code(code: i64) -> Option<Self> {
        [Self::Pending, Self::Raw, Self::Zstd].into_iter().find(|form| form.code() == code)
    }

    /// Decodes stored bytes; `None` if that is impossible. The caller compares the hash.
    pub(crate) fn decode(self, stored: Vec<u8>, raw_size: usize) -> Option<Vec<u8>> {
        match self {
            Self::Pending | Self::Raw => Some(stored),
            Self::Zstd if raw_size > MAX_BLOB_BYTES => None,
            Self::Zstd => zstd::bulk::decompress(&stored, raw_size).ok(),
        }
    }
}

/// Compressor with buffers that are reused for all blobs.
pub(crate) struct BlobCompressor {
    compressor: zstd::bulk::Compressor<'static>,
}

impl BlobCompressor {
    /// Creates a compressor for [`crate::Journal::append`].
    pub(crate) fn fast() -> std::io::Result<Self> {
        Ok(Self { compressor: zstd::bulk::Compressor::new(FAST_LEVEL)? })
    }

    /// Creates a compressor for [`crate::Journal::compact`].
    pub(crate) fn thorough() -> std::io::Result<Self> {
        Ok(Self { compressor: zstd::bulk::Compressor::new(THOROUGH_LEVEL)? })
    }

    /// Compresses a small blob at once, and leaves a large one for later.
    pub(crate) fn compress_inline<'b>(&mut self, bytes: &'b [u8]) -> (BlobEncoding, Cow<'b, [u8]>) {
        if bytes.len() > MAX_INLINE_COMPRESSED_BYTES {
            (BlobEncoding::Pending, Cow::Borrowed(bytes))
        } else {
            self.compress(bytes)
        }
    }

    /// Compresses a blob if that saves at least an eighth.
    pub(crate) fn compress<'b>(&mut self, bytes: &'b [u8]) -> (BlobEncoding, Cow<'b, [u8]>) {
        if bytes.len() < MIN_COMPRESSED_BYTES {
            return (BlobEncoding::Raw, Cow::Borrowed(bytes));
        }
        match self.compressor.compress(bytes) {
            // Smaller savings do not pay for the decompression.
            Ok(compressed) if compressed.len() < bytes.len() - bytes.len() / 8 => {
                (BlobEncoding::Zstd, Cow::Owned(compressed))
            }
            Ok(_) | Err(_) => (BlobEncoding::Raw, Cow::Borrowed(bytes)),
        }
    }
}

impl fmt::Debug for BlobCompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BlobCompressor")
    }
}
