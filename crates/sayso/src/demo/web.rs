//! `sayso demo --web`: the built-in agent works in the throw-away workspace, and the person decides in the browser.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use sayso_review::ErrorKind;
use sayso_scripted_model::{ModelServer, Script};
use signal_hook::iterator::Signals;

use super::stage::{Failed, Stage};
use super::{FILE, ORIGINAL, report};
use crate::error::CliError;
use crate::open::announce;
use crate::output::print;
use crate::signals::TERMINATION_SIGNALS;

/// The model's part. It expects nothing, because the person decides freely.
const SCRIPT: &str = include_str!("web.yaml");

pub(super) fn run() -> Result<ExitCode, CliError> {
    let mut signals =
        Signals::new(TERMINATION_SIGNALS).map_err(|error| CliError::io("cannot handle signals", &error))?;
    let script = Script::parse(SCRIPT, "the demo's script")
        .map_err(|error| CliError::new(ErrorKind::Internal, error.to_string()).hint(error.hint()))?;
    let model = ModelServer::play(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), script)
        .map_err(|error| CliError::io("cannot start the scripted model", &error))?;
    let stage = Stage::new(&model.url(), &[(FILE, ORIGINAL)])?;
    match play(&stage, &mut signals) {
        Ok(()) => {
            print("\nThe workspace is removed.\n")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(failed) => Ok(report(&failed)),
    }
}

fn play(stage: &Stage, signals: &mut Signals) -> Result<(), Failed> {
    let write = |text: &str| print(text).map_err(|error| Failed(error.message()));
    let mut agent = stage.start_agent(&["Make the greeting friendlier."])?;
    let link = stage.login_link(&format!("/session/{}", agent.session))?;
    write(&format!("\n{link}\n"))?;
    announce(&link);
    write(
        "\nThe agent proposes hunks of one file. Select those you want with space, `y` approves them, `n` denies with a reason.\n\
         Then it asks to run a command. `?` shows the keys. Write to the agent below the stream.\n\
         Ctrl-C ends the demo and removes its workspace.\n\n",
    )?;
    agent.show_until(|| {
        signals.forever().next();
    })
}
