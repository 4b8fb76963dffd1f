//! The engines that run, and what is left of those that do not.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sayso_api::client::{Client, Extent, Patience, Status};
use sayso_server::EnginePlace;
use serde_json::{Value, json};

use super::Finding;
use crate::failure::Failure;
use crate::history::{ago, megabytes};
use crate::hook::Running;
use crate::state::now;

/// What was found in the folder of a workspace.
enum Found {
    Runs(Box<Status>),
    /// Something listens and does not answer as it should.
    Sick(String),
    /// A socket that nobody listens at: an engine ended without taking it away.
    LeftBehind,
}

/// An engine that was found, with the folder of its workspace.
pub(super) struct Engine {
    folder: PathBuf,
    found: Found,
}

/// Looks at the engines of all workspaces.
pub(super) fn look_at_all(folders: &[PathBuf]) -> Result<Vec<Engine>, Failure> {
    let mut engines = Vec::new();
    for folder in folders {
        engines.extend(look(folder)?.map(|found| Engine { folder: folder.clone(), found }));
    }
    Ok(engines)
}

/// What is to be said of them.
pub(super) fn findings(engines: &[Engine]) -> Vec<Finding> {
    if engines.is_empty() {
        let text = "no engine runs: every command starts one for itself, and `sayso serve` one for all";
        return vec![Finding::fine(text)];
    }
    engines.iter().map(Engine::finding).collect()
}

fn look(folder: &Path) -> Result<Option<Found>, Failure> {
    let place = EnginePlace::new(folder);
    if !place.socket().exists() {
        return Ok(None);
    }
    match place.connect() {
        Ok(None) => return Ok(Some(Found::LeftBehind)),
        Err(error) => return Ok(Some(Found::Sick(error.to_string()))),
        Ok(Some(_)) => {}
    }
    let failed = |error: std::io::Error| Failure::bad_input("an engine cannot be asked").why(&error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let client = Client::new(Arc::new(Running(place)), None).with_patience(Patience::For(std::time::Duration::ZERO));
    let answer = runtime.block_on(async {
        tokio::time::timeout(std::time::Duration::from_secs(5), client.status(Extent::Details { most_waiting: 0 }))
            .await
    });
    Ok(Some(match answer {
        Ok(Ok(status)) => Found::Runs(Box::new(status)),
        Ok(Err(error)) => Found::Sick(error.to_string()),
        Err(_) => Found::Sick("it does not answer".to_owned()),
    }))
}

impl Engine {
    fn finding(&self) -> Finding {
        let folder = self.folder.display();
        match &self.found {
            Found::Runs(status) => {
                let url = status.url.as_deref().unwrap_or("its socket only, for as long as its command runs");
                let (started, surfaces) = (ago(now() - status.started), status.surfaces);
                let surfaces = if surfaces == 1 { "1 surface".to_owned() } else { format!("{surfaces} surfaces") };
                Finding::fine(format!(
                    "{}: process {}, sayso {}, since {started}\nreached at {url}\n{} changes, {} waiting, {surfaces} \
                     attached\nrecords in {}, {}",
                    status.workspace,
                    status.process,
                    status.version,
                    status.changes,
                    status.pending,
                    status.journal,
                    megabytes(status.stored_bytes)
                ))
            }
            Found::Sick(why) => Finding::problem(
                format!("{folder}: something listens at its socket and does not answer: {why}"),
                "end that process; nothing is lost",
            ),
            Found::LeftBehind => Finding::note(
                format!("{folder}: an engine ended here without a goodbye"),
                "nothing: the next start settles what it was at",
            ),
        }
    }

    pub(super) fn object(&self) -> Value {
        let folder = self.folder.to_string_lossy();
        match &self.found {
            Found::Runs(status) => json!({
                "state": "runs", "workspace": status.workspace, "journal": status.journal, "process": status.process,
                "version": status.version, "started": status.started, "url": status.url, "changes": status.changes,
                "pending": status.pending, "surfaces": status.surfaces, "stored_bytes": status.stored_bytes,
            }),
            Found::Sick(why) => json!({ "state": "sick", "journal": folder, "why": why }),
            Found::LeftBehind => json!({ "state": "left_behind", "journal": folder }),
        }
    }
}
