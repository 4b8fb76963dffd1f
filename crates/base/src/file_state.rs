//! File states and their fingerprints.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::content::{Content, ContentHash};

/// The permission bits of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileMode(u32);

impl FileMode {
    /// Mode of a new file, before the umask.
    pub const PLAIN: Self = Self(0o644);
    /// Mode of a new executable file, before the umask.
    pub const EXECUTABLE: Self = Self(0o755);

    /// Keeps only the permission bits of a mode.
    pub fn new(mode: u32) -> Self {
        Self(mode & 0o7777)
    }

    pub fn bits(self) -> u32 {
        self.0
    }

    /// `true` if the owner may execute the file.
    pub fn is_executable(self) -> bool {
        self.0 & 0o100 != 0
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl fmt::Debug for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for FileMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bits = u32::from_str_radix(&text, 8);
        bits.map(Self::new).map_err(|_| serde::de::Error::custom(format!("`{text}` is not an octal file mode")))
    }
}

/// The complete state of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    Absent,
    File {
        content: Content,
        mode: FileMode,
    },
    /// A symbolic link, not its target.
    Link {
        /// Target as stored in the link.
        target: String,
    },
}

/// The state of a path with a hash in place of the content, for verdicts and records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Fingerprint {
    Absent,
    File {
        hash: ContentHash,
        size: u64,
        mode: FileMode,
    },
    Link {
        /// Target as stored in the link.
        target: String,
    },
}

impl FileState {
    /// Returns the state of a regular file with these bytes.
    pub fn file(bytes: impl Into<Vec<u8>>, mode: FileMode) -> Self {
        Self::File { content: Content::new(bytes.into()), mode }
    }

    /// Returns the bytes of a regular file.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.content().map(Content::bytes)
    }

    /// Returns the content of a regular file.
    pub fn content(&self) -> Option<&Content> {
        if let Self::File { content, .. } = self { Some(content) } else { None }
    }

    /// Returns the mode of a regular file.
    pub fn mode(&self) -> Option<FileMode> {
        if let Self::File { mode, .. } = self { Some(*mode) } else { None }
    }

    /// Returns the state with its content replaced by a hash.
    pub fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Absent => Fingerprint::Absent,
            Self::File { content, mode } => {
                Fingerprint::File { hash: content.hash(), size: content.bytes().len() as u64, mode: *mode }
            }
            Self::Link { target } => Fingerprint::Link { target: target.clone() },
        }
    }
}

impl Fingerprint {
    /// Returns the content hash of a regular file.
    pub fn hash(&self) -> Option<ContentHash> {
        if let Self::File { hash, .. } = self { Some(*hash) } else { None }
    }
}
