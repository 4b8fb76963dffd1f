//! The command line of rules, trust and configuration.

use clap::{Args, Subcommand};

use super::Place;

/// Shown where people look for how rules are written.
const RULES: &str = "\
Your file is $XDG_CONFIG_HOME/sayso/config.toml, or ~/.config/sayso/config.toml:

  [policy]                      # what happens where no rule says anything
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
  reason = \"told to the agent\"

  [snapshot]                    # what is kept to undo commands
  largest_file = \"64 MB\"
  quota = \"1 GB\"

  [decide]
  deadline = \"10 min\"          # what nobody decides by then is denied

  [notify]
  command = [\"notify-send\"]    # gets the text as its last argument

  [branch]
  prefix = \"sayso/\"

A deny wins; else the narrower rule (session, agent, everybody), and then the last one.";

/// Shown where people look for how requests to models are treated.
const REQUESTS: &str = "\
Requests to models, which `sayso request` shows:

  [request]
  grace = \"20 s\"               # how long one may wait before its stream is kept alive
  log = \"all\"                  # or \"paused\": only what waited, or had saved edits applied
  scope = \"session\"            # where captured edits are saved: session | workspace | global
  hold_tools = [\"Bash\"]        # calls of these tools wait in the answer; \"*\" is any
  largest_body = \"64 MB\"       # also keep_alive, monitor, most_at_once, preview_limit

  [[request.rule]]              # what pauses whatever the mode; the first that fits decides
  name = \"large results\"
  tool_result_tokens = 20000    # also agent, subagent, larger_than; text, in the newest messages
                                # pause = false is for what never waits

  [upstream.local]              # a server of your own: http://127.0.0.1:PORT/p/…/local
  url = \"http://127.0.0.1:8080\"
  key_variable = \"LOCAL_KEY\"   # for replays; key_header, if it is not the usual one";

/// Says what the rules make of something.
#[derive(Args)]
#[command(after_help = RULES)]
pub(crate) struct PolicyArguments {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

impl PolicyArguments {
    pub(super) fn wants_json(&self) -> bool {
        match &self.command {
            PolicyCommand::Explain(explain) => explain.place.json,
            PolicyCommand::Starter => false,
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum PolicyCommand {
    Explain(Explain),
    /// Prints rules to begin with, for looking around, building and testing.
    ///
    /// Nothing is written. Read them, and add those you want to your file: `sayso policy starter >> ~/.config/sayso/config.toml`.
    Starter,
}

/// Says what would happen, and why: the rule that decides, and the others about it.
///
/// Nothing is done and nothing is asked. Each file and each command of a script is judged by itself; the strictest counts.
///
/// Exit code 0 if it would be allowed, reviewed later or asked about, 3 if it would be denied.
#[derive(Args)]
pub(crate) struct Explain {
    #[command(subcommand)]
    pub(crate) asked: Asked,
    /// As this agent.
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) agent: Option<String>,
    /// In this session.
    #[arg(long, value_name = "ID", global = true)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Subcommand)]
pub(crate) enum Asked {
    /// Writing files.
    Write {
        /// The files, from the root of the workspace.
        #[arg(value_name = "PATH", required = true, value_hint = clap::ValueHint::AnyPath)]
        paths: Vec<String>,
    },
    /// Reading files.
    Read {
        /// The files, from the root of the workspace.
        #[arg(value_name = "PATH", required = true, value_hint = clap::ValueHint::AnyPath)]
        paths: Vec<String>,
    },
    /// Running a command.
    Run {
        /// As the shell would get it, quoted as one word.
        #[arg(value_name = "COMMAND")]
        command: String,
    },
    /// Calling a tool.
    Tool {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: String,
        /// Its arguments as a JSON object.
        #[arg(long, value_name = "JSON", default_value = "{}")]
        args: String,
    },
    /// Handing work to another agent.
    Delegate {
        /// Its name.
        #[arg(value_name = "AGENT")]
        to: String,
    },
}

/// Trusts the workspace's `sayso.toml` as it is now, so that it may loosen too.
///
/// Until then it can only make things stricter. Shows what it would loosen. The file is trusted by its content: if it changes, it
/// is untrusted again.
#[derive(Args)]
pub(crate) struct TrustArguments {
    /// Show what it would loosen, and trust nothing.
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) show: bool,
    /// Trust it no longer.
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Confirm rules that became milder while something ran under the gate. Shows what changed in the files.
    #[arg(long, conflicts_with_all = ["show", "revoke"])]
    pub(crate) rules: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Prints all settings and rules with where each comes from.
///
/// Defaults come first, then the user's config.toml, then the workspace's sayso.toml, of which only what makes things stricter counts
/// until it is trusted.
#[derive(Args)]
#[command(after_help = format!("{RULES}\n\n{REQUESTS}"))]
pub(crate) struct ConfigArguments {
    #[command(flatten)]
    pub(crate) place: Place,
}
