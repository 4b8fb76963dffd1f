//! Editors with unsaved text, as the engine sees them: [`Editors`] and the values that it exchanges.
//!
//! - `editor/buffers.rs`: previews that are based on unsaved text.
//! - `editor/order.rs`: approved changes as edits for an editor.
//! - `editor/settle.rs`: the end of such a change, and the way back to the file system.
//!
//! The engine asks an editor only while its lock is free: [`Gate`](crate::Gate) fetches texts before it takes the lock, and sends an
//! order after it released the lock. While an editor applies a change, the change is permitted, as when an agent's own tool makes it.

mod buffers;
mod order;
mod settle;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sayso_review::{ChangeId, ContentHash, WsPath};

pub(crate) use buffers::{BufferUpdate, KnownBuffers, PreviewBase};
pub(crate) use settle::OpenOrder;

/// Id of a registered editor.
pub type EditorId = u64;

/// The registered editors of a workspace.
pub trait Editors: Send + Sync + fmt::Debug {
    /// Returns the files with unsaved changes, by their location. Must not block.
    fn dirty_files(&self) -> BTreeSet<WsPath>;

    /// Asks the editors for the unsaved text of files. Of several editors of a file, the last registered one answers. Blocks until all
    /// answers are there, within a time limit.
    fn read_buffers(&self, files: &BTreeSet<WsPath>) -> BTreeMap<WsPath, BufferRead>;

    /// Returns the last registered editor that applies changes. Must not block.
    fn applying_editor(&self) -> Option<EditorName>;

    /// Has an editor apply a change. Blocks until its answer, within a time limit.
    fn apply(&self, order: &EditorOrder) -> EditorReport;
}

/// A workspace without editors.
#[derive(Clone, Copy, Debug)]
pub struct NoEditors;

impl Editors for NoEditors {
    fn dirty_files(&self) -> BTreeSet<WsPath> {
        BTreeSet::new()
    }

    fn read_buffers(&self, _: &BTreeSet<WsPath>) -> BTreeMap<WsPath, BufferRead> {
        BTreeMap::new()
    }

    fn applying_editor(&self) -> Option<EditorName> {
        None
    }

    fn apply(&self, _: &EditorOrder) -> EditorReport {
        EditorReport::NotApplied { reason: "there is no editor".to_owned() }
    }
}

/// A registered editor with its name for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorName {
    pub id: EditorId,
    pub name: String,
}

/// Answer of an editor about the unsaved text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferRead {
    Unsaved(Buffer),
    /// The file has no unsaved changes.
    Saved,
    /// The editor has unsaved changes, but their text is unknown.
    Unknown {
        editor: EditorName,
        /// The end of a sentence, such as `it does not answer`.
        reason: String,
    },
}

/// Unsaved text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub editor: EditorName,
    /// The editor applies changes.
    pub applies: bool,
    pub text: String,
    /// Encoding in which the editor saves the file, such as `utf8bom`. `None` is the encoding of the file.
    pub encoding: Option<String>,
    /// Line break with which the editor saves the file. `None` is as in the text, or in the file.
    pub line_break: Option<BufferLineBreak>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferLineBreak {
    Lf,
    CrLf,
}

/// An approved change for an editor to apply, as one edit, and to save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorOrder {
    pub change: ChangeId,
    pub editor: EditorName,
    pub files: Vec<OrderedFile>,
}

/// One file of an [`EditorOrder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedFile {
    pub path: WsPath,
    pub operation: OrderedOperation,
    /// Hash of the unsaved text that the edits are for. `None` for a file without unsaved changes.
    pub buffer_hash: Option<ContentHash>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderedOperation {
    /// Edits from the last line to the first.
    Edit(Vec<LineReplacement>),
    Create(String),
    Delete,
    Rename {
        to: WsPath,
    },
}

/// Replaces lines of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineReplacement {
    /// First replaced line, from 0.
    pub start: usize,
    /// Line after the last replaced one.
    pub end: usize,
    pub text: String,
}

/// Result of an [`EditorOrder`]. The engine compares the files in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditorReport {
    Applied,
    NotApplied {
        /// The end of a sentence about the editor, such as `it disconnected`.
        reason: String,
    },
}
