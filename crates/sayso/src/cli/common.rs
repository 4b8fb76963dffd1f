//! Options that many commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThemeChoice {
    Auto,
    Dark,
    Light,
}

/// The workspace and the form of the output.
#[derive(Args)]
pub(crate) struct CommonOptions {
    /// The workspace [default: the git repository, or the nearest directory with a history, or this one]
    #[arg(long, global = true, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Use colours; `auto` means on a terminal
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// Colours for a dark or a light background; `auto` reads COLORFGBG, or takes dark
    #[arg(long, global = true, value_name = "THEME", default_value = "auto")]
    pub(crate) theme: ThemeChoice,
}

/// A verdict without a question.
#[derive(Args)]
pub(crate) struct VerdictOptions {
    /// Approve `all`, `none`, hunks as numbered in the preview (1,3 or a.rs:1,b.rs:2.1), or whole files (a.rs,b.rs)
    #[arg(long, value_name = "WHAT", conflicts_with = "deny")]
    pub(crate) approve: Option<String>,
    /// Deny all of it, and tell the agent why
    #[arg(long, value_name = "REASON")]
    pub(crate) deny: Option<String>,
    /// Send the agent a comment on a line; may be given several times
    #[arg(long, value_name = "PATH:LINE:TEXT")]
    pub(crate) comment: Vec<String>,
    /// Send the agent a message with the decision
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
}

/// The origin of an intent, for the rules and the record.
#[derive(Args)]
pub(crate) struct OriginOptions {
    /// Name of the agent; a rule may be for one agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Session; `sayso undo --session` undoes all of it
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Turn of the session; `sayso undo --turn` undoes all of it, `sayso review` shows its net change
    #[arg(long, value_name = "ID")]
    pub(crate) turn: Option<String>,
    /// Tool call; `sayso undo ID` undoes all of it
    #[arg(long, value_name = "ID")]
    pub(crate) call: Option<String>,
}

impl OriginOptions {
    pub(crate) fn origin(&self) -> sayso_review::Origin {
        sayso_review::Origin {
            agent: self.agent.clone(),
            session: self.session.clone(),
            turn: self.turn.clone(),
            call: self.call.clone(),
        }
    }
}
