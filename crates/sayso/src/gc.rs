//! `sayso gc`: drops what is old, and repairs.

use std::process::ExitCode;
use std::time::Duration;

use sayso_api::proto;
use sayso_journal::Options;
use sayso_review::ErrorKind;
use sayso_server::EnginePlace;
use serde_json::json;

use crate::agents;
use crate::cli::GcArguments;
use crate::engine::Connected;
use crate::failure::Failure;
use crate::history::megabytes;
use crate::output::{Output, say};
use crate::state::{State, now};

pub(crate) fn run(arguments: &GcArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    agents::refuse(&state)?;
    let mut output = Output::stdout();
    let repaired = if arguments.repair {
        if let Ok(Some(_)) = EnginePlace::new(&state.folder).connect() {
            let text = format!("an engine works with the records of {}", state.root.display());
            return Err(
                Failure::of(ErrorKind::Conflict, text).hint("end it first; `sayso doctor` says which process it is")
            );
        }
        let repaired =
            sayso_journal::repair(&state.folder, Options { wait: Duration::from_secs(10) }).map_err(|error| {
                let failure = Failure::of(error.kind(), error.to_string());
                match error.hint() {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            })?;
        if !arguments.place.json {
            say(&format!(
                "Saved {} events and {} contents; lost {} and {}.",
                repaired.events_saved, repaired.blobs_saved, repaired.events_lost, repaired.blobs_lost
            ));
            repaired.troubles.iter().for_each(|trouble| say(&format!("note: {trouble}")));
            if let Some(damaged) = &repaired.damaged {
                say(&format!("The damaged file is kept as {}", damaged.display()));
            }
        }
        Some(repaired)
    } else {
        None
    };
    let before = now() - i64::from(arguments.older_than) * 24 * 3600 * 1000;
    let most = arguments.most.map(|megabytes| megabytes.saturating_mul(1_000_000));
    if !state.has_history() {
        say(&format!("Nothing is recorded for {}.", state.root.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let connected = Connected::to(&state)?;
    agents::tell_what_still_runs(&state);
    let collected = connected.block(connected.client().collect(before, most))?;
    let cancelled = &collected.cancelled;
    if arguments.place.json {
        output.json(&json!({
            "cancelled_changes": cancelled,
            "dropped_contents": collected.dropped,
            "freed_bytes": collected.freed_bytes,
            "compressed_contents": collected.compressed,
            "repaired": repaired.map(|repaired| json!({
                "events_saved": repaired.events_saved, "events_lost": repaired.events_lost,
                "contents_saved": repaired.blobs_saved, "contents_lost": repaired.blobs_lost,
            })),
        }))?;
    } else {
        if !cancelled.is_empty() {
            let numbers: Vec<String> = cancelled.iter().map(ToString::to_string).collect();
            output.write(format!("Cancelled what nobody is left to decide: {}.\n", numbers.join(", ")).as_bytes())?;
        }
        output.write(format!("{}\n", dropped(&collected, arguments)).as_bytes())?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// What was dropped, and why it could be.
fn dropped(collected: &proto::CollectResponse, arguments: &GcArguments) -> String {
    let days = arguments.older_than;
    let count = match collected.dropped {
        0 => return format!("Nothing to drop: all that is kept is needed, and younger than {days} days."),
        1 => "1 content".to_owned(),
        count => format!("{count} contents"),
    };
    let most = arguments.most.map(|most| format!(", or are more than {most} MB")).unwrap_or_default();
    let freed = megabytes(collected.freed_bytes);
    format!("Dropped {count} that no change needs any more, or none younger than {days} days{most}; freed {freed}.")
}
