//! `sayso watch`: prints events as they are recorded.

use std::process::ExitCode;

use sayso_api::client::{RetryBudget, Role, StatusDetail, Watched};
use sayso_api::proto;
use sayso_present::change::render_event;
use sayso_review::{ErrorKind, Recorded};

use crate::ansi::paint;
use crate::cli::WatchArguments;
use crate::engine::EngineConnection;
use crate::error::CliError;
use crate::output::Output;
use crate::signals::TerminationSignals;
use crate::terminal::Terminal;
use crate::workspace_location::{WorkspaceLocation, now};

pub(crate) fn run(arguments: &WatchArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    let signals = TerminationSignals::new()?;
    let engine = EngineConnection::open(&location)?;
    let client = engine.client();
    let after = match arguments.after {
        Some(after) => after,
        None => engine.block(client.status(StatusDetail::Counts))?.last_event,
    };
    let mut watch = client.watch(after, Role::Observer, RetryBudget::Unlimited);
    let terminal = Terminal::detect(arguments.common.color, arguments.common.theme);
    let mut output = Output::stdout();
    let followed = engine.wait(async {
        let mut signals = signals.listen()?;
        loop {
            let watched = tokio::select! {
                watched = watch.next() => watched?,
                () = signals.received() => return Ok(()),
            };
            let Watched::Event(recorded) = watched else { continue };
            let line = if arguments.common.json {
                event_json(&recorded)?
            } else {
                paint(&render_event(&recorded, now()), terminal)
            };
            output.write(line.as_bytes())?;
            output.write(b"\n")?;
            output.flush()?;
        }
    });
    match followed {
        Ok(()) | Err(CliError::BrokenPipe) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error),
    }
}

/// Formats an event as the JSON of the protocol.
fn event_json(recorded: &Recorded) -> Result<String, CliError> {
    serde_json::to_string(&proto::Event::from(recorded))
        .map_err(|error| CliError::new(ErrorKind::Internal, "cannot write the event as JSON").caused_by(&error))
}
