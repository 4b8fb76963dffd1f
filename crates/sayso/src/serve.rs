//! `sayso serve`: the engine of a workspace for surfaces and entrances.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use sayso_server::{EnginePlace, HttpOptions, PORT, PortChoice, Server, ServerNote, StartError, Timing, Token};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing_subscriber::EnvFilter;

use crate::agents;
use crate::cli::{LogFormat, ServeArguments};
use crate::config::Config;
use crate::failure::Failure;
use crate::log::Log;
use crate::output::{Output, say};
use crate::settings::engine_options;
use crate::state::{State, check_clock, tell};

/// How long to wait for a command that has the engine, and finishes what it is at before it hands it over.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much a log tells.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// How long until it is looked at again.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn run(arguments: &ServeArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    // An engine under the gate takes no verdicts, and would be in the way of one that does.
    agents::refuse(&state)?;
    Config::load(&state)?.rules()?;
    check_clock()?;
    let log = log(arguments)?;
    let token = token(arguments)?;
    let mut waited = Duration::ZERO;
    let mut wanting = None;
    let server = loop {
        match Server::start(engine_options(&state), http(arguments, token.clone())) {
            Ok(server) => break server,
            Err(StartError::Taken) => {
                let place = EnginePlace::new(&state.folder);
                // One that is on its way out, or was killed, still has its note, and answers no more. Looked at in this order: once
                // there is a new socket, there is no old note.
                if let (Ok(Some(_)), Some(note)) = (place.connect(), place.server()) {
                    return already(arguments, &state, &note);
                }
                if wanting.is_none() {
                    say("note: another sayso command has the engine of this workspace; it is asked to hand it over");
                    let failed = |error| StartError::Socket { path: place.socket().display().to_string(), error };
                    wanting = Some(place.want().map_err(failed)?);
                }
                if waited > PATIENCE {
                    return Err(StartError::Taken.into());
                }
                std::thread::sleep(PAUSE);
                waited += PAUSE;
            }
            Err(error) => return Err(error.into()),
        }
    };
    state.remember();
    // Everybody finds it from here on.
    drop(wanting);
    if let Some(recovered) = server.recovered() {
        tell(recovered);
    }
    let stopper = server.stopper();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::bad_input("signals cannot be waited for").why(&error))?;
    std::thread::spawn(move || {
        for (count, _) in signals.forever().enumerate() {
            stopper.stop();
            if count > 0 {
                // Asked twice, they want it now; what is being written is finished or taken back by the next start.
                signal_hook::low_level::exit(130);
            }
        }
    });
    announce(arguments, &state, &server.url, token.as_ref())?;
    let served = server.run();
    log.end();
    served?;
    if !arguments.place.json {
        say("Stopped.");
    }
    Ok(ExitCode::SUCCESS)
}

fn token(arguments: &ServeArguments) -> Result<Option<Token>, Failure> {
    if arguments.no_auth {
        say("warning: --no-auth: any program on this machine can read and propose, and so can any agent");
        return Ok(None);
    }
    let token = match &arguments.auth_token {
        Some(text) => Token::new(text).map_err(|error| Failure::bad_input(error.to_string()).hint(error.hint()))?,
        None => Token::random().map_err(|error| Failure::bad_input("no token can be made").why(&error))?,
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
        timing: Timing::USUAL,
    }
}

/// Says where the server is and what to do next.
fn announce(arguments: &ServeArguments, state: &State, url: &str, token: Option<&Token>) -> Result<(), Failure> {
    let mut output = Output::stdout();
    let socket = EnginePlace::new(&state.folder).socket();
    if arguments.place.json {
        let object = json!({
            "url": url,
            "token": token.map(Token::reveal),
            "socket": socket.to_string_lossy(),
            "workspace": state.root.to_string_lossy(),
            "process": std::process::id(),
        });
        // One line, so that a program can read it while we go on.
        output.write(format!("{object}\n").as_bytes())?;
        return output.finish();
    }
    if arguments.port.is_none() && !url.ends_with(&format!(":{PORT}")) {
        say(&format!("note: port {PORT} is taken, so this is the next one that is free"));
    }
    let mut text = format!("Serving {} at {url}\n", state.root.display());
    let header = token.map(|token| format!(" -H 'Authorization: Bearer {}'", token.reveal())).unwrap_or_default();
    if let Some(token) = token {
        text.push_str(&format!("Token   {}\n", token.reveal()));
    }
    text.push_str("        reads and proposes; a verdict over HTTP needs a login: sayso login\n");
    if !arguments.listen.is_loopback() {
        let port = url.rsplit(':').next().unwrap_or_default();
        text.push_str(&format!(
            "Others  reach it at this machine's addresses, port {port}; under a name with --allow-host NAME\n"
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

/// Says where the engine of this workspace is served already.
fn already(arguments: &ServeArguments, state: &State, note: &ServerNote) -> Result<ExitCode, Failure> {
    let mut output = Output::stdout();
    if arguments.place.json {
        let socket = EnginePlace::new(&state.folder).socket();
        let object = json!({
            "url": note.url, "token": note.token, "process": note.process, "already": true,
            "socket": socket.to_string_lossy(), "workspace": state.root.to_string_lossy(),
        });
        output.write(format!("{object}\n").as_bytes())?;
    } else {
        let (root, url, process) = (state.root.display(), &note.url, note.process);
        output.write(format!("{root} is served already, at {url} by process {process}.\n").as_bytes())?;
        if let Some(token) = &note.token {
            output.write(format!("Token   {token}\n").as_bytes())?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn log(arguments: &ServeArguments) -> Result<Log, Failure> {
    let bad = |what: &str| {
        Failure::bad_input(format!("`{what}` is no level of a log"))
            .hint("error, warn, info, debug, trace or off; or directives such as sayso_server=debug")
    };
    // A bare word that is none would pass for the name of a part, of which nothing is heard.
    let is_level = |word: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
    let words = arguments.log.split(',').map(str::trim);
    if let Some(word) = words.clone().find(|word| !word.contains('=') && !is_level(word)) {
        return Err(bad(word));
    }
    let filter = EnvFilter::try_new(&arguments.log).map_err(|error| bad(&arguments.log).why(&error))?;
    let log = Log::to(std::io::stderr()).map_err(|error| Failure::bad_input("no log can be written").why(&error))?;
    let ansi = std::io::stderr().is_terminal();
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(ansi).with_writer(log.clone());
    // Set once, here.
    let _ = match arguments.log_format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().try_init(),
    };
    Ok(log)
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let failure = Self::of(error.kind(), error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
