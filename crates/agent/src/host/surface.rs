//! Requests to a surface and their answers. The host chooses request ids and deadlines.

/// A request of the agent to a surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SurfaceRequest {
    /// The content of a file in an editor, with unsaved changes.
    FileRead {
        path: String,
        /// First line, from 1.
        offset: Option<u32>,
        /// Number of lines.
        limit: Option<u32>,
        reason: String,
    },
    /// Runs a permitted command in a terminal of the user.
    ExecuteCommand {
        command: String,
        /// Relative to the workspace.
        directory: String,
        terminal_name: String,
        /// The change that recorded the decision.
        change: Option<u64>,
    },
    Question {
        question: String,
        /// Suggested answers. Any text is accepted.
        options: Vec<String>,
    },
}

/// The end of a request to a surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SurfaceAnswer {
    FileText(EditorText),
    /// The surface cannot read the file.
    FileError {
        message: String,
    },
    Command(CommandDispatch),
    Text(String),
    /// No attached surface can answer, or the surface that was asked disappeared.
    NoSurface,
    /// The deadline passed.
    TimedOut,
}

/// The content of a file in an editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorText {
    /// The requested lines.
    pub content: String,
    /// The buffer has unsaved changes.
    pub unsaved: bool,
}

/// The state of a command in a terminal of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandDispatch {
    /// Sent to a terminal; its result is unknown.
    Sent {
        terminal: Option<String>,
    },
    Ran {
        terminal: Option<String>,
        exit_code: Option<i32>,
        output: Option<String>,
    },
    Failed {
        message: String,
    },
}
