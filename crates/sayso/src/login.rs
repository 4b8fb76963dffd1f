//! `sayso login`: prints a login for verdicts over HTTP.

use std::process::ExitCode;

use sayso_server::EngineSocket;
use serde_json::json;

use crate::agents;
use crate::cli::LoginArguments;
use crate::engine::EngineConnection;
use crate::error::CliError;
use crate::output::Output;
use crate::workspace_location::WorkspaceLocation;

pub(crate) fn run(arguments: &LoginArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    agents::refuse(&location)?;
    if EngineSocket::new(&location.folder).server().is_none() {
        return Err(CliError::invalid_input("no `sayso serve` runs in this workspace, so there is nowhere to log in")
            .hint("start `sayso serve` and run this again"));
    }
    let engine = EngineConnection::open(&location)?;
    let login = engine.block(engine.client().create_login(arguments.link))?;
    let mut output = Output::stdout();
    if arguments.common.json {
        let name = if arguments.link { "link" } else { "login" };
        output.json(&json!({ "url": login.url, name: login.secret }))?;
    } else {
        output.write(format!("{}\n", login.secret).as_bytes())?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}
