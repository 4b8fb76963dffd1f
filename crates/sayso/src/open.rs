//! `sayso open`: opens the web app in a browser, logged in.

use std::env;
use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitCode, Stdio};

use sayso_server::EngineSocket;
use serde_json::json;

use crate::agents;
use crate::cli::OpenArguments;
use crate::engine::EngineConnection;
use crate::error::CliError;
use crate::output::{Output, say};
use crate::workspace_location::WorkspaceLocation;

pub(crate) fn run(arguments: &OpenArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    agents::refuse(&location)?;
    if EngineSocket::new(&location.folder).server().is_none() {
        return Err(CliError::invalid_input("no `sayso serve` runs in this workspace, so there is no page to open")
            .hint("start `sayso serve` in another terminal and run this again"));
    }
    let engine = EngineConnection::open(&location)?;
    let login = engine.block(engine.client().create_login(true))?;
    let link = match &arguments.view {
        Some(view) => format!("{}?next={view}", login.secret),
        None => login.secret,
    };
    let mut output = Output::stdout();
    if arguments.common.json {
        output.json(&json!({ "url": login.url, "link": link }))?;
    } else {
        output.write(format!("{link}\n").as_bytes())?;
    }
    output.finish()?;
    if !arguments.print && !arguments.common.json {
        announce(&link);
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens a login link in the browser of the person, and says so, or why not.
pub(crate) fn announce(link: &str) {
    say(&match start_browser(link) {
        Ok(browser) => format!("Opening it with {browser}. The link opens once, within five minutes."),
        Err(reason) => format!("note: {reason}. Open the link yourself, once, within five minutes."),
    });
}

/// Starts the browser of the person and returns its name, or the reason why none was started.
fn start_browser(link: &str) -> Result<String, String> {
    let program = browser()?;
    let name = program.to_string_lossy().into_owned();
    let silent = Stdio::null;
    match Command::new(&program).arg(link).stdin(silent()).stdout(silent()).stderr(silent()).spawn() {
        Ok(_) => Ok(name),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!("`{name}` is not installed")),
        Err(error) => Err(format!("cannot start `{name}`: {error}")),
    }
}

/// The program that opens a link: `$BROWSER`, or that of the desktop.
fn browser() -> Result<OsString, String> {
    if let Some(named) = env::var_os("BROWSER").filter(|named| !named.is_empty()) {
        return Ok(named);
    }
    if cfg!(target_os = "macos") {
        return Ok("open".into());
    }
    if env::var_os("DISPLAY").or_else(|| env::var_os("WAYLAND_DISPLAY")).is_none() {
        return Err(if env::var_os("SSH_CONNECTION").is_some() {
            "this is an SSH session; forward the port first with `ssh -L PORT:localhost:PORT HOST`".to_owned()
        } else {
            "there is no desktop here, and $BROWSER names no browser".to_owned()
        });
    }
    Ok("xdg-open".into())
}
