//! Where something is that an act touches.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ws_path::WsPath;

/// Where something is, seen from the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "place", content = "path", rename_all = "snake_case")]
pub enum Place {
    /// In the workspace.
    Inside(WsPath),
    /// Elsewhere, as it is written.
    Outside(String),
    /// Not known before it happens, as it is written.
    Unknown(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inside(path) => path.fmt(f),
            Self::Outside(text) | Self::Unknown(text) => f.write_str(text),
        }
    }
}
