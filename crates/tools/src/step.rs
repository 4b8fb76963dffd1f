//! Steps: tool calls with checked arguments.

use std::time::Duration;

use sayso_review::{Note, Proposal, ProposedChanges, WsPath};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::output::ToolOutput;

/// The next action of a tool call. Its arguments were checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The call ended. It read at most files.
    Done(ToolOutput),
    ChangeFiles(FileStep),
    RunCommand(CommandStep),
    /// Continues a background command.
    ContinueCommand(SessionStep),
    Fetch(FetchStep),
    WriteTodos(Vec<TodoWrite>),
    ReadTodos,
    Ask(Question),
    Delegate(Delegation),
    /// A call of a tool of an MCP server.
    CallMcp {
        /// Name of the server in the configuration.
        server: String,
        /// Name of the tool on the server.
        tool: String,
        arguments: Value,
    },
}

/// A change of files, to be submitted to the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStep {
    pub proposal: Proposal,
    /// Facts about the creation of the proposal, for the reviewer and the model.
    pub notes: Vec<StepNote>,
    /// `Some` if the call only proposes changes. The object is the result of the call.
    pub proposed: Option<Box<ProposedChanges>>,
}

/// A note about a file of a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepNote {
    pub path: WsPath,
    /// Note for the preview. `None` if the preview of the proposal finds it by itself.
    pub note: Option<Note>,
    /// Sentence for the model.
    pub text: String,
}

impl FileStep {
    /// `true` if the changes are proposed and not applied.
    pub fn proposes_only(&self) -> bool {
        self.proposed.is_some()
    }

    /// Returns the text that the notes add to the result of the call; empty without notes.
    pub fn notes_text(&self) -> String {
        self.notes.iter().map(|note| format!("Note: {}: {}\n", note.path, note.text)).collect()
    }
}

/// A command to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandStep {
    /// Script text for the shell.
    pub command: String,
    /// Working directory.
    pub directory: WsPath,
    /// Purpose, as stated by the model.
    pub description: Option<String>,
    /// Time after which a command that runs inside in the foreground is killed.
    pub timeout: Duration,
    pub mode: CommandMode,
}

/// The place of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandMode {
    /// The call ends with the command.
    Foreground,
    /// The call returns after a first wait; the command continues under a session id.
    Background { wait: Duration },
    /// The command is meant for a terminal of the user.
    UserTerminal { reason: TerminalReason },
}

/// Reason to run a command in a terminal of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum TerminalReason {
    /// The model asked for it.
    Requested,
    /// The program needs a keyboard or a screen. Without a surface it cannot run.
    Interactive {
        /// Program with the words that identify the row of the table, such as `git rebase -i`.
        program: String,
    },
    /// The program downloads, serves or runs for long. Without a surface it may run inside.
    Heavy {
        /// Program with the words that identify the row of the table, such as `npm install`.
        program: String,
    },
}

/// An action on a background command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStep {
    /// Session id from the result that started the command.
    pub session: String,
    pub action: SessionAction,
}

/// The kind of an action on a background command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionAction {
    /// Returns new output, after at most this time.
    Poll {
        wait: Duration,
    },
    /// Writes to standard input, then polls.
    Write {
        input: String,
        wait: Duration,
    },
    Kill,
}

/// A request for a URL. The host performs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchStep {
    /// Absolute URL with the scheme `http` or `https`, without credentials.
    pub url: String,
    /// Host name of the URL, for rules and display.
    pub host: String,
    /// Maximum size of the body after decoding, in bytes. The host truncates a larger body.
    pub max_bytes: usize,
    pub max_redirects: usize,
    pub timeout: Duration,
}

/// A change of the todo list of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "write", rename_all = "snake_case")]
pub enum TodoWrite {
    /// Creates an item, or changes the given fields of the item with this id.
    Put {
        /// `None` creates an item.
        id: Option<String>,
        /// `None` keeps the text of an existing item.
        text: Option<String>,
        /// `None` keeps the state of an existing item; a new item is pending.
        state: Option<TodoState>,
    },
    Remove {
        id: String,
    },
}

/// State of a todo item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    Pending,
    InProgress,
    Done,
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub question: String,
    /// Suggested answers. Any text is accepted.
    pub options: Vec<String>,
}

/// Work for a subagent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    /// Purpose in a few words.
    pub description: String,
    pub prompt: String,
    /// Names of the tools of the subagent. `None`: the tools of its scenario.
    pub tools: Option<Vec<String>>,
    /// Name of its scenario. `None`: the scenario of the caller.
    pub scenario: Option<String>,
}
