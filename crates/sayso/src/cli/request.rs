//! The command line of requests to models.

use clap::{Args, Subcommand, ValueEnum};

use super::{Place, number};

/// Shown where people look for how paths are written.
const PATHS: &str = "\
A PATH names a value as it is now: messages[3].content[1].text, system[0].text, requestOptions.temperature. `sayso request show ID` lists
the paths of all sections. A section's id, such as 0:12, does as well and stays the same whatever is edited around it; `--json` has
the ids.

Examples:
  sayso request mode pause-next                     have the next turn of an agent wait
  sayso request list --waiting                      what waits
  sayso request show 12                             what it says, section by section
  sayso request edit 12 messages[0].content[0].text open your editor
  sayso request edit 12 max_tokens=2000 model=small set values
  sayso request shrink 12 messages[7].content[0] --from-now-on
                                                    keep a huge tool result short, in later requests, too
  sayso request resume 12                           send it on";

/// Requests that agents send to models: shows those that wait, edits, resumes, cancels and replays them.
///
/// An agent that runs under `sayso run`, or that is set up with `sayso env`, sends its requests through sayso. Unless you say otherwise they
/// pass as they are. With `sayso request mode` they wait, and what you make of one that waits is what is sent.
#[derive(Args)]
#[command(after_help = PATHS)]
pub(crate) struct RequestArguments {
    #[command(subcommand)]
    pub(crate) command: RequestCommand,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Subcommand)]
pub(crate) enum RequestCommand {
    /// Lists requests, newest first; those that wait, oldest first.
    List {
        /// Only those that wait.
        #[arg(long)]
        waiting: bool,
        /// Only those of this session; the beginning or the end of its id will do.
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// How many to list.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = number::count)]
        number: usize,
    },
    /// Shows what a request says, section by section, with its tokens.
    Show {
        /// The number of the request.
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Show all of every section.
        #[arg(long)]
        full: bool,
        /// Show all of one section only.
        #[arg(long, value_name = "PATH")]
        section: Option<String>,
    },
    /// Sets values in a request that waits, or opens one in your editor.
    ///
    /// PATH=VALUE sets a text where a text is, and JSON elsewhere; PATH:=JSON sets JSON whatever is there. A PATH alone is opened in $VISUAL,
    /// or $EDITOR; what is left unchanged, or empty, is not taken.
    Edit {
        /// The number of the request.
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// What to set.
        #[arg(value_name = "PATH[=VALUE]", required = true)]
        edits: Vec<String>,
        #[command(flatten)]
        later: Later,
    },
    /// Leaves something out of a request that waits.
    Delete(At),
    /// Puts back what was left out.
    Restore(At),
    /// Adds a message of the user at the end of a request that waits.
    Append {
        /// The number of the request.
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// What it says.
        #[arg(value_name = "TEXT")]
        text: String,
    },
    /// Keeps the beginning and the end of a tool's result, and says how many tokens that saves.
    Shrink {
        #[command(flatten)]
        at: At,
        /// How many bytes to keep at its beginning; 2,000, if not given.
        #[arg(long, value_name = "N", value_parser = number::bytes)]
        keep_head: Option<u64>,
        /// How many bytes to keep at its end; 1,000, if not given.
        #[arg(long, value_name = "N", value_parser = number::bytes)]
        keep_tail: Option<u64>,
    },
    /// Keeps a section at the top, for you alone.
    Pin(At),
    /// No longer keeps a section at the top.
    Unpin(At),
    /// Mends what would be refused, as `show` and `resume` offer it.
    Repair {
        /// The number of the request.
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Which of the repairs; the first one, if not given.
        #[arg(value_name = "N", default_value_t = 1, value_parser = number::count)]
        number: usize,
    },
    /// Takes the last edit back.
    Undo(One),
    /// Makes the edit again that was taken back.
    Redo(One),
    /// Takes all edits back.
    Reset(One),
    /// Shows how a request differs from what came.
    ///
    /// Exit code 0 if it does not, 1 if it does.
    Diff {
        /// The number of the request.
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Unchanged lines to show around each change.
        #[arg(short = 'U', long, value_name = "N", default_value_t = 3, value_parser = number::count)]
        context: usize,
    },
    /// Lets a request go on, with your edits.
    ///
    /// Edits of messages, instructions and tools stay for the rest of the turn: they are made again in each following request, until
    /// you send another prompt. Edits of settings are for this request. `--from-now-on`, when you edit, keeps an edit for good.
    Resume {
        /// The number of the request.
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Only if it is still at this revision.
        #[arg(long, value_name = "N", value_parser = number::event)]
        revision: Option<u64>,
    },
    /// Ends a request that waits, or that its upstream has not answered yet after it waited: the agent is told so.
    Cancel(One),
    /// Sends a recorded request again, and shows how the answer differs.
    Replay {
        /// The number of the request.
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Send it as it came, without your edits.
        #[arg(long)]
        original: bool,
    },
    /// Writes a request to standard output.
    Export {
        /// The number of the request.
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// What to write.
        #[arg(long, value_enum, default_value = "json")]
        format: ExportFormat,
    },
    /// Saves what was edited, to be applied to what comes.
    Save {
        /// The number of the request.
        #[arg(value_name = "ID", value_parser = number::request)]
        id: u64,
        /// Where it counts; as configured, if not given.
        #[arg(long, value_enum)]
        scope: Option<ScopeChoice>,
    },
    /// Shows how requests are treated, or treats them otherwise from now on.
    Mode {
        /// What is to happen to them.
        #[arg(value_enum)]
        mode: Option<ModeChoice>,
        /// Only those of this session; the beginning or the end of its id will do.
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// With `normal`: what becomes of requests that wait. On a terminal you are asked; elsewhere they are resumed.
        #[arg(long, value_enum)]
        waiting: Option<WaitingChoice>,
    },
    /// Lists saved edits, removes them, or has new ones made with the next turn.
    Overrides {
        /// What to do.
        #[arg(value_enum, default_value = "list")]
        action: OverridesAction,
        /// Of which scope; if not given, `list` shows all and `remove` takes the configured one.
        #[arg(long, value_enum)]
        scope: Option<ScopeChoice>,
        /// Of which session; the beginning or the end of its id will do.
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Shows what subagents sent: the last runs, or one of them in sections.
    Monitor {
        /// The number of the run's last request.
        #[arg(value_name = "ID", value_parser = number::request)]
        id: Option<u64>,
    },
}

/// One request.
#[derive(Args)]
pub(crate) struct One {
    /// The number of the request.
    #[arg(value_name = "ID", value_parser = number::request)]
    pub(crate) id: u64,
}

/// A place in a request.
#[derive(Args)]
pub(crate) struct At {
    /// The number of the request.
    #[arg(value_name = "ID", value_parser = number::request)]
    pub(crate) id: u64,
    /// Where.
    #[arg(value_name = "PATH")]
    pub(crate) path: String,
    #[command(flatten)]
    pub(crate) later: Later,
}

/// Whether an edit is made from now on, too.
#[derive(Args)]
pub(crate) struct Later {
    /// Make it in later requests, too: of this session, of the workspace or everywhere; as configured, if not given. Turns
    /// auto-apply on there, if requests are sent normally.
    #[arg(long, value_name = "SCOPE", value_enum, num_args = 0..=1, default_missing_value = "configured")]
    pub(crate) from_now_on: Option<ScopeChoice>,
}

/// Where a saved edit counts.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeChoice {
    /// In one session.
    Session,
    /// In this workspace.
    Workspace,
    /// Everywhere.
    Global,
    /// As configured.
    #[value(hide = true)]
    Configured,
}

/// What is to happen to requests.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeChoice {
    /// Send normally. Requests that wait are resumed, or canceled with `--waiting cancel`.
    Normal,
    /// Pause & review every turn.
    PauseEvery,
    /// Pause next turn, once.
    PauseNext,
    /// Auto-apply saved edits; while there are none, the next turn waits so that some can be made.
    AutoApply,
    /// With --session: like all others again.
    Inherit,
}

/// What becomes of requests that wait.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitingChoice {
    /// They go on with your edits.
    Resume,
    /// They end, and their agents are told.
    Cancel,
}

/// What to do with saved edits.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverridesAction {
    /// List them.
    List,
    /// Remove those of a scope.
    Remove,
    /// Have the next turn wait, and save its edits when it is resumed.
    CaptureNext,
}

/// What an export is.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// All that `show` knows.
    Json,
    /// The body as it is to be sent, or was, byte for byte.
    Body,
    /// The answer's body.
    Response,
    /// A command that sends it, with placeholders for credentials.
    Curl,
    /// The edits as a JSON Patch.
    Patch,
}
