//! `sayso env`: the settings that send an agent's requests through us.

use std::process::ExitCode;

use sayso_adapters::traffic::{Pointing, Speaker, Telling};
use sayso_api::proto;
use serde_json::json;

use crate::cli::EnvArguments;
use crate::engine::Connected;
use crate::failure::Failure;
use crate::output::Output;
use crate::state::State;
use crate::traffic::Here;

pub(crate) fn run(arguments: &EnvArguments) -> Result<ExitCode, Failure> {
    let speaker: Speaker = arguments.agent.parse().map_err(|error: sayso_adapters::traffic::UnknownSpeaker| {
        Failure::of(error.kind(), error.to_string()).hint(error.hint())
    })?;
    let state = State::find(&arguments.place)?;
    // Where nothing was ever recorded nobody serves, and no trace of the question is left.
    let connected = Connected::asking(&state)?;
    let pointing = Pointing::new(speaker, &Here(speaker));
    let request = proto::LastingEntranceRequest {
        agent: Some(speaker.name().to_owned()),
        upstreams: pointing.upstreams.clone().into_iter().collect(),
        ..Default::default()
    };
    let entrance = connected.block(connected.client().lasting_entrance(request))?.entrance;
    let Some(url) = &entrance.url else {
        return Err(Failure::bad_input(
            "no `sayso serve` runs in this workspace, so that there is no address to send requests to",
        )
        .hint(format!(
            "start `sayso serve` and ask again, or let sayso do it all: `sayso run -- {}`",
            speaker.name()
        )));
    };
    let telling = pointing.tell(url);
    let mut out = Output::stdout();
    if arguments.place.json {
        let variables: serde_json::Map<_, _> =
            telling.variables.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let told = json!({"agent": speaker.name(), "url": url, "variables": variables, "arguments": telling.arguments, "notes": pointing.notes});
        out.json(&told)?;
        out.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in lines(speaker, &telling) {
        out.write(format!("{line}\n").as_bytes())?;
    }
    out.finish()?;
    for note in &pointing.notes {
        crate::output::say(&format!("note: {note}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The settings as a shell takes them.
fn lines(speaker: Speaker, telling: &Telling) -> Vec<String> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let mut lines: Vec<String> =
        telling.variables.iter().map(|(name, value)| format!("export {name}={}", quoted(value))).collect();
    if !telling.arguments.is_empty() {
        let arguments: Vec<String> = telling.arguments.iter().map(|argument| quoted(argument)).collect();
        lines.push(format!("alias {0}=\"{0} {1}\"", speaker.name(), arguments.join(" ").replace('"', "\\\"")));
    }
    lines
}
