//! Arguments of `sayso request`.

use clap::{Args, Subcommand, ValueEnum};

use super::{CommonOptions, number};

/// The grammar of paths, and examples.
const PATHS: &str = "\
A PATH names a value as it is now: messages[3].content[1].text, system[0].text, requestOptions.temperature. `sayso request show ID` lists
the paths of all sections. A section's id, such as 0:12, does as well and stays the same whatever is edited around it; `--json` has
the ids.

Examples:
  sayso request mode pause-next                     pause the next turn of an agent
  sayso request list --waiting                      list paused requests
  sayso request show 12                             show a request section by section
  sayso request edit 12 messages[0].content[0].text open a value in your editor
  sayso request edit 12 max_tokens=2000 model=small set values
  sayso request shrink 12 messages[7].content[0] --from-now-on
                                                    shorten a huge tool result, also in later requests
  sayso request resume 12                           send it on";

/// List, edit, resume, cancel and replay requests to models
///
/// An agent under `sayso run` or with the settings of `sayso env` sends its requests through sayso. By default they are forwarded
/// unchanged. `sayso request mode` pauses them; a paused request is sent with your edits.
#[derive(Args)]
#[command(after_help = PATHS)]
pub(crate) struct RequestArguments {
    #[command(subcommand)]
    pub(crate) command: RequestCommand,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

#[derive(Subcommand)]
pub(crate) enum RequestCommand {
    /// List requests, newest first; paused requests oldest first
    List {
        /// Only paused requests
        #[arg(long)]
        waiting: bool,
        /// Only this session; the start or end of its id is enough
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Number of requests
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = number::count)]
        number: usize,
    },
    /// Show a request section by section, with token counts
    Show {
        /// Number of the request
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Show the full content of every section
        #[arg(long)]
        full: bool,
        /// Show the full content of one section only
        #[arg(long, value_name = "PATH")]
        section: Option<String>,
    },
    /// Set values in a paused request, or open one in your editor
    ///
    /// PATH=VALUE sets a text where a text is, and JSON elsewhere; PATH:=JSON always sets JSON. A PATH alone opens in $VISUAL or $EDITOR;
    /// an unchanged or empty value is not taken.
    Edit {
        /// Number of the request
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Values to set
        #[arg(value_name = "PATH[=VALUE]", required = true)]
        edits: Vec<String>,
        #[command(flatten)]
        save: SaveOptions,
    },
    /// Delete a section of a paused request
    Delete(TargetArguments),
    /// Restore a deleted section
    Restore(TargetArguments),
    /// Append a user message to a paused request
    Append {
        /// Number of the request
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Text of the message
        #[arg(value_name = "TEXT")]
        text: String,
    },
    /// Shorten a tool result to its start and end
    Shrink {
        #[command(flatten)]
        at: TargetArguments,
        /// Bytes to keep at its start [default: 2000]
        #[arg(long, value_name = "N", value_parser = number::bytes)]
        keep_head: Option<u64>,
        /// Bytes to keep at its end [default: 1000]
        #[arg(long, value_name = "N", value_parser = number::bytes)]
        keep_tail: Option<u64>,
    },
    /// Pin a section to the top of the display
    Pin(TargetArguments),
    /// Unpin a section
    Unpin(TargetArguments),
    /// Fix a problem that `show` and `resume` report
    Repair {
        /// Number of the request
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Number of the repair, as `sayso request show` lists it
        #[arg(value_name = "N", default_value_t = 1, value_parser = number::count)]
        number: usize,
    },
    /// Undo the last edit
    Undo(RequestId),
    /// Redo the edit undone last
    Redo(RequestId),
    /// Undo all edits
    Reset(RequestId),
    /// Show how a request differs from the received one
    ///
    /// Exit code 0 if it does not, 1 if it does.
    Diff {
        /// Number of the request
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Unchanged lines around each change
        #[arg(short = 'U', long, value_name = "N", default_value_t = 3, value_parser = number::count)]
        context: usize,
    },
    /// Send a paused request on, with your edits
    ///
    /// Edits of messages, instructions and tools stay for the rest of the turn: sayso makes them again in each following request, until
    /// you send another prompt. Edits of options are for this request only. To keep an edit for good, edit with --from-now-on.
    Resume {
        /// Number of the request
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Fail unless it is at this revision
        #[arg(long, value_name = "N", value_parser = number::revision)]
        revision: Option<u64>,
    },
    /// Cancel a paused request, or a request that sayso is retrying
    ///
    /// The agent gets `Request canceled before sending`.
    Cancel(RequestId),
    /// Send a recorded request again, and compare the responses
    Replay {
        /// Number of the request
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Send it as received, without your edits
        #[arg(long)]
        original: bool,
    },
    /// Write a request to stdout
    Export {
        /// Number of the request
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Content and format
        #[arg(long, value_enum, default_value = "json")]
        format: ExportFormat,
    },
    /// Save the edits of a request for later requests
    Save {
        /// Number of the request
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Scope of the edits [default: as configured]
        #[arg(long, value_enum)]
        scope: Option<ScopeChoice>,
    },
    /// Show or set the request mode
    Mode {
        /// The new mode
        #[arg(value_enum)]
        mode: Option<ModeChoice>,
        /// Only this session; the start or end of its id is enough
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// With `normal`: fate of paused requests [default: asks on a terminal, else resume]
        #[arg(long, value_enum)]
        waiting: Option<WaitingChoice>,
    },
    /// List or remove saved edits, or capture edits in the next turn
    Overrides {
        /// The action
        #[arg(value_enum, default_value = "list")]
        action: OverridesAction,
        /// Scope [default: all for `list`, the configured one for `remove`]
        #[arg(long, value_enum)]
        scope: Option<ScopeChoice>,
        /// Session; the start or end of its id is enough
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Show tokens, price and cache share per session
    Cost {
        /// Only this session; the start or end of its id is enough
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Show requests of subagents: the last runs, or one in sections
    Monitor {
        /// Number of a run's last request, as `sayso request monitor` lists it [default: list the runs]
        #[arg(value_name = "ID", value_parser = number::request)]
        id: Option<u64>,
    },
}

/// A request by its number.
#[derive(Args)]
pub(crate) struct RequestId {
    /// Number of the request
    #[arg(value_name = "ID", value_parser = number::request)]
    pub(crate) id: u64,
}

/// A section or value of a request.
#[derive(Args)]
pub(crate) struct TargetArguments {
    /// Number of the request
    #[arg(value_name = "ID", value_parser = number::request)]
    pub(crate) id: u64,
    /// Path or section id
    #[arg(value_name = "PATH")]
    pub(crate) path: String,
    #[command(flatten)]
    pub(crate) save: SaveOptions,
}

/// Options that save an edit for later requests.
#[derive(Args)]
pub(crate) struct SaveOptions {
    /// Make the edit in later requests, too [default scope: as configured]; turns auto-apply on in that scope
    #[arg(long, value_name = "SCOPE", value_enum, num_args = 0..=1, default_missing_value = "configured")]
    pub(crate) from_now_on: Option<ScopeChoice>,
}

/// Scope of a saved edit.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeChoice {
    /// One session
    Session,
    /// This workspace
    Workspace,
    /// All workspaces
    Global,
    #[value(hide = true)]
    Configured,
}

/// A request mode.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeChoice {
    /// Send normally; paused requests are resumed, or cancelled with `--waiting cancel`
    Normal,
    /// Pause & review every turn
    PauseEvery,
    /// Pause the next turn, once
    PauseNext,
    /// Apply saved edits; without any, pause the next turn to capture some
    AutoApply,
    /// With --session: use the mode of all sessions again
    Inherit,
}

/// Fate of paused requests.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitingChoice {
    /// Send them with your edits
    Resume,
    /// Cancel them with an error to their agents
    Cancel,
}

/// An action on saved edits.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverridesAction {
    /// List saved edits
    List,
    /// Remove the saved edits of a scope
    Remove,
    /// Pause the next turn, and save its edits when it is resumed
    CaptureNext,
}

/// Content of an export.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Everything that `show` has
    Json,
    /// The exact body, as sent or to be sent
    Body,
    /// The body of the response
    Response,
    /// A curl command with placeholders for credentials
    Curl,
    /// The edits as a JSON Patch
    Patch,
}
