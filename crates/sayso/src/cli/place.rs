//! What many commands take: where, how to show things, answers, and whose intent it is.

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

/// Where the workspace is, and how to show things.
#[derive(Args)]
pub(crate) struct Place {
    /// The workspace: the top level of the git repository; elsewhere the nearest directory upwards that has a history, or this one.
    #[arg(long, global = true, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours; `auto` means on a terminal.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// Colours for a dark or a light background; `auto` asks COLORFGBG and else takes dark.
    #[arg(long, global = true, value_name = "THEME", default_value = "auto")]
    pub(crate) theme: ThemeChoice,
}

/// Answers without a question.
#[derive(Args)]
pub(crate) struct Answers {
    /// Approve `all`, `none`, or hunks as the preview numbers them: 1,3 or a.rs:1,b.rs:2.1 or whole files: a.rs,b.rs.
    #[arg(long, value_name = "WHAT", conflicts_with = "deny")]
    pub(crate) approve: Option<String>,
    /// Deny all of it, and tell the agent why.
    #[arg(long, value_name = "REASON")]
    pub(crate) deny: Option<String>,
    /// Tell the agent something about a line: PATH:LINE:TEXT; may be given several times.
    #[arg(long, value_name = "PATH:LINE:TEXT")]
    pub(crate) comment: Vec<String>,
}

/// Whose intent it is, to be judged by and recorded.
#[derive(Args)]
pub(crate) struct Source {
    /// The agent's name; rules may be about one agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The conversation it belongs to; `sayso undo --session` takes all of it back.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The turn of the conversation; `sayso undo --turn` takes all of it back, `sayso review` shows what it changed in all.
    #[arg(long, value_name = "ID")]
    pub(crate) turn: Option<String>,
    /// The tool call; `sayso undo ID` takes all of it back.
    #[arg(long, value_name = "ID")]
    pub(crate) call: Option<String>,
}

impl Source {
    pub(crate) fn origin(&self) -> sayso_review::Origin {
        sayso_review::Origin {
            agent: self.agent.clone(),
            session: self.session.clone(),
            turn: self.turn.clone(),
            call: self.call.clone(),
        }
    }
}
