//! `sayso gc`: deletes old contents, cancels orphaned changes, and repairs the journal.

use std::process::ExitCode;
use std::time::Duration;

use sayso_api::proto;
use sayso_journal::Options;
use sayso_present::words::{count, format_size};
use sayso_review::ErrorKind;
use sayso_server::EngineSocket;
use serde_json::json;

use crate::agents;
use crate::cli::GcArguments;
use crate::engine::EngineConnection;
use crate::error::CliError;
use crate::output::{Output, say};
use crate::workspace_location::{WorkspaceLocation, now};

/// Time for another process to close the journal.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(arguments: &GcArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    agents::refuse(&location)?;
    let mut output = Output::stdout();
    let repaired = if arguments.repair {
        if let Ok(Some(_)) = EngineSocket::new(&location.folder).connect() {
            let text = format!("an engine works with the records of {}", location.root.display());
            return Err(
                CliError::new(ErrorKind::Conflict, text).hint("end it first; `sayso doctor` says which process it is")
            );
        }
        let repaired = sayso_journal::repair(&location.folder, Options { wait: LOCK_TIMEOUT })
            .map_err(|error| CliError::new(error.kind(), error.to_string()).optional_hint(error.hint()))?;
        if !arguments.common.json {
            say(&format!(
                "Saved {} events and {} contents; lost {} and {}.",
                repaired.events_saved, repaired.blobs_saved, repaired.events_lost, repaired.blobs_lost
            ));
            repaired.read_errors.iter().for_each(|error| say(&format!("note: {error}")));
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
    if !location.has_history() {
        say(&format!("Nothing is recorded for {}.", location.root.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let engine = EngineConnection::open(&location)?;
    agents::report_orphaned_commands(&location);
    let collected = engine.block(engine.client().collect(before, most))?;
    let cancelled = &collected.cancelled;
    if arguments.common.json {
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
            output.write(format!("Cancelled orphaned changes: {}.\n", numbers.join(", ")).as_bytes())?;
        }
        output.write(format!("{}\n", dropped(&collected, arguments)).as_bytes())?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Describes the deleted contents.
fn dropped(collected: &proto::CollectResponse, arguments: &GcArguments) -> String {
    let days = arguments.older_than;
    if collected.dropped == 0 {
        return format!("Nothing to drop: all that is kept is needed, and younger than {days} days.");
    }
    let contents = count(collected.dropped, "content");
    let most = arguments.most.map(|most| format!(", or are more than {most} MB")).unwrap_or_default();
    let freed = format_size(collected.freed_bytes);
    format!("Dropped {contents} that no change needs any more, or none younger than {days} days{most}; freed {freed}.")
}
