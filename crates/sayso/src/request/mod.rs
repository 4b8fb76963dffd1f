//! `sayso request`: requests to models, those that wait and those that were.

mod draw;
mod edit;
mod export;
mod list;
mod mode;
mod show;
mod width;

pub(crate) use show::turned_away;

use std::collections::BTreeSet;
use std::process::ExitCode;

use sayso_api::proto;
use serde::Serialize;

use crate::cli::{Place, RequestArguments, RequestCommand, ScopeChoice};
use crate::diff::style::Styles;
use crate::engine::Connected;
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::state::State;
use crate::terminal::Terminal;
use crate::visible::visible;

/// Characters that no agent's session ids have fewer than.
const SHORT: usize = 16;

/// What every subcommand needs.
struct Asking<'a> {
    state: &'a State,
    connected: Connected,
    place: &'a Place,
}

pub(crate) fn run(arguments: &RequestArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    let connected = if changes(&arguments.command) { Connected::to(&state)? } else { Connected::asking(&state)? };
    let asking = Asking { state: &state, connected, place: &arguments.place };
    match &arguments.command {
        RequestCommand::List { waiting, session, number } => list::list(&asking, *waiting, session.as_deref(), *number),
        RequestCommand::Show { id, full, section } => show::show(&asking, *id, *full, section.as_deref()),
        RequestCommand::Diff { id, context } => export::diff(&asking, *id, *context),
        RequestCommand::Replay { id, original } => export::replay(&asking, *id, *original),
        RequestCommand::Export { id, format } => export::export(&asking, *id, *format),
        RequestCommand::Mode { mode, session, waiting } => mode::mode(&asking, *mode, session.as_deref(), *waiting),
        RequestCommand::Overrides { action, scope, session } => {
            mode::overrides(&asking, *action, *scope, session.as_deref())
        }
        RequestCommand::Save { id, scope } => mode::save(&asking, *id, *scope),
        RequestCommand::Monitor { id } => list::monitor(&asking, *id),
        command => edit::run(&asking, command),
    }
}

/// Whether a command leaves something behind even where nothing was ever recorded.
fn changes(command: &RequestCommand) -> bool {
    match command {
        RequestCommand::Mode { mode, .. } => mode.is_some(),
        RequestCommand::Overrides { action, .. } => *action != crate::cli::OverridesAction::List,
        _ => false,
    }
}

impl Asking<'_> {
    fn styles(&self) -> Styles {
        Styles::of(self.terminal())
    }

    fn terminal(&self) -> Terminal {
        Terminal::detect(self.place.color, self.place.theme)
    }

    /// Prints a message of the protocol as JSON, if that is wanted.
    fn json(&self, message: &impl Serialize) -> Result<bool, Failure> {
        if !self.place.json {
            return Ok(false);
        }
        let value = serde_json::to_value(message).map_err(|error| Failure::bad_input("no JSON").why(&error))?;
        let mut output = Output::stdout();
        output.json(&value)?;
        output.finish()?;
        Ok(true)
    }

    fn modes(&self) -> Result<proto::GetModesResponse, Failure> {
        self.connected.block(self.connected.client().request_modes(proto::GetModesRequest::default()))
    }

    /// The session that is meant by its id, or by the beginning or the end of it.
    fn session(&self, given: Option<&str>) -> Result<Option<String>, Failure> {
        let Some(given) = given else { return Ok(None) };
        let known: Vec<String> = self.modes()?.sessions.into_iter().map(|session| session.session).collect();
        if known.iter().any(|session| session == given) {
            return Ok(Some(given.to_owned()));
        }
        if given.is_empty() {
            return Err(
                Failure::bad_input("--session is empty").hint("`sayso request list` shows the ends of their ids")
            );
        }
        let alike = |session: &&String| session.starts_with(given) || session.ends_with(given);
        // Those of before the engine started, too: of two that fit none is meant.
        let known: BTreeSet<String> = known.into_iter().chain(self.recorded_sessions()?).collect();
        let found: Vec<&String> = known.iter().filter(alike).collect();
        match found.as_slice() {
            [one] => Ok(Some((*one).clone())),
            // One that will come is named in full.
            [] if given.chars().count() < SHORT => Err(Failure::bad_input(format!(
                "no session's id begins or ends with `{}`",
                visible(given)
            ))
            .hint(
                "`sayso request list` shows the ends of their ids; one that has yet to send something is named in full",
            )),
            [] => {
                say(&format!("note: no session `{given}` has sent a request that is known"));
                Ok(Some(given.to_owned()))
            }
            several => {
                let names: Vec<String> = several.iter().map(|name| format!("`{}`", visible(name))).collect();
                Err(Failure::bad_input(format!("several sessions fit `{}`: {}", visible(given), names.join(", ")))
                    .hint("give more of the one that is meant"))
            }
        }
    }

    /// The sessions of the last requests that are recorded.
    fn recorded_sessions(&self) -> Result<BTreeSet<String>, Failure> {
        let request = proto::ListRequestsRequest { limit: 1_000, ..Default::default() };
        let listed = self.connected.block(self.connected.client().list_requests(request))?.requests;
        let session = |request: proto::RequestSummary| {
            request.seen.into_option().and_then(|seen| seen.origin.into_option()).and_then(|origin| origin.session)
        };
        Ok(listed.into_iter().filter_map(session).collect())
    }

    /// A scope as the protocol has it; the configured one, where that is wanted.
    fn scope(&self, choice: ScopeChoice) -> Result<proto::OverrideScope, Failure> {
        Ok(match choice {
            ScopeChoice::Session => proto::OverrideScope::Session,
            ScopeChoice::Workspace => proto::OverrideScope::Workspace,
            ScopeChoice::Global => proto::OverrideScope::Global,
            ScopeChoice::Configured => self.modes()?.scope.as_known().unwrap_or_default(),
        })
    }
}

/// What people call a scope.
fn scope_name(scope: Option<proto::OverrideScope>) -> &'static str {
    match scope.unwrap_or_default() {
        proto::OverrideScope::Session => "session",
        proto::OverrideScope::Workspace => "workspace",
        proto::OverrideScope::Global => "global",
        proto::OverrideScope::Unspecified => "unknown scope",
    }
}

/// Prints a text for a person.
fn print(text: &str) -> Result<(), Failure> {
    let mut output = Output::stdout();
    output.write(text.as_bytes())?;
    output.finish()
}
