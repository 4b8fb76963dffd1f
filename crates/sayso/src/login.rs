//! `sayso login`: a login for verdicts over HTTP.

use std::process::ExitCode;

use sayso_server::EnginePlace;
use serde_json::json;

use crate::agents;
use crate::cli::LoginArguments;
use crate::engine::Connected;
use crate::failure::Failure;
use crate::output::Output;
use crate::state::State;

pub(crate) fn run(arguments: &LoginArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    agents::refuse(&state)?;
    if EnginePlace::new(&state.folder).server().is_none() {
        return Err(Failure::bad_input("no `sayso serve` runs in this workspace, so there is nowhere to log in")
            .hint("start `sayso serve` and try again"));
    }
    let connected = Connected::to(&state)?;
    let login = connected.block(connected.client().create_login(arguments.link))?;
    let mut output = Output::stdout();
    if arguments.place.json {
        let name = if arguments.link { "link" } else { "login" };
        output.json(&json!({ "url": login.url, name: login.secret }))?;
    } else {
        output.write(format!("{}\n", login.secret).as_bytes())?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}
