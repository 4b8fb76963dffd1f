//! `sayso request`: lists, shows, edits and decides requests to models.

mod edit;
mod export;
mod list;
mod mode;
mod show;
mod window;

use std::process::ExitCode;

use sayso_api::ErrorData;
use sayso_api::client::ClientError;
use sayso_api::request::{DetailQuery, RequestDetails, RequestModes};
use sayso_present::escape::escape_unprintable;
use sayso_review::ErrorKind;
use sayso_wire::Scope;
use serde::Serialize;

use crate::cli::{CommonOptions, OverridesAction, RequestArguments, RequestCommand, ScopeChoice};
use crate::engine::EngineConnection;
use crate::error::CliError;
use crate::output::{Output, say};
use crate::session;
use crate::terminal::Terminal;
use crate::workspace_location::WorkspaceLocation;

/// Characters of the shortest session id of an agent.
const MIN_SESSION_ID_CHARACTERS: usize = 16;

/// The connection and the options of a subcommand.
struct RequestCommandContext<'a> {
    location: &'a WorkspaceLocation,
    engine: EngineConnection,
    common: &'a CommonOptions,
}

pub(crate) fn run(arguments: &RequestArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    let engine = if creates_history(&arguments.command) {
        EngineConnection::open(&location)?
    } else {
        EngineConnection::read_only(&location)?
    };
    let context = RequestCommandContext { location: &location, engine, common: &arguments.common };
    match &arguments.command {
        RequestCommand::List { waiting, session, number } => {
            list::list(&context, *waiting, session.as_deref(), *number)
        }
        RequestCommand::Show { id, full, section } => show::show(&context, *id, *full, section.as_deref()),
        RequestCommand::Diff { id, context: lines } => export::diff(&context, *id, *lines),
        RequestCommand::Replay { id, original } => export::replay(&context, *id, *original),
        RequestCommand::Export { id, format } => export::export(&context, *id, *format),
        RequestCommand::Mode { mode, session, waiting } => mode::mode(&context, *mode, session.as_deref(), *waiting),
        RequestCommand::Overrides { action, scope, session } => {
            mode::overrides(&context, *action, *scope, session.as_deref())
        }
        RequestCommand::Save { id, scope } => mode::save(&context, *id, *scope),
        RequestCommand::Monitor { id } => list::monitor(&context, *id),
        RequestCommand::Cost { session } => list::cost(&context, session.as_deref()),
        command => edit::run(&context, command),
    }
}

/// `true` if a command records an event in a workspace without a history.
fn creates_history(command: &RequestCommand) -> bool {
    match command {
        RequestCommand::Mode { mode, .. } => mode.is_some(),
        RequestCommand::Overrides { action, .. } => *action != OverridesAction::List,
        _ => false,
    }
}

impl RequestCommandContext<'_> {
    fn terminal(&self) -> Terminal {
        Terminal::detect(self.common.color, self.common.theme)
    }

    /// Prints a message of the protocol with `--json`. Returns `true` if it did.
    fn print_json(&self, message: &impl Serialize) -> Result<bool, CliError> {
        if !self.common.json {
            return Ok(false);
        }
        let mut output = Output::stdout();
        output.json(&json_value(message)?)?;
        output.finish()?;
        Ok(true)
    }

    /// Prints the message of a typed value with `--json`. Returns `true` if it did.
    fn print_json_of<M: Serialize>(&self, message: impl FnOnce() -> M) -> Result<bool, CliError> {
        if self.common.json { self.print_json(&message()) } else { Ok(false) }
    }

    fn modes(&self) -> Result<RequestModes, CliError> {
        self.engine.block(self.engine.client().request_modes())
    }

    /// Fetches a request with all sections, without their content.
    fn outline(&self, request: u64) -> Result<RequestDetails, CliError> {
        let query = DetailQuery { content_limit: Some(0), ..DetailQuery::default() };
        self.engine.block(self.engine.client().show_request(request, &query))
    }

    /// Returns the session that a part of its id names.
    fn session(&self, given: Option<&str>) -> Result<Option<String>, CliError> {
        let Some(given) = given else { return Ok(None) };
        if let Some(session) = session::find(&self.engine, given)? {
            return Ok(Some(session));
        }
        // A session that has sent no request yet can be named in full.
        if given.chars().count() < MIN_SESSION_ID_CHARACTERS {
            let message = format!("no session's id begins or ends with `{}`", escape_unprintable(given));
            return Err(CliError::invalid_input(message)
                .hint("`sayso request list` shows the ends of their ids; name a session without requests in full"));
        }
        say(&format!("note: no session `{given}` has sent a request that is known"));
        Ok(Some(given.to_owned()))
    }

    /// Returns the scope for a choice.
    fn scope(&self, choice: ScopeChoice) -> Result<Scope, CliError> {
        Ok(match choice {
            ScopeChoice::Session => Scope::Session,
            ScopeChoice::Workspace => Scope::Workspace,
            ScopeChoice::Global => Scope::Global,
            ScopeChoice::Configured => self.modes()?.capture_scope,
        })
    }
}

/// Names existing paths that resemble a missing one.
fn suggest_paths(error: &ClientError) {
    if let Some(ErrorData::PathNotFound { similar, .. }) = error.data() {
        print_suggestions(similar.iter().map(String::as_str));
    }
}

fn print_suggestions<'p>(paths: impl Iterator<Item = &'p str>) {
    let names: Vec<String> = paths.map(|path| format!("`{}`", escape_unprintable(path))).collect();
    if !names.is_empty() {
        say(&format!("note: there is {}", names.join(", ")));
    }
}

fn json_value(message: &impl Serialize) -> Result<serde_json::Value, CliError> {
    serde_json::to_value(message)
        .map_err(|error| CliError::new(ErrorKind::Internal, "cannot write the response as JSON").caused_by(&error))
}
