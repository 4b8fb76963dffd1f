//! `sayso sessions`: lists the sessions of the built-in agent.

use std::process::ExitCode;

use sayso_api::proto;
use sayso_api::proto::agent_session::State;
use sayso_present::escape::escape_unprintable;

use crate::cli::SessionsArguments;
use crate::engine::EngineConnection;
use crate::error::CliError;
use crate::output::Output;
use crate::workspace_location::WorkspaceLocation;

pub(crate) fn run(arguments: &SessionsArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    let engine = EngineConnection::read_only(&location)?;
    let limit = u32::try_from(arguments.limit).unwrap_or(u32::MAX).max(1);
    let sessions = engine.block(engine.client().list_agent_sessions(limit))?;
    let mut output = Output::stdout();
    if arguments.common.json {
        output.json(&serde_json::json!({ "sessions": sessions }))?;
    } else if sessions.is_empty() {
        output.write(b"No sessions. Start one: sayso -p \"PROMPT\"\n")?;
    } else {
        for session in &sessions {
            output.write(line(session).as_bytes())?;
        }
        output.write(b"\nContinue one: sayso -p --resume ID \"PROMPT\"\n")?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn line(session: &proto::AgentSession) -> String {
    let state = match session.state.as_known().unwrap_or_default() {
        State::STATE_IDLE | State::STATE_UNSPECIFIED => "idle",
        State::STATE_RUNNING => "running",
        State::STATE_WAITING => "waiting",
        State::STATE_INTERRUPTED => "interrupted",
    };
    let settings = session.settings.as_option();
    let model = settings.map(|settings| settings.model.as_str()).unwrap_or_default();
    let title = if session.title.is_empty() { "(no prompt yet)" } else { &session.title };
    let fork = session.fork_of.map(|request| format!(" · fork of request {request}")).unwrap_or_default();
    let turns = if session.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", session.turns) };
    let details = format!("{turns} · {model}{fork}");
    format!("{}  {state:<11}  {}  ({})\n", session.session, escape_unprintable(title), escape_unprintable(&details))
}
