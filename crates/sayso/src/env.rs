//! `sayso env`: prints the settings that route an agent's requests through sayso.

use std::process::ExitCode;

use sayso_adapters::routing::{LaunchSettings, UpstreamRouting};
use sayso_adapters::{Agent, UnknownAgent};
use serde_json::json;

use crate::cli::EnvArguments;
use crate::endpoint::ProcessEnvironment;
use crate::engine::EngineConnection;
use crate::error::CliError;
use crate::output::{Output, say};
use crate::workspace_location::WorkspaceLocation;

pub(crate) fn run(arguments: &EnvArguments) -> Result<ExitCode, CliError> {
    let agent: Agent = arguments
        .agent
        .parse()
        .map_err(|error: UnknownAgent| CliError::new(error.kind(), error.to_string()).hint(error.hint()))?;
    let location = WorkspaceLocation::find(&arguments.common)?;
    let engine = EngineConnection::read_only(&location)?;
    let routing = UpstreamRouting::new(agent, &ProcessEnvironment(agent));
    let endpoint = engine.block(engine.client().persistent_endpoint(Some(agent.name()), &routing.upstreams))?;
    let Some(url) = &endpoint.url else {
        let message = "no `sayso serve` runs in this workspace, so that there is no address to send requests to";
        return Err(CliError::invalid_input(message).hint(format!(
            "start `sayso serve` and run this again, or let sayso start the agent: `sayso run -- {}`",
            agent.name()
        )));
    };
    let settings = routing.launch_settings(url);
    let mut output = Output::stdout();
    if arguments.common.json {
        let variables: serde_json::Map<_, _> =
            settings.variables.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        output.json(&json!({
            "agent": agent.name(),
            "url": url,
            "variables": variables,
            "arguments": settings.arguments,
            "notes": routing.notes,
        }))?;
        output.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in shell_lines(agent, &settings) {
        output.write(format!("{line}\n").as_bytes())?;
    }
    output.finish()?;
    for note in &routing.notes {
        say(&format!("note: {note}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats the settings as shell commands.
fn shell_lines(agent: Agent, settings: &LaunchSettings) -> Vec<String> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let mut lines: Vec<String> =
        settings.variables.iter().map(|(name, value)| format!("export {name}={}", quoted(value))).collect();
    if !settings.arguments.is_empty() {
        let arguments: Vec<String> = settings.arguments.iter().map(|argument| quoted(argument)).collect();
        lines.push(format!("alias {0}=\"{0} {1}\"", agent.name(), arguments.join(" ").replace('"', "\\\"")));
    }
    lines
}
