//! What is at a path, and its fingerprint.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::content::{Content, ContentHash};

/// The permission bits of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileMode(u32);

impl FileMode {
    /// What a new file gets before the user's mask.
    pub const PLAIN: Self = Self(0o644);
    /// What a new program gets before the user's mask.
    pub const EXECUTABLE: Self = Self(0o755);

    /// Keeps the permission bits of a mode.
    pub fn new(mode: u32) -> Self {
        Self(mode & 0o7777)
    }

    /// The bits.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Whether its owner may run it.
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

/// What is at a path, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Its bytes.
        content: Content,
        /// Its permissions.
        mode: FileMode,
    },
    /// A symbolic link itself, not what it leads to.
    Link {
        /// Where it leads, as written in it.
        target: String,
    },
}

/// What is at a path, with the hash in place of the bytes. This is what verdicts and records hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Fingerprint {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// The hash of its bytes.
        hash: ContentHash,
        /// How many bytes.
        size: u64,
        /// Its permissions.
        mode: FileMode,
    },
    /// A symbolic link itself.
    Link {
        /// Where it leads, as written in it.
        target: String,
    },
}

impl FileState {
    /// A regular file with these bytes.
    pub fn file(bytes: impl Into<Vec<u8>>, mode: FileMode) -> Self {
        Self::File { content: Content::new(bytes.into()), mode }
    }

    /// The bytes of a regular file.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.content().map(Content::bytes)
    }

    /// The content of a regular file.
    pub fn content(&self) -> Option<&Content> {
        if let Self::File { content, .. } = self { Some(content) } else { None }
    }

    /// The permissions of a regular file.
    pub fn mode(&self) -> Option<FileMode> {
        if let Self::File { mode, .. } = self { Some(*mode) } else { None }
    }

    /// Its fingerprint.
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
    /// The hash of a regular file's bytes.
    pub fn hash(&self) -> Option<ContentHash> {
        if let Self::File { hash, .. } = self { Some(*hash) } else { None }
    }
}
