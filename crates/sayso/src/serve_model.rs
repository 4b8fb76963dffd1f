//! `sayso serve-model`: a model server that plays a script.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use sayso_scripted_model::{CONTROL_PATH, MAX_SCRIPT_BYTES, ModelServer, Script};
use serde_json::json;
use signal_hook::iterator::Signals;

use crate::cli::ServeModelArguments;
use crate::error::{CliError, DENIED};
use crate::output::{Output, say};
use crate::signals::{TERMINATION_SIGNALS, handler_error};

/// Base URL of each API, below the server's address, in the form that its SDK expects.
const BASES: [(&str, &str); 4] =
    [("anthropic", ""), ("openai-chat", "/v1"), ("openai-responses", "/v1"), ("gemini", "")];

pub(crate) fn run(arguments: &ServeModelArguments) -> Result<ExitCode, CliError> {
    let script = read_script(&arguments.script)?;
    if arguments.check {
        return report_checked(arguments, &script);
    }
    // Installed first, so that a signal right after the announcement ends the server in order.
    let mut signals = Signals::new(TERMINATION_SIGNALS).map_err(|error| handler_error(&error))?;
    let turns = script.turn_count();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let server = ModelServer::play(address, script).map_err(|error| {
        CliError::io(format!("cannot listen on {address}"), &error).hint("choose another port, or 0 for any")
    })?;
    announce(arguments, &server, turns)?;
    signals.forever().next();
    let mismatches = server.mismatches();
    for mismatch in &mismatches {
        say(&format!("not met: {mismatch}"));
    }
    Ok(if mismatches.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DENIED) })
}

fn read_script(path: &Path) -> Result<Script, CliError> {
    let name = path.display().to_string();
    let failed = |error: &std::io::Error| {
        CliError::invalid_input(format!("cannot read `{name}`"))
            .caused_by(error)
            .hint("name a YAML file; docs/scripted-model.md shows an example")
    };
    // One byte more than allowed, so that the script's own check rejects a longer file without reading all of it.
    let limit = MAX_SCRIPT_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    if name == "-" {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    } else {
        let file = std::fs::File::open(path).map_err(|error| failed(&error))?;
        file.take(limit).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    }
    let file = if name == "-" { "standard input" } else { &name };
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.split(|byte| *byte == b'\n').count();
        CliError::invalid_input(format!("{file}:{line}: the script is not UTF-8")).hint("save it as UTF-8")
    })?;
    Script::parse(&text, file).map_err(|error| CliError::invalid_input(error.to_string()).hint(error.hint()))
}

fn report_checked(arguments: &ServeModelArguments, script: &Script) -> Result<ExitCode, CliError> {
    let turns = script.turn_count();
    let mut output = Output::stdout();
    if arguments.json {
        output.json(&json!({ "turns": turns, "rules": script.rule_count() }))?;
    } else {
        output.write(format!("{turns} turns, {} rules, no error\n", script.rule_count()).as_bytes())?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the address and the base URL of each API.
fn announce(arguments: &ServeModelArguments, server: &ModelServer, turns: usize) -> Result<(), CliError> {
    let url = server.url();
    let mut output = Output::stdout();
    if arguments.json {
        let bases: serde_json::Map<_, _> =
            BASES.iter().map(|(api, path)| ((*api).to_owned(), json!(format!("{url}{path}")))).collect();
        // One line, which a program can read while the server runs.
        let object = json!({ "url": url, "base_urls": bases, "turns": turns, "process": std::process::id() });
        output.write(format!("{object}\n").as_bytes())?;
        return output.finish();
    }
    let mut text = format!("Serving {turns} scripted turns at {url}\n");
    for (api, path) in BASES {
        text.push_str(&format!("  {api:<17} {url}{path}\n"));
    }
    text.push_str(&format!("Requests so far: curl -s {url}{CONTROL_PATH}/requests\nCtrl-C ends it.\n"));
    output.write(text.as_bytes())?;
    output.finish()
}
