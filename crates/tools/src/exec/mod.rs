//! `Exec`: runs a command, or continues a background command.

mod terminal_programs;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, invalid};
use crate::context::Context;
use crate::error::ToolError;
use crate::registry::{Capability, FileAccess, Needs, Tool};
use crate::step::{CommandMode, CommandStep, SessionAction, SessionStep, Step, TerminalReason};

pub use terminal_programs::terminal_reason;

pub(crate) struct Exec;

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
const MAX_TIMEOUT: Duration = Duration::from_mins(30);
/// Time that a call waits for first or new output of a background command.
const DEFAULT_WAIT: Duration = Duration::from_secs(5);
const MAX_WAIT: Duration = Duration::from_mins(10);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The script to run, in the language of bash. Give either `command` or `session`.
    command: Option<String>,
    /// The working directory, relative to the workspace or absolute; by default the workspace.
    directory: Option<String>,
    /// The purpose in a few words, for the user.
    description: Option<String>,
    /// Time after which the command is killed, in milliseconds; by default 120,000, up to 1,800,000.
    #[schemars(range(min = 1, max = 1_800_000))]
    timeout_ms: Option<u64>,
    /// Starts the command and returns a session id, for servers and watchers.
    #[serde(default)]
    background: bool,
    /// Runs the command in a terminal of the user, for programs that need a keyboard.
    #[serde(default)]
    in_user_terminal: bool,
    /// Id of a background command to continue. Alone, it returns new output.
    session: Option<String>,
    /// Text for the standard input of the session, with a line break to send a line.
    input: Option<String>,
    /// Kills the session.
    #[serde(default)]
    kill: bool,
    /// Time to wait for output of a background command, in milliseconds; by default 5,000, up to 600,000.
    #[schemars(range(min = 0, max = 600_000))]
    wait_ms: Option<u64>,
}

impl Tool for Exec {
    fn name(&self) -> &'static str {
        "Exec"
    }

    fn description(&self) -> &'static str {
        "Runs a command in the workspace and returns its output and exit code. A person or a rule decides about it first. With \
         `background` it keeps running under a session id; `session` then polls it, writes to it or kills it."
    }

    fn schema(&self) -> Value {
        arguments::schema::<Arguments>()
    }

    fn needs(&self) -> Needs {
        Needs { capability: Capability::ByName, files: FileAccess::None }
    }

    fn prepare(&self, arguments: &Value, context: &Context<'_>) -> Result<Step, ToolError> {
        let mut arguments: Arguments = arguments::parse(arguments)?;
        match (arguments.command.take(), arguments.session.take()) {
            (Some(command), None) => start(command, arguments, context),
            (None, Some(session)) => proceed(session, arguments),
            (None, None) => Err(invalid("nothing to run: give `command`, or `session` of a background command")),
            (Some(_), Some(_)) => Err(invalid("`command` and `session` exclude each other: give one of them")),
        }
    }
}

fn start(command: String, arguments: Arguments, context: &Context<'_>) -> Result<Step, ToolError> {
    if command.trim().is_empty() {
        return Err(invalid("`command` is empty"));
    }
    if command.contains('\0') {
        return Err(invalid("`command` contains a NUL character, which a shell cannot run"));
    }
    if arguments.input.is_some() || arguments.kill {
        return Err(invalid("`input` and `kill` need `session`: they act on a background command"));
    }
    let directory = context.directory(arguments.directory.as_deref().unwrap_or("."))?;
    let timeout = limited("timeout_ms", arguments.timeout_ms, DEFAULT_TIMEOUT, MAX_TIMEOUT)?;
    if timeout.is_zero() {
        return Err(invalid("`timeout_ms` is 0; it must be at least 1"));
    }
    let wait = limited("wait_ms", arguments.wait_ms, DEFAULT_WAIT, MAX_WAIT)?;
    let detected = terminal_reason(&command);
    let mode = match (arguments.in_user_terminal, detected) {
        (true, None) => CommandMode::UserTerminal { reason: TerminalReason::Requested },
        (_, Some(reason @ TerminalReason::Interactive { .. })) | (true, Some(reason)) => {
            CommandMode::UserTerminal { reason }
        }
        // A server that the model starts in the background stays under its control.
        (false, Some(reason)) if !arguments.background => CommandMode::UserTerminal { reason },
        _ if arguments.background => CommandMode::Background { wait },
        _ => CommandMode::Foreground,
    };
    let description = arguments.description.filter(|text| !text.trim().is_empty());
    Ok(Step::RunCommand(CommandStep { command, directory, description, timeout, mode }))
}

fn proceed(session: String, arguments: Arguments) -> Result<Step, ToolError> {
    let extra = [
        ("directory", arguments.directory.is_some()),
        ("timeout_ms", arguments.timeout_ms.is_some()),
        ("background", arguments.background),
        ("in_user_terminal", arguments.in_user_terminal),
    ];
    if let Some((name, _)) = extra.into_iter().find(|(_, is_given)| *is_given) {
        return Err(invalid(format!("`{name}` has no effect on a session: give it with `command`")));
    }
    let wait = limited("wait_ms", arguments.wait_ms, DEFAULT_WAIT, MAX_WAIT)?;
    let action = match (arguments.input, arguments.kill) {
        (Some(_), true) => return Err(invalid("`input` and `kill` exclude each other: give one of them")),
        (Some(input), false) => SessionAction::Write { input, wait },
        (None, true) => SessionAction::Kill,
        (None, false) => SessionAction::Poll { wait },
    };
    Ok(Step::ContinueCommand(SessionStep { session, action }))
}

fn limited(name: &str, given_ms: Option<u64>, default: Duration, max: Duration) -> Result<Duration, ToolError> {
    let given = given_ms.map_or(default, Duration::from_millis);
    if given <= max {
        return Ok(given);
    }
    Err(invalid(format!("`{name}` is {}; it can be at most {}", given.as_millis(), max.as_millis())))
}
