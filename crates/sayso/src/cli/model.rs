//! Arguments of `serve-model` and `demo`.

use std::path::PathBuf;

use clap::Args;

use super::number;

/// Serve scripted answers in all four model APIs
///
/// Plays a YAML script in place of a model, for demos and for tests of your rules: text, thinking, tool calls, errors and delays, streamed
/// or not, in the APIs of Anthropic, OpenAI (Chat Completions and Responses) and Gemini. Needs no key and no network. Listens on this
/// machine only. docs/scripted-model.md describes the script.
///
/// Ctrl-C ends it. Exit code 1 if an expectation of the script was not met, 2 if the script has an error.
#[derive(Args)]
pub(crate) struct ServeModelArguments {
    /// The script; `-` reads standard input
    #[arg(value_name = "SCRIPT", value_hint = clap::ValueHint::FilePath)]
    pub(crate) script: PathBuf,
    /// Port; 0 takes any
    #[arg(long, value_name = "PORT", default_value = "0", value_parser = number::port)]
    pub(crate) port: u16,
    /// Check the script and end
    #[arg(long)]
    pub(crate) check: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the whole thing, offline, in a throw-away workspace
///
/// The built-in agent works on a small project against a scripted model: it proposes a change, a hunk is refused with a reason, the model
/// reacts, a request to the model is paused and edited, a command runs, and everything is undone. Needs no key and no network, touches
/// nothing of yours and removes its workspace.
///
/// On a terminal it waits for Enter after each step. Exit code 1 if a step does not do what it says.
#[derive(Args)]
pub(crate) struct DemoArguments {
    /// Play without waiting for Enter
    #[arg(long)]
    pub(crate) auto: bool,
    /// Play in the browser: prints a login link, opens it, and ends on Ctrl-C
    #[arg(long, conflicts_with = "auto")]
    pub(crate) web: bool,
}
