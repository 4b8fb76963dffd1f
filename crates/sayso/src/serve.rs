//! `sayso serve`: serves the engine of a workspace.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use sayso_server::{EngineSocket, HttpOptions, PORT, PortChoice, Server, ServerNote, StartError, Timing, Token};
use serde_json::json;
use signal_hook::iterator::Signals;
use tracing_subscriber::EnvFilter;

use crate::agents;
use crate::cli::{LogFormat, ServeArguments};
use crate::config::Config;
use crate::error::CliError;
use crate::log::Log;
use crate::output::{Output, say};
use crate::settings::engine_options;
use crate::signals::{TERMINATION_SIGNALS, handler_error};
use crate::workspace_location::{WorkspaceLocation, check_clock, report_recovery};

/// Time for another command to finish its work and hand its engine over.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(30);
/// Levels of the log.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// Pause between attempts to start.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn run(arguments: &ServeArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    // An engine under the gate accepts no verdicts, and would block an engine outside.
    agents::refuse(&location)?;
    Config::load(&location)?.rules()?;
    check_clock()?;
    let log = log(arguments)?;
    let token = token(arguments)?;
    let mut waited = Duration::ZERO;
    let mut takeover = None;
    let server = loop {
        match Server::start(engine_options(&location), http(arguments, token.clone())) {
            Ok(server) => break server,
            Err(StartError::Taken) => {
                let place = EngineSocket::new(&location.folder);
                // A server that was killed leaves its note behind, but does not accept connections. The connection is tried first: a
                // new engine removes the old note before it opens its socket.
                if let (Ok(Some(_)), Some(note)) = (place.connect(), place.server()) {
                    return already(arguments, &location, &note);
                }
                if takeover.is_none() {
                    say("note: another sayso command has the engine of this workspace; it is asked to hand it over");
                    let failed = |error| StartError::Socket { path: place.path().display().to_string(), error };
                    takeover = Some(place.request_takeover().map_err(failed)?);
                }
                if waited > HANDOVER_TIMEOUT {
                    return Err(StartError::Taken.into());
                }
                std::thread::sleep(RETRY_PAUSE);
                waited += RETRY_PAUSE;
            }
            Err(error) => return Err(error.into()),
        }
    };
    location.record_root();
    // Kept until here, so that no other process starts an engine in between.
    drop(takeover);
    if let Some(recovered) = server.recovered() {
        report_recovery(recovered);
    }
    let stopper = server.stopper();
    let mut signals = Signals::new(TERMINATION_SIGNALS).map_err(|error| handler_error(&error))?;
    std::thread::spawn(move || {
        for (count, _) in signals.forever().enumerate() {
            stopper.stop();
            if count > 0 {
                // The second signal ends the process now. The next start completes or rolls back an interrupted write.
                signal_hook::low_level::exit(130);
            }
        }
    });
    announce(arguments, &location, &server, token.as_ref())?;
    let served = server.run();
    log.flush_lines();
    served?;
    if !arguments.common.json {
        say("Stopped.");
    }
    Ok(ExitCode::SUCCESS)
}

fn token(arguments: &ServeArguments) -> Result<Option<Token>, CliError> {
    if arguments.no_auth {
        say("warning: --no-auth: any program on this machine can read and propose, and so can any agent");
        return Ok(None);
    }
    let token = match &arguments.auth_token {
        Some(text) => {
            Token::new(text).map_err(|error| CliError::invalid_input(error.to_string()).hint(error.hint()))?
        }
        None => Token::random().map_err(|error| CliError::io("cannot create a token", &error))?,
    };
    Ok(Some(token))
}

fn http(arguments: &ServeArguments, token: Option<Token>) -> HttpOptions {
    HttpOptions {
        address: SocketAddr::new(arguments.listen, arguments.port.unwrap_or(PORT)),
        port: if arguments.port.is_some() { PortChoice::Exactly } else { PortChoice::OrNext },
        token,
        hosts: arguments.allow_host.clone(),
        origins: arguments.allow_origin.clone(),
        timing: Timing::DEFAULT,
    }
}

/// Prints the address, the token and the next steps.
fn announce(
    arguments: &ServeArguments,
    location: &WorkspaceLocation,
    server: &Server,
    token: Option<&Token>,
) -> Result<(), CliError> {
    let (url, link) = (server.url.as_str(), server.login_link()?);
    let mut output = Output::stdout();
    let socket = EngineSocket::new(&location.folder).path();
    if arguments.common.json {
        let object = json!({
            "url": url,
            "link": link,
            "token": token.map(Token::reveal),
            "socket": socket.to_string_lossy(),
            "workspace": location.root.to_string_lossy(),
            "process": std::process::id(),
        });
        // One line, which a program can read while the server runs.
        output.write(format!("{object}\n").as_bytes())?;
        return output.finish();
    }
    if arguments.port.is_none() && !url.ends_with(&format!(":{PORT}")) {
        say(&format!("note: port {PORT} is taken, so this is the next one that is free"));
    }
    let mut text = format!("Serving {} at {url}\n", location.root.display());
    text.push_str(&format!(
        "Open    {link}\n        opens the web app once, within five minutes; sayso open makes a new link\n"
    ));
    let header = token.map(|token| format!(" -H 'Authorization: Bearer {}'", token.reveal())).unwrap_or_default();
    if let Some(token) = token {
        text.push_str(&format!("Token   {}\n", token.reveal()));
    }
    text.push_str("        reads and proposes; a verdict over HTTP needs a login: sayso login\n");
    if !arguments.listen.is_loopback() {
        let port = url.rsplit(':').next().unwrap_or_default();
        text.push_str(&format!(
            "Others  reach it at this machine's addresses, port {port}; under a name with --allow-host NAME\n\
             warning: plain HTTP can be read and changed on the way; docs/server.md shows how to put TLS before it\n"
        ));
    }
    text.push_str(&format!(
        "\nDecide in another terminal:  sayso review --follow\nRun an agent under the gate: sayso run -- claude\n\
         Ask with curl:               curl{header} -H 'Content-Type: application/json' -d '{{}}' {url}/sayso.v1.ReviewService/Status\n\
         Ctrl-C ends it.\n"
    ));
    output.write(text.as_bytes())?;
    output.finish()
}

/// Prints the address of the server that runs already.
fn already(arguments: &ServeArguments, location: &WorkspaceLocation, note: &ServerNote) -> Result<ExitCode, CliError> {
    let mut output = Output::stdout();
    if arguments.common.json {
        let socket = EngineSocket::new(&location.folder).path();
        let object = json!({
            "url": note.url, "token": note.token, "process": note.process, "already": true,
            "socket": socket.to_string_lossy(), "workspace": location.root.to_string_lossy(),
        });
        output.write(format!("{object}\n").as_bytes())?;
    } else {
        let (root, url, process) = (location.root.display(), &note.url, note.process);
        output.write(
            format!("{root} is served already, at {url} by process {process}.\nOpen    sayso open\n").as_bytes(),
        )?;
        if let Some(token) = &note.token {
            output.write(format!("Token   {token}\n").as_bytes())?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn log(arguments: &ServeArguments) -> Result<Log, CliError> {
    let bad = |level: &str| {
        CliError::invalid_input(format!("`{level}` is not a log level"))
            .hint("use error, warn, info, debug, trace or off; or directives such as sayso_server=debug")
    };
    // The filter takes an unknown bare word for the name of a module, and would drop all lines.
    let is_level = |word: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
    let words = arguments.log.split(',').map(str::trim);
    if let Some(word) = words.clone().find(|word| !word.contains('=') && !is_level(word)) {
        return Err(bad(word));
    }
    let filter = EnvFilter::try_new(&arguments.log).map_err(|error| bad(&arguments.log).caused_by(&error))?;
    let log = Log::start(std::io::stderr()).map_err(|error| CliError::io("cannot start the log", &error))?;
    let ansi = std::io::stderr().is_terminal();
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(ansi).with_writer(log.clone());
    // Fails only if a subscriber is set already, which is done nowhere else.
    let _ = match arguments.log_format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().try_init(),
    };
    Ok(log)
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        Self::new(error.kind(), error.to_string()).optional_hint(error.hint())
    }
}
