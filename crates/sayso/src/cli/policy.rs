//! Arguments of `policy`, `trust` and `config`.

use clap::{Args, Subcommand};

use super::CommonOptions;

/// The grammar of rules, by example.
const RULES: &str = "\
Your file is $XDG_CONFIG_HOME/sayso/config.toml, or ~/.config/sayso/config.toml:

  [policy]                      # where no rule matches
  write = \"ask\"                # allow | later | ask | deny; also read, run, tool, delegate, send

  [[rule]]
  name = \"looking is fine\"
  run = [\"git status\", \"ls\"]   # first words; * is any word, $ at the end: nothing after
                                # options that only read are covered; options = \"any\" covers all
  then = \"allow\"

  [[rule]]
  name = \"docs are reviewed at the end of the turn\"
  write = [\"docs/**\", \"*.md\"]  # also read = paths, tool = names (* is anything), delegate = names
  agent = \"claude\"             # only for this agent; or session = \"…\"
  then = \"later\"

  [[rule]]
  run = \"rm\"
  then = \"deny\"
  reason = \"for the agent\"

  [snapshot]                    # stored to undo commands
  max_file_size = \"64 MB\"
  quota = \"1 GB\"

  [decide]
  deadline = \"10 min\"          # pending changes are denied after it

  [notify]
  command = [\"notify-send\"]    # gets the text as its last argument

  [branch]
  prefix = \"sayso/\"

A deny wins; else the narrower rule (session, agent, all), and then the last one.";

/// The settings for requests to models, by example.
const REQUESTS: &str = "\
Requests to models (`sayso request`):

  [request]
  grace = \"20 s\"               # time before a paused request's stream is kept alive
  log = \"all\"                  # or \"paused\": only paused ones, or those with saved edits
  scope = \"session\"            # scope of captured edits: session | workspace | global
  hold_tools = [\"Bash\"]        # hold calls of these tools in the response; \"*\" is any
  max_body_size = \"64 MB\"       # also keep_alive, monitor, max_concurrent, preview_limit

  [[request.rule]]              # pauses in every mode; the first match decides
  name = \"large results\"
  tool_result_tokens = 20000    # also agent, subagent, larger_than; text, in the newest messages
                                # pause = false never pauses

  [upstream.local]              # a server of your own: http://127.0.0.1:PORT/p/…/local
  url = \"http://127.0.0.1:8080\"
  key_variable = \"LOCAL_KEY\"   # for replays; key_header, if it is not the usual one";

/// Explain what the rules decide, and which rule decides
#[derive(Args)]
#[command(after_help = RULES)]
pub(crate) struct PolicyArguments {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

impl PolicyArguments {
    pub(super) fn wants_json(&self) -> bool {
        match &self.command {
            PolicyCommand::Explain(explain) => explain.common.json,
            PolicyCommand::Starter => false,
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum PolicyCommand {
    Explain(ExplainArguments),
    /// Print rules to start with: reading, building and testing
    ///
    /// Read them, and add your choice to your file: `sayso policy starter >> ~/.config/sayso/config.toml`.
    Starter,
}

/// Explain a decision: the deciding rule and the other matching rules
///
/// Explains only. Each file and each command of a script is decided by itself; the strictest decision counts.
///
/// Exit code 0 if it would be allowed, reviewed later or asked about, 3 if it would be denied.
#[derive(Args)]
pub(crate) struct ExplainArguments {
    #[command(subcommand)]
    pub(crate) action: ExplainedAction,
    /// As this agent
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) agent: Option<String>,
    /// In this session
    #[arg(long, value_name = "ID", global = true)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// An action to explain.
#[derive(Subcommand)]
pub(crate) enum ExplainedAction {
    /// Write files
    Write {
        /// Files, from the root of the workspace
        #[arg(value_name = "PATH", required = true, value_hint = clap::ValueHint::AnyPath)]
        paths: Vec<String>,
    },
    /// Read files
    Read {
        /// Files, from the root of the workspace
        #[arg(value_name = "PATH", required = true, value_hint = clap::ValueHint::AnyPath)]
        paths: Vec<String>,
    },
    /// Run a command
    Run {
        /// The script for the shell, quoted as one word
        #[arg(value_name = "COMMAND")]
        command: String,
    },
    /// Call a tool
    Tool {
        /// Name of the tool
        #[arg(value_name = "NAME")]
        name: String,
        /// Arguments of the tool as a JSON object
        #[arg(long, value_name = "JSON", default_value = "{}")]
        args: String,
    },
    /// Delegate work to another agent
    Delegate {
        /// Name of the agent
        #[arg(value_name = "AGENT")]
        to: String,
    },
}

/// Trust the workspace's sayso.toml as it is now
///
/// An untrusted file can only make rules stricter. Shows what the file would loosen. Trust is for its content: if the file changes, it
/// is untrusted again.
#[derive(Args)]
pub(crate) struct TrustArguments {
    /// Only show what it would loosen
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) show: bool,
    /// Trust it no longer
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Confirm rules that became milder while a command or an agent ran under the gate, and show the difference
    #[arg(long, conflicts_with_all = ["show", "revoke"])]
    pub(crate) rules: bool,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Print all settings and rules with their origins
///
/// Defaults come first, then your config.toml, then the workspace's sayso.toml. Until that is trusted, only its stricter rules count.
#[derive(Args)]
#[command(after_help = format!("{RULES}\n\n{REQUESTS}"))]
pub(crate) struct ConfigArguments {
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}
