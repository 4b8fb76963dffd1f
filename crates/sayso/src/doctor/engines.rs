//! Running engines, and sockets of ended engines.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sayso_api::client::{Client, RetryBudget, Status, StatusDetail};
use sayso_present::words::{count, format_age, format_size};
use sayso_server::EngineSocket;
use serde_json::{Value, json};

use super::DoctorFinding;
use crate::engine::runtime;
use crate::error::CliError;
use crate::hook::RunningEngine;
use crate::workspace_location::now;

/// Time for an engine to answer.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of a workspace's socket.
enum EngineState {
    Running(Box<Status>),
    /// A process listens and does not answer properly. Holds the reason.
    Unresponsive(String),
    /// No process listens: an engine was killed.
    Stale,
}

/// An engine, with the folder of its workspace.
pub(super) struct InspectedEngine {
    folder: PathBuf,
    state: EngineState,
}

/// Inspects the engines of all workspaces.
pub(super) fn inspect_all(folders: &[PathBuf]) -> Result<Vec<InspectedEngine>, CliError> {
    let mut engines = Vec::new();
    for folder in folders {
        engines.extend(inspect(folder)?.map(|state| InspectedEngine { folder: folder.clone(), state }));
    }
    Ok(engines)
}

pub(super) fn findings(engines: &[InspectedEngine]) -> Vec<DoctorFinding> {
    if engines.is_empty() {
        let text = "no engine runs: every command starts one for itself, and `sayso serve` one for all";
        return vec![DoctorFinding::fine(text)];
    }
    engines.iter().map(InspectedEngine::finding).collect()
}

fn inspect(folder: &Path) -> Result<Option<EngineState>, CliError> {
    let place = EngineSocket::new(folder);
    if !place.path().exists() {
        return Ok(None);
    }
    match place.connect() {
        Ok(None) => return Ok(Some(EngineState::Stale)),
        Err(error) => return Ok(Some(EngineState::Unresponsive(error.to_string()))),
        Ok(Some(_)) => {}
    }
    let runtime = runtime()?;
    let client =
        Client::new(Arc::new(RunningEngine(place)), None).with_retry_budget(RetryBudget::Limited(Duration::ZERO));
    let answer = runtime.block_on(async {
        tokio::time::timeout(STATUS_TIMEOUT, client.status(StatusDetail::Full { max_pending: 0 })).await
    });
    Ok(Some(match answer {
        Ok(Ok(status)) => EngineState::Running(Box::new(status)),
        Ok(Err(error)) => EngineState::Unresponsive(error.to_string()),
        Err(_) => EngineState::Unresponsive("it does not answer".to_owned()),
    }))
}

impl InspectedEngine {
    fn finding(&self) -> DoctorFinding {
        let folder = self.folder.display();
        match &self.state {
            EngineState::Running(status) => {
                let url = status.url.as_deref().unwrap_or("its socket only, for as long as its command runs");
                let (started, surfaces) = (format_age(now() - status.started), status.surfaces);
                let surfaces = count(surfaces, "surface");
                DoctorFinding::fine(format!(
                    "{}: process {}, sayso {}, since {started}\nreached at {url}\n{} changes, {} waiting, {surfaces} \
                     attached\nrecords in {}, {}",
                    status.workspace,
                    status.process,
                    status.version,
                    status.changes,
                    status.pending,
                    status.journal,
                    format_size(status.stored_bytes)
                ))
            }
            EngineState::Unresponsive(why) => DoctorFinding::problem(
                format!("{folder}: a process listens at its socket and does not answer: {why}"),
                "end that process; nothing is lost",
            ),
            EngineState::Stale => DoctorFinding::note(
                format!("{folder}: an engine was killed here"),
                "nothing: the next start completes or rolls back its work",
            ),
        }
    }

    pub(super) fn object(&self) -> Value {
        let folder = self.folder.to_string_lossy();
        match &self.state {
            EngineState::Running(status) => json!({
                "state": "running", "workspace": status.workspace, "journal": status.journal, "process": status.process,
                "version": status.version, "started": status.started, "url": status.url, "changes": status.changes,
                "pending": status.pending, "surfaces": status.surfaces, "stored_bytes": status.stored_bytes,
            }),
            EngineState::Unresponsive(why) => json!({ "state": "unresponsive", "journal": folder, "why": why }),
            EngineState::Stale => json!({ "state": "stale", "journal": folder }),
        }
    }
}
