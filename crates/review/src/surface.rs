//! Surfaces: programs in which a person reviews and decides.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A program in which a person reviews and decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surface {
    pub kind: SurfaceKind,
    /// Name for a person, such as `laptop`. Empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// The kind of a surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SurfaceKind {
    /// A full-screen terminal program.
    Terminal,
    Browser,
    Editor,
    /// A command such as `sayso review`.
    CommandLine,
    /// A kind that is not named, or that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Surface {
    /// Longest name in bytes. The engine shortens a longer one.
    pub const MAX_NAME_BYTES: usize = 100;

    /// Creates a surface. Shortens a name that is too long.
    pub fn new(kind: SurfaceKind, name: &str) -> Self {
        Self { kind, name: name[..name.floor_char_boundary(Self::MAX_NAME_BYTES)].to_owned() }
    }
}

impl fmt::Display for SurfaceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "surface",
            Self::Terminal => "terminal",
            Self::Browser => "browser",
            Self::Editor => "editor",
            Self::CommandLine => "command line",
        })
    }
}
