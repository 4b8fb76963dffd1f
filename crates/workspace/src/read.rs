//! Bounded reads of files.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use rustix::fs::FileType;
use sayso_review::{FileMode, WsPath};
use thiserror::Error;

use crate::confine::{OpenError, Opened};

/// Maximum number of bytes of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimit(pub u64);

/// Reason why a file could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("`{0}` is a directory")]
    Directory(WsPath),
    /// The path is a device, a pipe or a socket.
    #[error("`{0}` is not a regular file")]
    Special(WsPath),
    #[error("`{path}` is larger than {limit} bytes")]
    TooLarge { path: WsPath, limit: u64 },
    /// Any other error of the system.
    #[error("`{path}` cannot be read: {error}")]
    System { path: WsPath, error: std::io::Error },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPart {
    pub bytes: Vec<u8>,
    /// Size of the whole file, in bytes.
    pub size: u64,
    pub mode: FileMode,
}

impl Opened {
    /// Reads a part of a regular file. Returns fewer bytes than the limit only at its end.
    pub fn read_part(self, offset: u64, limit: ReadLimit) -> Result<ReadPart, ReadError> {
        let path = self.resolved;
        let system = |error: std::io::Error| ReadError::System { path: path.clone(), error };
        let stat = rustix::fs::fstat(&self.handle).map_err(|errno| system(errno.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(ReadError::Directory(path)),
            _ => return Err(ReadError::Special(path)),
        }
        let mut file = File::from(self.handle);
        file.seek(SeekFrom::Start(offset)).map_err(system)?;
        let mut bytes = Vec::new();
        file.take(limit.0).read_to_end(&mut bytes).map_err(system)?;
        Ok(ReadPart { bytes, size: u64::try_from(stat.st_size).unwrap_or(0), mode: FileMode::new(stat.st_mode) })
    }

    /// Reads a whole regular file. Fails if it is larger than the limit.
    pub fn read(self, limit: ReadLimit) -> Result<Vec<u8>, ReadError> {
        let path = self.resolved;
        let system = |error: std::io::Error| ReadError::System { path: path.clone(), error };
        let stat = rustix::fs::fstat(&self.handle).map_err(|errno| system(errno.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(ReadError::Directory(path)),
            _ => return Err(ReadError::Special(path)),
        }
        let too_large = || ReadError::TooLarge { path: path.clone(), limit: limit.0 };
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size > limit.0 {
            return Err(too_large());
        }
        // Reading one byte more than allowed detects a file that grew.
        let mut bytes = Vec::with_capacity(size as usize + 1);
        File::from(self.handle).take(limit.0.saturating_add(1)).read_to_end(&mut bytes).map_err(system)?;
        if bytes.len() as u64 > limit.0 {
            return Err(too_large());
        }
        Ok(bytes)
    }
}
